"""A run that has gone on from a gate is upgraded to the next version once that is decided, and not before."""

from __future__ import annotations

from agents.runner import version_upgrade
from checkpoints.models import Run
from tests.factories.driven_runs import advance, advance_to_rest, decide, make_run, open_gate, state, trail

from .conftest import Deploy


def test_a_run_is_not_upgraded_before_the_gate_beside_it_is_decided(deploy: Deploy) -> None:
    deploy("one_beside")
    run = advance(make_run("porter", order="7"))
    assert (run.status, run.next_step, open_gate(run).step) == ("waiting", "send", "review")
    asked = open_gate(run)
    deploy("two")
    assert run in version_upgrade.waiting(limit=10)
    assert not version_upgrade.wake(Run.objects.select_related("plan").get(pk=run.pk))
    decide(run)
    run = advance_to_rest(run)
    assert trail(run)[4:6] == [("answered", "review"), ("upcast", "send")]
    assert (run.plan.version, state(run)["reply"]) == ("2", "About order 7")
    asked.refresh_from_db()
    assert asked.status == "decided"
