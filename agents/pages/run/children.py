"""The runs that a run started, and its place among those that started it, for its page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from agents.effects.fates import TimelineMark
from agents.pages.run.facts import holds_run
from agents.pages.run.head import STATUS
from agents.pages.run.row import Ancestor, StartedRun
from agents.pages.run.story import RunScene
from approvals.engine_rules import effects as rules
from checkpoints.models import Run
from checkpoints.runs.plans import in_words


@dataclass(frozen=True, slots=True)
class ChildRow:
    """One row of the section: the child, its mark, and a remark about what its parent decided."""

    child: StartedRun
    mark: TimelineMark
    line: str
    remark: str = ""

    @property
    def quoted(self) -> bool:
        """Tell whether the line is the words of an external program."""
        return self.child.external and bool(self.child.reason)


class PositionPart(NamedTuple):
    """One part of a position, with the run that it leads to; 0 for this one."""

    words: str
    run: int = 0


def rows(
    started: Sequence[StartedRun], on_path: Callable[[Sequence[int]], object], forked: Callable[[Sequence[int]], bool]
) -> list[ChildRow]:
    """Return a row for each child, in the order given.

    `on_path` tells whether one of these checkpoints is on the path, `forked` whether a fork began after one.
    """
    return [
        ChildRow(
            run,
            _mark(run),
            _line(run),
            _remark(run, on_path=bool(on_path(run.landed)), counted_on=run.counted_on or forked(run.landed)),
        )
        for run in started
    ]


def counted(counts: Mapping[str, int]) -> str:
    """Say how many children there are, by status."""
    known = [status for status in STATUS if counts.get(status)]
    return ", ".join(f"{counts[status]} {str(STATUS[status].word).lower()}" for status in known)


def position(
    above: Sequence[Ancestor],
    agent: str,
    step: str,
    turn: int,
    called: Callable[[str], str] = in_words,
    value_name: str = "",
) -> list[PositionPart]:
    """Return where the run is: who started it, which child it is, its next step, and which turn of it this is.

    `value_name`: the name of the newest value that the step kept (untrusted).
    """
    parts = [PositionPart(f"{row.agent}, {in_words(row.step)}", row.run) for row in above]
    parts.append(PositionPart(f"{agent} (child {above[-1].number} of {above[-1].total})" if above else agent))
    if step:
        parts.append(PositionPart(f"{called(step)}, turn {turn}" if turn > 1 else called(step)))
        if value_name:
            parts.append(PositionPart(f"after “{value_name}”"))
    return parts


def _mark(child: StartedRun) -> TimelineMark:
    held = any(holds_run(child.head, base, waits=child.waits) for *_, base in child.gates)
    if held and child.status == "waiting":
        return TimelineMark("", "waiting", "hold", "Held at a gate")
    if child.frozen and child.status == "failed":
        return TimelineMark("", "failed", "warn", "Frozen")
    return STATUS[child.status]


def _line(child: StartedRun) -> str:
    if child.gates and not child.waits:  # they say it
        return ""
    if child.reason or child.status in rules.ENDED:
        return child.reason
    return f"at {in_words(child.next_step)}" if child.next_step else ""


def _remark(child: StartedRun, *, on_path: bool, counted_on: bool) -> str:
    ended = child.status in rules.ENDED
    if child.ordered == "undo" and child.frozen and ended:
        return "abandoned; frozen, so not undone"
    if child.ordered == "undo":
        return "abandoned; undone" if ended else "abandoned; being undone"
    if child.ordered == "cancel":
        return "no longer needed"
    if not rules.stands(on_path=on_path, begun=child.begun):
        if counted_on:
            return "abandoned; kept, since a fork or its origin counts on it"
        return "abandoned: taken over if it is started again with the same input, else undone"
    return ""


def children_context(scene: RunScene) -> dict[str, Any]:
    """Return the context of runs/run/children.html, and the run's position among those who started it."""
    run, read = scene.run, scene.read
    live = run.next_step if run.status in Run.LIVE else ""
    kept = next((checkpoint.name for checkpoint in scene.story.step_checkpoints if checkpoint.name), "")
    place = position(read.above, run.plan.agent, live, read.turn, scene.story.called, kept)
    forked = partial(read.course.leads, to=read.forked_at)
    more = sum(read.child_counts.values()) - len(read.children)
    return {
        "children": rows(read.children, read.course.on_path, forked),
        "children_more": more,
        "children_among": read.among if more else None,
        "children_live": sum(read.child_counts.get(status, 0) for status in Run.LIVE),
        "children_counted": counted(read.child_counts),
        "position": place if live or read.above else (),
    }
