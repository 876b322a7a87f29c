"""Runs with a history, policies for them, and prunes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db import connection

from checkpoints import store
from checkpoints.actors import SYSTEM
from checkpoints.models import Checkpoint, Prune, RetentionPolicy, Run
from checkpoints.retention import policies, prunes
from checkpoints.store import Header, Snapshot
from checkpoints.store.claims import Claim
from checkpoints.values.ops import Append
from tests.factories.stored_runs import begin, take

DONE = Header("step", "one", "", 1, 1, b"i" * 32, b"c" * 32)


def header(n: int, *, kind: str = "step", step: str = "one", after: str = "one") -> Header:
    return Header(kind, step, after, n, 1, n.to_bytes(32), b"c" * 32, took_us=n)


def grown(count: int = 200, *, long: bool = True) -> tuple[Run, Claim, Snapshot]:
    """A run with this many checkpoints, still claimed: a growing list, a large value that changes, a counter."""
    run, claim, head = begin(messages=[], doc="d" * 5000, n=0)
    head = more(head, claim, count - 1, long=long)
    return run, claim, head


def more(head: Snapshot, claim: Claim, count: int, *, long: bool = True) -> Snapshot:
    for _ in range(count):
        n = head.seq + 1
        words = f"{n} " + "word " * (60 if long else 1)
        writes: dict[str, Any] = {"messages": Append([words]), "n": n}
        if n % 50 == 0:
            writes["doc"] = f"{n} " * 3000
        head = store.save(head, writes, claim=claim, header=header(n))
    return head


def ended(count: int = 200) -> Run:
    run, claim, head = grown(count)
    store.save(head, {}, claim=claim, header=DONE, status="completed")
    run.refresh_from_db()
    return run


def keep(run: Run, **columns: Any) -> RetentionPolicy:
    plain = {"keep_gates": False, "keep_decisions": False, "keep_finals": False} | columns
    return policies.write(RetentionPolicy(agent=run.plan.agent, **plain), by=SYSTEM)


def looked() -> Prune:
    prune = prunes.begin(by=SYSTEM)
    assert prunes.look(prune)
    return prune


def ordered() -> Prune:
    prune = looked()
    prunes.order(prune, seen=bytes(prune.digest), by=SYSTEM)
    return prune


def pruned() -> Prune:
    prune = ordered()
    assert prunes.apply(prune)
    return prune


def seqs(run: Run) -> list[int]:
    return list(Checkpoint.objects.filter(run=run).order_by("seq").values_list("seq", flat=True))


def at(run: Run, seq: int) -> UUID:
    return Checkpoint.objects.values_list("id", flat=True).get(run=run, seq=seq)


__all__ = [
    "DONE", "at", "begin", "ended", "grown", "header", "keep", "looked", "more", "ordered", "pruned", "seqs", "take",
]  # fmt: skip


def elsewhere(do: Callable[[], Any]) -> threading.Thread:
    def run() -> None:
        try:
            do()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread
