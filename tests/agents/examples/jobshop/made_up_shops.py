"""Shops and breakdowns for the tests: small ones by hand, any others by hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from agents.examples.jobshop import planning
from agents.examples.jobshop.breakdown import Down, Situation
from agents.examples.jobshop.reading import Job
from agents.examples.jobshop.shop import Plant
from agents.examples.jobshop.state import Instance

THREE = "3 3\n0 3 1 2 2 2\n0 2 2 1 1 4\n1 4 2 3 0 1\n"


@st.composite
def jobs(draw: st.DrawFn, *, machines: int) -> list[Job]:
    """Jobs of any length, on any machines, twice on one if it so comes, and with operations of no time."""
    operation = st.tuples(st.integers(0, machines - 1), st.integers(0, 9))
    return draw(st.lists(st.lists(operation, min_size=1, max_size=6), min_size=1, max_size=6))


@st.composite
def instances(draw: st.DrawFn) -> Instance:
    machines = draw(st.integers(1, 5))
    return Instance(machines=machines, jobs=draw(jobs(machines=machines)))


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    """A planned shop, tight or with gaps, in which a machine breaks down before, during or after the work."""
    instance = draw(instances())
    plant = instance.plant
    gaps = draw(st.integers(1, 2))
    starts = [start * gaps for start in planned(plant, draw(st.sampled_from(sorted(planning.RULES))))]
    ends = [start + plant.duration[op] for op, start in enumerate(starts)]
    since = draw(st.integers(0, max(ends) + 3))
    down = Down(draw(st.integers(0, plant.machines - 1)), since, since + draw(st.integers(1, 12)))
    kept = draw(st.sets(st.integers(0, len(instance.jobs) - 1), max_size=2))
    return Situation(plant, starts, down, frozenset(kept))


def planned(plant: Plant, rule: str = "most work remaining") -> list[int]:
    """The starts of a first schedule."""
    return planning.timed(plant, planning.sequenced(plant, rule))
