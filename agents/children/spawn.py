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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _
from pydantic import BaseModel

from agents.definition import fields, registry
from agents.definition.agent import ChildRun
from agents.definition.registered import RegisteredAgent
from agents.errors import AgentError, InputRefused, StepFailed, Suspended
from agents.models import ChildLink
from agents.runs.start import start_run
from agents.session import child_runs
from agents.session.run_session import RunSession
from agents.text import saved_language
from checkpoints import crash_points
from checkpoints.errors import PlanChanged, ValueRefused
from checkpoints.events import event_log
from checkpoints.models import Plan
from checkpoints.postgresql.sql import run_sql
from checkpoints.runs.plans import StepSpec
from checkpoints.store.start_waiting import new_numbers
from checkpoints.values import digests

from . import turns

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
class SpawnCall:
    """A call of `spawn`. `number` counts those with the same `digest`; `run`: the number of a child put off."""

    known: RegisteredAgent
    input: Any
    config: Mapping[str, Any] | None
    name: str
    digest: bytes
    number: int
    run: int | None = None


@dataclass(frozen=True)
class Uncalled:
    """What another version of the step started, and this one has not called for before it waits or returns."""

    rows: Sequence[ChildLink]


class Spawning:
    """The children of one execution. `base` returns the checkpoint from which the step was sent on."""

    def __init__(self, session: RunSession, spec: StepSpec, base: Callable[[], UUID]) -> None:
        self.session = session
        self.spec = spec
        self.used: list[int] = []  # the numbers of the rows that this execution counts on
        self.notes: list[str] = []
        self.suspended: Suspended | None = None
        self._base = base
        self._numbers: Counter[bytes] = Counter()
        self._put_off: list[SpawnCall] = []
        self._versions: dict[str, list[str]] = {}

    def spawn(self, agent: str, input: Any, config: Mapping[str, Any] | None, name: str) -> ChildRun:
        """Return the child that this call starts, or has started before. Raises StepFailed, AgentError, Fenced."""
        self._check()
        known = registry.named(agent)
        given = fields.whole(input) if isinstance(input, BaseModel) else input
        digest = _digest(known.spec.agent, known.spec.version, given, config)
        self._numbers[digest] += 1
        call = SpawnCall(known, given, config, name, digest, self._numbers[digest])
        row = self._found(call)
        if row is None and (self._put_off or self._uncalled()):
            [number], *_ = new_numbers(1)
            self._put_off.append(replace(call, run=number))
            return ChildRun(number, agent)
        row = row or self._started(call)
        self.used.append(row.pk)
        return ChildRun(row.run_id, agent)

    def start_rest(self) -> None:
        """Start what was put off, before the step waits or returns.

        Raises Suspended where the step has not called for all that another version started.
        """
        if self._put_off and (rows := self._uncalled()):
            self.suspended = Suspended(Uncalled(rows))
            raise self.suspended
        while self._put_off:
            self.used.append(self._started(self._put_off.pop(0)).pk)

    def _found(self, call: SpawnCall) -> ChildLink | None:
        """Return the child that this call has started before, takes over, or reads for a fork; None for none."""
        if row := self._of_execution(call) or self._adopted(call):
            if row.landings:
                told = _("R-%(run)s was started before, with the same input; it was taken over.")
                self.notes.append(told % {"run": row.run_id})
            return row
        if row := self._of_origin(call):
            self.notes.append(_("R-%(run)s did this for the run that this one was forked from.") % {"run": row.run_id})
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

    @cached_property
    def _rows(self) -> list[ChildLink]:
        """Return what this execution has started, in whatever version, oldest first."""
        rows = ChildLink.objects.filter(parent=self.session.run, base=self._base(), step=self.spec.name)
        return list(rows.select_related("run").order_by("pk"))

    @cached_property
    def kept(self) -> dict[tuple[bytes, int], ChildLink]:
        """Return what a call may find: none that is undone, or was lost before a person had the step tried again."""
        path = self.session.path
        return {
            (bytes(row.digest), row.number): row
            for row in self._rows
            if not (row.undone or (row.lost and path.tried_again_since(row.head)))
        }

    def _of_execution(self, call: SpawnCall) -> ChildLink | None:
        """Return the row that this call made before, perhaps while another version of the child's agent was served."""
        if not self.kept:
            return None
        return next((row for each in self._digests(call) if (row := self.kept.get((each, call.number)))), None)

    def _digests(self, call: SpawnCall) -> Iterator[bytes]:
        """Yield the call's digest, then those that it had while other versions of the child's agent were served."""
        yield call.digest
        agent, version = call.known.spec.agent, call.known.spec.version
        if agent not in self._versions:
            others = Plan.objects.filter(agent=agent).exclude(version=version)
            self._versions[agent] = list(others.values_list("version", flat=True).distinct())
        yield from (_digest(agent, each, call.input, call.config) for each in self._versions[agent])

    def _uncalled(self) -> list[ChildLink]:
        """Return what another version started, and this one has not called for so far."""
        used = set(self.used)
        return [row for row in self._of_another_version if row.pk not in used]

    @cached_property
    def _of_another_version(self) -> list[ChildLink]:
        """Return what this execution started before its agent, or the child's, got another version.

        Only what has something to undo or to stop, and also what is about to be undone: it may still act.
        """
        ids = {row.pk for row in self._rows if row.undone}
        ids |= {row.pk for row in self.kept.values() if self.session.path.upgraded_since(row.head)}
        ids |= child_runs.of_other_versions([row for row in self.kept.values() if row.pk not in ids])
        return child_runs.unsettled(self.session.run.pk, ids) if ids else []

    @property
    def _execution(self) -> dict[str, Any]:
        digest = self.session.input_digest(self.spec)
        return {
            "base": self._base(), "head": self.session.snapshot.id, "input_digest": digest,
            "occurrence": self.session.path.occurrences(self.spec.name, digest),
        }  # fmt: skip

    @saved_language()
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
                    held=_("Waits until fewer runs of its parent are at work") if held else "", number=call.run,
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
        session = self.session
        alike = self._digests(call) if self._left_behind else ()
        equal = next((equal for each in alike if (equal := self._left_behind.get(each))), None)
        if not equal:
            return None
        row = equal.pop()
        crash_points.point("before_adopt", self.spec.name)
        with transaction.atomic():
            session.hold_token()
            row = ChildLink.objects.select_related("run").get(pk=row.pk)
            if row.lost:
                return None
            vars(row).update(self._execution, number=call.number)
            row.save(update_fields=[*self._execution, "number"])
            self._record("child.adopted", row)
        return row

    @cached_property
    def _left_behind(self) -> dict[bytes, list[ChildLink]]:
        """Return what may be taken over, by digest, oldest last. None is of this execution: those stand."""
        session = self.session
        rows = child_runs.adoptable(session.run.pk, self.spec.name, session.path) if self._may_adopt else []
        return {digest: equal[::-1] for digest, equal in _by_digest(rows).items()}

    def _of_origin(self, call: SpawnCall) -> ChildLink | None:
        """Return an equal child that completed for another run of the lineage, in a fork; None for none.

        It stays that run's child.
        """
        alike = self._digests(call) if self._done_in_lineage else ()
        equal = [row for each in alike for row in self._done_in_lineage.get(each, ())]
        return equal[call.number - 1] if call.number <= len(equal) else None

    @cached_property
    def _done_in_lineage(self) -> dict[bytes, list[ChildLink]]:
        run = self.session.run
        return _by_digest(child_runs.done_for_kin(run, self.spec.name) if run.forked_from is not None else [])

    @property
    def _may_adopt(self) -> bool:
        return self.session.branched or self.session.path.moved()

    def _record(self, kind: str, row: ChildLink) -> None:
        run = self.session.run
        data = {"child": row.run_id, "agent": row.agent, "step": row.step}
        event_log.record(kind, subject=f"run:{run.pk}", run=run, by=self.session.by, data=data)


def _by_digest(rows: Iterable[ChildLink]) -> dict[bytes, list[ChildLink]]:
    """Group rows of equal children, in their order: an execution may start thousands."""
    found: dict[bytes, list[ChildLink]] = {}
    for row in rows:
        found.setdefault(bytes(row.digest), []).append(row)
    return found


def _digest(agent: str, version: str, input: Any, config: Mapping[str, Any] | None) -> bytes:
    """Return the digest of all that a child is given. Raises StepFailed."""
    try:
        return digests.of_value([agent, version, input, dict(config or {})])
    except ValueRefused as error:
        told = f"spawn({agent!r}): {error.pointer} {error.reason}; give it what JSON can say."
        raise StepFailed(told) from error
