"""One drill: the undisturbed runs, then a run for each kill, each held against the first."""

from __future__ import annotations

import secrets
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.errors import AgentError
from agents.registry import Registered

from . import aims, compare, record, walk
from .aims import MOMENTS, UNSAVED, Target
from .answers import Answers
from .children import Ended, done_in_child, run_in_child
from .compare import Difference
from .record import Record
from .walk import Aim, Walked
from .witness import Seen, Witness

SAME, ASKS, DIFFERS, MISSED = "same", "asks a person", "differs", "not reached"


@dataclass(frozen=True)
class Kill:
    """What came of one kill."""

    target: Target
    moment: str
    run: int
    word: str  # one of the four above
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True)
class Undisturbed:
    """How it ends by itself: whom to kill, at which places two such runs differ, and what should not differ there."""

    record: Record
    targets: list[Target]
    natural: list[str]
    unsteady: list[Difference]


@dataclass
class Exercise:
    """`scratch` is a folder for what witnesses write."""

    drilled: Registered
    input: dict[str, Any]
    team: int
    answers: Answers
    scratch: Path
    key: str = field(default_factory=lambda: f"drill-{secrets.token_hex(6)}")
    runs: list[int] = field(default_factory=list)

    def undisturbed(self) -> Undisturbed:
        """Run it twice to its end. Raises AgentError where it does not get there."""
        first, turns = self._undisturbed()
        second, _ = self._undisturbed()
        plan = self.drilled.spec
        return Undisturbed(
            first,
            aims.targets(plan, turns, first.executions),
            compare.natural(first, second),
            compare.unsteady(plan, first, second),
        )

    def kills(self, undisturbed: Undisturbed) -> Iterator[Kill]:
        """Kill and recover, one after the other."""
        for target in undisturbed.targets:
            for moment, aim in zip(MOMENTS, target.aims, strict=True):
                yield self._killed(undisturbed, target, moment, aim)

    def _undisturbed(self) -> tuple[Record, list[walk.Turn]]:
        run = self._begin("undisturbed")

        def work() -> tuple[Walked, Record]:
            return walk.walk(run, self.answers), record.of(run, self.drilled)

        walked, found = done_in_child(self.drilled, work)
        if walked.stuck or walked.asked:
            why = walked.stuck or f"{walked.asked[0]} failed, and a person was asked how to go on"
            raise AgentError(f"Undisturbed, the run {run} does not come to its end: {why}")
        return found, walked.turns

    def _killed(self, undisturbed: Undisturbed, target: Target, moment: str, aim: Aim) -> Kill:
        run = self._begin(f"{target.step}, killed {moment}")
        dying, recovering = (Witness(self.drilled, self.scratch / f"{run}-{number}") for number in (1, 2))
        ended: Ended[Walked] = run_in_child(self.drilled, lambda: walk.walk(run, self.answers, aim=aim), witness=dying)
        if ended.code != -signal.SIGKILL:
            return Kill(target, moment, run, MISSED, (Difference(target.step, "took another way before the kill"),))
        seen = dying.seen()

        def work() -> tuple[Walked, Record]:
            return walk.walk(run, self.answers, seen=seen), record.of(run, self.drilled)

        walked, found = done_in_child(self.drilled, work, witness=recovering)
        differences = compare.differences(undisturbed.record, found, self.drilled.spec, allowed=undisturbed.natural)
        if target.what == "effect" and moment == UNSAVED:
            differences += self._sent_again(target.step, seen, recovering.seen(), found)
        if walked.stuck:
            differences.insert(0, Difference(target.step, walked.stuck))
        word = DIFFERS if differences else ASKS if walked.asked else SAME
        return Kill(target, moment, run, word, tuple(differences))

    @staticmethod
    def _sent_again(step: str, before: Seen, after: Seen, found: Record) -> list[Difference]:
        again = any(row.step == step and row.attempts > 1 for row in found.effects)
        if not (again and before.get(step) and after.get(step)):
            return []
        return compare.other_answer(step, before[step][-1], after[step][0])

    def _begin(self, label: str) -> int:
        key = f"{self.key}-{len(self.runs)}"
        run = done_in_child(
            self.drilled, lambda: walk.begin(self.drilled, self.input, team=self.team, label=label, key=key)
        )
        self.runs.append(run)
        return run
