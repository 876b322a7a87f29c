"""Takes one run to its end, turn by turn, as workers would; or to the moment of its kill.

With it goes whatever it started, undisturbed. What a run waits for comes at once: a time passes, a signal is sent.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.contrib.auth.models import Group
from django.db.models.functions import Now

from agents.children import turns
from agents.definition.registered import RegisteredAgent
from agents.models import Wait
from agents.moves import child_orders
from agents.runner import engine
from agents.runs.start import start_run, validate_input
from agents.session import child_runs
from agents.waits import step_waits
from approvals.models import Gate
from approvals.policy import pacing
from checkpoints.models import Run
from checkpoints.values.characters import one_line

from .children import Seen
from .record import DRILL, Answers, Stuck

Config = dict[str, Any]
MOST_TURNS = 2_000
MOST_STANDSTILLS = 25  # turns in which nothing moved: a step that fails over and over


class WorkerTurn(NamedTuple):
    """One worker's turn: the run's `seq` before and after, whether it began with an outcome and ended at a gate."""

    before: int
    after: int
    answered: bool
    asks: bool
    step: str = ""  # the step that waits now, for a time or a signal ("wait") or for runs that it started ("gather")
    waits: str = ""


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
    title = one_line(f"Drill: {drilled.agent.title(validate_input(drilled.agent.State, input))} ({label})", 200)
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
        family = child_runs.family(run_id)
        run = family[0]
        if run.status not in Run.LIVE:
            return walked
        busy = next((run for run in family if run.status in (Run.Status.QUEUED, Run.Status.RUNNING)), None)
        if busy is None:
            try:
                gate = _moved(family, answers, seen)
            except Stuck as reason:
                walked.stuck = str(reason)
                return walked
            if gate is not None and gate.kind == Gate.Kind.RECOVERY:
                walked.asked.append(gate.step)
            answered = run.seq if gate is not None and gate.run_id == run_id else answered
            continue
        if busy.pk != run_id:
            _turn(busy, False, None)
            continue
        turn = _turn(run, answered == run.seq, aim)
        walked.turns.append(turn)
        still = still + 1 if turn.before == turn.after and not turn.waits else 0
        if still > MOST_STANDSTILLS:
            walked.stuck = f"{run.next_step} does not get on: {run.reason}"
            return walked
    walked.stuck = f"The run has not ended after {MOST_TURNS} turns."
    return walked


def _moved(family: Sequence[Run], answers: Answers, seen: Seen | None) -> Gate | None:
    """Do what a family at rest waits for; return the gate that was answered, if it was one. Raises Stuck."""
    if sum(child_orders.carry_out(run.pk) + child_orders.end_with(run.pk) + turns.let_go(run.pk) for run in family):
        return None
    runs = [run.pk for run in family]
    gate = Gate.objects.open().select_related("run__plan", "policy").filter(run__in=runs).order_by("pk").first()
    if gate is not None:
        answers.give(gate, _last_result(seen, gate.step))
        return gate
    wait = next((found for run in family if (found := Wait.objects.current(run))), None)
    if wait is None:
        raise Stuck(f"R-{family[0].pk} is waiting, and nothing wakes it: {family[0].reason}")
    if wait.kind == Wait.Kind.TIMER:
        step_waits.wake_now(wait.run, by=DRILL)
    elif not answers.signal(wait):
        _time_out(wait)
    return None


def _time_out(wait: Wait) -> None:
    """Let the time pass for which a signal is waited for. Raises Stuck where it is waited for without end."""
    if wait.due is None:
        raise Stuck(f"{wait.step} waits for the signal {wait.name}, and nobody sends it: give it with --signals.")
    Wait.objects.filter(pk=wait.pk).update(due=Now())
    wait.run.wake(by=DRILL)


def _turn(run: Run, answered: bool, aim: Aim | None) -> WorkerTurn:
    """Let a worker take the run, without waiting for a dead worker's lease or a backoff."""
    mine = Run.objects.filter(pk=run.pk)
    mine.filter(status=Run.Status.RUNNING).update(lease_until=Now())
    mine.filter(status=Run.Status.QUEUED).update(wake_at=None)
    aimed = aim is not None and (aim.before, aim.answered) == (run.seq, answered)
    os.environ["HOLDPOINT_CRASH"] = aim.wish if aim is not None and aimed else ""
    with pacing.unpaced():
        engine.advance(run.pk)
    now = Run.objects.get(pk=run.pk)
    rests = now.status == Run.Status.WAITING
    waits = "gather" if rests and now.awaited else "wait" if Wait.objects.current(now) else ""
    asks = rests and not waits
    return WorkerTurn(run.seq, now.seq, answered, asks, now.next_step if waits else "", waits)


def _last_result(seen: Seen | None, step: str) -> Any:
    """Return the effect's last result for the dead worker; None where it is unknown or no plain object."""
    outputs = (seen or {}).get(step)
    return None if not outputs or any(name.endswith(("+", "~", ">")) for name in outputs[-1]) else outputs[-1]
