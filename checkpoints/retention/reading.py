"""What the rules need to know of a run, read from its rows: never a payload, and one statement for the rows."""

from __future__ import annotations

from functools import lru_cache
from uuid import UUID

from psycopg.types.numeric import Int8

from checkpoints.models import Hold, Plan, Run
from checkpoints.plans import spec_of
from checkpoints.rows import run_sql

from .rules import Held, History, Place

ROW = 400  # bytes of a row and its index entries beside the payload, about
_PLACES = """
SELECT seq, id, parent, kind, step, at, anchor_seq = seq, next_step, plan_id, octet_length(payload)
FROM checkpoints_checkpoint WHERE run_id = $1 ORDER BY seq
"""
_HEAD = "SELECT head, status FROM checkpoints_run WHERE id = $1"


def history_of(run_id: int) -> History:
    """A run as it is now."""
    [(head, status)] = run_sql(_HEAD, [Int8(run_id)])
    places = [
        Place(seq, id, parent, kind, step, at, anchor, bool(after) and after in effects(plan), size)
        for seq, id, parent, kind, step, at, anchor, after, plan, size in run_sql(_PLACES, [Int8(run_id)])
    ]
    return History(places, head, status in Run.LIVE, holds_of(run_id))


def holds_of(run_id: int) -> list[Held]:
    """What is held of a run now."""
    found = Hold.objects.standing().filter(run=run_id).order_by("pk").values_list("pk", "checkpoint")
    return [Held(*each) for each in found]


@lru_cache(1024)
def effects(plan_id: int) -> frozenset[str]:
    """The names of a plan's effects."""
    return frozenset(step.name for step in spec_of(Plan.objects.get(pk=plan_id)).steps if step.kind == "effect")


def bytes_of(history: History, going: list[int]) -> int:
    """About how many bytes the rows that go take, with their index entries."""
    sizes = {place.seq: place.size for place in history.places}
    return sum(sizes[seq] + ROW for seq in going)


def numbers(history: History) -> dict[UUID, int]:
    """Id -> number."""
    return {place.id: place.seq for place in history.places}
