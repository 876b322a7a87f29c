"""What a choice would do, as a page shows it: an impact in words and as a drawing.

Always in one order: run, skip, keep, undo, cannot undo, people. A count first, then names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from django.utils.safestring import SafeString

from approvals.impact import result as foretold
from approvals.impact.result import Verdict

from . import track
from .english import quoted
from .times import lasting

KEPT_NAMES = 6  # of what is kept, told one by one


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line: `effect` picks icon and colour; `names` are steps' titles, `said` is our sentence after them."""

    effect: str  # run, skip, reuse, undo, oneway, people
    title: str
    names: tuple[str, ...] = ()
    said: str = ""
    before: str = ""  # a word before the names

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
class Impact:
    """What one choice does: a heading, a drawing of the steps, and the same again in words."""

    heading: str
    step: str = ""  # the title of the step named in the heading
    rows: tuple[Row, ...] = ()
    marks: tuple[str, ...] = ()  # of the track: reused, undone, run, ahead, and "held" once

    @property
    def track(self) -> SafeString:
        label = ", ".join(f"{row.title} {', '.join(row.names)}".strip() for row in self.rows)
        return track.draw(self.marks, label=label)


@dataclass(frozen=True, kw_only=True)
class People:
    """Who agreed so far, and how many have to."""

    agreed: int = 0
    quorum: int = 1
    names: Sequence[str] = field(default_factory=tuple)


def drawn(
    told: foretold.Impact,
    heading: str,
    *,
    step: str = "",
    people: Row | None = None,
    later: bool = False,
    at_gate: bool = True,
) -> Impact:
    """An impact as a page shows it: run, reuse, undo, cannot undo, people.

    `step` is the title that ends the heading; `people` is the last row; `later`: nothing runs before others have
    agreed. Where the run does not go on from `at_gate`, the hold line is drawn where it will stand next.
    """
    rows = [
        _run(told, later=later),
        _skip(told),
        _may(told, "May run", _may_run(told)),
        _may(told, "May ask", [row for row in told.asking if row.verdict is Verdict.MAY and row.asks_alone]),
        _keep(told, at_gate=at_gate),
        _undo(told, "Undo", told.undone),
        _undo(told, "May undo", told.may_undone),
        _oneway(told),
        people,
    ]
    marks = _marks(told, later=later, at_gate=at_gate)
    return Impact(heading=heading, step=step, rows=tuple(row for row in rows if row), marks=marks)


def approve(told: foretold.Impact, now: People) -> Impact:
    """Approve as proposed."""
    left = now.quorum - (now.agreed + 1)
    return drawn(told, "If you approve as proposed", people=_agreeing(now, left=left, edited=False), later=left > 0)


def edit(told: foretold.Impact, now: People) -> Impact:
    """Approve with the reader's edit."""
    return _changed(told, now, "If you approve with your edit")


def mix(told: foretold.Impact, now: People, *, standing: bool) -> Impact:
    """What was chosen action by action. `standing`: it is what stands already, to which others may have agreed."""
    left = now.quorum - (now.agreed + 1 if standing else 1)
    people = _agreeing(now, left=left, edited=not standing)
    return drawn(told, "If you decide so", people=people, later=left > 0)


def override(told: foretold.Impact, now: People) -> Impact:
    """Put a value in the place of what was proposed: an edit too."""
    return _changed(told, now, "If you put this in its place")


def _changed(told: foretold.Impact, now: People, heading: str) -> Impact:
    left = now.quorum - 1
    return drawn(told, heading, people=_agreeing(now, left=left, edited=True), later=left > 0)


def answer(told: foretold.Impact, now: People) -> Impact:
    """One answer to a question."""
    left = now.quorum - (now.agreed + 1)
    return drawn(told, "If you answer so", people=_agreeing(now, left=left, edited=False), later=left > 0)


def stop(told: foretold.Impact) -> Impact:
    """Reject, and the run ends."""
    closes = Row(effect="people", title="Closes now", said="one rejection is enough")
    made = drawn(told, "If you stop the run", people=closes)
    first = Row(effect="run", title="Run 0", said="the run ends as rejected")
    done = [row for row in told.kept if row.kind == "effect"]
    stays = Row(
        effect="oneway", title=f"Stays done {len(done)}", names=told.called(done), said="this does not take it back"
    )
    rest = [row for row in made.rows if row.effect in ("undo", "oneway", "people")]
    return Impact(
        heading=made.heading, rows=(first, *([stays] if done else []), *rest), marks=(*made.marks, *["ahead"] * 2)
    )


def back(told: foretold.Impact, step: str) -> Impact:
    """Reject, and the run goes back to `step` with feedback."""
    closes = Row(effect="people", title="Closes now", said="one rejection is enough; the agent reads your feedback")
    return drawn(told, "If you send it back to", step=told.title_of(step), people=closes, at_gate=False)


def expiry(told: foretold.Impact) -> str:
    """What follows where nobody answers in time, in one line."""
    will, may = told.called(told.will), told.called(_may_run(told))
    said = [_which(will, "runs", "run") or _which(may, "may run", "may run") or "nothing runs"]
    said += filter(None, [_which(told.called(told.undone), "is undone", "are undone")])
    said += filter(None, [_which(told.called(told.may_undone), "may be undone", "may be undone")])
    perhaps = told.called(row for row in told.asking if row.verdict is Verdict.MAY and row.asks_alone)
    said += filter(None, [_which(perhaps, "may ask", "may ask")])
    said += [_asks(told)] if told.asks else ["the run ends"] if told.ends else []
    return f"then {', '.join(said[:-1])} and {said[-1]}" if len(said) > 1 else f"then {said[0]}"


def _which(steps: Sequence[str], one: str, more: str) -> str:
    return f"{quoted(steps)} {one if len(steps) == 1 else more}" if steps else ""


def _run(told: foretold.Impact, *, later: bool) -> Row:
    """What certainly runs, how long that took last, and who is asked then."""
    then = f"{'then' if told.will else 'nothing runs before'} {_asks(told)}" if told.asks else ""
    ends = f"{'then ' if told.will else ''}the run ends" if told.ends else ""
    said = ", ".join(filter(None, [_about(told.will), then or ends]))
    return Row(
        effect="run", title=f"Run {len(told.will)}{', later' if later else ''}", names=told.called(told.will), said=said
    )


def _skip(told: foretold.Impact) -> Row | None:
    """What is passed by, and why."""
    if not told.skipped:
        return None
    why = {"reject": "rejected", "respond": "answered for"}
    said = " and ".join(dict.fromkeys(why.get(row.why, row.why) for row in told.skipped))
    return Row(effect="skip", title=f"Skip {len(told.skipped)}", names=told.called(told.skipped), said=said)


def _asks(told: foretold.Impact) -> str:
    """Who is certainly asked, or of a fork's effect, what."""
    origin = next((row.origin for row in told.asking if row.why == "takeover" and row.step == told.asks), 0)
    asks = quoted([told.title_of(told.asks)])
    return f"it asks whether to take over what R-{origin} did at {asks}" if origin else f"{asks} asks"


def _may_run(told: foretold.Impact) -> list[foretold.Row]:
    """What may run by itself: not what a fork asks about first."""
    return [row for row in told.may if row.why != "takeover"]


def _may(told: foretold.Impact, title: str, rows: Sequence[foretold.Row]) -> Row | None:
    """What may run, or ask, and on whose output that depends."""
    if not rows:
        return None
    said = ", ".join(filter(None, [_depends(told, rows), _about(rows)]))
    return Row(effect="run", title=f"{title} {len(told.called(rows))}", names=told.called(rows), said=said)


def _about(rows: Sequence[foretold.Row]) -> str:
    """How long these steps took when they ran last."""
    took = sum((row.took for row in rows if row.took), timedelta())
    return f"about {lasting(took)}" if took >= timedelta(seconds=1) else ""


def _keep(told: foretold.Impact, *, at_gate: bool) -> Row | None:
    """What stands: at a gate all that was done so far, else step by step."""
    if not told.stands:
        return None
    title = f"Keep {len(told.stands)}"
    if at_gate and len(told.stands) == len(told.kept):
        return Row(effect="reuse", title=title, said="nothing runs again")
    stands = told.called(told.stands)
    if len(stands) > KEPT_NAMES:
        return Row(effect="reuse", title=title, names=stands[-1:], before="up to")
    return Row(effect="reuse", title=title, names=stands)


def _undo(told: foretold.Impact, title: str, rows: Sequence[foretold.Row]) -> Row | None:
    if not rows:
        return None
    may = [row for row in rows if row.verdict is Verdict.MAY_UNDONE]
    said = f"unless the run comes to it again with the same input; {_depends(told, rows)}".rstrip("; ") if may else ""
    return Row(effect="undo", title=f"{title} {len(rows)}", names=told.called(rows), said=said)


def _oneway(told: foretold.Impact) -> Row | None:
    """What was done and stays done, and what runs now and is final then."""
    left = told.called(told.cannot)
    found = tuple(dict.fromkeys([*left, *told.called(told.final)]))
    if not found:
        return None
    said = "once done" if not left else "done before, and stays done"
    if left and told.final:
        said = "what was done stays done, and what runs now is final"
    return Row(effect="oneway", title="Cannot undo", names=found, said=said)


def _depends(told: foretold.Impact, rows: Sequence[foretold.Row]) -> str:
    on = tuple(dict.fromkeys(told.title_of(name) for row in rows for name in row.on))
    return f"depends on {quoted(on)}" if on else ""


def _agreeing(now: People, *, left: int, edited: bool) -> Row:
    if edited and now.names:
        who = " and ".join(now.names)
        return Row(effect="people", title="Ask again", said=f"{who} agreed to what it was, so that no longer counts")
    title = f"{now.quorum - max(left, 0)} of {now.quorum}"
    if left <= 0:
        return Row(effect="people", title=title, said="agreed, runs at once")
    return Row(effect="people", title=title, said=f"then {left} more must agree before anything runs")


def _marks(told: foretold.Impact, *, later: bool, at_gate: bool) -> tuple[str, ...]:
    """The track: what is kept, what was left and is undone, the hold line, and what comes."""
    words = {Verdict.WILL: "ahead" if later else "run", Verdict.STANDS: "reused"}
    past = [*["reused"] * len(told.kept), *["undone"] * len(told.undone)]
    coming = [row for row in told.ahead if row.why != "left"]
    ahead = [words.get(row.verdict, "ahead") for row in coming]
    if at_gate:
        return (*past, "held", *ahead)
    asks = [number for number, row in enumerate(coming) if row.asks and row.verdict is Verdict.WILL]
    asks = asks or [number for number, row in enumerate(coming) if row.asks]
    if asks:
        after = ahead[asks[0] + 1 :] or ["ahead"] * 2
        ahead = [*ahead[: asks[0]], "held", *after]
    return (*past, *ahead)
