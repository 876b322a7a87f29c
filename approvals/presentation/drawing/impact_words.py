"""Puts an impact into words and a drawing, for a page.

Always in one order: what runs, is skipped, kept, undone, cannot be undone, what becomes of children, the run's
deadline, people. Steps are named by their titles.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from threading import RLock

from cachetools import LRUCache, cached
from django.template.loader import render_to_string
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from approvals.consequences import verbs
from approvals.english import count_of, join_names, noun_for, quote_titles
from approvals.impact.result import ChildVerdict, Impact, ImpactRow, ImpactVerdict, Repeat
from approvals.presentation.gate_facts.agreement import Agreement
from approvals.presentation.text import size_limit, untrusted
from checkpoints.runs.plans import in_words

from . import times
from .times import lasting, moment

DRAWN = 1_000_000  # characters of lines as HTML that a process caches
# Choice that approves -> heading.
HEADINGS = {
    "approve": "If you approve as proposed",
    "edit": "If you approve with your edit",
    "each": "If you send these verdicts",
    "override": "If you replace the result with this",
    "answer": "If you send this answer",
}
KEPT_NAMES = 6  # kept steps, and children, that are named one by one
SKIPPED = {"reject": "rejected", "respond": "answered instead", "later": "left for later"}  # why -> its words
ICONS = {"run": "play", "skip": "right", "reuse": "same"}  # others are called as their effects are
DRAWN_BEFORE, DRAWN_AFTER = 8, 6  # nodes of a track
RADIUS = {"undone": 6}
# Mark -> (how far right of its node it begins, its path, its tone): an equals sign, an arrow back.
GLYPHS = {"reused": (-2, "12.8h4m-4 2.4h4", ""), "undone": (2.5, "14h-5m2-2-2 2 2 2", "stop")}


@dataclass(frozen=True, kw_only=True)
class WordedImpact:
    """The impact of one choice: a heading, a drawing of the steps, and the same in words."""

    heading: str
    rows: tuple[ImpactLine, ...] = ()
    marks: tuple[str, ...] = ()  # of the track: reused, undone, run, ahead, and "held" once
    sends: str = ""  # the label of the button that sends it, where that depends on the choice
    choice: str = ""  # at a gate: the name under which its form posts the mark and the confirmations
    place: str = ""  # its place on the page, for its id
    shown: str = ""
    ticks: Sequence[RepeatBox] = ()

    @property
    def listing(self) -> SafeString:
        """Return the rows as HTML: the ways back of one gate, and the pages of its readers, have most in common."""
        return _drawn(self.rows)[0]

    @property
    def track(self) -> SafeString:
        """Draw what is done, the hold line, and what comes. Each mark is repeated as a word beside it."""
        held = self.marks.index("held") if "held" in self.marks else min(DRAWN_BEFORE, len(self.marks))
        inside = nodes((*self.marks[:held][-DRAWN_BEFORE:], *self.marks[held : held + 1 + DRAWN_AFTER]))
        label = ", ".join(" ".join([row.title, ", ".join(row.names)]).strip() for row in self.rows)
        return format_html(
            '<svg class="track" viewBox="0 0 340 28" role="img" aria-label="{}">{}</svg>',
            untrusted.plain(label),
            inside,
        )


@cached(LRUCache(DRAWN, itemgetter(1)), lock=RLock())
def _drawn(rows: Sequence[ImpactLine]) -> tuple[SafeString, int]:
    before = size_limit.asked()
    html = render_to_string("approvals/impact/rows.html", {"rows": rows})
    return html, len(html) if size_limit.asked() == before else DRAWN + 1  # marks are drawn as the page has room


def drawn(
    impact: Impact, heading: str, *, people: ImpactLine | None = None, later: bool = False, at_gate: bool = True
) -> WordedImpact:
    """Return an impact as a page shows it: run, reuse, undo, cannot undo, people.

    `people` is the last row; `later`: nothing runs before others have approved. Unless `at_gate`, the hold line is
    drawn where the run will wait next.
    """
    rows = (*lines_of(impact, later=later, at_gate=at_gate), *([people] if people else []))
    return WordedImpact(heading=heading, rows=rows, marks=_marks(impact, later=later, at_gate=at_gate))


def approval(
    choice: str, impact: Impact, agreement: Agreement, *, current: bool, elsewhere: tuple[str, ...] = ()
) -> WordedImpact:
    """Draw a choice that approves. `current`: it approves the current proposal or answer, as others may have done.

    `elsewhere`: the tools that the program which asks calls by itself, since it only asks here.
    """
    left = agreement.left(current=current)
    people = _agreeing(agreement, left=left, current=current, answer=choice == "answer")
    made = drawn(impact, HEADINGS[choice], people=people, later=left > 0)
    if not elsewhere:
        return made
    calls = ImpactLine(effect="run", title="The agent calls", names=elsewhere, said="in its own program")
    return replace(made, rows=(calls, *(row for row in made.rows if row.effect != "run")))


def stop(impact: Impact, agreement: Agreement) -> WordedImpact:
    """Draw a rejection that ends the run."""
    made = drawn(impact, "If you stop the run", people=ImpactLine(effect="people", title=_closes(agreement.window)))
    rows = [ImpactLine(effect="run", title="Runs nothing", said="The run stops as rejected")]
    if done := impact.called(row for row in impact.kept if row.kind == "effect"):
        said = "Already done; this does not undo it"
        rows.append(ImpactLine(effect="oneway", title="Stays done", names=done, said=said))
    rows += [row for row in made.rows if row.effect in ("undo", "oneway", "people")]
    return replace(made, rows=tuple(rows), marks=(*made.marks, "ahead", "ahead"))


def back(impact: Impact, step: str, agreement: Agreement) -> WordedImpact:
    """Draw a rejection that sends the run back to `step` with feedback."""
    closes = ImpactLine(effect="people", title=_closes(agreement.window), said="The agent gets your feedback")
    return drawn(impact, f"If you send it back to “{impact.title_of(step)}”", people=closes, at_gate=False)


def _closes(window: timedelta | None) -> str:
    return f"Closes after {times.remaining(window)}" if window else "Closes immediately"


def expiry(impact: Impact) -> str:
    """Say in one sentence what follows after the deadline."""
    will, may_run, may_ask = map(impact.called, (impact.will, may_run_rows(impact), may_ask_rows(impact)))
    said = [
        _which(will, "runs", "run"),
        _which(may_run, "may run"),
        *_undone(impact),
        _which(may_ask, "may ask"),
        asks_then(impact) if impact.asks else "",
    ]
    happens = join_names(filter(None, said))
    return f"After that the gate expires: {happens}" if happens else "After that the gate expires and nothing is done"


def undone(impact: Impact) -> str:
    """Say what is undone: `“Pay” is undone and “Book” may be undone`; "" for nothing."""
    return join_names(filter(None, _undone(impact)))


def _undone(impact: Impact) -> tuple[str, str]:
    sure = _which(impact.called(impact.undone), "is undone", "are undone")
    return sure, _which(impact.called(impact.may_undone), "may be undone")


def _which(steps: Sequence[str], does: str, do: str = "") -> str:
    return f"{quote_titles(steps)} {noun_for(len(steps), does, do or does)}" if steps else ""


def _agreeing(agreement: Agreement, *, left: int, current: bool, answer: bool) -> ImpactLine:
    """Say which of the needed votes this one is."""
    title = agreement.number_of(current=current)
    if left > 0:
        people = "one more person approves" if left == 1 else f"{left} more people approve"
        said = f"Yours is approval {title}. Nothing runs until {people}"
        if then := agreement.then_asked(current=current):
            said = f"{said}. {then}"
    else:
        said = "Yours is the last approval needed: it takes effect immediately"
        if agreement.window:
            after = times.remaining(agreement.window)
            said = f"Yours is the last approval needed: it takes effect after {after}, and can be undone until then"
    approved = [each.name for each in agreement.voices if each.state == "approved"]
    if approved and not current:
        cancels = f"Your {'answer' if answer else 'edit'} cancels the {noun_for(len(approved), 'approval')}"
        said = f"{cancels} of {join_names(approved)}, who must approve again. {said}"
    return ImpactLine(effect="people", title=title, said=said)


def _marks(impact: Impact, *, later: bool, at_gate: bool) -> tuple[str, ...]:
    """Return the marks of the track: kept, undone, the hold line, and what comes."""
    words = {ImpactVerdict.WILL: "ahead" if later else "run", ImpactVerdict.STANDS: "reused"}
    past = [*["reused"] * len(impact.kept), *["undone"] * len(impact.undone)]
    coming = [row for row in impact.ahead if row.why != "left"]
    ahead = [words.get(row.verdict, "ahead") for row in coming]
    if at_gate:
        return (*past, "held", *ahead)
    asks = [number for number, row in enumerate(coming) if row.asks and row.verdict is ImpactVerdict.WILL]
    asks = asks or [number for number, row in enumerate(coming) if row.asks]
    if asks:
        after = ahead[asks[0] + 1 :] or ["ahead"] * 2
        ahead = [*ahead[: asks[0]], "held", *after]
    return (*past, *ahead)


@dataclass(frozen=True, kw_only=True)
class ImpactLine:
    """One line: `effect` picks icon and colour; `names` are steps' titles, `said` is the sentence after them."""

    effect: str  # run, skip, reuse, undo, oneway, people, clock
    title: str
    names: tuple[str, ...] = ()
    said: str = ""

    @property
    def icon(self) -> str:
        return ICONS.get(self.effect, self.effect)


def lines_of(impact: Impact, *, later: bool, at_gate: bool) -> Iterator[ImpactLine]:
    """Yield the lines. `later`: nothing runs before others have approved."""
    yield _run(impact, later=later)
    skipped = impact.having(ImpactVerdict.SKIPPED)
    for why in dict.fromkeys(row.why for row in skipped):
        names = impact.called(row for row in skipped if row.why == why)
        yield ImpactLine(effect="skip", title="Skipped", names=names, said=SKIPPED.get(why, why))
    for title, rows in (("May run", may_run_rows(impact)), ("May ask", may_ask_rows(impact))):
        if rows:
            said = ", ".join(filter(None, [_depends(impact, rows), _about(rows)]))
            yield ImpactLine(effect="run", title=title, names=impact.called(rows), said=said)
    yield from _keep(impact, at_gate=at_gate)
    if undone := impact.undone:
        yield ImpactLine(effect="undo", title="Undone", names=impact.called(undone))
    if undone := impact.may_undone:
        said = "unless the run arrives at exactly the same again"
        yield ImpactLine(effect="undo", title="May be undone", names=impact.called(undone), said=said)
    done = impact.called(impact.cannot)
    coming = impact.having(ImpactVerdict.WILL, ImpactVerdict.MAY, kind="effect")
    final = impact.called(row for row in coming if row.irreversible)
    if done or final:
        both = "What was done stays done. What runs now cannot be undone either"
        said = both if done and final else "Already done" if done else "once done"
        yield ImpactLine(
            effect="oneway", title="Cannot be undone", names=tuple(dict.fromkeys([*done, *final])), said=said
        )
    if impact.inside:
        tools = tuple(dict.fromkeys(tool for each in impact.inside for tool in each.tools))
        places = join_names(_first([str(each.checkpoint) for each in impact.inside]))
        where = f"{noun_for(len(impact.inside), 'checkpoint')} {places}"
        said = f"Called inside {where}: nothing undoes that, and it may happen again"
        yield ImpactLine(effect="oneway", title="Tools stay done", names=_first(tools), said=said)
    if impact.children:
        yield from _children(impact)
    if impact.deadline:
        said = "It has passed. This removes it, so that the run may go on"
        yield ImpactLine(effect="clock", title="Deadline", said=said)


def _run(impact: Impact, *, later: bool) -> ImpactLine:
    """Say what certainly runs, how long it took last time, and which step asks then."""
    will, asks = impact.will, asks_then(impact) if impact.asks else ""
    if not will:
        nothing = f"{asks} first" if asks else "The run ends" if impact.ends else "Nothing is certain to run"
        return ImpactLine(effect="run", title="Runs nothing", said=nothing[:1].upper() + nothing[1:])
    then = f"then {asks}" if asks else "then the run ends" if impact.ends else ""
    said = ", ".join(filter(None, [_about(will), then]))
    return ImpactLine(effect="run", title="Runs later" if later else "Runs", names=impact.called(will), said=said)


def asks_then(impact: Impact) -> str:
    """Say which step certainly asks; for another run's effect, what it asks."""
    origin = next((row.origin for row in impact.asking if row.why == "takeover" and row.step == impact.asks), 0)
    if origin:
        return f"you are asked whether to reuse what R-{origin} already did in “{impact.title_of(impact.asks)}”"
    return f"“{impact.title_of(impact.asks)}” asks"


def may_run_rows(impact: Impact) -> list[ImpactRow]:
    """List the steps that may run, without those about which a fork asks first."""
    may = [row for row in impact.rows if row.verdict is ImpactVerdict.MAY]
    return [row for row in may if not row.asks_alone and row.why != "takeover"]


def may_ask_rows(impact: Impact) -> list[ImpactRow]:
    """List the steps that may ask a person and do not run here."""
    return [row for row in impact.asking if row.verdict is ImpactVerdict.MAY and row.asks_alone]


def _depends(impact: Impact, rows: Sequence[ImpactRow]) -> str:
    """Say what decides whether these steps run, or ask: earlier steps, or people at other gates."""
    on = {step for row in rows for step in row.on}
    gates = quote_titles([impact.title_of(gate) for gate in impact.beside if gate in on])
    if on.isdisjoint(impact.beside):
        return "decided by earlier steps" if on else ""
    if on.issubset(impact.beside):
        return f"depends on the decision at {gates}"
    return f"depends on earlier steps and on the decision at {gates}"


def _about(rows: Sequence[ImpactRow]) -> str:
    """Say how long the last runs of these steps took."""
    took = sum((row.took for row in rows if row.took), timedelta())
    return f"about {lasting(took)}" if took >= timedelta(seconds=1) else ""


def _keep(impact: Impact, *, at_gate: bool) -> Iterator[ImpactLine]:
    """Say which steps are kept: a number at a gate that keeps all of them, else their titles."""
    stands = [row for row in impact.rows if row.verdict is ImpactVerdict.STANDS]
    titles = impact.called(stands)
    alike = at_gate and len(stands) == len(impact.kept)
    if not stands:
        return
    if not alike and len(titles) <= KEPT_NAMES:
        yield ImpactLine(effect="reuse", title="Kept", names=titles)
        return
    said = count_of(len(stands), "finished step is kept", "finished steps are kept")
    yield ImpactLine(effect="reuse", title="Kept", said=said if alike else f"{said}, up to “{titles[-1]}”")


def _children(impact: Impact) -> Iterator[ImpactLine]:
    """Say what becomes of the runs that this one started."""
    for fate, effect, title, what in (
        (ChildVerdict.STANDS, "reuse", "Children kept", ""),
        (ChildVerdict.MAY_UNDONE, "undo", "Children", "taken over if the same is started again, else undone"),
        (ChildVerdict.UNDONE, "undo", "Children undone", ""),
        (ChildVerdict.CANCELLED, "undo", "Children cancelled", ""),
        (ChildVerdict.READ, "reuse", "Children", "their results are read if the same is started again"),
        (ChildVerdict.ANEW, "run", "Children", "started anew if the run comes to them again"),
    ):
        found = [child for child in impact.children if child.fate is fate]
        names = _first([f"R-{child.run}" for child in found])
        undone = dict.fromkeys(step for child in found for step in child.undone)
        back = f"{'which undoes' if what else 'undoes'} {quote_titles(map(in_words, undone))}" if undone else ""
        said = ", ".join(filter(None, [what, back]))
        if found:
            yield ImpactLine(effect=effect, title=title, names=names, said=said)
    for ended, title in ((False, "Cannot be undone"), (True, "Stays done")):
        stays = [
            f"{in_words(step)} of R-{child.run}"
            for child in impact.children
            for step in child.cannot
            if (child.fate is ChildVerdict.CANCELLED) == ended
        ]
        if stays:
            yield ImpactLine(effect="oneway", title=title, names=_first(stays))


def _first(names: Sequence[str]) -> tuple[str, ...]:
    """Return the first names, and how many more there are."""
    more = [f"{len(names) - KEPT_NAMES} more"] if len(names) > KEPT_NAMES else []
    return (*names[:KEPT_NAMES], *more)


@lru_cache(256)  # a gate's page draws a dozen, and most tracks are alike
def nodes(shown: tuple[str, ...]) -> SafeString:
    """Draw the nodes and the line between them."""
    gap = 322 / max(len(shown) - 1, 1)
    at = [round(9 + gap * number, 1) for number in range(len(shown))]
    lanes = ["ahead" if mark == "ahead" else "main" for mark in shown[1:]]
    lines = [
        format_html('<path class="line" data-lane="{}" d="M{} 14H{}"/>', lane, start, end)
        for lane, start, end in zip(lanes, at, at[1:], strict=False)
    ]
    parts = [*lines, *(node(mark, x) for mark, x in zip(shown, at, strict=True))]
    return format_html_join("", "{}", ((part,) for part in parts))


def node(mark: str, x: float) -> SafeString:
    if mark == "held":
        return format_html(
            '<rect x="{}" y="2" width="12" height="24" class="gap"/><path class="bars" d="M{} 3v22"/>'
            '<path class="bars" data-dash d="M{} 3v22"/>',
            round(x - 6, 1),
            round(x - 3.5, 1),
            round(x + 3.5, 1),
        )
    circle = format_html('<circle class="node" data-mark="{}" cx="{}" cy="14" r="{}"/>', mark, x, RADIUS.get(mark, 5))
    glyph = GLYPHS.get(mark)
    if glyph is None:
        return circle
    return format_html(
        '{}<path class="glyph" data-tone="{}" d="M{} {}"/>', circle, glyph[2], round(x + glyph[0], 1), glyph[1]
    )


@dataclass(frozen=True, kw_only=True)
class RepeatBox:
    """One box to confirm. `said` and `label` hold the agent's own title: data, never markup."""

    value: str  # the ids of the effects that it confirms
    said: Sequence[str]
    label: str
    ticked: bool
    missing: bool  # the decision was sent without it


def ticks(
    repeats: Sequence[Repeat], *, run: int, doing: str, ticked: Collection[int] = (), missing: Collection[int] = ()
) -> list[RepeatBox]:
    """List the boxes by action, in the actions' order. `ticked` and `missing` are ids of effects."""
    return [
        RepeatBox(
            value=",".join(str(each.effect) for each in same),
            said=[verbs.told(each, at=moment(each.at), here=run, doing=doing) for each in same],
            label=verbs.again(same[0]),
            ticked=all(each.effect in ticked for each in same),
            missing=any(each.effect in missing for each in same),
        )
        for same in (list(found) for key, found in groupby(repeats, key=lambda each: (each.step, each.action)))
    ]
