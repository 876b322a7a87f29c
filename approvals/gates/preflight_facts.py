"""Collects a preflight's facts: from the store, and about the agents' code from sources registered here.

This app may not import the agents' code. Without a source, as in a process that has none of it, the code is not
checked, and the preflight says so instead of being green.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from uuid import UUID

from approvals.models import Gate
from approvals.preflight import NOBODY, AgentCode, Preflight, SavedCheckpoint, UnknownCode, run_preflight
from checkpoints import store
from checkpoints.errors import CheckpointError, NoSuchCheckpoint
from checkpoints.models import Checkpoint, Plan, Run
from checkpoints.runs.plans import spec_of
from checkpoints.store import Snapshot
from checkpoints.values import artifacts

Source = Callable[[Run, Plan, Snapshot | None, Collection[str]], "AgentCode | UnknownCode"]
_registered: list[Source] = []


def register(source: Source) -> None:
    """Register a source of facts about the agents' code.

    `source(run, plan, snapshot, steps)` returns what is known of the code for a state of that plan; `snapshot` is None
    where the saved state does not verify, `steps` are the names at which the run may have to go on. The first source
    that knows the code counts.
    """
    _registered.append(source)


def of_gate(gate: Gate, *, snapshot: Snapshot | None = None) -> Preflight:
    """Return the preflight of a gate, from the state that it shows, from which the run may go on after a decision.

    A caller that has loaded that state passes `snapshot` and saves a query. Needs the gate's run with its plan. Raises
    NoSuchCheckpoint where retention removed what a closed gate showed.
    """
    plan = plan_of(gate, snapshot)
    spec = spec_of(plan)
    asked = gate.asked
    ways = {gate.step, spec.step(gate.step).on_reject, asked.on_reject, *asked.back_to, *spec.successors(gate.step)}
    return _preflight(gate.run, plan, gate.checkpoint, sorted(ways), snapshot)


def of_run(run: Run) -> Preflight:
    """Return the preflight of a run from its head. Needs the run's plan."""
    return _preflight(run, run.plan, run.head, [run.next_step], None)


def plan_of(gate: Gate, snapshot: Snapshot | None = None) -> Plan:
    """Return the plan under which a gate was opened: its run may be of another version by now.

    Raises NoSuchCheckpoint.
    """
    if gate.status == Gate.Status.OPEN or (snapshot is not None and snapshot.plan_id == gate.run.plan_id):
        return gate.run.plan
    saved = Checkpoint.objects.select_related("plan").filter(pk=gate.checkpoint).first()
    if saved is None:
        raise NoSuchCheckpoint
    return saved.plan


def _preflight(
    run: Run, plan: Plan, checkpoint: UUID | None, steps: Collection[str], snapshot: Snapshot | None
) -> Preflight:
    try:
        if snapshot is None:
            snapshot = store.load_checkpoint(checkpoint) if checkpoint else store.load(run)
        saved = _saved(snapshot)
    except CheckpointError as error:
        seq = Checkpoint.objects.filter(pk=checkpoint).values_list("seq", flat=True).first() if checkpoint else None
        saved = SavedCheckpoint(seq=seq or 0, fault=str(error))
    return run_preflight(saved, _code(run, plan, snapshot, steps))


def _saved(snapshot: Snapshot) -> SavedCheckpoint:
    count = sum(1 for _ in artifacts.references(snapshot.state))
    try:
        missing = tuple(artifacts.missing(snapshot.state)) if count else ()
    except OSError as error:
        return SavedCheckpoint(seq=snapshot.seq, artifacts=count, unseen=str(error))
    return SavedCheckpoint(seq=snapshot.seq, artifacts=count, missing=missing)


def _code(run: Run, plan: Plan, snapshot: Snapshot | None, steps: Collection[str]) -> AgentCode | UnknownCode:
    told: AgentCode | UnknownCode = NOBODY
    for source in _registered:
        told = source(run, plan, snapshot, steps)
        if isinstance(told, AgentCode):
            break
    return told
