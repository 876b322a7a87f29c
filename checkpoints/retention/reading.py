"""Reads a run's history for the rules: one statement for the run and its holds, one for its rows, no payloads."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import lru_cache
from uuid import UUID

from psycopg.types.numeric import Int8

from checkpoints.models import Plan, Run
from checkpoints.postgresql.sql import run_sql
from checkpoints.runs.plans import spec_of

from .rules import ActiveHold, RetentionHistory, RetentionRow

ROW = 400  # bytes of a row and its index entries without the payload, about
_PLACES = """
SELECT seq, uuid_send(id), uuid_send(parent), kind, step, at, anchor_seq = seq, next_step, plan_id,
  octet_length(payload)
FROM checkpoints_checkpoint WHERE run_id = $1 ORDER BY seq
"""
HOLDS = "SELECT id, uuid_send(checkpoint) FROM checkpoints_hold WHERE run_id = $1 AND freed_at IS NULL ORDER BY id"
_RUN = f"""
SELECT uuid_send(head), status, held.id, held.checkpoint
FROM checkpoints_run LEFT JOIN ({HOLDS}) AS held (id, checkpoint) ON true WHERE checkpoints_run.id = $1
"""  # noqa: S608 - constants

Needs = Callable[[int], Collection[UUID]]
_needs: list[Needs] = []


def keep_also(needs: Needs) -> None:
    """Register `needs(run_id)`, which returns the checkpoints without which the state of the run's head is not whole.

    A run whose stored data do not verify needs all of them, for this to say.
    """
    _needs.append(needs)


def for_rules(run_id: int) -> RetentionHistory:
    """Return a run's history as it is now, with what other apps need of it."""
    found = history_of(run_id)
    if len(found.places) < 2:
        return found
    return replace(found, rebuilt_from={id.bytes for needs in _needs for id in needs(run_id)})


def history_of(run_id: int) -> RetentionHistory:
    """Return a run's history as it is now."""
    found = run_sql(_RUN, [Int8(run_id)])
    head, status = found[0][:2]
    holds = [ActiveHold(hold, checkpoint) for _, _, hold, checkpoint in found if hold is not None]
    places = [
        RetentionRow(seq, id, parent, kind, step, at, anchor, bool(after) and after in effects(plan), size)
        for seq, id, parent, kind, step, at, anchor, after, plan, size in run_sql(_PLACES, [Int8(run_id)])
    ]
    return RetentionHistory(places, head, status in Run.LIVE, holds)


@lru_cache(1024)
def effects(plan_id: int) -> frozenset[str]:
    """Return the names of a plan's effects."""
    return frozenset(step.name for step in spec_of(Plan.objects.get(pk=plan_id)).steps if step.kind == "effect")
