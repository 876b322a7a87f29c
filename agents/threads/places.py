"""Threads and the runs that keep them: finds a thread's runs, and starts one when the thread is first written."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple
from uuid import UUID

from cachetools import LRUCache
from django.contrib.auth.models import Group, User
from django.db import connection, transaction
from psycopg.types.numeric import Int8

from agents.models import GraphThread
from agents.models.graph_thread import NO_MASK
from agents.remote import plans
from agents.work_errors import WorkRefused
from checkpoints import store
from checkpoints.actors import Actor
from checkpoints.errors import NoSuchCheckpoint
from checkpoints.models import Plan, Run
from checkpoints.postgresql.sql import make_storable, run_sql
from checkpoints.runs.plans import PlanSpec, StepSpec
from checkpoints.store import Snapshot
from checkpoints.values.canonical_json import encode_canonical

STEP, BEGUN, EMPTIED = "graph", "input", "emptied"  # steps of checkpoints: of the graph, and of empty states
NOTHING = (BEGUN, EMPTIED)
LONGEST = 200  # characters of a thread's id, which the lists of runs are filtered by
VERSION = "langgraph"
OPEN = {"type": "object", "properties": {}, "additionalProperties": True}  # a graph's channels are its own affair
_OWN_BITS = (1 << 62) - 1  # of an id, below its time, version and variant
_FIND = """
SELECT r.id, r.lineage, t.namespace, t.mask, r.thread, r.started_by_id
FROM checkpoints_run r JOIN agents_graphthread t ON t.run_id = r.id
"""
_ONE = f"{_FIND} WHERE r.key = $1"
_OF_RUN = f"{_FIND} WHERE r.id = $1"
_ALL = f"""{_FIND} JOIN checkpoints_plan p ON p.id = r.plan_id
WHERE r.team_id = $1 AND p.agent = $2"""
_OF_THREAD = f"{_ALL} AND r.thread = $3 AND r.thread <> '' ORDER BY r.id"
_STANDING = """
SELECT r.token, r.head, r.seq, r.status, r.reason, t.mask
FROM checkpoints_run r JOIN agents_graphthread t ON t.run_id = r.id WHERE r.id = $1
"""
_LOCKED = f"{_STANDING} FOR NO KEY UPDATE OF r"


class ThreadMoved(WorkRefused):
    """Somebody else has written the thread. Invoke the graph again: it goes on from the thread as it is now."""

    code = "thread_moved"


class ThreadEnded(WorkRefused):
    """The thread's run has ended. Rewind it on its page to go on, or use another thread_id."""

    code = "thread_ended"


class ThreadHeld(WorkRefused):
    """Something holds a checkpoint of the thread, so that it cannot be removed."""

    code = "thread_held"


class ThreadTaken(WorkRefused):
    """The checkpoint's id, or the thread to copy to, is in use."""

    code = "thread_taken"


class ThreadRefused(WorkRefused):
    """The name of a thread or a checkpoint cannot be used."""

    code = "thread_refused"
    status = 422


@dataclass(frozen=True)
class Owner:
    """The owner of threads, a team's agent, and who writes them."""

    team: Group
    agent: str
    by: Actor
    person: User | None = None
    worker: str = ""


class Place(NamedTuple):
    """A thread's id and a namespace in it."""

    thread: str
    namespace: str = ""


class Standing(NamedTuple):
    """A run as one statement saw it."""

    token: int
    head: UUID
    seq: int
    status: str
    reason: str
    mask: UUID


class ThreadRun(NamedTuple):
    """The run that keeps one namespace of a thread."""

    run_id: int
    lineage: int
    namespace: str
    mask: UUID
    thread: str
    starter: int | None

    def stored(self, id: str) -> UUID:
        """Return the store's id of a checkpoint of the graph. Raises ThreadRefused."""
        return UUID(int=parsed(id).int ^ self.mask.int)

    def shown(self, id: UUID) -> str:
        """Return the graph's id of a checkpoint."""
        return str(UUID(int=id.int ^ self.mask.int))

    def load(self, id: UUID) -> Snapshot | None:
        """Return one of its checkpoints, by the store's id; None where it is none of them. Raises NotVerified."""
        try:
            found = store.load_checkpoint(id)
        except NoSuchCheckpoint:
            return None
        return found if found.run_id == self.run_id else None

    def standing(self, *, lock: bool = False) -> Standing:
        """Return the run as it is now; with `lock`, once nobody is writing it, and until the transaction ends."""
        return Standing._make(run_sql(_LOCKED if lock else _STANDING, [Int8(self.run_id)])[0])


def parsed(id: str) -> UUID:
    """Return the id of a checkpoint of a graph. Raises ThreadRefused."""
    try:
        return UUID(id)
    except (ValueError, AttributeError, TypeError) as error:
        raise ThreadRefused(f"A checkpoint's id is a UUID, as LangGraph makes them; {id!r} is none.") from error


# Nothing of it changes once it is there but the mask, which is compared when the run is read.
_known: LRUCache[tuple[int, str, Place], ThreadRun] = LRUCache(4096)
_lock = Lock()


def find(owner: Owner, place: Place) -> ThreadRun | None:
    """Return the run of a namespace; None where nobody has written it. Raises ThreadRefused."""
    key = (owner.team.pk, owner.agent, place)
    with _lock:
        known = _known.get(key)
    if known is None and (found := run_sql(_ONE, [key_of(owner, place)])):
        known = ThreadRun._make(found[0])
        _know(owner, known)
    return known


def of_run(run_id: int) -> ThreadRun | None:
    """Return a run as one that keeps a namespace of a thread; None if it keeps none."""
    found = run_sql(_OF_RUN, [Int8(run_id)])
    return ThreadRun._make(found[0]) if found else None


def of_thread(owner: Owner, thread: str | None) -> list[ThreadRun]:
    """Return the runs of all namespaces of a thread, or of all threads, the oldest first."""
    if thread is None:
        found = run_sql(f"{_ALL} ORDER BY r.id", [owner.team.pk, owner.agent])
    else:
        found = run_sql(_OF_THREAD, [owner.team.pk, owner.agent, _checked(thread)])
    return [ThreadRun._make(row) for row in found]


def current(owner: Owner, thread: ThreadRun) -> tuple[ThreadRun, Standing]:
    """Return the run as it is now, with the mask that it has: the thread may have been deleted, and copied to."""
    now = thread.standing()
    if now.mask != thread.mask:
        thread = thread._replace(mask=now.mask)
        _know(owner, thread)
    return thread, now


def mask_anew(owner: Owner, thread: str) -> None:
    """Give the runs of a thread without checkpoints another mask, for a copy whose ids are in use elsewhere."""
    for run in of_thread(owner, thread):
        GraphThread.objects.filter(run=run.run_id).update(mask=_new_mask())


def _know(owner: Owner, thread: ThreadRun) -> None:
    if not connection.in_atomic_block:  # or a rollback may take it away again
        with _lock:
            _known[owner.team.pk, owner.agent, Place(thread.thread, thread.namespace)] = thread


def _new_mask() -> UUID:
    return UUID(int=secrets.randbits(62) & _OWN_BITS)


def opened(owner: Owner, place: Place, *, masked: bool = False) -> ThreadRun:
    """Return the run of a namespace, started if it is new. `masked`: as a copy, whose ids are in use elsewhere."""
    return find(owner, place) or _begun(owner, place, masked)


def _begun(owner: Owner, place: Place, masked: bool) -> ThreadRun:
    above = None
    if place.namespace:
        above = Run(pk=opened(owner, Place(place.thread), masked=masked).run_id)
    mask = _new_mask() if masked else NO_MASK
    title = make_storable(f"{owner.agent}: {place.thread}{f' / {place.namespace}' if place.namespace else ''}")
    with transaction.atomic():
        run = store.start(
            plan=plan_of(owner.agent), team=owner.team, title=title, values={}, first_step=STEP, by=owner.by,
            started_by=owner.person, key=key_of(owner, place), thread=place.thread, parent=above,
        )  # fmt: skip
        GraphThread.objects.get_or_create(run=run, defaults={"namespace": place.namespace, "mask": mask})
    found = find(owner, place)
    assert found is not None  # noqa: S101 - it is there by now
    return found


def plan_of(agent: str) -> Plan:
    """Return the plan of a graph's threads: all that is known of the graph is that it runs."""
    graph = StepSpec(STEP, doc="Run the graph.", jumps=(STEP,))
    return plans.keep(PlanSpec(agent, VERSION, "A LangGraph graph whose threads are kept here.", OPEN, (graph,)))


def key_of(owner: Owner, place: Place) -> str:
    """Return the key of a namespace's run. Raises ThreadRefused."""
    named = [owner.team.pk, owner.agent, _checked(place.thread), _text(place.namespace, "namespace")]
    return f"thread:{hashlib.sha256(encode_canonical(named)).hexdigest()}"


def _checked(thread: str) -> str:
    if not thread or len(thread) > LONGEST:
        raise ThreadRefused(
            f"A thread_id has 1 to {LONGEST} characters; this one has {len(thread)}. Use a shorter one."
        )
    return _text(thread, "thread_id")


def _text(name: str, what: str) -> str:
    if make_storable(name) != name:
        raise ThreadRefused(f"A {what} has no U+0000 and no lone surrogates. Use another.")
    return name
