"""Finds the changes that people made to a run's state by hand on its path: edits, and the feedback of rewinds.

Nobody approved these. So a permission given before does not hold for what is made from them; see
approvals.cards.binding.loose_names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from uuid import UUID

from checkpoints import store
from checkpoints.errors import NoSuchCheckpoint, NotVerified
from checkpoints.runs.plans import PlanSpec
from checkpoints.store.header import CheckpointHeader
from checkpoints.values.checkpoint_kinds import MOVED_BY_PERSON


class ManualChange(NamedTuple):
    """One checkpoint by which somebody moved the run, the fields that it changed, and their values before."""

    place: CheckpointHeader
    fields: frozenset[str]
    before: dict[str, Any]


def on(places: Iterable[CheckpointHeader], plan: PlanSpec) -> Iterator[ManualChange]:
    """Yield a ManualChange for each of these places at which somebody changed the state, in order."""
    # A gate sends the run back to another step than its own, with the words of whoever decides there.
    found = [each for each in places if each.kind in MOVED_BY_PERSON and each.step == each.next_step]
    moved = [(each, each.parent) for each in found if each.parent is not None]
    store.expect(id for place, parent in moved for id in (place.id, parent))
    for place, parent in moved:
        written = _written(place, parent, plan)
        if written.fields:
            yield written


def _written(place: CheckpointHeader, parent: UUID, plan: PlanSpec) -> ManualChange:
    try:
        before, now = store.load_checkpoint(parent), store.load_checkpoint(place.id)
    except (NoSuchCheckpoint, NotVerified):  # what it changed cannot be known any more, so it may be anything
        return ManualChange(place, frozenset(name for step in plan.steps for name in step.reads), {})
    changed = now.differing(before)
    return ManualChange(place, changed, {name: before.state[name] for name in changed if name in before.state})
