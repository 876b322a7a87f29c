"""Turns: the next work of an external program, and how the engine gets there.

A program claims a run. The engine takes it as far as it goes without calling anything, and then it is
the program's turn: to run a step, ask at a gate, do or undo an effect. All of it is under the program's claim,
whose fencing token it sends with everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from agents.models import Client, Effect, Token
from agents.runner import engine
from agents.session import run_path, translate_history
from agents.session.run_session import ENDED, RunSession
from agents.work_errors import NotClaimable, OutOfTurn, WorkRefused
from approvals.models import Gate
from checkpoints.actors import Actor
from checkpoints.models import Run
from checkpoints.runs.plans import StepSpec
from checkpoints.values.characters import one_line

from .reach import ReachedRun, load_run, note_owner
from .session_cache import SESSIONS, claim_run, ended_refusal, gate_of, keep_session, session_of

UNDO = "undo"
TAKEN_AT = {"step": "checkpoints", "gate": "gates", "effect": "effects"}  # by the kind of a step, under its run


@dataclass(frozen=True)
class RemoteTurn:
    """The run, and the next work of its program. `kind` is empty where there is none now.

    `effect` is the row of the effect, or of its undo, once its intent is written: until then the program has to
    say that it begins. `undoes` is the effect that is to be undone.
    """

    run: Run
    token: int
    seq: int
    kind: str = ""  # step, gate, effect or undo
    step: StepSpec | None = None
    effect: Effect | None = None
    undoes: Effect | None = None
    gate: Gate | None = None  # at which the run waits
    state: dict[str, Any] | None = None
    until: datetime | None = None  # the end of the lease


def claim(reached: ReachedRun, *, worker: str, lease: float, by: Actor, token: Token | None) -> RemoteTurn:
    """Claim a run that nobody holds, for `lease` seconds at a time, and return the program's turn.

    The caller has the run `alone` until the claim is committed. Raises NotClaimable, RunEnded, Fenced and NotVerified.
    """
    run_id = reached.id
    SESSIONS.take(run_id)
    with transaction.atomic():
        run, named = load_run(run_id), one_line(worker, 120)
        made = claim_run(run, worker=named, lease=lease, by=by)
        if made is None:
            raise why_not(run_id)
        note_owner(run, reached)
        Client.came(run, name=named, token=token, owner=reached.by, lease=lease, deferred=False)
        session = session_of(made, reached.by)
        turn = go_on(session)
    keep_session(session)
    return turn


def go_on(session: RunSession) -> RemoteTurn:
    """Take the run as far as it goes by itself, from the decision at its head."""
    engine.go_on(session)
    return current_turn(session)


def go_further(session: RunSession, going: bool) -> RemoteTurn:
    """Go on after a step that has just been saved, dropping what was handed out before, and return the turn."""
    session.handed_out = None
    engine.turns(session, going)
    return current_turn(session)


def current_turn(session: RunSession) -> RemoteTurn:
    """Return the turn for what is handed out, or one without work where the run waits or has ended."""
    out = session.handed_out
    if out is None:
        return without_work(session.run.pk, session.claim.token)
    return RemoteTurn(
        run=session.run, token=session.claim.token, seq=session.snapshot.seq,
        kind=UNDO if out.undoes else out.step.kind, step=out.step, effect=out.undo or out.effect, undoes=out.undoes,
        state=translate_history.left_by(out.undoes, session.run.plan) if out.undoes else session.snapshot.state,
        until=session.claim.clock() + timedelta(seconds=session.claim.lease),
    )  # fmt: skip


def without_work(run_id: int, token: int) -> RemoteTurn:
    """Return the turn of a program that has nothing to do in the run, or has lost it."""
    run = load_run(run_id)
    return RemoteTurn(run=run, token=token, seq=run.seq, gate=gate_of(run))


def check_next(session: RunSession, step: str, *kinds: str) -> StepSpec:
    """Return the next step, if it is the one that the program names. Raises OutOfTurn."""
    check_settled(session)
    name = session.snapshot.next_step
    spec = session.plan.step(name) if name else None
    if spec is None or spec.name != step:
        comes = f"the {spec.kind} {spec.name}" if spec else "nothing"
        raise OutOfTurn(f"{comes[0].upper()}{comes[1:]} comes next, not {step}: do that, or rewind the run.")
    if spec.kind not in kinds:
        raise OutOfTurn(
            f"{step} is of the kind {spec.kind}: POST it to /api/runs/{session.run.pk}/{TAKEN_AT[spec.kind]}."
        )
    return spec


def check_settled(session: RunSession) -> None:
    """Raise OutOfTurn while the run settles what it left behind."""
    due = run_path.due(session.unsettled(), session.plan) if session.run.settling else []
    if due:
        raise first_undone(session, due[0])


def first_undone(session: RunSession, row: Effect) -> OutOfTurn:
    """Return, as an exception, that an effect is to be undone before anything else."""
    return OutOfTurn(
        f"The run takes back what it left behind first: begin that by POST /api/runs/{session.run.pk}/effects with "
        f"`undoes`: {row.pk} ({row.step}), and report it."
    )


def why_not(run_id: int) -> WorkRefused:
    """Return, as an exception, why a run cannot be claimed."""
    run = Run.objects.select_related("plan").get(pk=run_id)
    if run.status in ENDED:
        return ended_refusal(run)
    if run.status == Run.Status.WAITING:
        waits = gate_of(run)
        gate = waits.pk if waits else None
        asked = f" for gate {gate}: GET /api/gates/{gate}/outcome?wait=25, and claim the run then" if gate else ""
        return NotClaimable(f"The run waits{asked}.", gate=gate)
    if run.status == Run.Status.RUNNING:
        until = f"{run.lease_until:%H:%M:%S} UTC" if run.lease_until else "its lease ends"
        return NotClaimable(f"{run.worker or 'Somebody'} has the run, at least until {until}.", until=run.lease_until)
    return NotClaimable("A person is moving the run, or it pauses after a failure, for some seconds.")
