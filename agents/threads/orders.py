"""Fills a program's orders about whole threads: to copy one, to remove it, what invocations saved, all but the newest.

What is removed leaves a gap row, as with retention, so that the rest can be verified. A hold stands in the way: an open
gate, a name, a fork, an effect or a legal hold. Then nothing of that thread is removed, and the refusal names it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from psycopg.types.numeric import Int8

from agents.models import ThreadCall, ThreadWrite
from checkpoints import store
from checkpoints.errors import Fenced, NotVerified
from checkpoints.events import event_log
from checkpoints.models import Checkpoint, Hold, Run
from checkpoints.postgresql.sql import run_sql
from checkpoints.retention import chunks, delete_batch, rules
from checkpoints.retention.delete_batch import RunMoved
from checkpoints.retention.reading import history_of
from checkpoints.store import claims
from checkpoints.store.gaps import RemovalReason
from checkpoints.values.ops import DROP

from . import places, reading, saving
from .pending import Numbered, Write, add_writes
from .places import Owner, Place, ThreadHeld, ThreadRefused, ThreadRun, ThreadTaken
from .reading import Found
from .saving import LEASE, NewCheckpoint

PORTION = 500
TRIES = 5  # at a run that is written meanwhile
POLICY = "LangGraph"  # named in the gap as what removed them


def delete(owner: Owner, thread: str) -> None:
    """Remove all checkpoints and writes of a thread; its runs stay, with an empty state. Raises ThreadHeld."""
    found = places.of_thread(owner, thread)
    for run in found:
        _check_holds(run, None)
    for run in reversed(found):  # the subgraphs' before the thread's own
        _remove(owner, run, _all)


def prune(owner: Owner, thread: str) -> None:
    """Keep the newest checkpoint of each namespace, and those from which its DeltaChannels are rebuilt.

    The namespace of a subgraph's call goes with the checkpoint that called it. Raises ThreadHeld and NotVerified.
    """
    found = places.of_thread(owner, thread)
    kept = {run.namespace: _needed(run) for run in found}
    of_graph = kept.get("", set())
    graph = next((run for run in found if not run.namespace), None)
    for run in found:
        caller = _caller(run, graph)
        _remove(owner, run, _unneeded if caller is None or caller in of_graph else _all)


def delete_invocations(owner: Owner, invocations: Sequence[str]) -> None:
    """Remove the checkpoints that these invocations saved, in all threads of the agent. Raises ThreadHeld."""
    wanted = set(invocations)

    def saved_by_them(_: ThreadRun, ids: Sequence[UUID]) -> Collection[UUID]:
        return [id for id in ids if saving.invocation_of(store.load_checkpoint(id).state) in wanted]

    runs = set(ThreadCall.objects.filter(name__in=wanted).values_list("run_id", flat=True))
    for run in places.of_thread(owner, None):
        if run.run_id in runs:
            _remove(owner, run, saved_by_them)
            ThreadCall.objects.filter(run_id=run.run_id, name__in=wanted).delete()


Choice = Callable[[ThreadRun, Sequence[UUID]], Collection[UUID]]


def _all(run: ThreadRun, ids: Sequence[UUID]) -> Collection[UUID]:
    return ids


def _unneeded(run: ThreadRun, ids: Sequence[UUID]) -> Collection[UUID]:
    return set(ids) - _needed(run)


def _needed(run: ThreadRun) -> set[UUID]:
    """Return the newest checkpoint of a run, and those that its DeltaChannels are rebuilt from."""
    head = store.load(Run(pk=run.run_id))
    counted = saving.metadata_of(head.state, "counters_since_delta_snapshot")
    channels = {name: name for name in counted if name not in head.state}
    return {head.id, *(reading.walked(run, head.id, channels)[1] if channels else ())}


def rebuilt_from(run_id: int) -> Collection[UUID]:
    """Return what retention may not remove of the run of a thread; all of one that does not verify."""
    run = places.of_run(run_id)
    if run is None:
        return ()
    try:
        return _needed(run)
    except NotVerified:
        return Checkpoint.objects.filter(run=run_id).values_list("pk", flat=True)


def _caller(run: ThreadRun, graph: ThreadRun | None) -> UUID | None:
    """Return the checkpoint of the graph that called this subgraph, if that is saved."""
    if ":" not in run.namespace or graph is None:
        return None
    head = store.load(Run(pk=run.run_id))
    named = saving.metadata_of(head.state, "parents").get("")
    if not named:
        return None
    caller = graph.stored(named)
    there = run_sql("SELECT 1 FROM checkpoints_checkpoint WHERE id = $1 AND run_id = $2", [caller, Int8(graph.run_id)])
    return caller if there else None


def _remove(owner: Owner, run: ThreadRun, choose: Choice) -> None:
    """Remove what `choose` names of a run's checkpoints; the run goes on from the newest that stays."""
    with saving.RUNS.alone(run.run_id):
        saving.RUNS.take(run.run_id)
        for left in reversed(range(TRIES)):
            try:
                with transaction.atomic():  # or a kill would leave the content of what is removed
                    if _removed(owner, run, choose):
                        chunks.free(run.lineage)
                return
            except (RunMoved, Fenced):
                _check_holds(run, None)
                if not left:
                    raise saving.moved(run) from None


def _removed(owner: Owner, run: ThreadRun, choose: Choice) -> int:
    """Do it in the caller's transaction: the new head, the removal, and the gaps; return how many went.

    Raises RunMoved, Fenced and ThreadHeld.
    """
    places_now = history_of(run.run_id).places
    there = [UUID(bytes=place.id) for place in places_now if place.step not in places.NOTHING]
    going = set(choose(run, there))
    if not going:
        return 0
    _check_holds(run, going)
    _go_back(owner, run, going, [id for id in there if id not in going])
    history_now = history_of(run.run_id)
    seqs = [place.seq for place in history_now.places if UUID(bytes=place.id) in going]
    data = {"checkpoints": len(seqs), "policy": POLICY}
    team = Run.objects.values_list("team_id", flat=True).get(pk=run.run_id)
    row = Run(pk=run.run_id, team_id=team)
    event_log.record("retention.requested", subject=f"run:{run.run_id}", by=owner.by, run=row, data=data)
    why = RemovalReason(POLICY, 0, owner.by, datetime.now(UTC))
    for portion in rules.batches(history_now.places, seqs, PORTION):
        delete_batch.remove(delete_batch.prepared(run.run_id, run.lineage, history_now, portion), why=why)
        history_now = history_of(run.run_id)
    if len(going) == len(there):
        ThreadWrite.objects.filter(run_id=run.run_id).delete()
    return len(seqs)


def _go_back(owner: Owner, run: ThreadRun, going: Collection[UUID], staying: Sequence[UUID]) -> None:
    """Move the head, if it goes, to the newest checkpoint that stays, or to an empty state. An ended run stays so."""
    now = run.standing(lock=True)  # or a person could end it meanwhile
    if now.head not in going:
        return
    claim = claims.claim_at(run.run_id, now.token, now.head, worker=owner.worker, lease=LEASE, by=owner.by)
    if claim is None:  # it has ended, or was written just now
        claim = claims.take_over(Run.objects.get(pk=run.run_id), owner.by)
    then: dict[str, Any] = {"claim": claim, "actor": owner.by}
    if now.status not in Run.LIVE:
        then |= {"status": now.status, "reason": now.reason}
    if staying:
        store.move_head(store.load_checkpoint(staying[-1]), {}, header=saving.HEADER, **then)
    else:
        head = store.load(Run(pk=run.run_id))
        empty = dict.fromkeys(head.state, DROP)
        store.save(head, empty, header=saving.EMPTY, **({"status": Run.Status.WAITING} | then))


def _check_holds(run: ThreadRun, going: Collection[UUID] | None) -> None:
    """Raise ThreadHeld if something holds any of these checkpoints, or any of the run's."""
    for hold in Hold.objects.standing().filter(run=run.run_id).order_by("pk"):
        if going is None or hold.checkpoint is None or hold.checkpoint in going:
            what = f"checkpoint {run.shown(hold.checkpoint)}" if hold.checkpoint else "the whole run"
            raise ThreadHeld(
                f"{hold.get_kind_display()} ({hold.subject}: {hold.reason}) holds {what} of the thread {run.thread!r}, "
                f"R-{run.run_id}. Nothing was removed. Have it freed first: close the gate, or free the hold."
            )


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
        saving.take_writers_along(owner, thread, to)


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
