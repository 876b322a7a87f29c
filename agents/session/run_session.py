"""A session: one worker's turn with one run, from its claim until the run waits, ends, or others are due.

RunSession adds to the facts of the turn (agents.session.run_facts) how it writes: the runner saves checkpoints only
through it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from agents.definition.registered import RegisteredAgent
from agents.models import ChildLink
from agents.ringing import doorbell
from approvals.models import Outcome
from checkpoints import crash_points, store
from checkpoints.actors import Actor
from checkpoints.errors import Fenced
from checkpoints.models import Run
from checkpoints.postgresql.sql import run_sql
from checkpoints.runs.plans import StepSpec
from checkpoints.store import Header, Snapshot, claims
from checkpoints.store.claims import Claim
from checkpoints.store.loading import CheckpointHeader
from checkpoints.values.characters import one_line
from checkpoints.values.checkpoint_kinds import EXECUTIONS, OUTPUT_LANDED, Kind

from . import gates_beside, translate_history
from .deferred_saves import DeferredSaves
from .heartbeat import ClaimBeat
from .performer import Beside, HandOut, Performer
from .run_facts import RunFacts

_HOLD = "SELECT 1 FROM checkpoints_run WHERE id = $1 AND token = $2 AND status = 'running' FOR UPDATE"
_NUMBER = _HOLD.replace("1", "nextval(pg_get_serial_sequence('agents_effect', 'id'))", 1)
ENDED = (Run.Status.COMPLETED, Run.Status.FAILED, Run.Status.CANCELLED)
CHECKED = (*EXECUTIONS, Kind.SKIPPED, Kind.ANSWERED)  # kinds of what a step, an effect or an outcome saves


@dataclass
class RunSession(RunFacts):
    """A turn with a run. `attempt` counts the starts of the next step since the head was saved, this one included."""

    claim: Claim
    run: Run
    registered: RegisteredAgent
    snapshot: Snapshot
    beat: ClaimBeat
    attempt: int
    performer: Performer[RunSession]
    trail: Sequence[CheckpointHeader] = ()  # that lead to the head it began at, as far as they are known
    ends: float = field(default_factory=lambda: time.monotonic() + settings.HOLDPOINT_TIME_SLICE)
    handed_out: HandOut | None = None  # what the program of an external agent has to do next
    allowing: dict[tuple[UUID, str, str], Outcome | None] = field(default_factory=dict)  # see allowing_gate
    deferred: DeferredSaves = field(default_factory=DeferredSaves)
    past_claim: bool = False  # it has saved an outcome since the claim, so the attempts before it were of the gate
    for_whom: int | None = None  # there, the id of whoever answers for the program that calls now

    def ring(self) -> None:
        """Ring for the run, which is queued."""
        doorbell.ring(self.run.pk, self.registered.queue, self.run.priority)

    def wait(self, reason: str, *, wake_at: datetime | None = None, awaited: int = 0) -> None:
        """Release the run to wait; without a reason what it waited for is there, and it is queued. Raises Fenced.

        To be called under the run's row, in a transaction. A wait is no failed attempt.
        """
        status, said = Run.Status.WAITING if reason else Run.Status.QUEUED, one_line(reason, 300)
        claims.release(self.claim, status=status, wake_at=wake_at, reason=said, by=self.by, attempts=0, awaited=awaited)
        if not reason:
            transaction.on_commit(self.ring)

    def check(self) -> None:
        """Raise Fenced where the lease is known to be lost."""
        if self.beat.lost:
            raise Fenced

    def flush(self) -> None:
        """Write the checkpoints that were put off: what is written next refers to them. Raises Fenced."""
        began = time.monotonic()
        if self.deferred.flush():
            self.beat.renewed = began

    def hold_token(self) -> None:
        """Lock the run's row, in the caller's transaction, while the token still holds. Raises Fenced."""
        self._hold(_HOLD)

    def effect_number(self) -> int:
        """Hold the token, as `hold_token`, and return the id of a new effect. Raises Fenced."""
        return self._hold(_NUMBER)

    def _hold(self, sql: str) -> int:
        self.flush()
        self.check()
        found = run_sql(sql, [self.run.pk, self.claim.token])
        if not found:
            raise Fenced
        return int(found[0][0])

    def progressed(self) -> None:
        """Reset the count of attempts: one piece of work is done, and the next has had none."""
        if self.attempt > 1:
            Run.objects.filter(pk=self.run.pk, token=self.claim.token).update(attempts=1)
            self.attempt = 1

    def executed(
        self,
        spec: StepSpec,
        writes: Mapping[str, Any],
        goto: str | None,
        *,
        took: float,
        notes: Sequence[str] = (),
        kind: str = "",
        id: UUID | None = None,
        beside: Sequence[Beside] = (),
        children: Sequence[int] = (),
    ) -> bool:
        """Save the writes of an execution of `spec`; True if the session goes on. Raises Fenced, ValueRefused.

        `children`: as for `save`.
        """
        next_step = self.plan.next_after(spec.name) if goto is None else goto
        kind = kind or ("gate" if spec.kind == "gate" else "step")
        told: dict[str, Any] = {"took": took, "id": id, "beside": beside, "children": children}
        return self.save(kind, spec, writes, next_step, notes=[self.clean_of(writes, note) for note in notes], **told)

    def save(
        self,
        kind: str,
        spec: StepSpec,
        writes: Mapping[str, Any],
        next_step: str,
        *,
        took: float = 0.0,
        notes: Sequence[str] = (),
        end: str = "",
        reason: str = "",
        by: Actor | None = None,
        slice_over: bool | None = None,
        leave: bool = False,
        id: UUID | None = None,
        beside: Sequence[Beside] = (),
        children: Sequence[int] = (),
    ) -> bool:
        """Save a checkpoint, with this `id` if one is given, and move on; True if the session goes on.

        Raises Fenced, ValueRefused; InvariantBroken for what a step, an effect or an outcome may not make of the state.

        `end`: the status in which the run ends here. A run that left effects behind settles them before it ends,
        unless a person said to `leave` them. `beside`: what is written in the same transaction. `children`: the rows
        of those that the step counts on.
        """
        self.check()
        if children:
            beside = [*beside, lambda saved: ChildLink.landed(list(children), saved.id)]
        if kind in CHECKED:
            self.check_rules(writes)
        self.past_claim = self.past_claim or kind not in OUTPUT_LANDED
        status = end or self._status_after(kind, spec, next_step, slice_over)
        header = self._header(kind, spec, next_step, took)
        if status == Run.Status.RUNNING and by is None and not (beside or id) and self._defers(kind, spec, next_step):
            return self._put_off(header, spec, writes, notes)
        self.flush()
        over: dict[str, Any] = {} if next_step else {"counted": children, "caught": kind == Kind.RECOVERY}
        if status in ENDED and not leave and (self.unsettled() or self.left_children(**over)):
            said: dict[str, Any] = {"took": took, "notes": notes, "by": by, "slice_over": False, "id": id}
            said["beside"] = beside
            return self._end_later(
                status, reason, by or self.by, lambda: self.save(kind, spec, writes, next_step, **said)
            )
        told: dict[str, Any] = {"status": status, "reason": reason, "notes": tuple(notes), "actor": by or self.by}
        self._write(header, writes, beside, id=id, **told)
        if status == Run.Status.QUEUED:
            transaction.on_commit(self.ring)
        crash_points.point("after_save", spec.name)
        transaction.on_commit(lambda: crash_points.point("after_commit", spec.name))
        return status == Run.Status.RUNNING

    def _write(
        self,
        header: Header,
        writes: Mapping[str, Any],
        beside: Sequence[Beside],
        *,
        status: str,
        reason: str,
        **told: Any,
    ) -> None:
        """Write the checkpoint, and what belongs `beside` it in the same transaction; it is the head from then on."""
        crash_points.point("before_save", header.step)
        began, before = time.monotonic(), self.snapshot
        wake_at = self.claim.at if status == Run.Status.QUEUED else None  # its turn comes after those before it
        ends = status in ENDED and self.plan.goes_on_asking
        left = partial(gates_beside.left, self.run.pk, by=told["actor"], reason=gates_beside.ENDED)
        with left() if ends else transaction.atomic() if beside else nullcontext():
            made = store.save(
                before, dict(writes), claim=self.claim, header=header, status=status, reason=one_line(reason, 300),
                wake_at=wake_at, **told,
            )  # fmt: skip
            for write in beside:
                crash_points.point("beside_save", header.step)
                write(made)
        self.snapshot = made
        self.beat.renewed = began  # a save extends the lease too
        self._moved(header, before.id)

    def _defers(self, kind: str, spec: StepSpec, next_step: str) -> bool:
        first = self.claim.attempts <= 1 or self.past_claim  # else a worker failed or died in one of the steps ahead
        return first and kind in OUTPUT_LANDED and self.deferred.takes(self.agent, self.plan, spec, next_step)

    def _put_off(self, header: Header, spec: StepSpec, writes: Mapping[str, Any], notes: Sequence[str]) -> bool:
        before = self.snapshot
        made = store.defer(before, dict(writes), claim=self.claim, header=header, notes=tuple(notes), actor=self.by)
        self.deferred.put_off(made)
        self.snapshot = made.snapshot()
        self._moved(header, before.id)
        crash_points.point("put_off", spec.name)
        return True

    def _end_later(self, status: str, reason: str, by: Actor, save: Callable[[], bool]) -> bool:
        """Save the last checkpoint, and note the status in which the run ends once its effects are settled."""
        before = self.run.settling, self.run.ending
        try:
            left = partial(gates_beside.left, self.run.pk, by=by, reason=gates_beside.ENDED)
            with left() if self.plan.goes_on_asking else transaction.atomic():
                self.hold_token()
                self.run.end_later(status, one_line(reason, 300), by=by)
                return save()
        except Exception:
            self.run.settling, self.run.ending = before  # nothing was noted, so nothing may act on it
            raise

    def move(
        self, kind: str, target: Snapshot, spec: StepSpec, writes: Mapping[str, Any], *, next_step: str, by: Actor
    ) -> None:
        """Move the head to `target`'s state, as a new checkpoint that goes on with `next_step`. Raises Fenced.

        A fork that goes back to a state of the run that it came from stays with its own version. Open gates that the
        path has left are withdrawn.
        """
        self.flush()
        header = Header(kind=kind, step=spec.name, next_step=next_step)
        plan = None if target.run_id == self.run.pk else self.run.plan
        made = dict(writes) if plan is None else translate_history.writes_from(target, plan, writes)
        reason, asking = gates_beside.SENT_BACK, lambda: list(self.asking)
        left = partial(gates_beside.left, self.run.pk, by=by, reason=reason, stand=asking)
        with left() if self.plan.goes_on_asking else nullcontext():
            self.snapshot = store.move_head(target, made, claim=self.claim, header=header, actor=by, plan=plan)
            self.forget()
        self.attempt = 1

    def _status_after(self, kind: str, spec: StepSpec, next_step: str, slice_over: bool | None) -> str:
        if not next_step and not self.run.settling and not self._asks_after(kind, spec):
            return Run.Status.COMPLETED
        over = time.monotonic() >= self.ends if slice_over is None else slice_over
        return Run.Status.QUEUED if over else Run.Status.RUNNING

    def _asks_after(self, kind: str, spec: StepSpec) -> bool:
        """Tell whether the run waits for gates that are open beside it once this is saved."""
        if not self.plan.goes_on_asking:
            return False
        answered = {spec.name} if kind == Kind.ANSWERED else set()
        return kind == Kind.ASKED or not answered.issuperset(self.asking.values())

    def _header(self, kind: str, spec: StepSpec, next_step: str, took: float) -> Header:
        digest = self.input_digest(spec) if kind in EXECUTIONS else None
        return Header(
            kind=kind,
            step=spec.name,
            next_step=next_step,
            occurrence=0 if digest is None else self.path.occurrences(spec.name, digest),
            attempt=self.attempt,
            input_digest=digest,
            code_hash=None if digest is None else bytes.fromhex(spec.code_hash),
            took_us=round(took * 1_000_000),
        )

    def _moved(self, header: Header, parent: UUID) -> None:
        if "path" in self.__dict__:  # else it is read up to here when it is first needed
            made = self.snapshot
            place = CheckpointHeader(
                id=made.id, run_id=made.run_id, plan_id=made.plan_id, seq=made.seq, parent=parent, at=made.at,
                **header._asdict(),
            )  # fmt: skip
            self.path.add(place)
        self.attempt = 1
