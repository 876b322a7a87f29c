"""The engine's sessions of runs that external programs have claimed, as this process last saw them.

To load a run for every call would cost more than the call, so it is kept for the next one, with its claim token. Every
write checks the token and the head in its statement, so a stale entry does no harm: the run is then loaded again, once.

Their performer hands work out, except what the program has just said that it begins.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakValueDictionary

from django.db import transaction

from agents.models import Effect
from agents.session import gates_beside
from agents.session.heartbeat import ClaimBeat
from agents.session.performer import HandOut, Performer, Returned
from agents.session.run_session import ENDED, RunSession
from agents.work_errors import OutOfTurn, RunEnded, StaleToken, WorkRefused
from approvals.engine_rules.permissions import holds_up
from approvals.models import Gate
from checkpoints import store
from checkpoints.actors import Actor
from checkpoints.models import Run
from checkpoints.postgresql.sql import run_sql
from checkpoints.runs.plans import StepSpec, spec_of
from checkpoints.store import Snapshot, claims
from checkpoints.store.claims import Claim, ClaimedRun

from . import plans
from .reach import ReachedRun, load_run, note_owner

MOST = 256  # runs of one cache
_HELD = """
SELECT r.head, r.seq, r.next_step, r.attempts, clock_timestamp(), coalesce(c.lease, $3::float8)
FROM checkpoints_run r LEFT JOIN agents_client c ON c.run_id = r.id
WHERE r.id = $1 AND r.token = $2 AND r.status = 'running'
"""


@dataclass
class RemotePerformer(Performer[RunSession]):
    """Hands out work to a program.

    `card` is for the gate `asked`, `begun` is the step whose effect the program begins, and `undone` the id of the
    effect that it begins to undo. Each counts once, and a card for no other step.
    """

    asked: str = ""
    card: Returned | None = None
    begun: str = ""
    undone: int = 0

    def begins(self, session: RunSession, spec: StepSpec, undoes: Effect | None = None) -> bool:
        """Tell whether the program said that it begins this; otherwise hand it out."""
        begins = self.begun == spec.name if undoes is None else self.undone == undoes.pk
        self.begun, self.undone = "", 0
        if not begins:
            session.handed_out = HandOut(spec, undoes=undoes)
        return begins

    def step(self, session: RunSession, spec: StepSpec, **extra: Any) -> Returned | None:
        """Return the program's card; hand out everything else."""
        card, self.card = self.card, None
        if card is None or self.asked != spec.name:
            session.handed_out = HandOut(spec)
            return None
        return card

    def effect(self, session: RunSession, spec: StepSpec, row: Effect) -> None:
        """Hand out the effect with its intent, whose key the program sends."""
        session.handed_out = HandOut(spec, effect=row)

    def undo(self, session: RunSession, spec: StepSpec, row: Effect, undo: Effect) -> bool:
        """Hand out the undo with its intent, whose key the program sends."""
        session.handed_out = HandOut(spec, undoes=row, undo=undo)
        return False


class _Cached(Protocol):
    @property
    def snapshot(self) -> Snapshot: ...


Entry = TypeVar("Entry", bound=_Cached)


class RunCache(Generic[Entry]):
    """Runs as this process last saw them, the least recently used first. One call at a time works on a run.

    `largest`: bytes of their states together, which take several times that.
    """

    def __init__(self, *, largest: int) -> None:
        self.entries: OrderedDict[int, Entry] = OrderedDict()
        self.largest, self.size = largest, 0
        self._locks: WeakValueDictionary[int, threading.Lock] = WeakValueDictionary()
        self._guard = threading.Lock()

    @contextmanager
    def alone(self, run_id: int) -> Iterator[None]:
        """Lock the run against all others in this process."""
        with self._guard:
            lock = self._locks.get(run_id) or self._locks.setdefault(run_id, threading.Lock())
        with lock:
            yield

    def take(self, run_id: int) -> Entry | None:
        """Take a run out of the cache, so that the caller alone has it."""
        with self._guard:
            return self._pop(run_id)

    def put(self, run_id: int, entry: Entry) -> None:
        """Keep a run for the next call, and let go of those that were used least recently."""
        with self._guard:
            self._pop(run_id)
            self.entries[run_id] = entry
            self.size += entry.snapshot.size
            while len(self.entries) > MOST or (len(self.entries) > 1 and self.size > self.largest):
                self._pop(next(iter(self.entries)))

    def _pop(self, run_id: int) -> Entry | None:
        entry = self.entries.pop(run_id, None)
        self.size -= entry.snapshot.size if entry else 0
        return entry


SESSIONS: RunCache[RunSession] = RunCache(largest=32 * 1024 * 1024)


def keep_session(session: RunSession) -> None:
    """Keep the session for the next call, if its program has something to do in the run."""
    if session.handed_out is not None:
        SESSIONS.put(session.run.pk, session)


@contextmanager
def at_work(run: ReachedRun, token: int) -> Iterator[RunSession]:
    """Give the session of a run whose program holds this token, in a transaction of all that is done inside.

    The caller has the run `alone` until its own transaction, around this one, is committed, and afterwards turns Fenced
    into `stale`. Raises Fenced, StaleToken, RunEnded and NotVerified.
    """
    session = _cached_session(run, token) or session_of(_claim_by_token(run.id, token), run.by)
    session.performer, session.handed_out, session.for_whom = RemotePerformer(), None, run.by
    with transaction.atomic(savepoint=False):
        if session.plan.goes_on_asking or session.run.settling or session.may_have_left:
            gates_beside.lock_with_effects(run.id)
        if run.by != run.claimed_by:  # whoever knows a claim's token may write under it
            note_owner(session.run, run)
        yield session
    keep_session(session)


def claim_run(run: Run, *, worker: str, lease: float, by: Actor) -> ClaimedRun | None:
    """Claim the run, in the caller's transaction, after the rows that are locked before it; None where nobody may."""
    gates_beside.lock_with_effects(run.pk)
    return claims.claim(run.pk, plan_ids=[run.plan_id], worker=worker, lease=lease, by=by)


def session_of(claim: Claim, for_whom: int | None) -> RunSession:
    """Return the engine's session of a run that a program has claimed on behalf of `for_whom`. Raises NotVerified."""
    run = load_run(claim.run_id)
    known = plans.registered(run.plan_id)
    if known is None:
        raise LookupError(f"{run.plan} is not an external agent")
    beat = ClaimBeat(claim)
    beat.halt = run.halt
    return RunSession(
        claim, run, known, store.load(run), beat, run.attempts, RemotePerformer(), ends=float("inf"), for_whom=for_whom
    )


def _cached_session(run: ReachedRun, token: int) -> RunSession | None:
    """Return the kept session, if nothing has happened to the run since."""
    session = SESSIONS.take(run.id)
    if session is None or session.claim.token != token or (run.head, run.token) != (session.snapshot.id, token):
        return None
    session.beat.halt = run.halt
    return session


def _claim_by_token(run_id: int, token: int) -> Claim:
    """Return the claim that a program holds by its token."""
    found = run_sql(_HELD, [run_id, token, claims.TAKE_OVER_LEASE])
    if not found:
        raise stale(run_id, token)
    head, seq, next_step, attempts, at, lease = found[0]
    return Claim(run_id, token, lease, head, seq, next_step, attempts, at)


def stale(run_id: int, token: int) -> WorkRefused:
    """Return, as an exception, why the token is refused."""
    run = Run.objects.select_related("plan").get(pk=run_id)
    if run.status == Run.Status.RUNNING and run.token == token:
        return OutOfTurn(
            "Another request with this token was saved at the same moment; go on from the run's state now."
        )
    if run.status in ENDED:
        return ended_refusal(run)
    if run.status == Run.Status.WAITING:
        waits = "The run waits for people, and nobody has claimed it. Wait for the outcome, then claim it."
        gate = gate_of(run)
        return StaleToken(waits, gate=gate.pk if gate else None)
    who = f"{run.worker} has claimed the run" if run.worker else "somebody moved the run meanwhile"
    words = f"This claim token is stale: {who}. Claim the run again, and go on from its state then."
    return StaleToken(words, until=run.lease_until)


def gate_of(run: Run) -> Gate | None:
    """Return the gate for which the run waits; the newest, if it waits for several."""
    found = list(Gate.objects.open().filter(run=run).order_by("-pk"))
    plan = spec_of(run.plan)
    if len(found) > 1 and plan.goes_on_asking:
        name = run.next_step
        found.sort(key=lambda gate: gate.checkpoint != run.head and not holds_up(plan, plan.step(gate.step), name))
    return next(iter(found), None)


def ended_refusal(run: Run) -> RunEnded:
    """Return, as an exception, that a run has ended, and how."""
    why = f": {run.reason}" if run.reason else ""
    return RunEnded(f"The run is {run.status}{why}. It has ended: start another, or fork this one.")


def renew(run_id: int, token: int) -> float:
    """Begin the lease anew and return its seconds. Raises StaleToken, RunEnded."""
    claim = _claim_by_token(run_id, token)
    if not claims.renew(claim):
        raise stale(run_id, token)
    return claim.lease
