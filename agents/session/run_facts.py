"""Reads the facts of a turn with a run: agent and plan, path, what was recorded of it, and what it left behind.

Everything here is read, on first need; agents.session.run_session writes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.utils.functional import cached_property
from pydantic import BaseModel

from agents.definition import environment, fields, invariants
from agents.definition.agent import Agent, RunInfo
from agents.definition.registered import RegisteredAgent
from agents.errors import FieldError, InvariantBroken, UpcastFailed
from agents.models import ChildLink, Effect
from approvals.schema import redact
from checkpoints import actors
from checkpoints.actors import Actor
from checkpoints.models import Run
from checkpoints.runs.plans import PlanSpec, StepSpec, input_digest
from checkpoints.store import Snapshot, executions
from checkpoints.store.loading import CheckpointHeader
from checkpoints.values.ops import Append, Splice

from . import child_runs, run_path, translate_history
from .run_path import RunPath

OF_HEAD = ("path", "executions", "recorded", "kin_children")  # what is read for one head, and again after a move


class RunFacts:
    """The facts about a run at its head `snapshot`. `attempt`: the starts of its next step, this one included."""

    run: Run
    registered: RegisteredAgent
    snapshot: Snapshot
    attempt: int
    trail: Sequence[CheckpointHeader]

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

    def unsettled(self) -> list[Effect]:
        """Return the effects that this run left behind, oldest first."""
        return run_path.of_run(self.run.pk, self.path) if self.may_have_left else []

    @property
    def may_have_left(self) -> bool:
        """Tell whether the run may have left effects behind, to adopt or to settle: it was moved, or has branches."""
        return self.branched or self.path.moved()

    @cached_property
    def kin_children(self) -> list[ChildLink]:
        """Return the runs that those of the lineage started, read on first need: only a moved run or a fork asks."""
        return child_runs.of_lineage(self.run.lineage)

    def left_children(self, *, counted: Collection[int] | None = None, caught: bool = False) -> list[ChildLink]:
        """Return the children that this run left behind and that are not settled, oldest first; read anew.

        `counted`: the rows of those on which the step at hand counts, where it is about to be over; None: it is not.
        `caught`: it ends without a result.
        """
        may = caught or self.may_have_left or self.path.caught()
        return child_runs.left_behind(child_runs.of_run(self.run.pk), self.path, counted) if may else []

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

    def forget(self) -> None:
        """Forget what was read for the head, which has moved."""
        for cached in OF_HEAD:
            self.__dict__.pop(cached, None)
