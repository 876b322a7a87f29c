"""Takes one run to its end, turn by turn, as workers would; or to the moment of its kill."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.contrib.auth.models import Group
from django.db.models.functions import Now

from agents.definition.registered import RegisteredAgent
from agents.runner import engine
from agents.runs.start import checked, start_run
from agents.text import one_line
from approvals.models import Gate
from approvals.policy import pacing
from checkpoints.actors import Actor
from checkpoints.models import Run

from .answers import Answers, Stuck
from .witness import Seen

Config = dict[str, Any]
DRILL = Actor("system", "Drill")
MOST_TURNS = 2_000
MOST_STANDSTILLS = 25  # turns in which nothing moved: a step that fails over and over


class WorkerTurn(NamedTuple):
    """One worker's turn: the run's `seq` before and after, whether it began with an outcome and ended at a gate."""

    before: int
    after: int
    answered: bool
    asks: bool


class Aim(NamedTuple):
    """The moment of a kill: the turn that begins at this `seq`, and the value of HOLDPOINT_CRASH in it."""

    before: int
    answered: bool
    wish: str


@dataclass
class Walked:
    """The observations made on the walk."""

    turns: list[WorkerTurn] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)  # recovery gates
    stuck: str = ""


def begin(drilled: RegisteredAgent, input: dict[str, Any], *, team: int, label: str, key: str, config: Config) -> int:
    """Start a run of the drill's own and return its id. Raises AgentError."""
    title = one_line(f"Drill: {drilled.agent.title(checked(drilled.agent.State, input))} ({label})", 200)
    run = start_run(
        drilled.spec.agent, input, by=DRILL, team=Group.objects.get(pk=team), title=title, key=key, config=config
    )
    return run.pk


def begun(key: str) -> int:
    """Return the id of the run that `begin` made under this key."""
    return Run.objects.values_list("pk", flat=True).get(key=key)


def walk(run_id: int, answers: Answers, *, seen: Seen | None = None, aim: Aim | None = None) -> Walked:
    """Take the run on until it has ended, or cannot go on, or this process is killed."""
    walked = Walked()
    answered, still = -1, 0
    for _ in range(MOST_TURNS):
        run = Run.objects.get(pk=run_id)
        if run.status not in Run.LIVE:
            return walked
        if run.status == Run.Status.WAITING:
            gate = Gate.objects.open().select_related("run__plan", "policy").get(run=run)
            if gate.kind == Gate.Kind.RECOVERY:
                walked.asked.append(gate.step)
            try:
                answers.give(gate, _told(seen, gate.step))
            except Stuck as reason:
                walked.stuck = str(reason)
                return walked
            answered = run.seq
            continue
        turn = _turn(run, answered == run.seq, aim)
        walked.turns.append(turn)
        still = still + 1 if turn.before == turn.after else 0
        if still > MOST_STANDSTILLS:
            walked.stuck = f"{run.next_step} does not get on: {run.reason}"
            return walked
    walked.stuck = f"The run has not ended after {MOST_TURNS} turns."
    return walked


def _turn(run: Run, answered: bool, aim: Aim | None) -> WorkerTurn:
    """Let a worker take the run, without waiting for a dead worker's lease or a backoff."""
    mine = Run.objects.filter(pk=run.pk)
    mine.filter(status=Run.Status.RUNNING).update(lease_until=Now())
    mine.filter(status=Run.Status.QUEUED).update(wake_at=None)
    aimed = aim is not None and (aim.before, aim.answered) == (run.seq, answered)
    os.environ["HOLDPOINT_CRASH"] = aim.wish if aim is not None and aimed else ""
    with pacing.unpaced():
        engine.advance(run.pk)
    after, status = Run.objects.values_list("seq", "status").get(pk=run.pk)
    return WorkerTurn(run.seq, after, answered, status == Run.Status.WAITING)


def _told(seen: Seen | None, step: str) -> Any:
    """Return the effect's last result for the dead worker; None where it is unknown or no plain object."""
    outputs = (seen or {}).get(step)
    if not outputs or any(name.endswith(("+", "~", ">")) for name in outputs[-1]):
        return None
    return outputs[-1]
