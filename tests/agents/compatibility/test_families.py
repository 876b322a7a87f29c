"""Version 2 is deployed while a parent waits for its children: each child is started once, and all end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from approvals.models import Gate
from checkpoints.audit.verify_runs import verify_run
from checkpoints.models import Run
from tests.agents.children.families import children
from tests.agents.compatibility.conftest import Deploy
from tests.agents.compatibility.fleet import one, two
from tests.checkpoints.retention.pruned_runs import keep, pruned, seqs
from tests.factories import ann
from tests.factories.driven_runs import advance_to_rest, decide, make_run, open_gate, state
from tests.harness import services
from tests.harness.examples import first_alone
from tests.harness.signed_in_clients import form_of, post
from tests.harness.waiting import until

Starter = Callable[..., services.Service]
STOPS = ["Oslo", "Turku", "Riga"]
ONE, TWO = (one.Van, one.Fleet), (two.Van, two.Fleet)


def served(version: str) -> dict[str, str]:
    """The environment of a process that knows this version."""
    return {"HOLDPOINT_AGENTS": f"tests.agents.compatibility.fleet.{version}"}


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """What the vans really did."""
    return tmp_path / "ledger"


@pytest.mark.parametrize("beside", first_alone([False, True]))
def test_a_parent_that_goes_on_after_a_deploy_finds_the_children_that_it_had_started(
    beside: bool, deploy: Deploy, ledger: Path
) -> None:
    """It started all of them once more, in the new version, and undid those that it had."""
    deploy(*ONE)
    run = advance_to_rest(make_run("fleet", ledger=str(ledger), stops=STOPS))
    for child in children(run):
        advance_to_rest(child)
    deploy(*ONE[: 2 * beside], *TWO)
    for child in children(run):
        while advance_to_rest(child).status == "waiting":  # version 2 alone takes them over, and asks again
            decide(child)
    advance_to_rest(run)
    assert (run.status, state(run)["total"]) == ("completed", 3)
    assert [each.status for each in children(run)] == ["completed"] * 3
    assert sorted(ledger.read_text().splitlines()) == sorted(
        f"{did} {stop}" for stop in STOPS for did in ("load", "deliver")
    )


def test_it_finds_one_too_of_which_retention_removed_how_it_began(deploy: Deploy, ledger: Path) -> None:
    """Its version was read there, so the child was started once more, and did the same again."""
    deploy(*ONE)
    run = advance_to_rest(make_run("fleet", ledger=str(ledger), stops=["Oslo"]))
    [van] = children(run)
    decide(advance_to_rest(van))
    advance_to_rest(van)
    keep(van, keep_last=1)
    pruned()
    assert seqs(van)[0] > 1
    deploy(*ONE, *TWO)
    assert (advance_to_rest(run).status, children(run)) == ("completed", [van])


def test_version_2_beside_version_1_takes_over_the_waiting_children_once_version_1_is_gone(
    deploy: Deploy, ledger: Path, celery_worker: Starter, sweeper: Starter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDPOINT_LEASE", "2")
    deploy(*ONE)
    old = celery_worker("-c", "1", "--name", "old", env=served("one"))
    run = make_run("fleet", ledger=str(ledger), stops=STOPS)
    until(lambda: Gate.objects.open().filter(run__parent=run).count() == 3, what="all three ask in version 1")
    first, *others = children(run)
    deploy(*TWO, *ONE)
    celery_worker("-c", "1", "--name", "new", env=served("two"))
    newer = make_run("fleet", ledger=str(ledger.with_name("newer")), stops=["Bergen"])
    until(
        lambda: Gate.objects.open().filter(run__parent=newer).count() == 1, what="version 2 asks for a run of its own"
    )

    def approve(child: Run) -> None:
        gate = open_gate(child)
        assert post(ann(child.team), gate, form_of(gate)).status_code == 303
        until(lambda: Run.objects.get(pk=child.pk).status == "completed", what=f"{child} is completed")

    approve(first)  # by version 1, which is still there
    old.stop()
    deploy(*TWO)
    sweeper(env=served("two"))
    asking = Gate.objects.open().filter(run__parent=run, title__contains="2 kg")
    until(lambda: asking.count() == 2, what="version 2 asks for the two that wait")
    for child in (*others, *children(newer)):
        approve(child)
    until(lambda: Run.objects.get(pk=run.pk).status == "completed", what="the parent is completed")
    run.refresh_from_db()
    versions = [Run.objects.get(pk=each.pk).plan.version for each in (run, first, *others)]
    assert versions == ["2", "1", "2", "2"]
    assert state(run)["report"] == "Oslo, Turku, Riga"
    assert sorted(ledger.read_text().splitlines()) == sorted(
        f"{did} {stop}" for stop in STOPS for did in ("load", "deliver")
    )
    assert all(verify_run(each) == [] for each in (run, *children(run)))
