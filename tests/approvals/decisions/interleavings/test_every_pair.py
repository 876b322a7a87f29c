"""Whatever a move meets between two of its statements, the gate ends as if one move had followed the other."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Any

import pytest

from approvals.errors import Refused
from tests.harness.examples import first_alone, trying_all

from .schedules import attempt, open_pair
from .worlds import HELD, TWO, Cast, World, faults_of, observed

# Those that meet the most guards.
TELLING = [(TWO, "approve", other) for other in ("edit", "claim")]
TELLING += [(TWO, "leave", "withdraw"), (HELD, "undo", "settle")]
EVERY = [(world, first, second) for world in (TWO, HELD) for first in world.moves for second in world.moves]
CASES = [*TELLING, *(case for case in EVERY if case not in TELLING)]


@pytest.fixture(scope="module")
def counts(request: pytest.FixtureRequest) -> Iterator[Counter[str]]:
    """Count over all pairs, and say so at the end of `make test-long`: a line for each worker."""
    yield (counted := Counter(schedules=0, blocked=0, broken=0))
    if trying_all():
        with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            sys.stderr.write(f"\ninterleavings: {dict(counted)}\n")


def result_of(value: Any) -> str:
    """Name what a move gave: a refusal by its class, "not due" for what the sweeper found done."""
    if isinstance(value, Exception):
        return type(value).__name__ if isinstance(value, Refused) else f"unexpected {value!r}"
    return "not due" if value is False else "made"


@pytest.mark.examples
@pytest.mark.parametrize(
    ("world", "first", "second"), first_alone(CASES, len(TELLING)), ids=lambda case: getattr(case, "name", case)
)
def test_two_moves_however_they_meet_end_as_one_after_the_other(
    world: World, first: str, second: str, counts: Counter[str]
) -> None:
    cast, faults, ends = Cast(), list[str](), list[tuple[str, Any]]()
    with open_pair() as pair:
        for stop in count(1):
            gate = cast.open_gate(world, first, second)
            moves = [cast.move(name, gate, by=by) for name, by in zip((first, second), cast.people, strict=True)]
            values, before, blocked = pair.run(*moves, stop=stop)
            results = [result_of(value) for value in values]
            where = f"{first} before statement {stop} ({before or 'after the last'}), {second}: {results}"
            ends.append((where, [results, observed(gate)]))
            faults += [f"{where}: {fault}" for fault in faults_of(gate, world, cast)]
            if world.excludes(first, second) and results.count("made") != 1:
                faults.append(f"{where}: not one of both is made")
            counts.update(schedules=1, blocked=blocked)
            if not before:
                break
    # In the first schedule the second move is made before the first, in the last one after it.
    orders = [ends[0][1], ends[-1][1]]
    if (first == "leave") != (second == "leave"):  # that takes two transactions
        gate, other = cast.open_gate(world, first, second), int(first == "leave")
        move = cast.move((first, second)[other], gate, by=cast.people[other])
        results = [result_of(cast.leave(gate, between=partial(attempt, move))), "made"]
        orders.append([results[:: -1 if other else 1], observed(gate)])
    faults += [f"{where}: {end} is as after no order: {orders}" for where, end in ends if end not in orders]
    counts.update(broken=len(faults))
    assert faults == [], "\n".join(faults)
