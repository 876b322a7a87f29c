"""Version 1 waits at six gates of its children when version 2, which gives them another field, is deployed.

With real workers, a real sweeper and the gates' own pages. Version 2 started six payments beside the six: with both
approved, every account was paid twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.definition import registry
from agents.moves import rewind
from approvals.models import Gate
from checkpoints.audit.verify_runs import verify_run
from checkpoints.models import Run
from tests.factories import ann, make_team
from tests.factories.driven_runs import answer, make_run, open_gate, state, trail
from tests.harness import services
from tests.harness.signed_in_clients import form_of, post, signed_in
from tests.harness.waiting import until

Starter = Callable[..., services.Service]
IBANS = [f"DE{number}" for number in range(6)]


def agents(version: str) -> dict[str, str]:
    return {"HOLDPOINT_AGENTS": f"tests.agents.compatibility.payroll.{version}"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait no longer than a test may for a worker that was stopped in the middle of something."""
    monkeypatch.setenv("HOLDPOINT_LEASE", "2")


@pytest.fixture
def serve(settings: Any, celery_worker: Starter, sweeper: Starter) -> Iterator[Callable[[str], None]]:
    """Have this process, a worker and a sweeper serve one version, and no other."""
    running: list[services.Service] = []

    def only(version: str) -> None:
        for service in running:
            service.stop()
        settings.HOLDPOINT_AGENTS = [agents(version)["HOLDPOINT_AGENTS"]]
        registry.forget()
        running[:] = [celery_worker("-c", "2", env=agents(version)), sweeper(env=agents(version))]

    yield only
    Run.objects.live().filter(plan__agent="payroll_of_six").update(status="cancelled")
    registry.forget()


def payments(run: Run) -> list[Gate]:
    """The open gates of the run's children."""
    return list(Gate.objects.open().filter(run__parent=run).order_by("pk"))


def approve_all(run: Run) -> None:
    for gate in payments(run):
        assert post(ann(run.team), gate, form_of(gate)).status_code == 303


@pytest.mark.parametrize("way", ["withdraw", pytest.param("rewind", marks=pytest.mark.long)])
def test_each_account_is_paid_once_whichever_way_is_taken(
    way: str, tmp_path: Path, serve: Callable[[str], None]
) -> None:
    ledger = tmp_path / "bank"
    serve("one")
    run = make_run("payroll_of_six", team=make_team(), ledger=str(ledger), ibans=IBANS)
    until(lambda: len(payments(run)) == 6, what="version 1 asks about six payments")
    first = payments(run)

    serve("two")
    until(lambda: Gate.objects.open().filter(run=run).exists(), what="version 2 asks what becomes of them")
    gate = open_gate(run)
    assert (payments(run), gate.kind) == (first, "recovery")
    page = signed_in(ann(run.team)).get(f"/gates/{gate.pk}/").content.decode()
    assert all(f"R-{each.run_id} “{each.run.title}” waits for the decision at" in page for each in first)

    if way == "withdraw":
        assert post(ann(run.team), first[0], form_of(first[0])).status_code == 303  # it may still be decided
        until(ledger.exists, what="the first is paid")
        answer(run, "withdraw")
        until(lambda: len(payments(run)) == 6 and payments(run)[0].pk > gate.pk, what="version 2 asks about six")
        assert ledger.read_text().splitlines() == ["pay DE0", "take back DE0"]
        assert not Gate.objects.open().filter(pk__in=[each.pk for each in first]).exists()
    else:
        serve("one")
        seq = trail(run).index(("step", "read")) + 1
        rewind.rewind(Run.objects.get(pk=run.pk), to=seq, by=ann(run.team))
        until(lambda: trail(run)[-1][0] == "rewind" and not Gate.objects.open().filter(run=run).exists(), what="back")
        assert payments(run) == first
    approve_all(run)
    until(lambda: Run.objects.get(pk=run.pk).status == "completed", what="it completes")
    assert state(run)["paid"] == IBANS
    kept = ledger.read_text().splitlines()
    for iban in IBANS:
        assert kept.count(f"pay {iban}") - kept.count(f"take back {iban}") == 1
    assert verify_run(Run.objects.get(pk=run.pk)) == []
