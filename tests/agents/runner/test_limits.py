"""How many runs of an agent work at once in a team: no more than it says, and each gets its turn."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db.models.functions import Now
from pydantic import BaseModel

from agents import Agent, Append, step
from agents.definition import registry
from agents.definition.upcast import UpcastPath
from agents.ringing import doorbell
from agents.runner import claiming, engine, version_upgrade
from checkpoints.models import Plan, Run
from tests.factories import make_team
from tests.factories.driven_runs import make_run, state
from tests.harness.known_agents import fixtures_of
from tests.harness.racing_threads import meet_lock, race


class Narrow(Agent):
    """Two steps; one run at a time."""

    name = "narrow"
    at_once = 1

    class State(BaseModel):
        first: bool = False
        second: bool = False

    @step
    def one(self) -> dict[str, Any]:
        return {"first": True}

    @step
    def two(self, first: bool) -> dict[str, Any]:
        return {"second": True}


class Broad(Narrow):
    name = "broad"
    at_once = 0


class Pair(Agent):
    """Each step counts the runs of the agent that are at work, itself among them; two at a time."""

    name = "limited_pair"
    at_once = 2

    class State(BaseModel):
        seen: list[int] = []

    @step
    def one(self) -> dict[str, Any]:
        return {"seen": Append([at_work()])}

    @step
    def two(self) -> dict[str, Any]:
        return {"seen": Append([at_work()])}


def at_work() -> int:
    return Run.objects.filter(plan__agent="limited_pair", status="running").count()


own_agents, workers = fixtures_of(__name__)


@pytest.fixture
def rung(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found: list[int] = []
    monkeypatch.setattr(doorbell, "ring", lambda run, queue, priority: found.append(run))
    return found


def claim(run: Run) -> int | None:
    found = claiming.claim(run.pk, worker="w")
    return found.run_id if found else None


def narrow(team: Group, many: int = 2) -> list[Run]:
    return [make_run("narrow", team=team) for _ in range(many)]


def test_no_more_runs_work_at_once_than_the_agent_says() -> None:
    team = make_team()
    one, two = narrow(team)
    assert claim(one) == one.pk
    assert claim(two) is None
    assert claim(make_run("narrow", team=make_team())) is not None  # another team has its own number
    broad = [make_run("broad", team=team) for _ in range(3)]
    assert [claim(run) for run in broad] == [run.pk for run in broad]


def test_a_run_whose_worker_is_lost_makes_room_or_is_taken_on_by_its_own_doorbell() -> None:
    for rung_for in (0, 1):
        runs = narrow(make_team())
        claim(runs[0])
        Run.objects.filter(pk=runs[0].pk).update(lease_until=Now())
        assert claim(runs[rung_for]) == runs[rung_for].pk
        assert claim(runs[1 - rung_for]) is None


def test_a_doorbell_of_the_run_at_work_claims_no_other() -> None:
    one, two = narrow(make_team())
    assert claim(two) == one.pk  # the one that became due first, whichever was named
    assert claim(one) is None
    assert Run.objects.get(pk=two.pk).status == "queued"


def test_a_lost_run_that_is_just_being_claimed_counts() -> None:
    one, two = narrow(make_team())
    claim(one)
    Run.objects.filter(pk=one.pk).update(lease_until=Now())
    assert meet_lock(partial(claim, one), partial(claim, two)) is None
    assert [Run.objects.get(pk=run.pk).status for run in (one, two)] == ["running", "queued"]


def test_a_claim_beside_one_that_upgrades_a_run_counts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    one, older = narrow(make_team())
    known = registry.plans()[one.plan_id]
    monkeypatch.setattr(registry, "upcasting_agents", lambda: ["narrow"])
    monkeypatch.setattr(registry, "way_of", lambda plan: UpcastPath("0", known, ()))
    upgrade = partial(version_upgrade.claim, older.pk, worker="w")
    assert meet_lock(upgrade, partial(claim, one)) is None
    assert [Run.objects.get(pk=run.pk).status for run in (one, older)] == ["queued", "running"]


def test_with_many_workers_no_step_sees_more_runs_at_work_than_the_agent_says(settings: Any) -> None:
    settings.HOLDPOINT_TIME_SLICE = 0.0
    team = make_team()
    runs = [make_run("limited_pair", team=team) for _ in range(6)]

    def works() -> None:
        while mine := list(Run.objects.due().filter(plan__agent="limited_pair", team=team, status="queued")):
            engine.advance(mine[-1].pk)

    assert race([works] * 4) == [None] * 4
    seen = [state(run)["seen"] for run in runs]
    assert {len(each) for each in seen} == {2}
    assert max(map(max, seen)) <= 2


def test_runs_take_turns_after_each_slice(settings: Any, rung: list[int]) -> None:
    settings.HOLDPOINT_TIME_SLICE = 0.0
    one, two = narrow(make_team())
    worked: list[int] = []
    for _ in range(4):
        before = {run.pk: Run.objects.get(pk=run.pk).seq for run in (one, two)}
        engine.advance(one.pk if one.pk not in worked or len(worked) % 2 else two.pk)
        worked += [run.pk for run in (one, two) if Run.objects.get(pk=run.pk).seq > before[run.pk]]
    assert worked == [one.pk, two.pk, one.pk, two.pk]
    assert {run.status for run in Run.objects.filter(pk__in=[one.pk, two.pk])} == {"completed"}


def test_whoever_stops_rings_for_the_next(rung: list[int]) -> None:
    one, two = narrow(make_team())
    rung.clear()
    engine.advance(one.pk)
    assert rung == [two.pk]
    engine.advance(two.pk)
    assert rung == [two.pk]


def test_the_next_is_one_of_a_version_that_is_served(rung: list[int]) -> None:
    """The doorbell went to a version that no worker serves, and the place stayed free."""
    unserved, two = narrow(make_team())
    gone = Plan.objects.create(agent="narrow", version="0", digest=b"gone", body=unserved.plan.body)
    Run.objects.filter(pk=unserved.pk).update(plan=gone)
    rung.clear()
    claiming.let_next(two)
    assert rung == [two.pk]
    Run.objects.filter(pk=two.pk).update(status="waiting")
    claiming.let_next(two)
    assert rung == [two.pk, unserved.pk]
