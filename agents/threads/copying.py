"""Copies a thread's checkpoints and writes into new runs: from another thread, or from another store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db import transaction

from checkpoints import store

from . import places, reading, saving, writers
from .errors import ThreadRefused, ThreadTaken
from .pending import Numbered, Write, add
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


def _fill(owner: Owner, place: Place, found: Iterable[Found]) -> None:
    """Save checkpoints, oldest first, with their writes, in the caller's transaction."""
    thread, _ = places.current(owner, places.opened(owner, place, masked=True))
    seen, there = None, set[str]()
    with store.reading():
        for each in found:
            parent = each.parent if each.parent in there else None
            by = saving.invocation_of(each.fields)
            new = NewCheckpoint(each.id, parent, dict(each.fields), whole=True, invocation=by)
            seen = saving.put(owner, place, new, seen)
            there.add(each.id)
            for (task, path), writes in _by_call(each.writes).items():
                add(thread.run_id, thread.stored(each.id), task, path, writes)


def _by_call(writes: Sequence[Write]) -> dict[tuple[str, str], list[Numbered]]:
    found: dict[tuple[str, str], list[Numbered]] = {}
    for each in writes:
        found.setdefault((each.task, each.path), []).append((each.number, each.channel, each.value))
    return found
