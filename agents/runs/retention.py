"""Removes the engine's own rows along with the checkpoints that retention removes.

A memo belongs to the checkpoint from which a step started, and is read only while the head, or a question on it, is
there. Retention never removes those. Once the run is past it nothing leads back to that very checkpoint: a rewind
makes a new one, with memos of its own. So its memos are removed with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from agents.models import Effect, Memo, OpenResource, Signal, StepCheckpoint
from checkpoints.layout import payloads
from checkpoints.retention import stray_artifacts


def memos(run_id: int, ids: Callable[[], list[UUID]]) -> None:
    """Remove the memos of removed checkpoints, and what steps kept, in the transaction that removes those."""
    for model in (Memo, StepCheckpoint):
        mine = model._default_manager.filter(run_id=run_id)
        if mine.exists():
            mine.filter(base__in=ids()).delete()


def named_in() -> Iterator[Iterable[bytes]]:
    """Yield the engine's columns that may name an artifact, apart from the states."""
    columns = ((Memo, "result"), (Effect, "result"), (Signal, "value"), (OpenResource, "described"))
    for model, name in columns:
        yield (bytes(item) for item in stray_artifacts.column(model._default_manager.all(), name))
    yield (content for (content,) in _kept_in_steps(StepCheckpoint.objects.all()))


def named_by_teams() -> Iterator[tuple[int, bytes]]:
    """Yield what steps and effects returned, with the team of each; not what an outside program says they did."""
    for model in (Memo, Effect):
        ours = model._default_manager.filter(run__plan__external=False)
        for team, content in stray_artifacts.columns(ours, "run__team", "result"):
            yield team, bytes(content)
    yield from _kept_in_steps(StepCheckpoint.objects.filter(run__plan__external=False), "run__team")


def _kept_in_steps(rows: QuerySet[StepCheckpoint], *before: str) -> Iterator[tuple[Any, ...]]:
    """Yield what steps kept, after the columns `before`.

    What cannot be read is left out: it leads nowhere, and its run will be frozen.
    """
    for *known, codec, value in stray_artifacts.columns(rows, *before, "codec", "value"):
        with suppress(ValueError):
            yield *known, payloads.unpack(codec, bytes(value))
