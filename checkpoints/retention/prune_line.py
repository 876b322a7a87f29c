"""Removes what one line of a prune lists, portion by portion, each in a transaction of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import structlog
from django.db import transaction
from psycopg.types.numeric import Int8

from checkpoints import crash_points
from checkpoints.actors import Actor
from checkpoints.errors import CheckpointError, NotVerified
from checkpoints.events import event_log
from checkpoints.models import Prune, PruneLine
from checkpoints.postgresql.sql import run_sql
from checkpoints.store.gaps import RemovalReason

from . import chunks, delete_batch, policies, prune_report, reading, rules, unneeded_rows
from .rules import RetentionHistory

PORTION = 500  # checkpoints removed by one transaction, about
PAUSE = 1.5  # times as long as reading a portion took, and removing it
TRIES = 5  # attempts at a run that is moved meanwhile
_COUNT = """
WITH line AS (
  UPDATE checkpoints_pruneline SET removed = removed + $2, freed = freed + $3,
    signals_and_waits_removed = signals_and_waits_removed + $4 WHERE id = $1 RETURNING prune_id
)
UPDATE checkpoints_prune p SET removed = removed + $2, freed = freed + $3 FROM line
WHERE p.id = line.prune_id AND p.status = 'applying' RETURNING p.id
"""
_DONE = """
WITH line AS (
  UPDATE checkpoints_pruneline SET done = true, freed = freed + $2 WHERE id = $1 RETURNING prune_id
)
UPDATE checkpoints_prune p SET freed = freed + $2 FROM line WHERE p.id = line.prune_id AND $2 > 0
"""
_OTHERS = """
SELECT EXISTS (
  SELECT FROM checkpoints_pruneline other JOIN checkpoints_run run ON run.id = other.run_id
  WHERE other.prune_id = $1 AND NOT other.done AND other.id <> $2 AND run.lineage = $3
)
"""
log = structlog.get_logger(__name__)


class Stopped(CheckpointError):
    """The prune was stopped; what it had removed stays removed."""


def apply(prune: Prune, line: PruneLine, until: float) -> None:
    """Remove the checkpoints of one line; a run that is moved all the time is left for the next prune."""
    for _ in range(TRIES):
        try:
            if not _remove(prune, line, until):
                return
            break
        except delete_batch.RunMoved:
            continue
        except NotVerified as error:
            log.error("retention.not_verified", run=line.run_id, error=str(error))
            line.fault = str(error)[:300]
            prune.lines.filter(pk=line.pk).update(fault=line.fault)
            break
    _close(prune, line)


@contextmanager
def _paced() -> Iterator[None]:
    """Wait after the block in proportion to the time it took, so that whoever saves meanwhile waits less often."""
    began = time.monotonic()
    yield
    time.sleep(PAUSE * (time.monotonic() - began))


@contextmanager
def _unhurried() -> Iterator[None]:
    """Open a transaction whose commit does not wait for the disk.

    Whatever a power failure loses of the last moments is simply done again.
    """
    with transaction.atomic():
        run_sql("SELECT set_config('synchronous_commit', 'off', true)", [])
        yield


def _remove(prune: Prune, line: PruneLine, until: float) -> bool:
    """Remove portion by portion while the policy is in force; False if the time is up.

    Raises RunMoved, NotVerified and Stopped.
    """
    run, policy = line.run, line.policy
    history = reading.for_rules(run.pk)
    verdict = rules.decide(history, policy, prune.at)
    going = rules.within(verdict.going, line.ranges)
    portions = rules.batches(history.places, going, PORTION)
    why = RemovalReason(policy.called, policy.version, Actor(prune.by, prune.by_name), prune.at)
    for seqs in portions:
        if time.monotonic() > until:
            return False
        with _paced():
            portion = delete_batch.prepared(run.pk, run.lineage, history, seqs)
        if not _counts(line):
            return True
        with _paced(), _unhurried():
            freed = delete_batch.remove(portion, why=why)
            _count(line, removed=len(seqs), freed=freed)
        history = _without(history, seqs)
    return _remove_unneeded(line, history, until, why)


def _remove_unneeded(line: PruneLine, history: RetentionHistory, until: float, why: RemovalReason) -> bool:
    """Remove the rows of other apps that an ended run needs no more; as `_remove`."""
    found = unneeded_rows.find(line.run, history)
    for start in range(0, len(found), unneeded_rows.BATCH):
        if time.monotonic() > until:
            return False
        if not _counts(line):
            return True
        with _paced(), _unhurried():
            batch = found[start : start + unneeded_rows.BATCH]
            removed, freed = unneeded_rows.remove(line.run_id, history, batch)
            data = {"signals_and_waits": removed, "policy": why.policy, "version": why.version}
            event_log.record("retention.cleared", subject=f"run:{line.run_id}", by=why.by, run=line.run, data=data)
            _count(line, waits=removed, freed=freed)
    return True


def _count(line: PruneLine, *, removed: int = 0, freed: int = 0, waits: int = 0) -> None:
    """Add what a transaction removes to what the line and the prune count. Raises Stopped."""
    if not run_sql(_COUNT, [Int8(line.pk), Int8(removed), Int8(freed), Int8(waits)]):
        raise Stopped


def _counts(line: PruneLine) -> bool:
    """Tell whether the policy that the line follows is still in force.

    Writing another version, or switching it off, ends it.
    """
    policy = policies.policy_for(line.agent, policies.current())
    return policy is not None and policy.pk == line.policy_id


def _without(history: RetentionHistory, seqs: list[int]) -> RetentionHistory:
    """Return the run's history without these checkpoints."""
    gone, bare = set(seqs), set(rules.orphans(history.places, seqs))
    left = [
        place._replace(anchor=True) if place.seq in bare else place
        for place in history.places if place.seq not in gone
    ]  # fmt: skip
    return replace(history, places=left)


def _close(prune: Prune, line: PruneLine) -> None:
    """Record what stayed and why; after the last line of a lineage, remove its unused chunks."""
    crash_points.point("prune_line_done", str(line.run_id))
    kept = prune_report.count_by_reason(line, counts=_counts(line))
    lineage = line.run.lineage
    [(others,)] = run_sql(_OTHERS, [Int8(prune.pk), Int8(line.pk), Int8(lineage)])
    freed = 0 if others else chunks.free(lineage)
    with _unhurried():
        prune.lines.filter(pk=line.pk).update(stayed=kept)
        run_sql(_DONE, [Int8(line.pk), Int8(freed)])
