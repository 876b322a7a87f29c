"""What of the runner's own rows goes with the checkpoints that retention removes.

A memo belongs to the checkpoint from which a step was sent on, and is asked for only while the head, or what went
aside since, is there. Retention never removes those. Once the run is past it nothing leads back to that very
checkpoint: a rewind makes a new one, with a memory of its own. So its memos go with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from uuid import UUID

from agents.models import Effect, Memo
from checkpoints.retention import stray_artifacts


def memos(run_id: int, ids: Callable[[], list[UUID]]) -> None:
    """Remove the memos of removed checkpoints, in the transaction that removes those."""
    mine = Memo.objects.filter(run_id=run_id)
    if mine.exists():
        mine.filter(base__in=ids()).delete()


def named_in() -> Iterator[Iterable[bytes]]:
    """Yield the runner's rows that may name an artifact beside the states."""
    for model in (Memo, Effect):
        yield (bytes(each) for each in stray_artifacts.column(model._default_manager.all(), "result"))
