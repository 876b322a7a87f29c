"""Takes the results that an external program sends for its turn: the writes of a step, the result of an effect.

Everything is checked before anything is written: a fault is reported with its place, and the run stays where it
was. The engine then treats the result like the return value of a local method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.definition import fields, outputs
from agents.definition.agent import Done, Jump
from agents.definition.registered import RegisteredAgent
from agents.effects import classify_failure, perform, readback, undo_left_behind
from agents.errors import EffectFailed, EffectUnknown, OutputRefused, StepFailed
from agents.models import Effect
from agents.session.performer import HandOut, Returned
from agents.session.run_session import RunSession
from agents.steps import execute
from agents.work_errors import OutOfTurn, ReportedBefore, WorkInvalid
from checkpoints import store
from checkpoints.errors import ValueRefused
from checkpoints.models import Run
from checkpoints.runs.plans import StepSpec
from checkpoints.store import claims, named_files
from checkpoints.values import artifacts
from checkpoints.values.json_pointer import make_pointer
from checkpoints.values.ops import Append, Splice
from checkpoints.values.patch import are_same

from . import plans
from .session_cache import RemotePerformer
from .turns import RemoteTurn, check_next, check_settled, current_turn, first_undone, go_further, go_on

Status = Effect.Status
DONE, FAILED, UNKNOWN = "done", "failed", "unknown"
AS_REPORTED = {DONE: Status.DONE, FAILED: Status.FAILED}


class ReportedFailure(Exception):
    """A program reported a failure, in its own words."""


@dataclass(frozen=True)
class StepWrites:
    """The writes of a step or an effect. `next_step`: None for the plan's own next, "" for the end of the run."""

    writes: Mapping[str, Any]
    next_step: str | None = None
    took: float = 0.0  # seconds
    notes: Sequence[str] = ()

    def returned(self) -> Any:
        """Return what a local method would have returned."""
        if self.next_step is None:
            return dict(self.writes)
        return Jump(self.next_step, self.writes) if self.next_step else Done(self.writes)


def step(session: RunSession, name: str, written: StepWrites) -> RemoteTurn:
    """Save what a step wrote. Raises OutOfTurn, WorkInvalid and Fenced."""
    spec = check_next(session, name, "step")
    output = _checked(session.registered, spec, written, run=session.run, state=session.snapshot.state)
    notes = [session.clean(note) for note in written.notes]
    try:
        going = session.executed(spec, output.writes, output.goto, took=written.took, notes=notes)
    except ValueRefused as error:
        raise WorkInvalid.at(error.pointer, error.reason) from error
    return go_further(session, going)


def whole(session: RunSession, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the writes that turn the state at the head into this one. Raises WorkInvalid."""
    before = session.snapshot.state
    missing = [name for name in before if name not in state]
    if missing:
        words = "is missing; send the whole state, or `ops` for some fields"
        raise WorkInvalid(plans.list_errors((make_pointer("state", name), words) for name in missing))
    return {name: value for name, value in state.items() if name not in before or not are_same(before[name], value)}


def begin(session: RunSession, name: str) -> RemoteTurn:
    """Write the effect's intent, consuming its grant. Raises OutOfTurn and Fenced.

    A second call by the holder of the run gives the same intent. Where the grant no longer holds, the next turn is the
    gate, which has to ask again.
    """
    spec = check_next(session, name, "effect")
    row = perform.newest(session, spec)
    if row is not None and row.status == Status.INTENDED and row.token == session.claim.token:
        session.handed_out = HandOut(spec, effect=row)
        return current_turn(session)
    session.performer = RemotePerformer(begun=spec.name)
    return go_further(session, going=True)


def begin_undo(session: RunSession, effect: int) -> RemoteTurn:
    """Write the intent of undoing an effect. Raises OutOfTurn and Fenced.

    An effect that a fork depends on by now is left as it is, and the turn is whatever comes then.
    """
    if effect not in {row.pk for row in session.unsettled()}:
        raise OutOfTurn(f"The run has not left effect {effect} behind, so it is not undone.")
    session.performer = RemotePerformer(undone=effect)
    turn = go_on(session)
    if turn.undoes is not None and turn.undoes.pk != effect:
        raise first_undone(session, turn.undoes)
    return turn


def reported(
    session: RunSession, row: Effect, status: str, written: StepWrites, error: str, *, retry: bool
) -> RemoteTurn:
    """Record the result of an effect, or of an undo: it happened, provably did not, or nobody knows.

    Raises ReportedBefore, WorkInvalid and Fenced.
    """
    if row.status != Status.INTENDED or row.token != session.claim.token:
        raise _before(row)
    if status == DONE and row.undoes is not None:
        undo_left_behind.taken_back(session, row.undoes, row)
        return go_on(session)
    spec = session.plan.step(row.step)
    if status == DONE:
        _checked(session.registered, spec, written, run=session.run, state=session.snapshot.state)
        returned = Returned(written.returned(), written.took, [session.clean(note) for note in written.notes])
        return go_further(session, perform.done(session, spec, row, returned))
    end: classify_failure.End = EffectFailed(error, retry=retry) if status == FAILED else EffectUnknown(error)
    if row.undoes is not None:
        undo_left_behind.not_undone(session, spec, row.undoes, row, end, ReportedFailure(error))
    else:
        perform.not_done(session, spec, row, end, ReportedFailure(error))
    return current_turn(session)


def failed(session: RunSession, name: str, error: str, *, retry: bool) -> RemoteTurn:
    """Record that a step failed: its plan's retry tries it again later, else a person is asked. Raises OutOfTurn."""
    spec = check_next(session, name, "step", "gate", "effect")
    execute.failed(session, spec, ReportedFailure(error) if retry else StepFailed(error))
    return current_turn(session)


def late(row: Effect, status: str, written: StepWrites, error: str) -> None:
    """Take a report on an effect begun under a claim that was lost since: as evidence, without a checkpoint.

    Raises WorkInvalid, and ReportedBefore where the same was reported before.
    """
    if row.status == AS_REPORTED.get(status):
        raise _before(row)
    known = plans.registered(row.run.plan_id)
    if status == DONE and row.undoes is None and known is not None:
        _checked(known, known.spec.step(row.step), written, run=row.run)
    if row.undoes is not None:
        if status == DONE:
            readback.undone(row.undoes, row)
    elif status == DONE:
        readback.done(row, outputs.packed(outputs.StepOutput(dict(written.writes), written.next_step)))
    elif status == FAILED:
        readback.failed(row, error)


def released(session: RunSession) -> RemoteTurn:
    """Release the run as it is. Raises Fenced."""
    claims.release(session.claim, status="queued", reason="released by its program", by=session.by, attempts=0)
    return current_turn(session)


def ended(session: RunSession, status: str, reason: str) -> RemoteTurn:
    """End the run. Raises OutOfTurn where its plan goes on, WorkInvalid for no reason."""
    check_settled(session)
    name = session.snapshot.next_step
    if not name:
        raise OutOfTurn("The run has nothing more to do, and waits for people to decide. It ends then.")
    spec = session.plan.step(name)
    if status == "failed":
        session.save("recovery", spec, {}, name, end="failed", reason=session.clean(reason))
        return go_further(session, going=session.run.settling)
    if spec.kind != "step" or not spec.ends:
        raise WorkInvalid.at("/status", f"the plan goes on with {name}; the run cannot end there")
    return step(session, name, StepWrites({}, next_step=""))


def writes_of(ops: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the writes of ops: {"op": set | append | splice, "field", "value" | "items", "start", "delete"}."""
    found: dict[str, Any] = {}
    for number, op in enumerate(ops):
        name = op["field"]
        if name in found:
            raise WorkInvalid.at(f"/ops/{number}", f"there is an op for {name} before it")
        if op["op"] == "set":
            found[name] = op.get("value")
        elif op["op"] == "append":
            found[name] = Append(op["items"])
        else:
            found[name] = Splice(op["start"], op["delete"], op["items"])
    return found


def _before(row: Effect) -> ReportedBefore:
    return ReportedBefore(
        f"This effect is {row.status} already, so nothing was recorded. GET /api/runs/{row.run_id} says where the run "
        "stands; if the outside world says otherwise, tell the people of its team."
    )


def _checked(
    known: RegisteredAgent, spec: StepSpec, written: StepWrites, *, run: Run, state: Mapping[str, Any] | None = None
) -> outputs.StepOutput:
    """Check the writes. `state`: the state before; if None, it is loaded only where files need it."""
    _check_lists(known, written.writes)
    _check_files(run, written.writes, state)
    if strange := [name for name in written.writes if name not in spec.writes]:
        words = f"is not written by {spec.name}; declare it in the plan"
        raise WorkInvalid(plans.list_errors((make_pointer(name), words) for name in strange))
    try:
        return outputs.checked(known.agent, known.spec, spec, written.returned())
    except OutputRefused as error:  # the writes are declared, so it is the next step
        raise WorkInvalid.at("/next_step", str(error)) from error
    except ValueRefused as error:
        raise WorkInvalid.at(error.pointer, error.reason) from error


def _check_lists(known: RegisteredAgent, writes: Mapping[str, Any]) -> None:
    """Check that only a list grows: an append is checked by item, and could turn another field into a list."""
    properties = known.spec.state_schema.get("properties", {})
    for name, write in writes.items():
        if isinstance(write, (Append, Splice)) and properties.get(name) and not fields.is_list(known.agent.State, name):
            raise WorkInvalid.at(make_pointer(name), "is not a list, so nothing can be appended")


def _check_files(run: Run, writes: Mapping[str, Any], state: Mapping[str, Any] | None) -> None:
    """Check the files that are written before an effect is settled by what no checkpoint may hold."""
    grown = (Append, Splice)
    written = {name: list(append.items) if isinstance(append, grown) else append for name, append in writes.items()}
    if any(artifacts.references(written)):
        before = store.load(run).state if state is None else state
        if foreign := named_files.foreign(written, team=run.team_id, lineage=run.lineage, state=before):
            raise WorkInvalid(plans.list_errors((at, named_files.FOREIGN) for at in foreign))
