"""Starts the children of one execution of a step, each once.

A child belongs to the checkpoint from which the step was sent on, as a result of `once` does, and is known by what it
is given and by its number among equal ones: a crash and a retry find it there. After a rewind an equal child that was
left behind is taken over instead of starting another, so only what the change touched runs again.

Nothing starts beside what another version started. A new version may give its children other input: both would act. A
child that equals none is therefore put off while the step has not called for all that the other version started, in
whatever order it calls. Once the step waits or returns, either it has called for all of them, and what was put off
starts, or it stops, and a person is asked (agents.steps.recovery_gate).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils.functional import cached_property
from pydantic import BaseModel

from agents.definition import fields, registry
from agents.definition.agent import ChildRun
from agents.errors import AgentError, InputRefused, StepFailed, Suspended
from agents.models import ChildLink
from agents.runs.start import start_run
from agents.session.run_session import RunSession
from checkpoints import crash_points
from checkpoints.errors import PlanChanged
from checkpoints.events import event_log
from checkpoints.postgresql.sql import run_sql
from checkpoints.runs.plans import StepSpec
from checkpoints.store.start_and_fork import new_numbers

from . import turns
from .started_before import SpawnCall, StartedBefore, digest_of

MOST = 10_000  # children of one execution
DEEPEST = 10  # generations
_GENERATION = f"""
WITH RECURSIVE up AS (
  SELECT parent_id, 1 AS generation FROM checkpoints_run WHERE id = $1
  UNION ALL
  SELECT r.parent_id, generation + 1 FROM up JOIN checkpoints_run r ON r.id = up.parent_id
  WHERE generation <= {DEEPEST}
)
SELECT max(generation) FROM up
"""  # noqa: S608 - a constant


@dataclass(frozen=True)
class Uncalled:
    """The children of another version for which this one has not called before it waits or returns."""

    rows: Sequence[ChildLink]


class Spawning:
    """The children of one execution. `base` returns the checkpoint from which the step was sent on."""

    def __init__(self, session: RunSession, spec: StepSpec, base: Callable[[], UUID]) -> None:
        self.session = session
        self.spec = spec
        self.before = StartedBefore(session, spec, base)
        self.used: dict[int, None] = {}  # the numbers of the rows that this execution counts on, in their order
        self.notes: list[str] = []
        self.suspended: Suspended | None = None
        self._numbers: Counter[bytes] = Counter()
        self._put_off: list[SpawnCall] = []

    def spawn(self, agent: str, input: Any, config: Mapping[str, Any] | None, name: str) -> ChildRun:
        """Return the child that this call starts, or has started before. Raises StepFailed, AgentError, Fenced."""
        self._check()
        known = registry.agent_named(agent)
        given = fields.whole(input) if isinstance(input, BaseModel) else input
        digest = digest_of(known.spec.agent, known.spec.version, given, config)
        self._numbers[digest] += 1
        call = SpawnCall(known, given, config, name, digest, self._numbers[digest])
        row = self._found(call)
        if row is None and (self._put_off or self._uncalled()):
            [number], *_ = new_numbers(1)
            self._put_off.append(replace(call, run=number))
            return ChildRun(number, agent)
        row = row or self._started(call)
        self.used[row.pk] = None
        return ChildRun(row.run_id, agent)

    def start_rest(self) -> None:
        """Start what was put off, before the step waits or returns.

        Raises Suspended where the step has not called for all that another version started.
        """
        if self._put_off and (rows := self._uncalled()):
            self.suspended = Suspended(Uncalled(rows))
            raise self.suspended
        while self._put_off:
            self.used[self._started(self._put_off.pop(0)).pk] = None

    def _found(self, call: SpawnCall) -> ChildLink | None:
        """Return the child that this call has started before, takes over, or reads for a fork; None for none."""
        if row := self.before.of_execution(call, self.used) or self._adopted(call):
            if row.landings:
                self.notes.append(f"R-{row.run_id} was started before, with the same input; it was taken over.")
            return row
        if row := self.before.of_origin(call, self.used):
            self.notes.append(f"R-{row.run_id} did this for the run that this one was forked from.")
        return row

    def _check(self) -> None:
        if self.spec.kind != "step":
            raise AgentError(
                f"{self.spec.name} is a {self.spec.kind}, which starts no runs; let a step before it do so."
            )
        if len(self.used) + len(self._put_off) >= MOST:
            raise AgentError(f"{self.spec.name} starts more than {MOST:,} runs; start fewer, which do more each.")
        if self.session.run.parent_id and not self.used and self._generation > DEEPEST:
            raise AgentError(f"This run is {DEEPEST} generations below the first one already, and starts no others.")

    @cached_property
    def _generation(self) -> int:
        return int(run_sql(_GENERATION, [self.session.run.pk])[0][0])

    def _uncalled(self) -> list[ChildLink]:
        """Return what another version started, and this one has not called for so far."""
        return [row for row in self.before.of_another_version if row.pk not in self.used]

    @property
    def _execution(self) -> dict[str, Any]:
        digest = self.session.input_digest(self.spec)
        return {
            "base": self.before.base(), "head": self.session.snapshot.id, "input_digest": digest,
            "occurrence": self.session.path.occurrences(self.spec.name, digest),
        }  # fmt: skip

    def _started(self, call: SpawnCall) -> ChildLink:
        crash_points.point("before_spawn", self.spec.name)
        session, parent, agent = self.session, self.session.run, call.known.spec.agent
        with transaction.atomic():
            turns.lock(parent.pk)
            session.hold_token()
            held = turns.working(parent.pk, session.agent.children_at_once) >= session.agent.children_at_once
            try:
                run = start_run(
                    agent, call.input, by=session.by, team=parent.team, title=session.clean(call.name) or None,
                    started_by=parent.started_by, config=call.config, parent=parent, priority=parent.priority,
                    wait_reason="Waits until fewer runs of its parent are at work" if held else "", number=call.run,
                )  # fmt: skip
            except (InputRefused, PlanChanged) as error:
                raise StepFailed(f"spawn({agent!r}) was refused: {error}") from error
            row = ChildLink.objects.create(
                run=run, parent=parent, step=self.spec.name, agent=agent, digest=call.digest, number=call.number,
                held=held, **self._execution,
            )  # fmt: skip
            self._record("child.started", row)
        crash_points.point("after_spawn", self.spec.name)
        return row

    def _adopted(self, call: SpawnCall) -> ChildLink | None:
        """Take over an equal child that this step started on a branch that was left, if there is one."""
        session, row = self.session, self.before.adoptable(call)
        if row is None:
            return None
        crash_points.point("before_adopt", self.spec.name)
        with transaction.atomic():
            session.hold_token()
            row = ChildLink.objects.select_related("run").get(pk=row.pk)
            if row.lost:
                return None
            vars(row).update(self._execution, step=self.spec.name, number=call.number)
            row.save(update_fields=[*self._execution, "step", "number"])
            self._record("child.adopted", row)
        return row

    def _record(self, kind: str, row: ChildLink) -> None:
        run = self.session.run
        data = {"child": row.run_id, "agent": row.agent, "step": row.step}
        event_log.record(kind, subject=f"run:{run.pk}", run=run, by=self.session.by, data=data)
