"""Random lives, held to the world's own ledger: an effect stands if and only if one line of it was never taken back.

Runs of random agents are edited, rewound, forked, settled and cancelled. Calls are refused, or their answers lost;
workers die, or stand still after an effect while others go on. People say what is true of the world, else anything.
`RANDOM_SEEDS=100:400 pytest -n2 tests/agents/moves/test_at_random.py` tries other seeds than those of every day.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from unittest import mock

import pytest

from agents.errors import EffectFailed, EffectUnknown, RewindRefused
from agents.models import Effect
from agents.moves import cancel, rewind
from agents.runner import engine
from agents.session import run_path
from agents.session.run_path import RunPath as Trail
from agents.steps import recovery_gate
from approvals.cards.answer import RecoveryAnswer
from approvals.engine_rules import effects
from approvals.errors import DecisionRefused
from approvals.models import Gate
from checkpoints import crash_points
from checkpoints.audit import verify_runs
from checkpoints.models import Run
from tests.agents.moves.moved_runs import lease_over
from tests.approvals.impact.property.living import Life, born
from tests.approvals.impact.property.moves import Answer, Move, People, open_gates, questions
from tests.factories import ann, bob, make_policy, make_team, random_agents
from tests.factories.driven_runs import state
from tests.factories.random_agents import Knobs, World
from tests.harness.examples import first_alone, trying_all

FIRST, _, LAST = os.environ.get("RANDOM_SEEDS", "0:64" if trying_all() else "0:1").partition(":")
FOUND_WRONG = (1038,)  # seeds that complained once
KINDS = (
    Knobs(steps=(3, 8), effects=0.4, gates=0.2, keyed=0.8),
    Knobs(steps=(4, 9), effects=0.5, loops=0.25, guarded=0.3, irreversible=0.1, range=(2, 3)),
    Knobs(steps=(3, 6), effects=0.6, loops=0.3, guarded=0.5, gates=0.3, irreversible=0.2, keyed=0.6, range=(2,)),
    Knobs(
        steps=(4, 9), effects=0.4, loops=0.2, guarded=0.8, gates=0.4, beside=0.8, several=0.5, keyed=0.7, range=(2, 3)
    ),
)
POINTS = [
    point for point in crash_points.POINTS if not point.endswith(("_repair", "_rewind"))
]  # that a worker passes here
PATIENCE = 160  # turns in which a run comes to its end once nothing fails any more


class Rough(World):
    """A world in which calls are refused, and lines are cut before or after it did what was asked: `cut` of them."""

    def do(self, step: str, key: str) -> None:
        self._call(self.done, step, key)

    def undo(self, step: str, key: str) -> None:
        self._call(self.undone, step, key)

    def _call(self, lines: list[tuple[str, str]], step: str, key: str) -> None:
        roll = self.dice.random() / self.cut if self.cut else 1.0
        if roll < 0.3:
            raise EffectFailed("refused: 422")
        if roll < 0.6:
            raise EffectUnknown("cut before it arrived")
        lines.append((step, key))
        if roll < 1.0:
            raise EffectUnknown("cut before the answer")


class Crowd:
    """The people and workers around one run and its forks."""

    def __init__(self, life: Life, world: Rough, rng: random.Random) -> None:
        self.life, self.world, self.rng, self.runs = life, world, rng, [life.run]
        self.crashing, self.pausing = 0.25, rng.choice([0.0, 0.2, 0.5])
        self.still = False  # whether a worker stands still
        self.told: list[str] = []

    def act(self, run: Run) -> None:
        """Somebody does something with the run."""
        run.refresh_from_db()
        by, roll = self.life.people.mover, self.rng.random()
        if roll < 0.06:
            self.order("settle", lambda: rewind.settle_now(run, by=by))
        elif roll < 0.1:
            self.order("cancel", lambda: cancel.cancel(run, by=by, reason="no need"))
        elif roll < 0.35 or run.status not in Run.LIVE:
            self.move(run)
        elif run.status == Run.Status.WAITING:
            self.answer(run, self.rng.choice([self.rng.random(), 1.0]))
        else:
            self.work(run)

    def order(self, what: str, do: Callable[[], object]) -> object:
        """What was done by a person's order; None where it was refused."""
        try:
            done = do()
        except (RewindRefused, DecisionRefused):
            return None
        self.told.append(what)
        return done

    def move(self, run: Run) -> None:
        """A rewind, an edit, a fork or a reviewer's word."""
        self.life.run = run
        moves = iter(self.life.random_move, None)
        move = next(each for each in moves if not isinstance(each, Answer))  # which would be any, true or not
        made = self.order(f"{run} {move}", lambda: move.make(run, self.life.people, ""))
        if isinstance(made, Run) and made.pk != run.pk:
            self.runs.append(made)

    def answer(self, run: Run, roll: float = 1.0) -> None:
        """What the run asks is answered; a low `roll` is no plain yes to a review."""
        self.life.run = run
        gate = self.life.one_of(open_gates(run))
        said: Move = (
            self.life.random_word(gate, roll) if gate.kind == Gate.Kind.REVIEW else Answer(gate.pk, self.truth(gate))
        )
        self.order(f"{run} {gate.step} {said}", lambda: said.make(run, self.life.people, ""))

    def truth(self, gate: Gate) -> str:
        """What is true of the effect that a question is about; one of the answers where all may be given."""
        ids = [each["id"] for each in questions(gate)]
        key = recovery_gate.about(gate)
        if RecoveryAnswer.UNDONE in ids:
            taken_back = lines_of(Effect.objects.get(key=key), self.world)[1]
            return (
                RecoveryAnswer.UNDONE
                if taken_back
                else self.rng.choice([RecoveryAnswer.UNDO_AGAIN, RecoveryAnswer.KEEP])
            )
        happened = key in [each for _, each in self.world.done]
        if RecoveryAnswer.HAPPENED in ids:
            return RecoveryAnswer.HAPPENED if happened else RecoveryAnswer.NOT_HAPPENED
        if RecoveryAnswer.WAS_DONE in ids:
            known = RecoveryAnswer.WAS_DONE if happened else RecoveryAnswer.WAS_NOT_DONE
            return self.rng.choice([known, known, RecoveryAnswer.LEFT_OPEN])
        return self.rng.choice([each for each in ids if each != RecoveryAnswer.STOP])

    def work(self, run: Run) -> None:
        """A worker takes the run on, and may die of it."""
        Run.objects.filter(pk=run.pk, status=Run.Status.QUEUED).update(wake_at=None)
        crash_points._hits.clear()
        dies = not self.still and self.rng.random() < self.crashing
        wish = f"{self.rng.choice(POINTS)}:{self.rng.choice(['raise', 'fail'])}:{self.rng.randint(1, 2)}" * dies
        self.life.run = run
        with mock.patch.dict(os.environ, {"HOLDPOINT_CRASH": wish}), suppress(crash_points.Crashed):
            engine.advance(run.pk)
        self.told.append(f"{run} worked {wish}")
        if not self.still:
            lease_over(run)

    def stand_still(self, name: str, step: str, value: object) -> None:
        """A worker that has done something, and not said so, stands still while others go on with its run."""
        if name in ("after_effect", "after_undo") and not self.still and self.rng.random() < self.pausing:
            run, self.still = self.life.run, True
            self.told.append(f"{run} stands still {name} {step}")
            for _ in range(self.rng.randint(1, 5)):
                lease_over(run)
                self.act(run)
            self.told.append(f"{run} goes on")
            self.still = False

    def come_to_rest(self) -> None:
        """Nothing fails any more, and everybody agrees: every run ends."""
        self.world.cut, self.crashing, self.pausing = 0.0, 0.0, 0.0
        for run in self.runs:
            for _ in range(PATIENCE):
                run.refresh_from_db()
                if run.status not in Run.LIVE:
                    break
                (self.answer if run.status == Run.Status.WAITING else self.work)(run)


def lines_of(row: Effect, world: World) -> tuple[int, int]:
    """How many lines of an effect there are, and how many that take it back."""
    undos = {undo.key for undo in row.undos.all()}
    return sum(key == row.key for _, key in world.done), sum(key in undos for _, key in world.undone)


def complaints(run: Run, world: World) -> list[str]:
    """What the ledger of effects says of a run that is to have ended, and the world does not."""
    assert run.head is not None
    path, found = Trail.to(run.head), [str(each) for each in verify_runs.verify_run(run)]
    for row in Effect.objects.filter(run=run, undoes=None).order_by("pk"):
        stands = row.status in effects.LANDED
        done, taken_back = lines_of(row.taken_from or row, world)
        # Of a question about an undo that was cancelled with its run, nobody said how the undo had ended.
        unsaid = row.status == Effect.Status.KEPT and row.going
        wrong = not (row.left_open or unsaid) and (done > 1 or done - taken_back != stands)
        if row.status in effects.IN_DOUBT:  # which a run that was stopped may leave so
            wrong = run.status == Run.Status.COMPLETED
        left = row.status == Effect.Status.DONE and run_path.abandoned(row, path)
        if wrong or left or (not stands and path.holds(row.landings)):
            found.append(f"{row.pk} {row.step} {row.status}, done {done}, taken back {taken_back}, left {left}")
    receipts = [value for value in state(run).values() if isinstance(value, str)]
    for row in Effect.objects.filter(key__in=receipts):
        if lines_of(row, world) != (1, 0):
            found.append(f"the state has the receipt of {row.pk} {row.step}, which was taken back")
    if run.status in Run.LIVE or "runner failed" in run.reason:
        found.append(run.reason)
    return [f"{run} {run.status}: {each}" for each in found]


@pytest.mark.examples
@pytest.mark.parametrize("seed", [*range(int(FIRST), int(LAST)), *first_alone(FOUND_WRONG, 0)])
def test_the_ledger_and_the_world_agree(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    team = make_team()
    make_policy(team, name="default", separation=False)  # the one reviewer edits and answers, and decides what follows
    people = People(mover=ann(team), reviewer=bob(team))
    rng = random.Random(f"crowd {seed}")
    world = Rough(dice=rng, cut=rng.choice([0.0, 0.15, 0.4]))
    monkeypatch.setattr(random_agents, "WORLD", world)
    monkeypatch.setattr(rewind, "HALT_SECONDS", 0.0)
    with born(tmp_path, seed, people, KINDS[seed % len(KINDS)]) as life:
        crowd = Crowd(life, world, rng)
        crash_points.listen(crowd.stand_still)
        for _ in range(rng.randint(8, 40)):
            crowd.act(rng.choice(crowd.runs))
        crowd.come_to_rest()
        found = [each for run in crowd.runs for each in complaints(run, world)]
    assert found == [], "\n".join(crowd.told)
