"""Finds the children that an execution of a step has started before, or that it may take over or read.

By content first: agent, input, configuration and number among equal ones, whatever version of the child's agent was
served. A new version may give the same in other words, such as with a default that a model has got: what another
version started is also found where the child's State reads both inputs alike.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.utils.functional import cached_property

from agents.definition import environment, fields, registry, upcast
from agents.definition.registered import RegisteredAgent
from agents.errors import ConfigRefused, InputRefused, StepFailed, UpcastFailed
from agents.models import ChildLink
from agents.runs.start import validate_input
from agents.session import child_runs
from agents.session.run_session import RunSession
from approvals.cards.answer import RecoveryAnswer
from approvals.models import Gate
from checkpoints import store
from checkpoints.errors import NoSuchCheckpoint, NotVerified, ValueRefused
from checkpoints.models import Plan
from checkpoints.runs.plans import StepSpec
from checkpoints.values import digests
from checkpoints.values.checkpoint_kinds import Kind

NOT_READ = (ConfigRefused, InputRefused, UpcastFailed, ValueRefused, NoSuchCheckpoint, NotVerified)


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


class StartedBefore:
    """The children that an execution of a step may find. `base` returns the checkpoint that sent it."""

    def __init__(self, session: RunSession, spec: StepSpec, base: Callable[[], UUID]) -> None:
        self.session = session
        self.spec = spec
        self.base = base
        self._versions: dict[str, list[str]] = {}

    @cached_property
    def kept(self) -> dict[tuple[bytes, int], ChildLink]:
        """Return what this execution started; none undone, or lost before a person had the step tried again."""
        return {
            (bytes(row.digest), row.number): row
            for row in self._rows
            if not (row.undone or (row.lost and self._failed_since(row)))
        }

    def of_execution(self, call: SpawnCall, used: Collection[int]) -> ChildLink | None:
        """Return the row that this call made before, in this or another version; None for none that is not `used`."""
        if not self.kept:
            return None
        equal = filter(None, (self.kept.get((each, call.number)) for each in self._digests(call)))
        if (row := next((row for row in equal if row.pk not in used), None)) is not None or not self._of_older_version:
            return row  # without reading any of the others' states
        alike = self._read_alike.get(_as_read(call.known, call.input, call.config), ())
        return next((row for row in alike if row.pk not in used), None)

    def adoptable(self, call: SpawnCall) -> ChildLink | None:
        """Take out an equal child that this step started on a branch that was left, if there is one."""
        alike = self._digests(call) if self._left_behind else ()
        equal = next((equal for each in alike if (equal := self._left_behind.get(each))), None)
        return equal.pop() if equal else None

    def of_origin(self, call: SpawnCall, used: Collection[int]) -> ChildLink | None:
        """Return an equal child that completed for another run of the lineage, in a fork; None for none.

        It stays that run's child.
        """
        alike = self._digests(call) if self._done_in_lineage else ()
        equal = [row for each in alike for row in self._done_in_lineage.get(each, ())]
        if call.number <= len(equal):
            return equal[call.number - 1]
        read = self._done_alike.get(_as_read(call.known, call.input, call.config), ()) if self._done_alike else ()
        return next((row for row in read if row.pk not in used), None)

    @cached_property
    def of_another_version(self) -> list[ChildLink]:
        """Return what may still act, or did something, and was started before this run, or the child, was upgraded.

        Also what is about to be undone, what was left by a move to before an upgrade, and in a fork what an earlier
        version did for the lineage. Without that beside which a person had this execution start anew.
        """
        undone = [row for row in self._rows if row.undone]
        ids = {row.pk for row in (*self._of_older_version, *undone, *self._left_by_other_plans, *self._done_by_older)}
        rows = child_runs.acting(ids) if ids else []
        beside = {run for gate in self._asked if _starts_beside(gate) for run in child_runs.asked_about(gate)}
        return [row for row in rows if row.run_id not in beside] if rows else []

    def _failed_since(self, row: ChildLink) -> bool:
        return self.session.path.tried_again_since(row.head, besides=[gate.checkpoint for gate in self._asked])

    @cached_property
    def _asked(self) -> list[Gate]:
        """Return the gates of this execution that asked about what another version started."""
        base, path = self.base(), self.session.path
        since = [base, *(place.id for place in path.after(base) or ())]
        gates = Gate.objects.filter(run=self.session.run, kind=Gate.Kind.RECOVERY, checkpoint__in=since)
        return [gate for gate in gates.select_related("outcome") if child_runs.asked_about(gate)]

    @cached_property
    def _rows(self) -> list[ChildLink]:
        """Return what this execution has started, in whatever version, oldest first."""
        rows = ChildLink.objects.filter(parent=self.session.run, base=self.base(), step=self.spec.name)
        return list(rows.select_related("run").order_by("pk"))

    @cached_property
    def _of_older_version(self) -> list[ChildLink]:
        """Return what of `kept` was started before the run's agent, or the child's, got another version."""
        path, rows = self.session.path, [*self.kept.values()]
        since = [row for row in rows if not path.upgraded_since(row.head)]
        same = {row.pk for row in since} - child_runs.of_other_versions(since)
        return [row for row in rows if row.pk not in same]

    @cached_property
    def _read_alike(self) -> dict[bytes, list[ChildLink]]:
        return _by_reading(self._of_older_version)

    @cached_property
    def _done_alike(self) -> dict[bytes, list[ChildLink]]:
        return _by_reading(self._done_by_older)

    def _digests(self, call: SpawnCall) -> Iterator[bytes]:
        """Yield the call's digest, then those that it had while other versions of the child's agent were served."""
        yield call.digest
        agent, version = call.known.spec.agent, call.known.spec.version
        if agent not in self._versions:
            others = Plan.objects.filter(agent=agent).exclude(version=version)
            self._versions[agent] = list(others.values_list("version", flat=True).distinct())
        yield from (digest_of(agent, each, call.input, call.config) for each in self._versions[agent])

    @cached_property
    def _left(self) -> list[ChildLink]:
        """Return what this step started on branches that were left. None is of this execution: those stand."""
        session = self.session
        may = session.branched or session.path.moved()
        return child_runs.left_by(session.run.pk, self.spec.name, session.plan, session.path) if may else []

    @cached_property
    def _left_behind(self) -> dict[bytes, list[ChildLink]]:
        """Return what may be taken over, by digest, oldest last."""
        return {digest: equal[::-1] for digest, equal in _by_digest(row for row in self._left if not row.lost).items()}

    @cached_property
    def _left_by_other_plans(self) -> list[ChildLink]:
        """Return what was started under another plan of the run's, before a move to one of its other versions."""
        plan = self.session.run.plan_id
        return child_runs.started_under_others(self._left, plan) if self._left else []

    @cached_property
    def _done_for_kin(self) -> list[ChildLink]:
        run, plan = self.session.run, self.session.plan
        return child_runs.done_for_kin(run, self.spec.name, plan) if run.forked_from is not None else []

    @cached_property
    def _done_in_lineage(self) -> dict[bytes, list[ChildLink]]:
        return _by_digest(self._done_for_kin)

    @cached_property
    def _done_by_older(self) -> list[ChildLink]:
        """Return what another version of the agent did for the lineage, and this path does not count on already."""
        session, rows = self.session, self._done_for_kin
        others = child_runs.started_under_others(rows, session.run.plan_id) if rows else []
        return [row for row in others if not session.path.holds(row.landings)]


def _by_digest(rows: Iterable[ChildLink]) -> dict[bytes, list[ChildLink]]:
    """Group rows of equal children, in their order: an execution may start thousands."""
    found: dict[bytes, list[ChildLink]] = {}
    for row in rows:
        found.setdefault(bytes(row.digest), []).append(row)
    return found


def _by_reading(rows: Iterable[ChildLink]) -> dict[bytes, list[ChildLink]]:
    """Group what another version started by the digest of its input as the child's State reads it now."""
    found: dict[bytes, list[ChildLink]] = {}
    for row in rows:
        if row.agent in registry.names() and (digest := _as_begun(registry.agent_named(row.agent), row)):
            found.setdefault(digest, []).append(row)
    return found


def _starts_beside(gate: Gate) -> bool:
    """Tell whether a person had the step start its children anew, beside those that the gate asked about."""
    outcome = getattr(gate, "outcome", None)
    return outcome is not None and (outcome.answered or {}).get("choice") == RecoveryAnswer.DO_AGAIN


def digest_of(agent: str, version: str, input: Any, config: Mapping[str, Any] | None) -> bytes:
    """Return the digest of all that a child is given. Raises StepFailed."""
    try:
        return digests.of_value([agent, version, input, dict(config or {})])
    except ValueRefused as error:
        raise StepFailed(f"spawn({agent!r}): {error.pointer} {error.reason}; give it what JSON can say.") from error


def _as_read(known: RegisteredAgent, input: Any, config: Mapping[str, Any] | None) -> bytes:
    """Return the digest of an input and a configuration as the child's agent reads them; b"" where it does not."""
    try:
        values = fields.whole(validate_input(known.agent.State, input))
        made = environment.configured(known.agent, config or {})
        return digests.of_value([known.spec.agent, values, made and made.model_dump(mode="json", by_alias=False)])
    except NOT_READ:
        return b""


def _as_begun(known: RegisteredAgent, row: ChildLink) -> bytes:
    """Return the digest, as `_as_read`, of what a child began with, upgraded to the version that is served now."""
    first = row.run.checkpoints.filter(kind=Kind.INPUT).values_list("id", "plan").first()
    if first is None:  # removed by retention
        return b""
    try:
        state, plan = store.load_checkpoint(first[0]).state, Plan.objects.get(pk=first[1])
        if plan.version != known.spec.version:
            way = upcast.way_to(known.spec.version, plan, registry.agents())
            if way is None:
                return b""
            state = upcast.apply(way, state)
        return _as_read(known, state, environment.recorded(row.run).get("config"))
    except NOT_READ:
        return b""
