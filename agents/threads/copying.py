"""Copies a thread's checkpoints and writes into new runs: from another thread, or from another store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db import transaction

from checkpoints import store

from . import places, reading, saving, writers
from .errors import ThreadRefused, ThreadTaken
from .pending import Numbered, Write, add_writes
from .places import Owner, Place
from .reading import Found
from .saving import NewCheckpoint


def copy(owner: Owner, thread: str, to: str) -> None:
    """Copy a thread with all its namespaces; the copy has the same ids. Raises ThreadTaken and ThreadRefused."""
    if thread == to:
        raise ThreadRefused("A thread cannot be copied to itself. Name another thread to copy to.")
    runs = places.of_thread(owner, thread)
    with transaction.atomic():
        if reading.page(owner, to, limit=1)[0]:
            raise ThreadTaken(f"The thread {to!r} has checkpoints. Delete it first, or name another.")
        places.mask_anew(owner, to)  # where it was deleted, its runs are still there
        for run in runs:
            _fill(owner, Place(to, run.namespace), reading.in_order(run))
        writers.take_along(owner, thread, to)


def _fill(owner: Owner, place: Place, checkpoints: Iterable[Found]) -> None:
    """Save checkpoints, oldest first, with their writes, in the caller's transaction."""
    thread, _ = places.current(owner, places.opened(owner, place, masked=True))
    seen, there = None, set[str]()
    with store.reading():
        for checkpoint in checkpoints:
            parent = checkpoint.parent if checkpoint.parent in there else None
            by = saving.invocation_of(checkpoint.fields)
            new = NewCheckpoint(checkpoint.id, parent, dict(checkpoint.fields), whole=True, invocation=by)
            seen = saving.put(owner, place, new, seen)
            there.add(checkpoint.id)
            for (task, path), writes in _by_call(checkpoint.writes).items():
                add_writes(thread.run_id, thread.stored(checkpoint.id), task, path, writes)


def _by_call(writes: Sequence[Write]) -> dict[tuple[str, str], list[Numbered]]:
    found: dict[tuple[str, str], list[Numbered]] = {}
    for write in writes:
        found.setdefault((write.task, write.path), []).append((write.number, write.channel, write.value))
    return found
