"""Every will, stands, undone and cannot comes true, every may goes one way or the other, nothing else happens.

One life of each of the richest kinds is tried each time, a hundred and twenty of each in `make test-long`.
`IMPACT_SEEDS=5000:9000 pytest -n2 tests/approvals/impact/property` tries other seeds than those of every day.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from agents.errors import RewindRefused
from approvals.decisions.decision_impact import DecisionImpact, most_of
from approvals.gates.reading import read
from approvals.impact import Impact
from approvals.policy import pacing
from checkpoints.audit import verify_runs
from checkpoints.runs.plans import spec_of
from tests.approvals.impact.property.holding import Before, Horizon, complaints
from tests.approvals.impact.property.living import MOST_TRIES, Life, born
from tests.approvals.impact.property.moves import Answer, Move, People, Word, open_gate, refused
from tests.factories import ann, bob, make_policy, make_team
from tests.factories.random_agents import Knobs
from tests.harness.examples import trying_all

FIRST, _, LAST = os.environ.get("IMPACT_SEEDS", "0:1320" if trying_all() else "7:11").partition(":")
AT_ONCE = 6
FOUND_WRONG = (126,)  # seeds that complained once
KINDS = (
    Knobs(),
    Knobs(steps=(3, 8), effects=0.35, gates=0.2),
    Knobs(steps=(10, 20), jumps=0.0, loops=0.0, ends=0.0, gates=0.05, range=(2, 1000)),
    Knobs(steps=(5, 12), effects=0.5, loops=0.25, guarded=0.3, irreversible=0.1, expiring=0.5, range=(2, 3)),
    Knobs(steps=(4, 10), effects=0.4, gates=0.15, judged=0.4, range=(2, 3)),
    Knobs(steps=(3, 9), effects=0.5, gates=0.15, guarded=0.4, range=(2, 3)),
    Knobs(steps=(4, 9), effects=0.45, gates=0.25, guarded=0.9, observing=0.8, range=(2, 3)),
    Knobs(steps=(4, 10), effects=0.5, gates=0.25, guarded=0.9, several=0.8, range=(2, 3)),
    Knobs(steps=(4, 12), effects=0.3, gates=0.35, guarded=0.9, beside=0.7, loops=0.15, range=(2, 3)),
    Knobs(steps=(3, 9), effects=0.35, gates=0.3, guarded=0.6, beside=0.8, several=0.6, judged=0.3, range=(2, 3)),
    Knobs(steps=(4, 10), effects=0.45, gates=0.3, guarded=0.8, beside=0.7, observing=0.4, expiring=0.2, range=(2, 3)),
)
STRICT = (0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.3, 0.0)  # of these kinds, how often an output is refused,
CUT = (0.0, 0.0, 0.0, 0.0, 0.0, 0.3, 0.0, 0.0, 0.0, 0.0, 0.2)  # an answer does not arrive,
DRIFT = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.3, 0.0, 0.0, 0.0, 0.2)  # and the world is not what it was


@pytest.fixture(scope="module")
def people() -> People:
    team = make_team()
    make_policy(team, name="default", separation=False)  # one person decides the whole run
    return People(mover=ann(team), reviewer=bob(team))


@pytest.mark.examples
@pytest.mark.parametrize("first", range(int(FIRST), int(LAST), AT_ONCE))
def test_what_the_impact_says_comes_true(first: int, people: People, tmp_path: Path) -> None:
    assert complained(range(first, min(first + AT_ONCE, int(LAST))), people, tmp_path) == []


@pytest.mark.long
def test_what_the_impact_once_said_wrongly_comes_true(people: People, tmp_path: Path) -> None:
    assert complained(FOUND_WRONG, people, tmp_path) == []


def complained(seeds: Iterable[int], people: People, tmp_path: Path) -> list[str]:
    with pacing.unpaced():
        return [f"seed {seed}: {complaint}" for seed in seeds for complaint in tried(tmp_path, seed, people)]


def tried(folder: Path, seed: int, people: People) -> list[str]:
    """One life, one move, and what was said of it that did not come true."""
    kind = seed % len(KINDS)
    with born(folder, seed, people, KINDS[kind]) as life:
        life.calm(strict=STRICT[kind], cut=CUT[kind], drift=DRIFT[kind])
        life.live()
        for _ in range(life.rng.choice([0, 0, 1, 2])):
            life.move()
            life.live()
        if life.rng.random() < 0.5:
            life.come_to_a_gate()
        life.calm(strict=STRICT[kind])  # what is foretold is foretold of a world that answers
        return moved(life)


def moved(life: Life) -> list[str]:
    """Foretell a move, make it, let the run go on."""
    origin = life.run
    before, said = Before.of(origin), ""
    for _ in range(MOST_TRIES):
        move = life.random_move()
        impact = foretold(move, life)
        said = open_gate(origin, move.gate).step if isinstance(move, Answer) else ""
        if isinstance(move, Word | Answer) and not read(move.gate).acted:
            most = most_of(spec_of(origin.plan)).mark
            if beyond := DecisionImpact(impact=impact).beyond(most):
                return [f"{move}: {beyond}, where nothing was done before"]
        made = life.made(move, seen=impact.digest() if impact else "")
        if made != (impact is not None):
            return [f"{move}: {'made, though its impact was refused' if made else 'refused'}"]
        if impact is not None:
            break
    else:
        return ["could not be moved"]
    if life.run != origin:
        before = Before(0, {})
    gate = life.go_to_a_gate()
    horizon = Horizon.of(life.run, before, gate)
    life.go_to_the_end()
    found = list(complaints(impact, before, horizon, life.run, said=said))
    found += [str(problem) for problem in verify_runs.verify_run(life.run)]
    return [f"{life.run}, {move}: {complaint}" for complaint in found]


def foretold(move: Move, life: Life) -> Impact | None:
    """What the move would do; None where it is refused, as making it has to be."""
    try:
        return move.foretell(life.run)
    except RewindRefused as error:
        refused(error)
        return None
