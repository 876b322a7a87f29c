"""The life of one run of a random agent: it goes on, people answer, and now and then somebody moves or forks it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from django.conf import settings

from agents import Agent
from agents.definition import registry
from agents.errors import RewindRefused
from agents.runs.start import start_run
from approvals.cards.answer import RecoveryAnswer
from approvals.cards.card import Card
from approvals.models import Gate
from approvals.policy import pacing
from checkpoints import actors, store
from checkpoints.models import Checkpoint, Run
from checkpoints.values.patch import Op
from tests.approvals.impact.property.moves import (
    Answer,
    Edit,
    Fork,
    Move,
    People,
    Rewind,
    Silence,
    Word,
    open_gates,
    questions,
    refused,
)
from tests.factories.driven_runs import advance, advance_to_rest
from tests.factories.random_agents import WORLD, Knobs, forget, load, random_input, random_value

MOST_ANSWERS = 80
MOST_TRIES = 20
_BORN = count()


class Life:
    """One run, its people and its dice."""

    def __init__(self, agent: type[Agent], rng: random.Random, people: People) -> None:
        self.rng, self.people = rng, people
        WORLD.weather = rng.randrange(3)
        WORLD.dice, WORLD.refused = random.Random(rng.random()), Counter()
        self.calm()
        team = people.mover.groups.get()
        self.run = start_run(agent.name, random_input(rng), by=actors.SYSTEM, team=team)

    def calm(self, *, strict: float = 0.0, cut: float = 0.0, drift: float = 0.0) -> None:
        """How often an output is refused from now on, an effect's answer does not arrive, and the world is another."""
        WORLD.strict, WORLD.cut, WORLD.drift = strict, cut, drift

    def live(self) -> None:
        """Go on to the end with all sorts of answers; now and then only to some gate, or to the middle of a slice."""
        if self.rng.random() < 0.15:
            self._some_turns()
            return
        self._go_on(self.rng.choice([1, 3, MOST_ANSWERS, MOST_ANSWERS]), self._say_something)

    def go_to_a_gate(self) -> list[Gate]:
        """Go on as far as the run goes by itself; the gates that are open then."""
        advance_to_rest(self.run)
        return open_gates(self.run)

    def go_to_the_end(self) -> None:
        """Approve whatever asks, until the run has ended."""
        self.calm()
        self._go_on(MOST_ANSWERS, lambda gate: self._make(Word(gate.pk, "approve")))
        if self.run.status == Run.Status.WAITING:
            raise AssertionError(f"{self.run} still asks after {MOST_ANSWERS} answers")

    def come_to_a_gate(self) -> None:
        """Move the run until it waits for people, as it often does after a move; not for ever."""
        for _ in range(4):
            self.move()
            if self.go_to_a_gate():
                return

    def move(self) -> None:
        """Somebody moves or forks the run, in a way that is not refused; a fork is what is looked at from then on."""
        for _ in range(MOST_TRIES):
            if self.made(self.random_move()):
                return
        raise AssertionError(f"{self.run} could not be moved in {MOST_TRIES} ways")

    def made(self, move: Move, seen: str = "") -> bool:
        """Make the move; False where it is refused because of an effect on the way that is not done any more."""
        try:
            self._make(move, seen)
        except RewindRefused as error:
            return not refused(error)
        return True

    def random_move(self) -> Move:
        """A word where the run waits for one, or a move to any of its checkpoints, on whatever branch."""
        asked = open_gates(self.run)
        if asked and self.rng.random() < 0.75:
            gate = self.one_of(asked)
            if gate.kind != "review":
                return self.random_answer(gate)
            return Silence(gate.pk) if self.rng.random() < 0.1 else self.random_word(gate, self.rng.random())
        places = list(Checkpoint.objects.filter(run=self.run).exclude(next_step="").values_list("seq", "id"))
        seq, id = self.rng.choice(places)
        feedback = self.rng.choice(["", "", "Look again"])
        roll = self.rng.random()
        if roll < 0.4:
            return Rewind(seq, feedback)
        state = store.load_checkpoint(id).state
        names = self.rng.sample(sorted(name for name in state if name != "feedback"), self.rng.randint(1, 2))
        patch: list[Op] = [
            {"op": "replace", "path": f"/{name}", "value": random_value(self.rng, state[name])} for name in names
        ]
        if roll < 0.8:
            return Edit(seq, patch, feedback)
        return Fork(seq, self.rng.choice([patch, []]))

    def random_word(self, gate: Gate, roll: float) -> Word:
        """What a reviewer may say; a `roll` below 0.4 is no plain yes."""
        card = gate.standing().card
        if roll < 0.05:
            return Word(gate.pk, "reject")
        if roll < 0.2 and card.back_to:
            return Word(gate.pk, "reject", back_to=card.on_reject or self.rng.choice(card.back_to))
        if roll < 0.4 and any(action.edits for action in card.actions):
            value = self.rng.randrange(5)
            return Word(gate.pk, "edit", arguments={"a": {"n": value + (card.actions[0].arguments == {"n": value})}})
        if any(action.takes("respond") for action in card.actions) and self.rng.random() < 0.5:
            return self._on_each(gate.pk, card)
        return Word(gate.pk, "approve")

    def _on_each(self, gate: int, card: Card) -> Word:
        """A word on each action, by which not all of them are rejected."""
        each: dict[str, dict[str, Any]] = {}
        for action in card.actions:
            verdict = self.rng.choice([name for name in action.verdicts if name != "edit"])
            more = {"reject": {"reason": "no"}, "respond": {"response": "by hand"}}.get(verdict, {})
            each[action.id] = {"verdict": verdict, **more}
        if all(said["verdict"] == "reject" for said in each.values()):
            return Word(gate, "approve")
        return Word(gate, "mixed", each=each)

    def random_answer(self, gate: Gate, *, stops: bool = True) -> Answer:
        """What may be answered to a question; without `stops`, so that the run goes on."""
        choices = [each["id"] for each in questions(gate)]
        return Answer(gate.pk, self.rng.choice([each for each in choices if stops or each != RecoveryAnswer.STOP]))

    def _make(self, move: Move, seen: str = "") -> None:
        self.run = move.make(self.run, self.people, seen)
        self.run.refresh_from_db()

    def one_of(self, gates: list[Gate]) -> Gate:
        """Return the gate that somebody looks at."""
        return gates[0] if len(gates) == 1 else self.rng.choice(gates)

    def _go_on(self, patience: int, review: Callable[[Gate], None]) -> None:
        advance_to_rest(self.run)
        for _ in range(patience):
            if self.run.status != Run.Status.WAITING:
                return
            gate = self.one_of(open_gates(self.run))
            if gate.kind == "recovery":
                self._make(self.random_answer(gate, stops=False))
            else:
                review(gate)
            advance_to_rest(self.run)

    def _say_something(self, gate: Gate) -> None:
        self._make(self.random_word(gate, max(0.05, self.rng.random())))

    def _some_turns(self) -> None:
        """A few steps, a turn each: the run stands queued in the middle."""
        before, settings.HOLDPOINT_TIME_SLICE = settings.HOLDPOINT_TIME_SLICE, 0.0
        try:
            for _ in range(self.rng.randint(1, 8)):
                advance(self.run)
        finally:
            settings.HOLDPOINT_TIME_SLICE = before


@contextmanager
def born(folder: Path, seed: int, people: People, knobs: Knobs) -> Iterator[Life]:
    """A run of the seed's agent, which alone is registered meanwhile, and asks the same as often as it likes."""
    agent = load(folder, seed, knobs, name=f"made-{seed}-{next(_BORN)}")  # others' runs of the seed may be under way
    before = settings.HOLDPOINT_AGENTS
    settings.HOLDPOINT_AGENTS = [agent.__module__]
    registry.forget()
    try:
        with pacing.unpaced():
            yield Life(agent, random.Random(f"life {seed}"), people)
    finally:
        settings.HOLDPOINT_AGENTS = before
        registry.forget()
        forget(agent)
