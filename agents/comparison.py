"""Compares two checkpoints of a lineage: the way from their common ancestor to each, its effects, and both states."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest

from agents.access import run_or_404
from agents.effects.fates import Fate, fates_of
from agents.effects.ledger import done_of, rows_of
from agents.runs.course import read_course
from approvals.gates.reveal_secret import veil_of
from checkpoints import store
from checkpoints.errors import OtherLineage
from checkpoints.models import Checkpoint, Run
from checkpoints.runs.plans import spec_of
from checkpoints.store import executions
from checkpoints.store.executions import CheckpointComparison
from checkpoints.store.loading import CheckpointHeader
from checkpoints.values import patch

PLACE = re.compile(r"(?:R-)?([0-9]{1,12})\.([0-9]{1,9})|([0-9]{1,9})")


@dataclass(frozen=True, slots=True)
class ComparedCheckpoint:
    """One of the two checkpoints, with its steps and effects since the common ancestor."""

    letter: str
    run: Run
    checkpoint: Checkpoint
    steps: Sequence[CheckpointHeader]
    effects: Sequence[Fate]


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


def patch_between(a: Checkpoint, b: Checkpoint) -> list[dict[str, Any]]:
    """Return the JSON Patch from one state to the other, with their secrets masked. Raises NotVerified."""
    before, after = store.load_checkpoint(a.id), store.load_checkpoint(b.id)
    names = before.differing(after)
    old, new = ({name: value for name, value in item.state.items() if name in names} for item in (before, after))
    return veil_of(b).patch(veil_of(a).patch(patch.diff(old, new)))
