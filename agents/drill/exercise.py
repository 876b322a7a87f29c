"""One drill: the undisturbed runs, then a run for each kill, each compared with the first.

A run is killed before each step, after it and before its save, and after its save. A gate counts as two steps: opening
it, and saving its outcome. So does a step that waits, for each of its waits.
"""

from __future__ import annotations

import secrets
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from django.contrib.auth.models import User

from agents.definition.registered import RegisteredAgent
from agents.errors import AgentError
from agents.models import Effect
from agents.moves import cancel, rewind
from agents.session import child_runs
from checkpoints.access.permissions import REWIND_RUN, may_in_team
from checkpoints.models import Run
from checkpoints.runs.plans import PlanSpec

from . import compare, record, walk
from .children import Seen, Witness, done_in_child, run_in_child
from .compare import Difference
from .record import Answers, DrilledExecution, DrillRecord
from .walk import Aim, Walked, WorkerTurn

BEFORE, UNSAVED, SAVED = MOMENTS = ("before it", "before its save", "after its save")
POINTS = {
    "step": ("before_step", "before_save", "after_commit"),
    "gate, passed": ("before_step", "before_save", "after_commit"),
    "effect": ("before_step", "after_effect", "after_commit"),
    "gate, asking": ("before_step", "before_gate", "after_gate"),
    "gate, decided": ("before_outcome", "before_save", "after_commit"),
    "step, waiting": ("before_step", "before_wait", "after_wait"),
    "step, gathering": ("before_step", "before_gather", "after_gather"),
}
WAITING = {"wait": "step, waiting", "gather": "step, gathering"}


class DrillStep(NamedTuple):
    """One step of the undisturbed run, its kind (a key of POINTS), and the three moments to kill it."""

    step: str
    what: str
    aims: tuple[Aim, Aim, Aim]


def list_targets(
    plan: PlanSpec, turns: Sequence[WorkerTurn], executions: Sequence[DrilledExecution]
) -> list[DrillStep]:
    """List a target for every execution of the undisturbed run, on all branches, in order."""
    found, waited = [], Counter[tuple[str, str]]()  # by the step and what it waits for, since it last began
    for turn in turns:
        if turn.waits:
            begun = sum(number for (step, _), number in waited.items() if step == turn.step)
            waited[turn.step, turn.waits] += 1
            hit = waited[turn.step, turn.waits]
            found.append(_target(turn, turn.step, WAITING[turn.waits], hit, begun=begun + 1))
            continue
        landed = [execution for execution in executions if turn.before < execution.seq <= turn.after]
        for number, execution in enumerate(landed):
            planned = plan.step(execution.step).kind.replace("gate", "gate, passed")
            what = "gate, decided" if execution.asked else planned
            hit = 1 + sum(1 for earlier in landed[:number] if earlier.step == execution.step)
            begun = sum(waited.pop((execution.step, kind), 0) for kind in WAITING)
            found.append(_target(turn, execution.step, what, hit, begun=hit + begun))
        if turn.asks:
            asked = [execution.step for execution in executions if execution.asked and execution.seq == turn.after + 1]
            found += [_target(turn, step, "gate, asking", 1) for step in asked]
    return found


def _target(turn: WorkerTurn, step: str, what: str, hit: int, *, begun: int = 0) -> DrillStep:
    """Return the target; `begun`: how often the step begins by then, where it waited before."""
    points = zip(POINTS[what], (begun or hit, hit, hit), strict=True)
    first, second, third = (Aim(turn.before, turn.answered, f"{point}@{step}:kill:{at}") for point, at in points)
    return DrillStep(step, what, (first, second, third))


Fates = Counter[tuple[str, str]]  # (effect step, status) -> how often
SAME, ASKS, DIFFERS, MISSED = "same", "asks a person", "differs", "not reached"


@dataclass(frozen=True)
class Kill:
    """The result of one kill."""

    target: DrillStep
    moment: str
    run: int
    word: str  # one of the four above
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True)
class Undisturbed:
    """The undisturbed end, the steps to kill, and how two such runs differ: natural places, and faults of steps."""

    record: DrillRecord
    targets: list[DrillStep]
    natural: list[str]
    unsteady: list[Difference]


class DrillEnding(NamedTuple):
    """The report of a process that took a run to its end: the walk, the record, and the effects after the clean-up."""

    walked: Walked
    record: DrillRecord
    fates: Fates
    problem: str


@dataclass
class Exercise:
    """A drill under way. `scratch` is a folder for the witnesses' files."""

    drilled: RegisteredAgent
    input: dict[str, Any]
    team: int
    answers: Answers
    scratch: Path
    config: walk.Config = field(default_factory=dict)
    fates: Fates = field(default_factory=Counter)  # what became of all that the runs did
    problems: list[str] = field(default_factory=list)  # what could not be taken back, and why

    def undisturbed(self) -> Undisturbed:
        """Run the agent twice to its end. Raises AgentError where it does not get there."""
        first, turns = self._undisturbed()
        second, _ = self._undisturbed()
        plan = self.drilled.spec
        found = list_targets(plan, turns, first.executions)
        return Undisturbed(first, found, compare.natural(first, second), compare.unsteady(plan, first, second))

    def kills(self, undisturbed: Undisturbed) -> Iterator[Kill]:
        """Yield the result of each kill and its recovery, one after the other."""
        for target in undisturbed.targets:
            for moment, aim in zip(MOMENTS, target.aims, strict=True):
                yield self._killed(undisturbed, target, moment, aim)

    def _undisturbed(self) -> tuple[DrillRecord, list[walk.WorkerTurn]]:
        key = f"drill-{secrets.token_hex(6)}"

        def work() -> DrillEnding:
            run = self._begin("undisturbed", key)
            return self._ending(run, walk.walk(run, self.answers))

        end = self._recorded(done_in_child(self.drilled, work))
        if end.walked.stuck or end.walked.asked:
            why = end.walked.stuck or f"{end.walked.asked[0]} failed, and a person was asked how to go on"
            raise AgentError(f"Undisturbed, the run {end.record.run} does not come to its end: {why}")
        return end.record, end.walked.turns

    def _killed(self, undisturbed: Undisturbed, target: DrillStep, moment: str, aim: Aim) -> Kill:
        key = f"drill-{secrets.token_hex(6)}"
        dying, recovering = (Witness(self.drilled, self.scratch / f"{key}-{number}") for number in (1, 2))

        def until_killed() -> Walked:
            run = self._begin(f"{target.step}, killed {moment}", key)
            return walk.walk(run, self.answers, aim=aim)

        def recovered() -> DrillEnding:
            run = walk.begun(key)
            return self._ending(run, walk.walk(run, self.answers, seen=dying.seen()))

        code, _ = run_in_child(self.drilled, until_killed, witness=dying)
        end = self._recorded(done_in_child(self.drilled, recovered, witness=recovering))
        if code != -signal.SIGKILL:
            missed = Difference(target.step, "took another way before the kill")
            return Kill(target, moment, end.record.run, MISSED, (missed,))
        plan = self.drilled.spec
        differences = compare.differences(undisturbed.record, end.record, plan, allowed=undisturbed.natural)
        if target.what == "effect" and moment == UNSAVED:
            differences += self._sent_again(target.step, dying.seen(), recovering.seen(), end.record)
        if end.walked.stuck:
            differences.insert(0, Difference(target.step, end.walked.stuck))
        word = DIFFERS if differences else ASKS if end.walked.asked else SAME
        return Kill(target, moment, end.record.run, word, tuple(differences))

    @staticmethod
    def _sent_again(step: str, before: Seen, after: Seen, run_record: DrillRecord) -> list[Difference]:
        again = any(row.step == step and row.attempts > 1 for row in run_record.effects)
        if not (again and before.get(step) and after.get(step)):
            return []
        return compare.other_answer(step, before[step][-1], after[step][0])

    def _begin(self, label: str, key: str) -> int:
        return walk.begin(self.drilled, self.input, team=self.team, label=label, key=key, config=self.config)

    def _ending(self, run: int, walked: Walked) -> DrillEnding:
        """Record how the run ended, and undo its effects."""
        found = record.read_run(run, self.drilled)
        fates, problem = tidy(run, self.answers)
        return DrillEnding(walked, found, fates, problem)

    def _recorded(self, end: DrillEnding) -> DrillEnding:
        self.fates += end.fates
        self.problems += [end.problem] if end.problem else []
        return end


def tidy(run_id: int, answers: Answers) -> tuple[Fates, str]:
    """Undo what can be undone: send the run back to its beginning and cancel it there.

    So are those of the runs that it started. Return the statuses of all these effects, and why the clean-up got stuck,
    or "". Nothing is done where none of the people may rewind runs of its team.
    """
    problem = ""
    run = Run.objects.get(pk=run_id)
    people = User.objects.filter(pk__in=answers.people).order_by("pk")
    by = next((person for person in people if may_in_team(person, run.team_id, REWIND_RUN)), None)
    family = [run.pk for run in child_runs.family(run_id)]
    effects = Effect.objects.filter(run__in=family, undoes=None)
    if by is not None:
        if effects.filter(status__in=(Effect.Status.DONE, Effect.Status.UNKNOWN)).exists():
            rewind.rewind(run, to=1, by=by, confirm=True)
        cancel.cancel(run, by=by, reason="The drill is over.")
        problem = walk.walk(run_id, answers).stuck
        for item in Run.objects.live().filter(pk__in=family).order_by("pk"):
            cancel.cancel(item, by=by, reason="The drill is over.")
    rows = effects.values_list("step", "status")
    return Counter(rows), f"Run {run_id}: {problem}" * bool(problem)
