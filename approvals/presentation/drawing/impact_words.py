"""What a choice would do, as a page shows it: an impact in words and as a drawing.

Always in one order: run, skip, keep, undo, cannot undo, people. Steps are called by their titles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from django.utils.safestring import SafeString

from approvals.english import counted, listed
from approvals.impact import result as foretold
from approvals.impact.result import ImpactVerdict
from approvals.presentation.text import untrusted

from . import impact_track
from .repeats import RepeatBox
from .times import lasting

KEPT_NAMES = 6  # of what is kept, named one by one
EARLIER = "decided by earlier steps"


@dataclass(frozen=True, kw_only=True)
class ImpactLine:
    """One line: `effect` picks icon and colour; `names` are steps' titles, `said` is our sentence after them."""

    effect: str  # run, skip, reuse, undo, oneway, people
    title: str
    names: tuple[str, ...] = ()
    said: str = ""

    @property
    def icon(self) -> str:
        return {
            "run": "play",
            "skip": "right",
            "reuse": "same",
            "undo": "undo",
            "oneway": "oneway",
            "people": "people",
        }[self.effect]


@dataclass(frozen=True, kw_only=True)
class WordedImpact:
    """What one choice does: a heading, a drawing of the steps, and the same again in words."""

    heading: str
    rows: tuple[ImpactLine, ...] = ()
    marks: tuple[str, ...] = ()  # of the track: reused, undone, run, ahead, and "held" once
    sends: str = ""  # the label of the button that sends it, where it depends on what is chosen
    choice: str = ""  # at a gate: the name under which its form says that this was shown, and what is confirmed
    place: str = ""  # of it on the page, for its id
    shown: str = ""
    ticks: Sequence[RepeatBox] = ()

    @property
    def track(self) -> SafeString:
        label = ", ".join(" ".join([row.title, ", ".join(row.names)]).strip() for row in self.rows)
        return impact_track.draw(self.marks, label=untrusted.plain(label))


@dataclass(frozen=True, kw_only=True)
class AgreedPeople:
    """Who agreed so far, and how many have to."""

    agreed: int = 0
    quorum: int = 1
    names: Sequence[str] = field(default_factory=tuple)


def drawn(
    told: foretold.Impact, heading: str, *, people: ImpactLine | None = None, later: bool = False, at_gate: bool = True
) -> WordedImpact:
    """Return an impact as a page shows it: run, reuse, undo, cannot undo, people.

    `people` is the last row; `later`: nothing runs before others have agreed. Where the run does not go on from
    `at_gate`, the hold line is drawn where the run will wait next.
    """
    rows = [
        _run(told, later=later),
        *_skipped(told),
        _may(told, "May run", _may_run(told)),
        _may(told, "May ask", _may_ask(told)),
        _keep(told, at_gate=at_gate),
        _undo(told, "Undone", told.undone),
        _undo(told, "May be undone", told.may_undone),
        _oneway(told),
        people,
    ]
    marks = _marks(told, later=later, at_gate=at_gate)
    return WordedImpact(heading=heading, rows=tuple(row for row in rows if row), marks=marks)


def approve(told: foretold.Impact, now: AgreedPeople) -> WordedImpact:
    """Return what an approval as proposed would do."""
    left = now.quorum - (now.agreed + 1)
    return drawn(told, "If you approve as proposed", people=_agreeing(now, left=left, edited=False), later=left > 0)


def edit(told: foretold.Impact, now: AgreedPeople) -> WordedImpact:
    """Return what an approval with the reader's edit would do."""
    return _changed(told, now, "If you approve with your edit")


def mix(told: foretold.Impact, now: AgreedPeople, *, standing: bool) -> WordedImpact:
    """Draw what was chosen action by action. `standing`: it is the current proposal, which others may have approved."""
    left = now.quorum - (now.agreed + 1 if standing else 1)
    people = _agreeing(now, left=left, edited=not standing)
    return drawn(told, "If you send these verdicts", people=people, later=left > 0)


def override(told: foretold.Impact, now: AgreedPeople) -> WordedImpact:
    """Return what a value in the place of what was proposed would do: an edit too."""
    return _changed(told, now, "If you replace the result with this")


def _changed(told: foretold.Impact, now: AgreedPeople, heading: str) -> WordedImpact:
    left = now.quorum - 1
    return drawn(told, heading, people=_agreeing(now, left=left, edited=True), later=left > 0)


def answer(told: foretold.Impact, now: AgreedPeople, *, standing: bool = True) -> WordedImpact:
    """Draw one answer to a question. `standing`: it is the one that others may have approved."""
    left = now.quorum - (now.agreed + 1 if standing else 1)
    people = _agreeing(now, left=left, edited=not standing, what="answer")
    return drawn(told, "If you send this answer", people=people, later=left > 0)


def stop(told: foretold.Impact) -> WordedImpact:
    """Return what a rejection that ends the run would do."""
    made = drawn(told, "If you stop the run", people=ImpactLine(effect="people", title="Closes immediately"))
    first = ImpactLine(effect="run", title="Runs nothing", said="The run stops as rejected")
    done = [row for row in told.kept if row.kind == "effect"]
    said = "Already done; this does not undo it"
    stays = ImpactLine(effect="oneway", title="Stays done", names=told.called(done), said=said)
    rest = [row for row in made.rows if row.effect in ("undo", "oneway", "people")]
    return WordedImpact(
        heading=made.heading, rows=(first, *([stays] if done else []), *rest), marks=(*made.marks, *["ahead"] * 2)
    )


def back(told: foretold.Impact, step: str) -> WordedImpact:
    """Return what a rejection would do that sends the run back to `step` with feedback."""
    closes = ImpactLine(effect="people", title="Closes immediately", said="The agent gets your feedback")
    return drawn(told, f"If you send it back to “{told.title_of(step)}”", people=closes, at_gate=False)


def expiry(told: foretold.Impact) -> str:
    """Say in one sentence what follows where nobody answers in time."""
    said = [
        _which(told.called(told.will), "runs", "run"),
        _which(told.called(_may_run(told)), "may run", "may run"),
        _which(told.called(told.undone), "is undone", "are undone"),
        _which(told.called(told.may_undone), "may be undone", "may be undone"),
        _which(told.called(_may_ask(told)), "may ask", "may ask"),
        _asks(told) if told.asks else "",
    ]
    happens = [each for each in said if each]
    if not happens:
        return "After that the request expires and nothing is done"
    return f"After that the request expires: {listed(happens)}"


def _which(steps: Sequence[str], one: str, more: str) -> str:
    return f"{listed(f'“{each}”' for each in steps)} {one if len(steps) == 1 else more}" if steps else ""


def _run(told: foretold.Impact, *, later: bool) -> ImpactLine:
    """Say what certainly runs, how long that took last, and who is asked then."""
    then = f"then {_asks(told)}" if told.asks else "then the run ends" if told.ends else ""
    if not told.will:
        nothing = f"{_asks(told)} first" if told.asks else "The run ends" if told.ends else "Nothing runs for certain"
        return ImpactLine(effect="run", title="Runs nothing", said=nothing[:1].upper() + nothing[1:])
    said = ", ".join(filter(None, [_about(told.will), then]))
    return ImpactLine(effect="run", title="Runs later" if later else "Runs", names=told.called(told.will), said=said)


def _skipped(told: foretold.Impact) -> list[ImpactLine]:
    """List what is skipped, a row for each reason."""
    words = {"reject": "rejected", "respond": "answered instead"}
    by_why = {row.why: [each for each in told.skipped if each.why == row.why] for row in told.skipped}
    return [
        ImpactLine(effect="skip", title="Skipped", names=told.called(rows), said=words.get(why, why))
        for why, rows in by_why.items()
    ]


def _asks(told: foretold.Impact) -> str:
    """Say who is certainly asked; for a fork's effect, what is asked."""
    origin = next((row.origin for row in told.asking if row.why == "takeover" and row.step == told.asks), 0)
    if origin:
        return f"you are asked whether to reuse what R-{origin} already did in “{told.title_of(told.asks)}”"
    return f"“{told.title_of(told.asks)}” asks"


def _may_run(told: foretold.Impact) -> list[foretold.ImpactRow]:
    """List what may run by itself: not what a fork asks about first."""
    return [row for row in told.may if row.why != "takeover"]


def _may_ask(told: foretold.Impact) -> list[foretold.ImpactRow]:
    """List what may ask a person, and does not run here."""
    return [row for row in told.asking if row.verdict is ImpactVerdict.MAY and row.asks_alone]


def _may(told: foretold.Impact, title: str, rows: Sequence[foretold.ImpactRow]) -> ImpactLine | None:
    """Say what may run, or ask."""
    if not rows:
        return None
    said = ", ".join(filter(None, [_depends(rows), _about(rows)]))
    return ImpactLine(effect="run", title=title, names=told.called(rows), said=said)


def _about(rows: Sequence[foretold.ImpactRow]) -> str:
    """Say how long these steps took when they ran last."""
    took = sum((row.took for row in rows if row.took), timedelta())
    return f"about {lasting(took)}" if took >= timedelta(seconds=1) else ""


def _keep(told: foretold.Impact, *, at_gate: bool) -> ImpactLine | None:
    """Say what is kept: at a gate all that was done so far, else step by step."""
    if not told.stands:
        return None
    titles = told.called(told.stands)
    alike = at_gate and len(told.stands) == len(told.kept)
    if alike or len(titles) > KEPT_NAMES:
        count = len(told.stands)
        last = "" if alike else f", up to “{titles[-1]}”"
        said = f"{counted(count, 'finished step')} {'is' if count == 1 else 'are'} kept{last}"
        return ImpactLine(effect="reuse", title="Kept", said=said)
    return ImpactLine(effect="reuse", title="Kept", names=titles)


def _undo(told: foretold.Impact, title: str, rows: Sequence[foretold.ImpactRow]) -> ImpactLine | None:
    if not rows:
        return None
    may = any(row.verdict is ImpactVerdict.MAY_UNDONE for row in rows)
    said = "unless the run arrives at exactly the same again" if may else ""
    return ImpactLine(effect="undo", title=title, names=told.called(rows), said=said)


def _oneway(told: foretold.Impact) -> ImpactLine | None:
    """Say what was done and stays done, and what runs now and is final then."""
    left = told.called(told.cannot)
    found = tuple(dict.fromkeys([*left, *told.called(told.final)]))
    if not found:
        return None
    said = "Already done" if left else "once done"
    if left and told.final:
        said = "What was done stays done. What runs now cannot be undone either"
    return ImpactLine(effect="oneway", title="Cannot be undone", names=found, said=said)


def _depends(rows: Sequence[foretold.ImpactRow]) -> str:
    return EARLIER if any(row.on for row in rows) else ""


def _agreeing(now: AgreedPeople, *, left: int, edited: bool, what: str = "edit") -> ImpactLine:
    """Say which of the needed votes this one is."""
    title = f"{now.quorum - max(left, 0)} of {now.quorum}"
    said = "Yours is the last approval needed: it takes effect immediately"
    if left > 0:
        more = "one more person approves" if left == 1 else f"{left} more people approve"
        said = f"Yours is approval {now.quorum - left} of {now.quorum}. Nothing runs until {more}"
    if edited and now.names:
        said = f"{_cancels(now.names, what)}. {said}"
    return ImpactLine(effect="people", title=title, said=said)


def _cancels(names: Sequence[str], what: str) -> str:
    if len(names) == 1:
        return f"Your {what} cancels the approval of {names[0]}, who must approve again"
    return f"Your {what} cancels the approvals of {listed(names)}, who must approve again"


def _marks(told: foretold.Impact, *, later: bool, at_gate: bool) -> tuple[str, ...]:
    """Return the track: what is kept, what was left and is undone, the hold line, and what comes."""
    words = {ImpactVerdict.WILL: "ahead" if later else "run", ImpactVerdict.STANDS: "reused"}
    past = [*["reused"] * len(told.kept), *["undone"] * len(told.undone)]
    coming = [row for row in told.ahead if row.why != "left"]
    ahead = [words.get(row.verdict, "ahead") for row in coming]
    if at_gate:
        return (*past, "held", *ahead)
    asks = [number for number, row in enumerate(coming) if row.asks and row.verdict is ImpactVerdict.WILL]
    asks = asks or [number for number, row in enumerate(coming) if row.asks]
    if asks:
        after = ahead[asks[0] + 1 :] or ["ahead"] * 2
        ahead = [*ahead[: asks[0]], "held", *after]
    return (*past, *ahead)
