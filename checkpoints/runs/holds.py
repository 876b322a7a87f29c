"""Holds made by people: a name holds a checkpoint, a legal hold a checkpoint or a whole run.

A hold is made under the lock of the run's row, which a prune takes too. So either it protects its checkpoint, or the
caller is told that this is already gone.
"""

from __future__ import annotations

from uuid import UUID, uuid4

from django.db import transaction

from checkpoints.actors import Actor
from checkpoints.errors import CheckpointRemoved, NoSuchCheckpoint, ValueRefused
from checkpoints.events import event_log
from checkpoints.models import Checkpoint, Hold, Run
from checkpoints.postgresql.sql import make_storable
from checkpoints.store import gaps

LONGEST = 100  # characters of a name
LONGEST_REASON = 300


def name(run: Run, seq: int, words: str, *, by: Actor) -> Hold:
    """Name a checkpoint, which also holds it; a new name replaces the old one.

    Raises ValueRefused, CheckpointRemoved and NoSuchCheckpoint.
    """
    result = make_storable(" ".join(words.split())) or f"Checkpoint {seq}"
    if len(result) > LONGEST:
        words = f"has {len(result)} characters; {LONGEST} are the most"
        raise ValueRefused("/name", words)
    with transaction.atomic():
        id = locked(run, seq)
        Hold.objects.free(run=run.pk, subject=_named(id), by=by)
        hold = Hold.objects.make(run=run, checkpoint=id, kind=Hold.Kind.NAME, subject=_named(id), reason=result, by=by)
        event_log.record("checkpoint.named", subject=f"run:{run.pk}", run=run, by=by, data={"seq": seq}, text=result)
    return hold


def unname(run: Run, seq: int, *, by: Actor) -> bool:
    """Remove a checkpoint's name and its hold; False if it has none."""
    with transaction.atomic():
        id = Checkpoint.objects.filter(run=run, seq=seq).values_list("id", flat=True).first()
        freed = bool(id and Hold.objects.free(run=run.pk, subject=_named(id), by=by))
        if freed:
            event_log.record("checkpoint.unnamed", subject=f"run:{run.pk}", run=run, by=by, data={"seq": seq})
    return freed


def hold(run: Run, seq: int | None, reason: str, *, by: Actor) -> Hold:
    """Set a legal hold on a checkpoint, or the whole run. Raises ValueRefused, CheckpointRemoved, NoSuchCheckpoint."""
    text = make_storable(" ".join(reason.split()))
    if not text or len(text) > LONGEST_REASON:
        raise ValueRefused("/reason", f"has {len(text)} characters; it takes 1 to {LONGEST_REASON}")
    with transaction.atomic():
        id = None if seq is None else locked(run, seq)
        subject = f"legal:{uuid4().hex}"  # a subject of its own: a second hold stays when the first is freed
        made = Hold.objects.make(run=run, checkpoint=id, kind=Hold.Kind.LEGAL, subject=subject, reason=text, by=by)
        data = {"hold": made.pk, "seq": seq}
        event_log.record("retention.held", subject=f"run:{run.pk}", run=run, by=by, data=data, text=text)
    return made


def release(legal_hold: Hold, *, by: Actor) -> bool:
    """Free a legal hold; False if it is already freed."""
    with transaction.atomic():
        legal = legal_hold.kind == Hold.Kind.LEGAL
        freed = legal and bool(Hold.objects.free(run=legal_hold.run_id, subject=legal_hold.subject, by=by))
        if freed:
            about = Checkpoint.objects.filter(run=legal_hold.run_id, pk__in=filter(None, [legal_hold.checkpoint]))
            seq = about.values_list("seq", flat=True).first()
            data = {"hold": legal_hold.pk, "seq": seq}
            event_log.record(
                "retention.freed", subject=f"run:{legal_hold.run_id}", run=legal_hold.run, by=by, data=data
            )
    return freed


def locked(run: Run, seq: int) -> UUID:
    """Return a checkpoint's id, locking the run so that no prune removes it before the end of the transaction.

    Raises CheckpointRemoved and NoSuchCheckpoint.
    """
    list(Run.objects.select_for_update(no_key=True).filter(pk=run.pk).values_list("pk"))
    id = Checkpoint.objects.filter(run=run, seq=seq).values_list("id", flat=True).first()
    if id is None:
        gap = gaps.over(run.pk, seq)
        raise CheckpointRemoved(gap, seq) if gap else NoSuchCheckpoint
    return id


def _named(checkpoint: UUID) -> str:
    return f"name:{checkpoint}"
