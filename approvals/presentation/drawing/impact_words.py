"""Puts an impact into words and a drawing, for a page.

Always in one order: run, skip, keep, undo, cannot undo, people. Steps are named by their titles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from operator import itemgetter
from threading import RLock

from cachetools import LRUCache, cached
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from approvals.english import join_names, noun_for, quote_titles
from approvals.impact.result import Impact, ImpactVerdict
from approvals.presentation.gate_facts.agreement import Agreement
from approvals.presentation.text import size_limit, untrusted

from . import impact_track, times
from .impact_lines import ImpactLine, asks_then, lines_of, may_ask_rows, may_run_rows
from .repeats import RepeatBox

DRAWN = 1_000_000  # characters of lines as HTML that a process caches
# Choice that approves -> heading.
HEADINGS = {
    "approve": "If you approve as proposed",
    "edit": "If you approve with your edit",
    "each": "If you send these verdicts",
    "override": "If you replace the result with this",
    "answer": "If you send this answer",
}


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
        label = ", ".join(" ".join([row.title, ", ".join(row.names)]).strip() for row in self.rows)
        return impact_track.draw(self.marks, label=untrusted.plain(label))


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
    rows = [*lines_of(impact, later=later, at_gate=at_gate), people]
    marks = _marks(impact, later=later, at_gate=at_gate)
    return WordedImpact(heading=heading, rows=tuple(row for row in rows if row), marks=marks)


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
    first = ImpactLine(effect="run", title="Runs nothing", said="The run stops as rejected")
    done = [row for row in impact.kept if row.kind == "effect"]
    said = "Already done; this does not undo it"
    stays = ImpactLine(effect="oneway", title="Stays done", names=impact.called(done), said=said)
    rest = [row for row in made.rows if row.effect in ("undo", "oneway", "people")]
    return WordedImpact(
        heading=made.heading, rows=(first, *([stays] if done else []), *rest), marks=(*made.marks, *["ahead"] * 2)
    )


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
