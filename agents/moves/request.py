"""Checks a person's order to a run before anything is written: a checkpoint, an edit of its state, a fork."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from agents.compatibility import edited_states, preflight
from agents.definition import environment, fields, registry, upcast
from agents.definition.environment import Environment
from agents.definition.upcast import UpcastPath
from agents.effects import hold_left_behind
from agents.errors import FieldError, InputRefused, RewindRefused, UnknownAgent, UpcastFailed
from agents.models import GraphThread
from agents.session import child_runs, translate_history
from agents.session.run_path import RunPath
from approvals.engine_rules import permissions
from approvals.english import quote_titles
from approvals.gates import reveal_secret
from approvals.models import Gate
from approvals.preflight import RED, AgentCode, check_version
from checkpoints import store
from checkpoints.errors import CheckpointRemoved, NotVerified, PlanChanged, ValueRefused
from checkpoints.models import Checkpoint, Plan, Run
from checkpoints.runs.plans import spec_of
from checkpoints.store import Snapshot, gaps, named_files
from checkpoints.values import patch as patches
from checkpoints.values.patch import Op

# No program would come for the fork: a graph asks for its thread by name, and the fork has none.
THREAD = (
    "This run keeps the thread {thread} of a graph, so it is forked there: copy the thread, or invoke the graph with "
    "the checkpoint's checkpoint_id."
)


@dataclass(frozen=True)
class WantedFork:
    """The checkpoint, writes, configuration and version with which a fork begins."""

    target: Snapshot
    plan: Plan
    next_step: str
    writes: dict[str, Any]
    environment: Environment


def target_of(run: Run, seq: int) -> Snapshot:
    """Return the saved state of one of the run's checkpoints. Raises RewindRefused."""
    found = Checkpoint.objects.filter(run=run, seq=seq).values_list("id", flat=True).first()
    if found is None:
        gap = gaps.over(run.pk, seq)
        raise RewindRefused(str(CheckpointRemoved(gap, seq)) if gap else f"R-{run.pk} has no checkpoint {seq}.")
    try:
        return store.load_checkpoint(found)
    except NotVerified as error:
        raise RewindRefused(f"Checkpoint {seq} does not verify, so no run can go on from it: {error}") from error


def check_goes_on(target: Snapshot) -> None:
    """Raise RewindRefused if no step follows the checkpoint."""
    if not target.next_step:
        raise RewindRefused(f"The run ended at checkpoint {target.seq}. Choose an earlier one.")


def check_taken(run: Run, plan: Plan, saved: Snapshot | None) -> None:
    """Raise RewindRefused if the agent is known here, but none of its versions could run on from there.

    A process that knows no version of it cannot tell, and leaves that to those that do.
    """
    code = preflight.code_of(run, plan, saved, [saved.next_step] if saved else [])
    found = check_version(code) if isinstance(code, AgentCode) else None
    if found is not None and found.colour == RED:
        raise RewindRefused(found.words)


def check_stands(run: Run, target: Snapshot) -> None:
    """Raise RewindRefused if the checkpoint's state counts on an effect or a child that was undone since."""
    check_asked(run, target)
    path = RunPath.to(target.id)
    if undone := child_runs.undone_on(run, path):
        told = (
            f"The state of checkpoint {target.seq} counts on R-{undone}, which was undone since. Go back to before it."
        )
        raise RewindRefused(told)
    found = hold_left_behind.gone(run, path)
    if found is None:
        return
    row, place = found
    before = Checkpoint.objects.filter(pk=place.parent or place.id).values_list("seq", flat=True).first()
    told = (
        f"In the state of checkpoint {target.seq} {row.step} is done, but it was undone since. Go "
        f"back to checkpoint {before} or an earlier one; from there it is performed again."
    )
    raise RewindRefused(told)


def check_asked(run: Run, target: Snapshot, *, fork: bool = False) -> None:
    """Raise RewindRefused if at the checkpoint the run counts on the answer to a question that nobody can answer now.

    A fork cannot take over the answer to a gate of another run.
    """
    if not spec_of(plan_of(run, target)).goes_on_asking:
        return
    asking = RunPath.to(target.id).asking()
    for gate in Gate.objects.select_related("outcome").filter(run=run, checkpoint__in=list(asking)).order_by("pk"):
        if gate.step == asking[gate.checkpoint] and (fork or not _may_be_answered(gate)):
            told = (
                f"Checkpoint {target.seq} counts on an approval at {quote_titles([gate.title])} that is not there. "
                "Go back to before it."
            )
            raise RewindRefused(told)


def _may_be_answered(gate: Gate) -> bool:
    """Tell whether a gate lets its run go on, or may still do so."""
    return gate.status == Gate.Status.OPEN or gate.outcome.kind in permissions.AGREED


def plan_of(run: Run, target: Snapshot) -> Plan:
    """Return the plan under which a checkpoint of the run was saved."""
    return run.plan if target.plan_id == run.plan_id else Plan.objects.get(pk=target.plan_id)


def _patched(run: Run, target: Snapshot, operations: Sequence[Op]) -> dict[str, Any]:
    """Return the state with the patch applied. Raises ValueRefused.

    The patch sees placeholders, so that it can neither copy a secret to where it would be shown nor guess at one.
    """
    veil = reveal_secret.of_plan(run.pk, plan_of(run, target))
    state: dict[str, Any] = veil.restore(
        patches.apply(list(operations), veil.masked(target.state, named=True)), target.state
    )
    return state


def edited(
    run: Run, target: Snapshot, operations: Sequence[Op], *, plan_id: int = 0, way: UpcastPath | None = None
) -> dict[str, Any]:
    """Return the fields that a JSON Patch changes, as they will be saved; checked by its own plan unless given another.

    With a `way`, the patched state is upgraded to that version. Raises RewindRefused with every error at once.
    """
    known = edited_states.known_agent(plan_id or target.plan_id)
    if known is None:
        raise RewindRefused("This server does not have the agent's version, so it cannot check an edit of its state.")
    try:
        state = _patched(run, target, operations)
        state = state if way is None else upcast.apply(way, state)
        whole = fields.normalised(known.agent.State, state)
    except ValueRefused as error:
        raise RewindRefused("The edit does not fit.", [{"pointer": error.pointer, "message": error.reason}]) from error
    except UpcastFailed as error:
        raise RewindRefused(str(error), error.errors) from error
    except ValidationError as error:
        raise RewindRefused("The agent does not accept the edited state.", fields.errors_of(error)) from error
    made = {name: whole[name] for name in state if name in whole}
    changed = translate_history.difference(target.state, made)
    if not changed and not plan_id:
        raise RewindRefused("The edit changes nothing.")
    if foreign := named_files.foreign(made, team=run.team_id, lineage=run.lineage, state=target.state):
        faults: list[FieldError] = [{"pointer": at, "message": named_files.FOREIGN} for at in foreign]
        raise RewindRefused("The edit names a file that this run does not have.", faults)
    return changed


def wanted(
    run: Run, at: int, patch: Sequence[Op], config: Mapping[str, Any] | None = None, version: str = ""
) -> WantedFork:
    """Return the checked start of a fork. Raises RewindRefused with every error."""
    if GraphThread.objects.filter(run=run).exists():
        raise RewindRefused(THREAD.format(thread=run.thread))
    target = target_of(run, at)
    check_goes_on(target)
    check_stands(run, target)
    check_asked(run, target, fork=True)
    recorded = plan_of(run, target)
    plan = _version(recorded, version)
    known = edited_states.known_agent(plan.pk)
    steps = known.spec.steps if known else ()
    way = upcast.way_to(plan.version, recorded, registry.agents()) if plan.pk != recorded.pk else None
    next_step = target.next_step if way is None else way.step(target.next_step)
    if plan.pk != recorded.pk and next_step not in {step.name for step in steps}:
        raise RewindRefused(f"{plan} has no step {next_step}, which the fork would run next.")
    writes = edited(run, target, patch, plan_id=plan.pk, way=way) if patch or plan.pk != recorded.pk else {}
    return WantedFork(target, plan, next_step, writes, _environment(run, plan, config))


def _version(recorded: Plan, version: str) -> Plan:
    if version in ("", recorded.version):
        return recorded
    try:
        return registry.register(registry.agent_named(recorded.agent, version))
    except (UnknownAgent, PlanChanged) as error:
        raise RewindRefused(str(error)) from error


def _environment(run: Run, plan: Plan, config: Mapping[str, Any] | None) -> Environment:
    """Return the run's own environment, with the fork's configuration over it."""
    known = edited_states.known_agent(plan.pk)
    recorded = environment.recorded(run)
    if config is None or known is None:
        if config:
            raise RewindRefused("This server does not have the agent's version, so it cannot check a configuration.")
        return recorded
    try:
        return environment.current(known.agent, {**recorded.get("config", {}), **config})
    except InputRefused as error:
        raise RewindRefused("The configuration does not fit.", error.errors) from error
