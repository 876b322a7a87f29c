"""The steps between two checkpoints, each in a line. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from agents.presentation.timeline.marks import TimelineMark
from agents.presentation.timeline.words import duration
from checkpoints.runs.plans import in_words
from checkpoints.store.header import CheckpointHeader

from .timeline import marks

KINDS = {
    "input": marks.GIVEN,
    "reused": marks.REUSED,
    "skipped": marks.SKIPPED,
    "rewind": marks.REWIND,
    "edit": marks.EDIT,
    "repair": marks.REPAIR,
    "upcast": marks.UPCAST,
    "recovery": marks.RECOVERED[""],
    "reopen": marks.REOPENED,
    "fork": marks.FORK,
}
NAMED = ("step", "gate", "reused", "skipped", "recovery", "reopen")  # kinds that are told by the name of their step


@dataclass(frozen=True, slots=True)
class PathStep:
    """One checkpoint on the way: its number, its title, how it came to be, and how long it took."""

    run: int
    seq: int
    name: str
    mark: TimelineMark
    took: str


def told(
    records: Iterable[CheckpointHeader], outcomes: Mapping[str, str], called: Callable[[str], str] = in_words
) -> list[PathStep]:
    """List the steps in the order in which they were saved. `outcomes` has a gate's end by its checkpoint's hex id."""
    return [
        PathStep(
            each.run_id,
            each.seq,
            called(each.step if each.kind in NAMED else each.kind),
            _mark(each, outcomes),
            duration(timedelta(microseconds=each.took_us)) if each.took_us else "",
        )
        for each in records
    ]


def _mark(record: CheckpointHeader, outcomes: Mapping[str, str]) -> TimelineMark:
    if record.kind == "gate":
        return marks.OUTCOMES.get(outcomes.get(record.id.hex, ""), marks.NOTHING_ASKED)
    return KINDS.get(record.kind, marks.RAN)
