"""The life of one run of a random agent: it goes on, people answer, and now and then somebody moves it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User

from agents import Agent, impacts, registry, rewinds
from agents.errors import RewindRefused
from agents.start import start_run
from approvals.impact import Impact
from approvals.models import Gate
from checkpoints import actors, store
from checkpoints.models import Checkpoint, Run
from checkpoints.patch import Op
from tests.agents.driving import advance, advance_to_rest, decide, open_gate
from tests.factories.random_agents import WORLD, Knobs, forget, load, random_input, random_value

MOST_ANSWERS = 80
MOST_TRIES = 20


@dataclass(frozen=True)
class Move:
    """What somebody does to the run: a rewind to `seq`, or an edit there."""

    kind: str
    seq: int
    patch: list[Op] = field(default_factory=list)
    feedback: str = ""

    def foretold(self, run: Run) -> Impact | None:
        """What it would do; None where it is refused, which making it has to be as well."""
        try:
            return self._foretell(run)
        except RewindRefused as refused:
            if "was undone since" not in str(refused):
                raise
            return None

    def _foretell(self, run: Run) -> Impact:
        if self.kind == "rewind":
            return impacts.of_rewind(run, self.seq, self.feedback)
        return impacts.of_edit(run, self.seq, self.patch, self.feedback)

    def may_be_made(self, run: Run, by: User, seen: str = "") -> bool:
        """Do it; False where it is refused because of an effect on the way that is not done any more."""
        try:
            self._make(run, by, seen)
        except RewindRefused as refused:
            if "was undone since" not in str(refused):
                raise
            return False
        run.refresh_from_db()
        return True

    def _make(self, run: Run, by: User, seen: str) -> None:
        if self.kind == "rewind":
            rewinds.rewind(run, to=self.seq, by=by, feedback=self.feedback, confirm=True, seen=seen)
        else:
            rewinds.edit(run, at=self.seq, patch=self.patch, by=by, feedback=self.feedback, seen=seen)


class Life:
    """One run, its people and its dice."""

    def __init__(self, agent: type[Agent], rng: random.Random, user: User) -> None:
        self.rng, self.user = rng, user
        WORLD.weather = rng.randrange(3)
        team = user.groups.get()
        self.run = start_run(agent.name, random_input(rng), by=actors.SYSTEM, team=team)

    def live(self) -> None:
        """Go on to the end with all sorts of answers; now and then only to some gate, or to the middle of a slice."""
        patience = self.rng.choice([1, 3, MOST_ANSWERS, MOST_ANSWERS])
        if self.rng.random() < 0.15:
            self._some_turns()
            return
        advance_to_rest(self.run)
        for _ in range(patience):
            if self.run.status != Run.Status.WAITING:
                return
            self._answer()
            advance_to_rest(self.run)

    def go_to_a_gate(self) -> Gate | None:
        """Go on as far as the run goes by itself; the gate at which it then stands."""
        advance_to_rest(self.run)
        return open_gate(self.run) if self.run.status == Run.Status.WAITING else None

    def go_to_the_end(self) -> None:
        """Approve whatever asks, until the run has ended."""
        advance_to_rest(self.run)
        for _ in range(MOST_ANSWERS):
            if self.run.status != Run.Status.WAITING:
                return
            decide(self.run, by=self.user)
            advance_to_rest(self.run)
        raise AssertionError(f"{self.run} still asks after {MOST_ANSWERS} answers")

    def move(self) -> None:
        """Somebody moves the run, in a way that is not refused."""
        for _ in range(MOST_TRIES):
            if self.random_move().may_be_made(self.run, self.user):
                return
        raise AssertionError(f"{self.run} could not be moved in {MOST_TRIES} ways")

    def random_move(self) -> Move:
        """A rewind to any of the run's checkpoints, or an edit of one, on whatever branch."""
        places = list(Checkpoint.objects.filter(run=self.run).exclude(next_step="").values_list("seq", "id"))
        seq, id = self.rng.choice(places)
        feedback = self.rng.choice(["", "", "Look again"])
        if self.rng.random() < 0.5:
            return Move("rewind", seq, feedback=feedback)
        state = store.load_checkpoint(id).state
        names = self.rng.sample(sorted(name for name in state if name != "feedback"), self.rng.randint(1, 2))
        patch: list[Op] = [
            {"op": "replace", "path": f"/{name}", "value": random_value(self.rng, state[name])} for name in names
        ]
        return Move("edit", seq, patch, feedback)

    def _some_turns(self) -> None:
        """A few steps, a turn each: the run stands queued in the middle."""
        before, settings.HOLDPOINT_TIME_SLICE = settings.HOLDPOINT_TIME_SLICE, 0.0
        try:
            for _ in range(self.rng.randint(1, 8)):
                advance(self.run)
        finally:
            settings.HOLDPOINT_TIME_SLICE = before

    def _answer(self) -> None:
        gate = open_gate(self.run)
        roll = self.rng.random()
        card = gate.asked
        if roll < 0.15 and card.back_to:
            back_to = card.on_reject or self.rng.choice(card.back_to)
            decide(self.run, "reject", by=self.user, then="back", back_to=back_to, comment="no")
        elif roll < 0.4 and any(action.edits for action in card.actions):
            arguments: dict[str, Any] = {"a": {"n": self.rng.randrange(5)}}
            if arguments["a"] == card.actions[0].arguments:
                arguments["a"]["n"] += 1
            decide(self.run, "edit", by=self.user, arguments=arguments)
        else:
            decide(self.run, by=self.user)


@contextmanager
def born(folder: Path, seed: int, user: User, knobs: Knobs) -> Iterator[Life]:
    """A run of the seed's agent, which alone is registered meanwhile."""
    agent = load(folder, seed, knobs)
    before = settings.HOLDPOINT_AGENTS
    settings.HOLDPOINT_AGENTS = [agent.__module__]
    registry.forget()
    try:
        yield Life(agent, random.Random(f"life {seed}"), user)
    finally:
        settings.HOLDPOINT_AGENTS = before
        registry.forget()
        forget(agent)
