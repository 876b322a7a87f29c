"""One drill: the undisturbed runs, then a run for each kill, each compared with the first."""

from __future__ import annotations

import secrets
import signal
from collections import Counter
from collections.abc import Iterator
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

from . import compare, kill_moments, record, walk
from .children import Seen, Witness, done_in_child, run_in_child
from .compare import Difference
from .kill_moments import MOMENTS, UNSAVED, DrillStep
from .record import Answers, DrillRecord
from .walk import Aim, Walked

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
        targets = kill_moments.targets(plan, turns, first.executions)
        return Undisturbed(first, targets, compare.natural(first, second), compare.unsteady(plan, first, second))

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
