"""Shops, breakdowns and runs for the tests: small ones by hand, any others by hypothesis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from agents.examples import jobshop
from agents.examples.jobshop import repair
from agents.examples.jobshop.repair import Situation
from agents.examples.jobshop.shop import Downtime, Job, Shop
from agents.runs.start import start_run
from checkpoints import actors
from checkpoints.models import Run
from tests.factories import make_team
from tests.factories.driven_runs import advance_to_rest

BUNDLED = Path(jobshop.__file__).with_name("instances")
THREE = "3 3\n0 3 1 2 2 2\n0 2 2 1 1 4\n1 4 2 3 0 1\n"


@st.composite
def jobs(draw: st.DrawFn, *, machines: int) -> list[Job]:
    """Jobs of any length, on any machines, twice on one if it so comes, and with operations of no time."""
    operation = st.tuples(st.integers(0, machines - 1), st.integers(0, 9))
    return draw(st.lists(st.lists(operation, min_size=1, max_size=6), min_size=1, max_size=6))


@st.composite
def shops(draw: st.DrawFn) -> Shop:
    machines = draw(st.integers(1, 5))
    return Shop(machines=machines, jobs=draw(jobs(machines=machines)))


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    """A planned shop, tight or with gaps, in which a machine breaks down before, during or after the work."""
    shop = draw(shops())
    gaps = draw(st.integers(1, 2))
    starts = [start * gaps for start in plan(shop, draw(st.sampled_from(sorted(repair.RULES))))]
    since = draw(st.integers(0, max(map(sum, zip(starts, shop.duration, strict=True))) + 3))
    machine = draw(st.integers(0, shop.machines - 1))
    down = Downtime(machine=machine, since=since, until=since + draw(st.integers(1, 12)))
    return Situation(shop, starts, down, draw(st.frozensets(st.integers(0, len(shop.jobs) - 1), max_size=2)))


def plan(shop: Shop, rule: str = "most work remaining") -> list[int]:
    starts = repair.time_jobs(shop, repair.sequence_jobs(shop, rule))
    assert starts is not None
    return starts


def make_waiting_run(*, config: dict[str, Any] | None = None, **input: Any) -> Run:
    given = {"source": {"name": "three", "text": THREE}, **input}
    run = start_run("jobshop", given, by=actors.SYSTEM, team=make_team(), config={"seconds": 0.5, **(config or {})})
    return advance_to_rest(run)
