"""A session: one worker's turn with one run, from its claim until the run waits, ends, or others are due.

RunSession holds the data of the turn, and the runner writes checkpoints only through it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from pydantic import BaseModel

from agents.definition import environment, fields, invariants
from agents.definition.agent import Agent, RunInfo
from agents.definition.registered import RegisteredAgent
from agents.errors import FieldError, InvariantBroken, UpcastFailed
from agents.models import ChildLink, Effect
from agents.ringing import doorbell
from agents.text import one_line
from approvals.models import Outcome
from approvals.schema import redact
from checkpoints import actors, crash_points, store
from checkpoints.actors import Actor
from checkpoints.errors import Fenced
from checkpoints.models import Run
from checkpoints.postgresql.sql import run_sql
from checkpoints.runs.plans import PlanSpec, StepSpec, input_digest
from checkpoints.store import Header, Snapshot, executions
from checkpoints.store.claims import Claim
from checkpoints.store.header import CheckpointHeader
from checkpoints.values.checkpoint_kinds import EXECUTIONS, OUTPUT_LANDED, Kind
from checkpoints.values.ops import Append, Splice

from . import child_runs, gates_beside, translate_history, unsettled_effects
from .deferred_saves import DeferredSaves
from .heartbeat import ClaimBeat
from .performer import Beside, HandOut, Performer
from .run_path import RunPath

_HOLD = "SELECT 1 FROM checkpoints_run WHERE id = $1 AND token = $2 AND status = 'running' FOR UPDATE"
_NUMBER = _HOLD.replace("1", "nextval(pg_get_serial_sequence('agents_effect', 'id'))", 1)
ENDED = (Run.Status.COMPLETED, Run.Status.FAILED, Run.Status.CANCELLED)
CHECKED = (*EXECUTIONS, Kind.SKIPPED, Kind.ANSWERED)  # kinds of what a step, an effect or an outcome saves


@dataclass
class RunSession:
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

    @property
    def agent(self) -> type[Agent]:
        return self.registered.agent

    @property
    def plan(self) -> PlanSpec:
        return self.registered.spec

    @property
    def by(self) -> Actor:
        return actors.of_agent(self.plan.agent)

    @cached_property
    def path(self) -> RunPath:
        """Return the path to the head, read on first need."""
        return RunPath.to(self.snapshot.id, self.trail)

    @property
    def asking(self) -> dict[UUID, str]:
        """Return the gates that the run went on from and whose outcome is not on its path: checkpoint -> step."""
        return self.path.asking() if self.plan.goes_on_asking else {}

    def instance(self) -> Agent:
        """Return a new instance of the agent, for one execution."""
        config = None if self.config is None else self.config.model_copy(deep=True)
        return self.agent(RunInfo(self.run.pk, self.run.title), self.attempt, config)

    def inputs(self, spec: StepSpec, state: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the typed values that a step reads. Raises ValueRefused."""
        values = self.snapshot.state if state is None else state
        return {name: fields.read(self.agent.State, name, values) for name in spec.reads}

    def input_digest(self, spec: StepSpec) -> bytes:
        """Return the digest of the fields of state and configuration that the step reads."""
        return input_digest(spec, self.snapshot.fields, self.config_values)

    @cached_property
    def config(self) -> BaseModel | None:
        """Return the run's configuration."""
        return environment.config_for(self.run, self.agent)

    @cached_property
    def config_values(self) -> dict[str, Any]:
        """Return the configuration as JSON values."""
        return {} if self.config is None else self.config.model_dump(mode="json", by_alias=False)

    @property
    def secrets(self) -> list[str]:
        """Return the texts of the state at the head that may not be shown."""
        veil = fields.veil(self.agent.State)
        return veil.words(self.snapshot.state) if veil else []

    def clean(self, words: str) -> str:
        """Remove the state's secrets from a text of the agent, or of an exception, that is kept, shown or logged."""
        return str(redact.scrubbed(words, self.secrets))

    def clean_of(self, writes: Mapping[str, Any], words: str) -> str:
        """Remove the secrets of what a step writes from a text: the state does not have those yet."""
        veil = fields.veil(self.agent.State)
        grown = (Append, Splice)
        written = {name: [*each.items] if isinstance(each, grown) else each for name, each in writes.items()}
        return str(redact.scrubbed(words, veil.words(written))) if veil else words

    def check_rules(self, writes: Mapping[str, Any], state: Mapping[str, Any] | None = None) -> None:
        """Check what these writes make of the state at the head, or of `state`, by the agent's own rules.

        Raises InvariantBroken, without secrets in its words, and ValueRefused.
        """
        try:
            invariants.check(self.agent, self.snapshot.state if state is None else state, writes)
        except InvariantBroken as error:
            told = [(each["pointer"], self.clean_of(writes, self.clean(each["message"]))) for each in error.errors]
            raise InvariantBroken([FieldError(pointer=at, message=words) for at, words in told]) from None

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

    @property
    def branched(self) -> bool:
        """Tell whether anything was executed off the path, so that there may be something to reuse."""
        return self.path.branched(self.run.pk, self.snapshot.seq)

    @cached_property
    def executions(self) -> list[CheckpointHeader]:
        """Return every execution in the lineage, by run and number, read on first need."""
        return executions.executions(self.snapshot.lineage)

    def recorded_of(self, kind: str, step: str) -> list[CheckpointHeader]:
        """Return this run's executions of a step, on every branch."""
        return [each for each in self.executions if (each.run_id, each.kind, each.step) == (self.run.pk, kind, step)]

    @cached_property
    def recorded(self) -> dict[tuple[str, bytes, bytes, int], CheckpointHeader]:
        """Return the newest execution of each (step, input digest, code hash, occurrence) in the lineage, read once."""
        return {
            (each.step, each.input_digest, each.code_hash, each.occurrence): each
            for each in sorted(self.executions, key=lambda each: each.at)
            if each.input_digest and each.code_hash
        }

    def progressed(self) -> None:
        """Reset the count of attempts: one piece of work is done, and the next has had none."""
        if self.attempt > 1:
            Run.objects.filter(pk=self.run.pk, token=self.claim.token).update(attempts=1)
            self.attempt = 1

    def unsettled(self) -> list[Effect]:
        """Return the effects that this run left behind, oldest first."""
        return unsettled_effects.of_run(self.run.pk, self.path) if self.branched or self.path.moved() else []

    @cached_property
    def children(self) -> list[ChildLink]:
        """Return the runs that this one started, read on first need: only a run that was moved asks."""
        return child_runs.of_run(self.run.pk)

    def left_children(self) -> list[ChildLink]:
        """Return the children that this run left behind and that are not settled, oldest first; read anew."""
        self.__dict__.pop("children", None)
        may = self.branched or self.path.moved() or self.path.caught()
        return child_runs.left_behind(self.children, self.path) if may else []

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

        `children`: the rows of those that it counts on.
        """
        next_step = self.plan.next_after(spec.name) if goto is None else goto
        kind = kind or ("gate" if spec.kind == "gate" else "step")
        said = [self.clean_of(writes, note) for note in notes]
        landing: list[Beside] = [lambda saved: ChildLink.landed(list(children), saved.id)] if children else []
        return self.save(kind, spec, writes, next_step, took=took, notes=said, id=id, beside=[*beside, *landing])

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
    ) -> bool:
        """Save a checkpoint, with this `id` if one is given, and move on; True if the session goes on.

        Raises Fenced, ValueRefused; InvariantBroken for what a step, an effect or an outcome may not make of the state.

        `end`: the status in which the run ends here. A run that left effects behind settles them before it ends,
        unless a person said to `leave` them. `beside`: what is written in the same transaction.
        """
        self.check()
        if kind in CHECKED:
            self.check_rules(writes)
        self.past_claim = self.past_claim or kind not in OUTPUT_LANDED
        status = end or self._status_after(kind, spec, next_step, slice_over)
        header = self._header(kind, spec, next_step, took)
        if status == Run.Status.RUNNING and by is None and not (beside or id) and self._defers(kind, spec, next_step):
            return self._put_off(header, spec, writes, notes)
        self.flush()
        if status in ENDED and not leave and (self.unsettled() or self.left_children()):
            said: dict[str, Any] = {
                "took": took,
                "notes": notes,
                "by": by,
                "slice_over": False,
                "id": id,
                "beside": beside,
            }
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
        with transaction.atomic() if beside or ends else nullcontext():
            if ends:
                gates_beside.lock(self.run.pk)
            made = store.save(
                before, dict(writes), claim=self.claim, header=header, status=status, reason=one_line(reason, 300),
                wake_at=wake_at, **told,
            )  # fmt: skip
            for write in beside:
                crash_points.point("beside_save", header.step)
                write(made)
            if ends:
                gates_beside.withdraw(self.run.pk, by=told["actor"], reason=gates_beside.ENDED)
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
            with transaction.atomic():
                if self.plan.goes_on_asking:
                    gates_beside.lock(self.run.pk)
                self.hold_token()
                self.run.end_later(status, one_line(reason, 300), by=by)
                going = save()
                if self.plan.goes_on_asking:
                    gates_beside.withdraw(self.run.pk, by=by, reason=gates_beside.ENDED)
                return going
        except Exception:
            self.run.settling, self.run.ending = before  # nothing was noted, so nothing may act on it
            raise

    def takes(self, target: Snapshot) -> bool:
        """Tell whether the run can go on from `target`: a fork into another version may find no upcaster.

        Nor can a fork where the run that it came from had asked and gone on: nobody answers that for the fork.
        """
        try:
            if target.run_id != self.run.pk:
                if self.plan.goes_on_asking and RunPath.to(target.id).asking():
                    return False
                translate_history.writes_from(target, self.run.plan, {})
        except UpcastFailed:
            return False
        return True

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
        asks = self.plan.goes_on_asking
        with transaction.atomic() if asks else nullcontext():
            if asks:
                gates_beside.lock(self.run.pk)
            self.snapshot = store.move_head(target, made, claim=self.claim, header=header, actor=by, plan=plan)
            for cached in ("path", "executions", "recorded", "children"):
                self.__dict__.pop(cached, None)
            if asks:
                gates_beside.withdraw(self.run.pk, by=by, reason=gates_beside.SENT_BACK, stand=list(self.asking))
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
                made.id, made.run_id, made.seq, parent, header.kind, header.step, header.next_step, header.occurrence,
                header.attempt, header.input_digest, header.code_hash, header.took_us, made.at, made.plan_id,
            )  # fmt: skip
            self.path.add(place)
        self.attempt = 1
