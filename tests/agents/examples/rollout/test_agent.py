"""The rollout agent: few servers, a soak, a signal, all servers; and what becomes of it when it is not well."""

from __future__ import annotations

from typing import Any

import pytest
from django.db.models.functions import Now

from agents.examples.rollout import Rollout
from agents.models import Wait
from agents.runs.start import start_run
from agents.serving import sweeps
from agents.waits import signals, step_waits
from checkpoints import actors
from checkpoints.models import Run
from tests.agents.examples.refunds.conftest import World, sandbox, shared_sandbox, start_sandbox, world_of
from tests.factories import ann, decide, make_team
from tests.factories.driven_runs import advance_to_rest, open_gate, state
from tests.harness.session import ROOT

__all__ = ["sandbox", "shared_sandbox", "start_sandbox"]
world = world_of("agents.examples.rollout")  # the sandbox is the control plane of the servers too


def make_rollout(**input: Any) -> Run:
    """A run over the first of the plans that come with it, approved, as far as its soak."""
    given = Rollout.inputs_from(ROOT / "agents" / "examples" / "rollout" / "plans")[0] | input
    run = advance_to_rest(start_run("rollout", given, by=actors.SYSTEM, team=make_team()))
    decide(open_gate(run), ann(run.team))
    return advance_to_rest(run)


def soaked(run: Run) -> Run:
    step_waits.wake_now(run, by=actors.SYSTEM)
    return advance_to_rest(run)


def hear(run: Run, errors: float, key: str = "probe-1") -> None:
    signals.send(run, "health", {"errors": errors, "by": "prober"}, key=key, by=actors.SYSTEM)


def released(world: World, run: Run) -> list[tuple[int, str]]:
    keys = set(run.effects.values_list("key", flat=True))
    made = [each for each in world.http.get("/releases").json()["items"] if each["key"] in keys]
    return [(each["wanted"]["servers"], each["status"]) for each in made]


def test_it_soaks_hears_that_all_is_well_and_goes_on_by_the_approval_it_has(world: World) -> None:
    run = make_rollout()
    assert (run.next_step, released(world, run)) == ("wait_a_while", [(4, "made")])
    run = soaked(run)
    assert (run.status, run.next_step) == ("waiting", "watch")
    hear(run, 0.2)
    assert advance_to_rest(run).status == "completed"
    assert released(world, run) == [(4, "made"), (40, "made")]
    assert state(run)["summary"] == "checkout 2.4.0 is on 40 servers; 0.2 % errors on the first ones."


@pytest.mark.parametrize("heard", [7.5, None])
def test_if_it_is_not_well_people_are_asked_and_no_takes_it_back(heard: float | None, world: World) -> None:
    run = soaked(make_rollout())
    if heard is None:
        Wait.objects.filter(run=run, kind="signal").update(due=Now())
        Run.objects.filter(pk=run.pk).update(wake_at=Now())
        sweeps.wake_timers()
    else:
        hear(run, heard)
    run = advance_to_rest(run)
    assert open_gate(run).step == "confirm"
    decide(open_gate(run), ann(run.team), "reject", then="back", comment="Not like this.")
    run = advance_to_rest(run)
    assert open_gate(run).step == "review"
    decide(open_gate(run), ann(run.team))
    advance_to_rest(run)
    assert released(world, run) == [(4, "withdrawn"), (2, "made")]
