"""Version 2 is deployed while runs of version 1 wait: with real workers, a real sweeper and the gate's own page."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from approvals.models import Gate
from checkpoints.audit.verify_runs import verify_run
from checkpoints.models import Run
from tests.agents.compatibility.conftest import Deploy
from tests.factories import ann, make_team
from tests.factories.driven_runs import effects, make_run, open_gate, state, trail
from tests.harness import services
from tests.harness.signed_in_clients import form_of, post, signed_in
from tests.harness.waiting import until

Starter = Callable[..., services.Service]


def agents(module: str) -> dict[str, str]:
    return {"HOLDPOINT_AGENTS": f"tests.agents.compatibility.porter.{module}"}


def becomes(runs: list[Run], status: str) -> None:
    def there() -> bool:
        return all(run.status == status for run in Run.objects.filter(pk__in=[run.pk for run in runs]))

    until(there, what=f"all are {status}")


def test_a_renamed_step_takes_no_decision_until_its_upcaster_is_there_and_then_every_run_ends(
    deploy: Deploy, celery_worker: Starter, sweeper: Starter
) -> None:
    team = make_team()
    person = ann(team)
    deploy("one")
    first = celery_worker("-c", "1", env=agents("one"))
    runs = [make_run("porter", team=team, order=f"A-{number}") for number in range(3)]
    becomes(runs, "waiting")
    first.stop()

    deploy("two_bare")
    bare = [celery_worker("-c", "1", env=agents("two_bare")), sweeper(env=agents("two_bare"))]
    gate = open_gate(runs[0])
    assert "Not ready" in signed_in(person).get(f"/gates/{gate.pk}/").content.decode()
    assert post(person, gate, form_of(gate)).status_code == 409
    for service in bare:
        service.stop()
    assert Gate.objects.open().filter(run__in=runs).count() == 3

    deploy("two")
    celery_worker("-c", "1", env=agents("two"))
    sweeper(env=agents("two"))
    asking = Gate.objects.open().filter(run__in=runs, title="Send this reply?")
    until(lambda: asking.count() == 3, what="version 2 asks")
    for gate in asking:
        assert post(person, gate, form_of(gate)).status_code == 303
    becomes(runs, "completed")
    for number, run in enumerate(runs):
        assert [kind for kind, _ in trail(run)] == ["input", "step", "step", "upcast", "gate", "step"]
        assert state(run)["sent"] == f"About order A-{number}"
        assert [effect.status for effect in effects(run)] == ["done"]
        assert verify_run(run) == []


def test_old_and_new_workers_live_side_by_side(deploy: Deploy, celery_worker: Starter) -> None:
    deploy("one")
    celery_worker("-c", "1", "--name", "old", env=agents("one"))
    old = make_run("porter", order="A-1")
    becomes([old], "waiting")
    deploy("one", "two")
    celery_worker("-c", "1", "--name", "new", env=agents("two"))
    new = make_run("porter", order="A-2")
    becomes([old, new], "waiting")
    for run in (old, new):
        gate = open_gate(run)
        assert post(ann(run.team), gate, form_of(gate)).status_code == 303
    becomes([old, new], "completed")
    assert [Run.objects.get(pk=run.pk).plan.version for run in (old, new)] == ["1", "2"]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait no longer than a test may for a worker that was stopped in the middle of something."""
    monkeypatch.setenv("HOLDPOINT_LEASE", "2")
