"""Finds one checkpoint of a run for pages and the API, and computes differences with secrets masked."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.db.models import Q
from django.http import Http404

from agents.models import OpenResource
from agents.presentation import differences
from approvals.gates.state_secrets import veil_of
from approvals.schema.redact import Redaction
from checkpoints import store
from checkpoints.errors import CheckpointRemoved
from checkpoints.models import Checkpoint, Run
from checkpoints.runs.plans import spec_of
from checkpoints.store import gaps
from checkpoints.values import json_pointer, patch

from .access import Gone

ROWS = 200  # of a difference, drawn at once
INNER = "x-inner"  # in a field's schema: a framework keeps its own record in it


def checkpoint_or_404(run: Run, seq: int) -> Checkpoint:
    """Return the run's checkpoint of that number, without its payload."""
    return with_parent_or_404(run, seq)[0]


def with_parent_or_404(run: Run, seq: int) -> tuple[Checkpoint, Checkpoint | None]:
    """Return the run's checkpoint of that number and its parent, without their payloads."""
    here = Checkpoint.objects.filter(run=run, seq=seq)
    both = Checkpoint.objects.filter(Q(run=run, seq=seq) | Q(pk__in=here.values("parent")))
    found = list(both.with_names().defer("payload").select_related("plan"))
    checkpoint = next(
        (checkpoint for checkpoint in found if (checkpoint.run_id, checkpoint.seq) == (run.pk, seq)), None
    )
    if checkpoint is None:
        gap = gaps.over(run.pk, seq)
        raise Gone(str(CheckpointRemoved(gap, seq))) if gap else Http404("No such checkpoint")
    return checkpoint, next((item for item in found if item is not checkpoint), None)


def inner_of(checkpoint: Checkpoint) -> set[str]:
    """Return the fields in which a framework keeps its own record. Needs the checkpoint's plan."""
    known = spec_of(checkpoint.plan).state_schema.get("properties", {})
    return {name for name, part in known.items() if isinstance(part, dict) and part.get(INNER)}


def held_open(checkpoint: Checkpoint) -> list[OpenResource]:
    """Return what the checkpoint's step held open, by name. Needs its plan, which says whether it may."""
    steps = {step.name: step for step in spec_of(checkpoint.plan).steps}
    holds = checkpoint.step in steps and steps[checkpoint.step].holds
    return list(OpenResource.objects.filter(checkpoint=checkpoint.pk).order_by("name")) if holds else []


def patch_between(a: Checkpoint, b: Checkpoint) -> list[dict[str, Any]]:
    """Return the JSON Patch from one state to the other, with their secrets masked. Raises NotVerified."""
    before, after = store.load_checkpoint(a.id), store.load_checkpoint(b.id)
    names = before.differing(after)
    return veil_of(b).patch(veil_of(a).patch(patch.diff(_only(before.state, names), _only(after.state, names))))


def difference_context(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    names: Collection[str],
    *hidden: Redaction,
    inner: Collection[str] = (),
) -> dict[str, Any]:
    """Return, for a page, how two states differ in these fields; each of `hidden` masks its secrets.

    The rows of `inner` fields are apart.
    """
    changed = patch.list_changes(_only(before, names), _only(after, names))
    for veil in hidden:
        changed = veil.rows(changed)
    rows = list(differences.expand_objects(changed))
    apart = [row for row in rows if not set(inner).isdisjoint(json_pointer.split_pointer(row["pointer"])[:1])]
    rows = [row for row in rows if set(inner).isdisjoint(json_pointer.split_pointer(row["pointer"])[:1])]
    return {"rows": rows[:ROWS], "inner_rows": apart[:ROWS], "more_rows": max(len(rows) - ROWS, 0)}


def _only(state: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in state.items() if name in names}
