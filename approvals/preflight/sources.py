"""Where a preflight's facts come from: the store, and for those about code whoever registered here.

This app may not import the agents' code. Where nobody registered, as in a process that has none of it, the code is
not looked at, and the preflight says so instead of being green.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from uuid import UUID

from approvals.models import Gate
from checkpoints import store
from checkpoints.errors import CheckpointError
from checkpoints.models import Checkpoint, Run
from checkpoints.plans import spec_of
from checkpoints.store import Snapshot

from .checks import NOBODY, Code, Preflight, Saved, Unknown, judge

Source = Callable[[Run, Snapshot | None, Iterable[str]], "Code | Unknown"]
_registered: list[Source] = []


def register(source: Source) -> None:
    """Add whoever has the agents' code.

    `source(run, snapshot, steps)` says what is known of the code for the run's plan; `snapshot` is None where the
    saved state does not verify, `steps` are the names at which the run may have to go on. The first that is not
    Unknown counts.
    """
    _registered.append(source)


def unregister(source: Source) -> None:
    """Take a source out again."""
    _registered[:] = [each for each in _registered if each is not source]


def of_gate(gate: Gate, *, snapshot: Snapshot | None = None) -> Preflight:
    """The preflight of a gate, from the state that it shows: whatever is decided, the run can go on from there.

    Who has loaded that state already saves a query. Needs the gate's run with its plan.
    """
    step = spec_of(gate.run.plan).step(gate.step)
    ways = {gate.step, step.on_reject, *gate.asked.back_to, *spec_of(gate.run.plan).successors(gate.step)}
    return _preflight(gate.run, gate.checkpoint, sorted(ways), snapshot)


def of_run(run: Run) -> Preflight:
    """The preflight of a run from its head. Needs the run's plan."""
    return _preflight(run, run.head, [run.next_step], None)


def _preflight(run: Run, checkpoint: UUID | None, steps: Iterable[str], snapshot: Snapshot | None) -> Preflight:
    fault = ""
    if snapshot is None:
        try:
            snapshot = store.load_checkpoint(checkpoint, lineage=run.lineage) if checkpoint else store.load(run)
        except CheckpointError as error:
            fault = str(error)
    return judge(_saved(checkpoint, snapshot, fault), _code(run, snapshot, steps))


def _saved(checkpoint: UUID | None, snapshot: Snapshot | None, fault: str) -> Saved:
    if snapshot is None:
        seq = Checkpoint.objects.filter(pk=checkpoint).values_list("seq", flat=True).first() if checkpoint else 0
        return Saved(seq=seq or 0, fault=fault)
    return Saved(seq=snapshot.seq)


def _code(run: Run, snapshot: Snapshot | None, steps: Iterable[str]) -> Code | Unknown:
    told: Code | Unknown = NOBODY
    for source in _registered:
        told = source(run, snapshot, steps)
        if isinstance(told, Code):
            break
    return told
