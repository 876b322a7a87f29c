"""Comparison of two checkpoints of a lineage: their common ancestor, the way to each, and how their states differ."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest

from agents.presentation.timeline import marks
from agents.presentation.timeline.effect_fates import Fate, fates_of
from agents.presentation.timeline.marks import TimelineMark
from agents.presentation.timeline.words import format_duration
from approvals.gates.state_secrets import veil_of
from approvals.models import Gate, Outcome
from checkpoints import store
from checkpoints.errors import NotVerified, OtherLineage
from checkpoints.models import Checkpoint, Run
from checkpoints.runs.plans import spec_of
from checkpoints.store import executions
from checkpoints.store.executions import CheckpointComparison
from checkpoints.store.header import CheckpointHeader

from .access import run_or_404
from .checkpoint import difference_context
from .performed_effects import done_of, rows_of
from .run_row import read_course

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
    "asked": marks.ASKED,
    "answered": marks.ANSWERED,
    "fork": marks.FORK,
}
# Kinds that are shown by the title of their step.
NAMED = ("step", "gate", "asked", "answered", "reused", "skipped", "recovery", "reopen")
PLACE = re.compile(r"(?:R-)?([0-9]{1,12})\.([0-9]{1,9})|([0-9]{1,9})")


@dataclass(frozen=True, slots=True)
class PathStep:
    """One checkpoint on the way: its number, its title, how it came to be, and how long it took."""

    run: int
    seq: int
    name: str
    mark: TimelineMark
    took: str


@dataclass(frozen=True, slots=True)
class ComparedCheckpoint:
    """One of the two checkpoints, with its steps and effects since the common ancestor."""

    letter: str
    run: Run
    checkpoint: Checkpoint
    steps: Sequence[CheckpointHeader]
    effects: Sequence[Fate]

    @property
    def path_steps(self) -> list[PathStep]:
        """List its steps in the order in which they were saved, one line each."""
        outcomes, called = outcomes_of(self.steps), spec_of(self.checkpoint.plan).title_of
        return [
            PathStep(
                step.run_id,
                step.seq,
                called(step.step if step.kind in NAMED else step.kind),
                outcomes.get(step.id, marks.NOTHING_ASKED) if step.kind == "gate" else KINDS.get(step.kind, marks.RAN),
                format_duration(timedelta(microseconds=step.took_us)) if step.took_us else "",
            )
            for step in self.steps
        ]

    @property
    def place(self) -> str:
        """Return its place, for the head of a column."""
        return f"{self.letter}: {self.checkpoint.seq} of {self.run}"

    @property
    def worked(self) -> str:
        """Return how long its steps took."""
        return format_duration(sum((timedelta(microseconds=step.took_us) for step in self.steps), timedelta()))


def checkpoint_named(request: HttpRequest, run: Run, text: str) -> Checkpoint:
    """Return the checkpoint with that name, if the reader may see its run."""
    match = PLACE.fullmatch(text)
    if match is None:
        raise Http404("No such checkpoint")
    where = run if match[3] else run_or_404(request, int(match[1]))
    found = Checkpoint.objects.filter(run=where, seq=int(match[3] or match[2])).defer("payload")
    checkpoint = found.select_related("run__plan", "plan").first()
    if checkpoint is None:
        raise Http404("No such checkpoint")
    return checkpoint


def comparison_context(a: Checkpoint, b: Checkpoint) -> dict[str, Any]:
    """Return the context of runs/comparison/page.html. 404 if the two belong to different lineages."""
    found = parting(a, b)
    sides = [side("A", a, found.to_a), side("B", b, found.to_b)]
    on_the_way = [checkpoint.letter for checkpoint in sorted(sides, key=lambda side: len(side.steps))]
    straight = bool(found.to_a) != bool(found.to_b)
    context: dict[str, Any] = {"sides": sides, "ancestor": found.ancestor, "apart": format_duration(abs(b.at - a.at))}
    context["before"] = on_the_way if straight else []
    try:
        return context | states(a, b)
    except NotVerified as refused:
        return context | {"refused": refused}


def parting(a: Checkpoint, b: Checkpoint) -> CheckpointComparison:
    """Return the common ancestor and the way to each. 404 if they belong to different lineages."""
    try:
        return executions.compare(a.id, b.id)
    except OtherLineage as other:
        raise Http404("No such checkpoint") from other


def side(letter: str, checkpoint: Checkpoint, way: Sequence[CheckpointHeader]) -> ComparedCheckpoint:
    """Return one side, with the effects that its steps recorded."""
    run = checkpoint.run
    ids, began = {row.id for row in way}, {row.parent.hex for row in way if row.parent}
    rows = rows_of({row.run_id for row in way})
    landed = {row.id for row in rows if not ids.isdisjoint(row.landings) or (not row.landings and row.base in began)}
    mine = [row for row in rows if (row.undoes or row.id) in landed]
    known = fates_of(done_of(spec_of(checkpoint.plan), mine, read_course(run.pk)))
    return ComparedCheckpoint(letter, run, checkpoint, way, known)


def outcomes_of(way: Sequence[CheckpointHeader]) -> dict[UUID, TimelineMark]:
    """Map the checkpoint that saved a gate's outcome to the outcome's mark."""
    bases = {row.parent: row.id for row in way if row.kind in ("gate", "asked") and row.parent}
    found = Outcome.objects.filter(gate__checkpoint__in=list(bases), gate__kind=Gate.Kind.REVIEW)
    return {bases[base]: marks.OUTCOMES[kind] for base, kind in found.values_list("gate__checkpoint", "kind")}


def states(a: Checkpoint, b: Checkpoint) -> dict[str, Any]:
    """Return the difference of the two states, as rows. Raises NotVerified."""
    before, after = store.load_checkpoint(a.id), store.load_checkpoint(b.id)
    names = before.differing(after)
    found = difference_context(before.state, after.state, names, veil_of(a), veil_of(b))
    return found | {"same": len(after.fields.keys() - names)}
