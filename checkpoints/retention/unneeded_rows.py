"""Removes rows of other apps that an ended run does not need any more, to whichever remaining checkpoint it goes back.

What these are is told by what an app registers. They are looked for without a lock. A batch is removed under the lock
of the run's row, which a rewind and a hold take too, and only if the run was neither moved nor held since.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from django.db.models import Model

from checkpoints import crash_points
from checkpoints.models import Hold, Run

from .delete_batch import RunMoved
from .rules import RetentionHistory


class Row(NamedTuple):
    """A row of an app's table, by its key; `size`: the bytes that it occupies, about."""

    model: type[Model]
    key: int
    size: int


Bundle = Sequence[Row]  # rows that go together or not at all
Finder = Callable[[Run, Collection[UUID]], Sequence[Bundle]]
BATCH = 500  # bundles removed by one transaction
_finders: list[Finder] = []
_models: list[type[Model]] = []


def register(finder: Finder, *models: type[Model]) -> None:
    """Register `finder(run, remaining)`, which returns the rows that no remaining checkpoint of the run needs.

    `models`: those of its rows; what refers to another comes before it.
    """
    _finders.append(finder)
    _models.extend(models)


def find(run: Run, history: RetentionHistory, going: Collection[int] = ()) -> list[Bundle]:
    """Return what an ended run needs no more once the checkpoints `going` are removed; nothing of a held run."""
    if history.live or any(hold.checkpoint is None for hold in history.holds):
        return []
    gone = set(going)
    remaining = {UUID(bytes=place.id) for place in history.places if place.seq not in gone}
    return [bundle for finder in _finders for bundle in finder(run, remaining)]


def remove(run_id: int, history: RetentionHistory, bundles: Sequence[Bundle]) -> tuple[int, int]:
    """Remove a batch, in the caller's transaction; return how many rows, and the bytes freed. Raises RunMoved.

    `history`: the run's, by which the rows were found.
    """
    locked = Run.objects.select_for_update(no_key=True).filter(pk=run_id)
    status, seq = locked.values_list("status", "seq").get()
    # A separate statement: the one that waits for the lock sees other tables as they were before it waited.
    held = Hold.objects.standing().filter(run=run_id, checkpoint=None)
    if status in Run.LIVE or seq != history.places[-1].seq or held.exists():
        raise RunMoved
    going: dict[type[Model], dict[int, int]] = defaultdict(dict)
    for bundle in bundles:
        for model, key, size in bundle:
            going[model][key] = size
    rows = [size for model in _models if going[model] for size in _deleted(model, going[model])]
    crash_points.point(crash_points.OF_UNNEEDED, str(run_id))
    return len(rows), sum(rows)


def _deleted(model: type[Model], sizes: Mapping[int, int]) -> list[int]:
    """Delete the rows with these keys; return the sizes of those that another process had not deleted before."""
    found = model._default_manager.filter(pk__in=list(sizes))
    there = list(found.values_list("pk", flat=True))
    found.delete()
    return [sizes[key] for key in there]
