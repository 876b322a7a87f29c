"""Puts an impact into words and a drawing, for a page.

Always in one order: run, skip, keep, undo, cannot undo, people. Steps are named by their titles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from operator import itemgetter
from threading import RLock

from cachetools import LRUCache, cached
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext_lazy, ngettext
from django.utils.translation import gettext as _

from approvals.english import listed, quoted
from approvals.impact.result import ChildVerdict, Impact, ImpactRow, ImpactVerdict
from approvals.presentation.gate_facts.agreement import Agreement
from approvals.presentation.text import size_limit, untrusted
from checkpoints.runs.plans import in_words

from . import impact_track
from .repeats import RepeatBox
from .times import lasting

DRAWN = 1_000_000  # characters of lines as HTML that a process caches
KEPT_NAMES = 6  # kept steps that are named one by one
# Choice that approves -> heading.
HEADINGS = {
    "approve": gettext_lazy("If you approve as proposed"),
    "edit": gettext_lazy("If you approve with your edit"),
    "each": gettext_lazy("If you send these verdicts"),
    "override": gettext_lazy("If you replace the result with this"),
    "answer": gettext_lazy("If you send this answer"),
}
ICONS = {"run": "play", "skip": "right", "reuse": "same", "undo": "undo", "oneway": "oneway", "people": "people"}


@dataclass(frozen=True, kw_only=True)
class ImpactLine:
    """One line: `effect` picks icon and colour; `names` are steps' titles, `said` is the sentence after them."""

    effect: str  # run, skip, reuse, undo, oneway, people
    title: str
    names: tuple[str, ...] = ()
    said: str = ""

    @property
    def icon(self) -> str:
        return ICONS[self.effect]


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
        return _drawn(self.rows, get_language())[0]

    @property
    def track(self) -> SafeString:
        label = ", ".join(" ".join([row.title, ", ".join(row.names)]).strip() for row in self.rows)
        return impact_track.draw(self.marks, label=untrusted.plain(label))


@cached(LRUCache(DRAWN, itemgetter(1)), lock=RLock())
def _drawn(rows: Sequence[ImpactLine], language: str | None) -> tuple[SafeString, int]:
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
    rows = [
        _run(impact, later=later),
        *_skipped(impact),
        _may(impact, _("May run"), _may_run(impact)),
        _may(impact, _("May ask"), _may_ask(impact)),
        _keep(impact, at_gate=at_gate),
        _undo(impact, _("Undone"), impact.undone),
        _undo(impact, _("May be undone"), impact.may_undone),
        _oneway(impact),
        *_children(impact),
        people,
    ]
    marks = _marks(impact, later=later, at_gate=at_gate)
    return WordedImpact(heading=heading, rows=tuple(row for row in rows if row), marks=marks)


def _children(impact: Impact) -> list[ImpactLine]:
    """Say what becomes of the runs that this one started."""
    lines = []
    for fate, effect, title, what in (
        (ChildVerdict.STANDS, "reuse", _("Children kept"), ""),
        (ChildVerdict.MAY_UNDONE, "undo", _("Children"), _("taken over if started again alike, else undone")),
        (ChildVerdict.UNDONE, "undo", _("Children undone"), ""),
        (ChildVerdict.CANCELLED, "undo", _("Children cancelled"), ""),
        (ChildVerdict.READ, "reuse", _("Children"), _("their results are read if started again alike")),
        (ChildVerdict.ANEW, "run", _("Children"), _("started anew if the run comes to them again")),
    ):
        found = [child for child in impact.children if child.fate is fate]
        names = [f"R-{child.run}" for child in found[:KEPT_NAMES]]
        more = [_("%(count)s more") % {"count": len(found) - KEPT_NAMES}] if len(found) > KEPT_NAMES else []
        undone = dict.fromkeys(step for child in found for step in child.undone)
        back = f"{_('undoes')} {quoted(map(in_words, undone))}" if undone else ""
        said = ", ".join(filter(None, [what, back]))
        lines += [ImpactLine(effect=effect, title=title, names=(*names, *more), said=said)] if found else []
    for ended, title in ((False, _("Cannot be undone")), (True, _("Stays done"))):
        stays = [
            _("%(step)s of R-%(run)s") % {"step": in_words(step), "run": child.run}
            for child in impact.children
            for step in child.cannot
            if (child.fate is ChildVerdict.CANCELLED) == ended
        ]
        lines += [ImpactLine(effect="oneway", title=title, names=tuple(stays[:KEPT_NAMES]))] if stays else []
    return lines


def approval(choice: str, impact: Impact, agreement: Agreement, *, current: bool) -> WordedImpact:
    """Draw a choice that approves. `current`: it approves the current proposal or answer, as others may have done."""
    left = agreement.quorum - (agreement.agreed + 1 if current else 1)
    people = _agreeing(agreement, left=left, edited=not current, answer=choice == "answer")
    return drawn(impact, str(HEADINGS[choice]), people=people, later=left > 0)


def stop(impact: Impact) -> WordedImpact:
    """Draw a rejection that ends the run."""
    made = drawn(impact, _("If you stop the run"), people=ImpactLine(effect="people", title=_("Closes immediately")))
    first = ImpactLine(effect="run", title=_("Runs nothing"), said=_("The run stops as rejected"))
    done = [row for row in impact.kept if row.kind == "effect"]
    said = _("Already done; this does not undo it")
    stays = ImpactLine(effect="oneway", title=_("Stays done"), names=impact.called(done), said=said)
    rest = [row for row in made.rows if row.effect in ("undo", "oneway", "people")]
    return WordedImpact(
        heading=made.heading, rows=(first, *([stays] if done else []), *rest), marks=(*made.marks, *["ahead"] * 2)
    )


def back(impact: Impact, step: str) -> WordedImpact:
    """Draw a rejection that sends the run back to `step` with feedback."""
    closes = ImpactLine(effect="people", title=_("Closes immediately"), said=_("The agent gets your feedback"))
    return drawn(
        impact, _("If you send it back to “%(step)s”") % {"step": impact.title_of(step)}, people=closes, at_gate=False
    )


def expiry(impact: Impact) -> str:
    """Say in one sentence what follows after the deadline."""
    found = (impact.will, _may_run(impact), impact.undone, impact.may_undone, _may_ask(impact))
    will, may_run, undone, may_undone, may_ask = map(impact.called, found)
    said = [
        _which(will, ngettext("%(steps)s runs", "%(steps)s run", len(will))),
        _which(may_run, ngettext("%(steps)s may run", "%(steps)s may run", len(may_run))),
        _which(undone, ngettext("%(steps)s is undone", "%(steps)s are undone", len(undone))),
        _which(may_undone, ngettext("%(steps)s may be undone", "%(steps)s may be undone", len(may_undone))),
        _which(may_ask, ngettext("%(steps)s may ask", "%(steps)s may ask", len(may_ask))),
        _asks(impact) if impact.asks else "",
    ]
    happens = [each for each in said if each]
    if not happens:
        return _("After that the gate expires and nothing is done")
    return _("After that the gate expires: %(happens)s") % {"happens": listed(happens)}


def _which(steps: Sequence[str], words: str) -> str:
    return words % {"steps": quoted(steps)} if steps else ""


def _run(impact: Impact, *, later: bool) -> ImpactLine:
    """Say what certainly runs, how long it took last time, and which step asks then."""
    if not impact.will:
        nothing = _("The run ends") if impact.ends else _("Nothing is certain to run")
        if impact.asks:
            nothing = _("%(question)s first") % {"question": _asks(impact)}
        return ImpactLine(effect="run", title=_("Runs nothing"), said=nothing[:1].upper() + nothing[1:])
    then = _("then the run ends") if impact.ends else ""
    if impact.asks:
        then = _("then %(question)s") % {"question": _asks(impact)}
    said = ", ".join(filter(None, [_about(impact.will), then]))
    return ImpactLine(
        effect="run", title=_("Runs later") if later else _("Runs"), names=impact.called(impact.will), said=said
    )


def _skipped(impact: Impact) -> list[ImpactLine]:
    """List the skipped effects, a line for each reason."""
    words = {"reject": _("rejected"), "respond": _("answered instead")}
    by_why = {row.why: [each for each in impact.skipped if each.why == row.why] for row in impact.skipped}
    return [
        ImpactLine(effect="skip", title=_("Skipped"), names=impact.called(rows), said=words.get(why, why))
        for why, rows in by_why.items()
    ]


def _asks(impact: Impact) -> str:
    """Say which step certainly asks; for another run's effect, what it asks."""
    origin = next((row.origin for row in impact.asking if row.why == "takeover" and row.step == impact.asks), 0)
    if origin:
        words = _("you are asked whether to reuse what R-%(run)s already did in “%(step)s”")
        return words % {"run": origin, "step": impact.title_of(impact.asks)}
    return _("“%(step)s” asks") % {"step": impact.title_of(impact.asks)}


def _may_run(impact: Impact) -> list[ImpactRow]:
    """List the steps that may run, without those about which a fork asks first."""
    return [row for row in impact.may if row.why != "takeover"]


def _may_ask(impact: Impact) -> list[ImpactRow]:
    """List the steps that may ask a person and do not run here."""
    return [row for row in impact.asking if row.verdict is ImpactVerdict.MAY and row.asks_alone]


def _may(impact: Impact, title: str, rows: Sequence[ImpactRow]) -> ImpactLine | None:
    """Say which steps may run, or ask."""
    if not rows:
        return None
    depends = _("decided by earlier steps") if any(row.on for row in rows) else ""
    said = ", ".join(filter(None, [depends, _about(rows)]))
    return ImpactLine(effect="run", title=title, names=impact.called(rows), said=said)


def _about(rows: Sequence[ImpactRow]) -> str:
    """Say how long the last runs of these steps took."""
    took = sum((row.took for row in rows if row.took), timedelta())
    return _("about %(time)s") % {"time": lasting(took)} if took >= timedelta(seconds=1) else ""


def _keep(impact: Impact, *, at_gate: bool) -> ImpactLine | None:
    """Say which steps are kept: a number at a gate that keeps all of them, else their titles."""
    if not impact.stands:
        return None
    titles = impact.called(impact.stands)
    alike = at_gate and len(impact.stands) == len(impact.kept)
    if alike or len(titles) > KEPT_NAMES:
        count = len(impact.stands)
        if alike:
            words = ngettext("%(count)s finished step is kept", "%(count)s finished steps are kept", count)
        else:
            words = ngettext(
                "%(count)s finished step is kept, up to “%(last)s”",
                "%(count)s finished steps are kept, up to “%(last)s”",
                count,
            )
        said = words % {"count": f"{count:,}", "last": titles[-1]}
        return ImpactLine(effect="reuse", title=_("Kept"), said=said)
    return ImpactLine(effect="reuse", title=_("Kept"), names=titles)


def _undo(impact: Impact, title: str, rows: Sequence[ImpactRow]) -> ImpactLine | None:
    if not rows:
        return None
    may = any(row.verdict is ImpactVerdict.MAY_UNDONE for row in rows)
    said = _("unless the run arrives at exactly the same again") if may else ""
    return ImpactLine(effect="undo", title=title, names=impact.called(rows), said=said)


def _oneway(impact: Impact) -> ImpactLine | None:
    """Say which effects cannot be undone: done before, or about to run."""
    left = impact.called(impact.cannot)
    found = tuple(dict.fromkeys([*left, *impact.called(impact.final)]))
    if not found:
        return None
    said = _("Already done") if left else _("once done")
    if left and impact.final:
        said = _("What was done stays done. What runs now cannot be undone either")
    return ImpactLine(effect="oneway", title=_("Cannot be undone"), names=found, said=said)


def _agreeing(agreement: Agreement, *, left: int, edited: bool, answer: bool = False) -> ImpactLine:
    """Say which of the needed votes this one is."""
    counts = {"number": agreement.quorum - max(left, 0), "needed": agreement.quorum, "left": left}
    title = _("%(number)s of %(needed)s") % counts
    said = _("Yours is the last approval needed: it takes effect immediately")
    if left > 0:
        words = ngettext(
            "Yours is approval %(number)s of %(needed)s. Nothing runs until one more person approves",
            "Yours is approval %(number)s of %(needed)s. Nothing runs until %(left)s more people approve",
            left,
        )
        said = words % counts
    if edited and agreement.names:
        said = f"{_cancels(agreement.names, answer=answer)}. {said}"
    return ImpactLine(effect="people", title=title, said=said)


def _cancels(names: Sequence[str], *, answer: bool) -> str:
    if answer:
        words = ngettext(
            "Your answer cancels the approval of %(names)s, who must approve again",
            "Your answer cancels the approvals of %(names)s, who must approve again",
            len(names),
        )
    else:
        words = ngettext(
            "Your edit cancels the approval of %(names)s, who must approve again",
            "Your edit cancels the approvals of %(names)s, who must approve again",
            len(names),
        )
    return words % {"names": listed(names)}


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
