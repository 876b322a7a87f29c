"""Puts a graph's checkpoint into its thread's run.

A put goes on from a parent. If that is the head, it is one save; an earlier one makes a branch, as a rewind does; none
begins the thread anew from its empty beginning. `seen` says what the program knows: the claim and the head as of its
last read or put. Two programs that both go on from one head are so told apart: the first one wins.

Nobody tells a checkpointer that an invocation is over, so a thread's run waits once its lease is.

Whose programs wrote a thread, beside who began it, is recorded: they are authors of what its graph asks about. See
approvals.policy.separation, which reads these events. An event too many is a person too many who is apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from psycopg.types.numeric import Int8

from agents.models import ThreadCall
from agents.remote.reach import record_writer
from agents.remote.session_cache import RunCache
from approvals.policy import separation
from checkpoints import crash_points, store
from checkpoints.actors import SYSTEM
from checkpoints.errors import Fenced
from checkpoints.models import Plan, Run
from checkpoints.postgresql.sql import run_sql
from checkpoints.store import Header, Snapshot, claims
from checkpoints.store.claims import Claim
from checkpoints.values.ops import DROP, Append, Write

from . import handed, pending, places
from .pending import Numbered
from .places import Owner, Place, Standing, ThreadEnded, ThreadMoved, ThreadRefused, ThreadRun, ThreadTaken

LEASE = 60.0  # seconds after a put until the run rests, unless another put comes
POSITION = "langgraph"
HEADER = Header("step", places.STEP, places.STEP)
EMPTY = Header("step", places.EMPTIED, places.STEP)
_FIRST = "SELECT id FROM checkpoints_checkpoint WHERE run_id = $1 AND seq = 1"
WAITS = "The graph waits for an answer to its interrupt."
_KNOWN = """
SELECT EXISTS (SELECT FROM checkpoints_event
  WHERE run_id = $1 AND kind = 'program.joined' AND kind <> 'checkpoint.saved' AND actor = $2)
"""
AT_ONCE = 200
RESTS = "The thread waits for its next message."
_OVER = f"""
SELECT r.id FROM checkpoints_run r JOIN agents_graphthread t ON t.run_id = r.id
WHERE r.status = 'running' AND r.lease_until < clock_timestamp() ORDER BY r.id LIMIT {AT_ONCE}
"""  # noqa: S608 - a constant


class Seen(NamedTuple):
    """The knowledge that a program has of a thread's run: the claim's token, and the head, None without a run."""

    token: int
    head: UUID | None


class KeptRun(NamedTuple):
    """A run's head, and the claim under which it was written."""

    snapshot: Snapshot
    claim: Claim


# To load a run for every put would cost more than the put.
RUNS: RunCache[KeptRun] = RunCache(largest=64 * 1024 * 1024)


@dataclass(frozen=True)
class NewCheckpoint:
    """A checkpoint to put. `whole`: `fields` is the whole state, and not only what differs from the parent's."""

    id: str
    parent: str | None
    fields: Mapping[str, Write]
    whole: bool = False
    invocation: str = ""


def put(owner: Owner, place: Place, new: NewCheckpoint, seen: Seen | None) -> Seen:
    """Save a checkpoint of the graph; return what the program knows then.

    The same put sent twice is done once. Raises ThreadMoved, ThreadEnded, ThreadTaken, ThreadRefused, NotVerified,
    ValueRefused and StateTooLarge.
    """
    thread = places.opened(owner, place)
    note_writer(owner, thread)
    with RUNS.alone(thread.run_id):
        kept = RUNS.take(thread.run_id)
        made = _at_once(owner, thread, kept, new, seen) or _looked_up(owner, thread, kept, new, seen)
        if isinstance(made, Seen):
            return made
        RUNS.put(thread.run_id, made)
    return Seen(made.claim.token, made.snapshot.id)


def _at_once(
    owner: Owner, thread: ThreadRun, cached: KeptRun | None, new: NewCheckpoint, seen: Seen | None
) -> KeptRun | None:
    """Save onto the kept head, in one statement; None where there is more to do."""
    if cached is None or seen != (cached.claim.token, cached.snapshot.id) or new.parent is None:
        return None
    known = ("", invocation_of(cached.snapshot.state))
    if thread.stored(new.parent) != cached.snapshot.id or new.invocation not in known:
        return None
    try:
        with handed.taken_along(thread.run_id) as tasks:
            return _saved(owner, thread, cached.snapshot, cached.claim, new, pending.along(tasks))
    except (Fenced, IntegrityError):  # the latter where a task has written before
        return None


def _saved(
    owner: Owner, thread: ThreadRun, base: Snapshot, claim: Claim, new: NewCheckpoint, along: store.Along | None = None
) -> KeptRun:
    writes, id = _writes(base, new), thread.stored(new.id)
    made = store.save(base, writes, claim=claim, header=HEADER, actor=owner.by, id=id, along=along)
    return KeptRun(made, claim)


def _writes(base: Snapshot, new: NewCheckpoint) -> dict[str, Write]:
    writes = dict(new.fields)
    if new.whole:
        if any(isinstance(write, Append) or write is DROP for write in writes.values()):
            raise ThreadRefused("A whole state has values alone: neither appends nor drops.")
        writes |= {name: DROP for name in base.state if name not in writes}
    return {name: write for name, write in writes.items() if write is not DROP or name in base.state}


def _looked_up(
    owner: Owner, thread: ThreadRun, cached: KeptRun | None, new: NewCheckpoint, seen: Seen | None
) -> KeptRun | Seen:
    handed.keep_all()  # a checkpoint must not be seen before the writes that led to it
    try:
        with transaction.atomic():
            thread, now = places.current(owner, thread)
            if again := _same(thread, new, now):
                return again
            if now.status not in Run.LIVE:
                raise ended(thread, now)
            if seen is not None and not _stands(seen, now):
                raise moved(thread)
            claim = claims.claim_at(thread.run_id, now.token, now.head, worker=owner.worker, lease=LEASE, by=owner.by)
            if claim is None:
                raise moved(thread)
            crash_points.point("thread_claimed", str(thread.run_id))
            head = cached.snapshot if cached and cached.snapshot.id == now.head else store.load(Run(pk=thread.run_id))
            made = _placed(owner, thread, head, claim, new)
            if pending.asks(thread.run_id, made.snapshot.id):  # its writes were quicker
                claims.release(claim, status=Run.Status.WAITING, reason=WAITS, by=owner.by)
            if new.invocation:
                ThreadCall.objects.get_or_create(run_id=thread.run_id, name=new.invocation)
            return made
    except Fenced as error:
        raise moved(thread) from error
    except IntegrityError as error:
        raise ThreadTaken(f"Another thread has a checkpoint {new.id}: ids are made once. Use LangGraph's.") from error


def _placed(owner: Owner, thread: ThreadRun, head: Snapshot, claim: Claim, new: NewCheckpoint) -> KeptRun:
    """Save the checkpoint after its parent, wherever that is."""
    if new.parent is not None:
        parent = thread.stored(new.parent)
        begins = head if parent == head.id else _earlier(thread, parent)
    elif POSITION not in head.state:
        begins = head
    elif (beginning := _beginning(thread)) is not None:
        begins = beginning
    else:
        empty = dict.fromkeys(head.state, DROP)
        begins = head = store.save(head, empty, claim=claim, header=EMPTY, actor=owner.by)
    if begins.id == head.id:
        return _saved(owner, thread, head, claim, new)
    writes, id = _writes(begins, new), thread.stored(new.id)
    return KeptRun(store.move_head(begins, writes, claim=claim, header=HEADER, actor=owner.by, id=id), claim)


def _beginning(thread: ThreadRun) -> Snapshot | None:
    """Return the empty state that the run began with; None where retention has removed it."""
    found = run_sql(_FIRST, [Int8(thread.run_id)])
    return store.load_checkpoint(found[0][0]) if found else None


def _earlier(thread: ThreadRun, id: UUID) -> Snapshot:
    found = thread.load(id)
    if found is None:
        raise ThreadMoved(
            f"The thread has no checkpoint {thread.shown(id)} any more. Invoke the graph again without a checkpoint_id."
        )
    return found


def _same(thread: ThreadRun, new: NewCheckpoint, now: Standing) -> Seen | None:
    """Return what is known of the run if this very put was done before: its answer was lost, and it is sent again."""
    if now.head != thread.stored(new.id):
        return None
    found = store.load(Run(pk=thread.run_id))
    if found.state.get(POSITION) != new.fields.get(POSITION):
        raise ThreadTaken(f"The thread has another checkpoint {new.id}, and checkpoints never change.")
    return Seen(now.token, now.head)


def _stands(seen: Seen, now: Standing) -> bool:
    """Tell whether nobody has written the run since. A new run has been started, and never claimed."""
    return seen.token == now.token and (seen.head == now.head or (seen.head is None and now.seq == 1))


def metadata_of(fields: Mapping[str, Any], name: str = "metadata") -> Mapping[str, Any]:
    """Return the metadata in a state, or a part of them; empty where somebody's edit left nothing of the kind."""
    position = fields.get(POSITION)
    found = position.get("metadata") if isinstance(position, Mapping) else None
    found = found.get(name) if isinstance(found, Mapping) and name != "metadata" else found
    return found if isinstance(found, Mapping) else {}


def invocation_of(fields: Mapping[str, Any]) -> str:
    """Return LangGraph's `run_id` of the invocation that saved a state, or an empty text."""
    found = metadata_of(fields).get("run_id")
    return found if isinstance(found, str) else ""


def ended(thread: ThreadRun, now: Standing) -> ThreadEnded:
    """Return, as an exception, that the thread's run has ended, and how."""
    why = f"{now.status}: {now.reason}".rstrip(".: ")
    return ThreadEnded(
        f"The thread's run R-{thread.run_id} is {why}. Rewind it on its page to go on, or use another thread_id."
    )


def moved(thread: ThreadRun) -> ThreadMoved:
    """Return, as an exception, that somebody else has written the thread, and who."""
    run = Run.objects.get(pk=thread.run_id)
    who = f"{run.worker} has it now" if run.worker else "a person or another program has moved it"
    return ThreadMoved(
        f"The thread {thread.thread!r} was written by somebody else since this program read it: {who}. "
        "Nothing was saved. Invoke the graph again: it goes on from the thread as it is now."
    )


def put_writes(owner: Owner, place: Place, id: str, writes: Sequence[Numbered], *, task: str, path: str) -> None:
    """Keep a task's writes at a checkpoint, which may not be saved yet. Raises ValueRefused and ThreadRefused."""
    thread = places.opened(owner, place)
    note_writer(owner, thread)
    pending.add_writes(thread.run_id, thread.stored(id), task, path, writes)
    if any(number == pending.INTERRUPTED for number, *_ in writes):
        _wait(owner, thread)


def _wait(owner: Owner, thread: ThreadRun) -> None:
    """Let the run wait for people. Whoever goes on with the thread claims it anew.

    Under the run's lock: a put of the checkpoint that looked for the interrupt too early is through by then.
    """
    with transaction.atomic():
        now = thread.standing(lock=True)
        if now.status == Run.Status.RUNNING:
            claim = Claim(thread.run_id, now.token, 0.0, now.head, now.seq, places.STEP, 1, datetime.now(UTC))
            claims.release(claim, status=Run.Status.WAITING, reason=WAITS, by=owner.by)


def note_writer(owner: Owner, thread: ThreadRun) -> None:
    """Record who writes, where that is somebody else than who began the thread's run; once for each."""
    if owner.person is not None and owner.person.pk != thread.starter:
        _record(thread, owner.person)


def take_writers_along(owner: Owner, thread: str, to: str) -> None:
    """Make the authors of a thread those of its copy too."""
    run = Run(team=owner.team, plan=Plan(agent=owner.agent), thread=thread)
    wrote = {contribution.person for contribution in separation.contributions(run, UUID(int=0), "")}
    for copied in places.of_thread(owner, to)[:1]:
        for person in User.objects.filter(pk__in=wrote - {copied.starter}).order_by("pk"):
            _record(copied, person)


def _record(thread: ThreadRun, person: User) -> None:
    if not run_sql(_KNOWN, [Int8(thread.run_id), f"user:{person.pk}"])[0][0]:
        record_writer(Run.objects.get(pk=thread.run_id), person)


def rest() -> int:
    """Let the runs of threads wait that nobody has written for a while; return how many. Their claims stay valid."""
    found = [run for (run,) in run_sql(_OVER, [])]
    return claims.rest(found, reason=RESTS, by=SYSTEM) if found else 0
