"""Random lives that lose their past: nothing is done twice or forgotten, and every chain verifies over its gaps.

The lives of tests/agents/moves, pruned down to the last checkpoint or two at any moment, while workers stand in the
middle of a step or die, and people rewind, edit and fork. `RANDOM_SEEDS=100:200` tries other seeds than those of every
day.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from agents.moves import rewind
from checkpoints import crash_points
from checkpoints.models import Checkpoint, Gap, Run
from tests.agents.moves.test_at_random import KINDS, Crowd, Rough, complaints
from tests.approvals.impact.property.living import born
from tests.approvals.impact.property.moves import People
from tests.factories import ann, bob, make_team, random_agents
from tests.harness.examples import trying_all

from .pruned_runs import keep, pruned

FIRST, _, LAST = os.environ.get("RANDOM_SEEDS", "0:24" if trying_all() else "0:0").partition(":")
FOUND_WRONG = (320,)  # seeds that failed once
MOST = 200  # acts of a life in which nothing is pruned


class Forgetful(Crowd):
    """A crowd whose runs are pruned at any moment."""

    def act(self, run: Run) -> None:
        super().act(run)
        if self.rng.random() < 0.4:
            keep(run, keep_last=self.rng.randint(1, 2))
            removed = pruned().removed
            self.told.append(f"{run} and its kin lost {removed}")

    def move(self, run: Run) -> None:
        """Move the run as others do, where a checkpoint is left to move it to."""
        if Checkpoint.objects.filter(run=run).exclude(next_step="").exists():
            super().move(run)


@pytest.mark.long
@pytest.mark.parametrize("seed", [*range(int(FIRST), int(LAST)), *FOUND_WRONG])
def test_the_ledger_and_the_world_agree_though_the_past_is_gone(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = make_team()
    people = People(mover=ann(team), reviewer=bob(team))
    rng = random.Random(f"forgetful {seed}")
    world = Rough(dice=rng, cut=rng.choice([0.0, 0.15, 0.4]))
    monkeypatch.setattr(random_agents, "WORLD", world)
    monkeypatch.setattr(rewind, "HALT_SECONDS", 0.0)
    with born(tmp_path, seed, people, KINDS[seed % len(KINDS)]) as life:
        crowd = Forgetful(life, world, rng)
        crash_points.listen(crowd.stand_still)
        least = rng.randint(15, 40)
        for done in range(MOST):
            if done >= least and gaps(crowd):
                break
            crowd.act(rng.choice(crowd.runs))
        crowd.come_to_rest()
        found = [each for run in crowd.runs for each in complaints(run, world)]
        assert gaps(crowd), "nothing was pruned, so nothing was tried"
    assert found == [], "\n".join(crowd.told)


def gaps(crowd: Forgetful) -> int:
    return Gap.objects.filter(run__in=[run.pk for run in crowd.runs]).count()
