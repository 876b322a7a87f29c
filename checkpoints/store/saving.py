"""Saves what a step wrote, and moves a run's head back to an earlier checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple
from uuid import UUID

from django.db import transaction

from checkpoints.actors import SYSTEM, Actor
from checkpoints.errors import Fenced, NoSuchCheckpoint
from checkpoints.events import wakeup
from checkpoints.layout.snapshot import CheckpointPlace, Header, RowDraft, Snapshot
from checkpoints.models import Plan, Run
from checkpoints.postgresql.sql import run_sql
from checkpoints.values.ops import Write

from . import executions, save_statements
from .claims import Claim
from .named_files import checked_draft
from .save_statements import Along, RunMove


class DeferredSave(NamedTuple):
    """A checkpoint that is drafted and not written yet, with the head that it follows."""

    draft: RowDraft
    claim: Claim
    head: UUID
    seq: int
    move: RunMove
    along: Along | None = None

    @property
    def step(self) -> str:
        return self.draft.row.step

    def snapshot(self) -> Snapshot:
        """Return the snapshot that it will be once it is written."""
        return self.draft.snapshot()

    def write(self) -> Snapshot:
        """Write it, in one statement. Raises Fenced if another claim or another head came first."""
        claim, head, seq, move = self.claim, self.head, self.seq, self.move
        if not save_statements.save(self.draft, claim=claim, head=head, seq=seq, move=move, along=self.along):
            raise Fenced
        _ring(self.draft.row.run_id, self.move.status)
        return self.draft.snapshot()


def save(
    snapshot: Snapshot,
    writes: Mapping[str, Write],
    *,
    claim: Claim,
    header: Header,
    status: str = "running",
    reason: str = "",
    wake_at: datetime | None = None,
    notes: Sequence[str] = (),
    actor: Actor = SYSTEM,
    plan: Plan | None = None,
    id: UUID | None = None,
    along: Along | None = None,
) -> Snapshot:
    """Save what a step wrote as the checkpoint after `snapshot`, which must be the run's head.

    The checkpoint has this `id` if one is given, and rows are written `along` with it. The run continues with `plan` if
    one is given: its state was upgraded to that version. One statement: it commits by itself in autocommit mode, and
    joins a transaction if there is one.
    Raises Fenced if another claim or another head came first, ValueRefused and StateTooLarge before anything is sent.
    """
    plan_id = snapshot.plan_id if plan is None else plan.pk
    move = RunMove(status, reason, wake_at, notes, actor)
    return _drafted(snapshot, writes, claim, header, move, plan_id=plan_id, id=id, along=along).write()


def defer(
    snapshot: Snapshot,
    writes: Mapping[str, Write],
    *,
    claim: Claim,
    header: Header,
    notes: Sequence[str] = (),
    actor: Actor = SYSTEM,
) -> DeferredSave:
    """Draft the checkpoint after `snapshot`, to be written later; the run then goes on. Raises as `save` does."""
    move = RunMove("running", "", None, notes, actor)
    return _drafted(snapshot, writes, claim, header, move, plan_id=snapshot.plan_id)


def _drafted(
    snapshot: Snapshot,
    writes: Mapping[str, Write],
    claim: Claim,
    header: Header,
    move: RunMove,
    *,
    plan_id: int,
    id: UUID | None = None,
    along: Along | None = None,
) -> DeferredSave:
    place = CheckpointPlace(snapshot.run_id, snapshot.lineage, plan_id, snapshot.seq + 1, claim.token, claim.clock())
    made = checked_draft(snapshot, writes, header, place, list_format=snapshot.list_format, id=id)
    return DeferredSave(made, claim, snapshot.id, snapshot.seq, move, along)


def move_head(
    target: Snapshot,
    writes: Mapping[str, Write],
    *,
    claim: Claim,
    header: Header,
    status: str = "running",
    reason: str = "",
    notes: Sequence[str] = (),
    actor: Actor = SYSTEM,
    plan: Plan | None = None,
    id: UUID | None = None,
) -> Snapshot:
    """Rewind: save `target`'s state with `writes` as a new checkpoint whose parent is `target`.

    The checkpoint has this `id` if one is given. The old head stays as a branch's tip. `target` is any of the run's own
    checkpoints, or, in a fork, one of the path that it was forked from. The run goes on with the plan of `target`, or
    the one that is given. Raises as `save` does, and NoSuchCheckpoint.
    """
    move = RunMove(status, reason, None, notes, actor)
    with transaction.atomic(savepoint=False):
        head, seq = _locked(claim.run_id, target.id)
        if head is None:
            raise NoSuchCheckpoint
        if target.run_id != claim.run_id and all(row.id != target.id for row in executions.path(head)):
            raise NoSuchCheckpoint
        plan_id = target.plan_id if plan is None else plan.pk
        place = CheckpointPlace(claim.run_id, target.lineage, plan_id, seq + 1, claim.token, claim.clock())
        made = checked_draft(target, writes, header, place, list_format=target.list_format, id=id)
        if not save_statements.save(made, claim=claim, head=head, seq=seq, move=move):
            raise Fenced
        _ring(claim.run_id, status)
    return made.snapshot()


def _locked(run_id: int, target: UUID) -> tuple[UUID | None, int]:
    """Lock the run and the checkpoint to which it moves; return the run's head and number.

    The run must not continue from a checkpoint that a prune removes meanwhile: its chunks may be freed. Raises
    NoSuchCheckpoint.
    """
    found = Run.objects.select_for_update(no_key=True).values_list("head", "seq").get(pk=run_id)
    if not run_sql("SELECT 1 FROM checkpoints_checkpoint WHERE id = $1 FOR KEY SHARE", [target]):
        raise NoSuchCheckpoint
    return found


def _ring(run_id: int, status: str) -> None:
    if status == "running":
        transaction.on_commit(partial(wakeup.ring_step, run_id))
    else:
        wakeup.ring_after_commit()
