"""A cache of threads' runs as this process last wrote or read them.

To load a run for every put would cost more than the put. Every write checks the claim and the head in its statement,
so a stale entry does no harm: the run is then loaded again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from weakref import WeakValueDictionary

from checkpoints.store import Snapshot
from checkpoints.store.claims import Claim

KEPT, LARGEST = 256, 64 * 1024 * 1024  # runs, and bytes of their states together, which take several times that


class KeptRun(NamedTuple):
    """A run's head, and the claim under which it was written."""

    snapshot: Snapshot
    claim: Claim


_kept: OrderedDict[int, KeptRun] = OrderedDict()
_locks: WeakValueDictionary[int, threading.Lock] = WeakValueDictionary()
_guard = threading.Lock()
_size = 0


@contextmanager
def alone(run_id: int) -> Iterator[None]:
    """Lock the run against all others in this process."""
    with _guard:
        lock = _locks.get(run_id) or _locks.setdefault(run_id, threading.Lock())
    with lock:
        yield


def take(run_id: int) -> KeptRun | None:
    """Take a run out of the cache, so that the caller alone has it."""
    global _size
    with _guard:
        found = _kept.pop(run_id, None)
        _size -= found.snapshot.size if found else 0
        return found


def put(run_id: int, run: KeptRun) -> None:
    """Keep a run for the next put, and let go of those that were used least recently."""
    global _size
    with _guard:
        old = _kept.pop(run_id, None)
        _kept[run_id] = run
        _size += run.snapshot.size - (old.snapshot.size if old else 0)
        while len(_kept) > KEPT or (len(_kept) > 1 and _size > LARGEST):
            _size -= _kept.popitem(last=False)[1].snapshot.size
