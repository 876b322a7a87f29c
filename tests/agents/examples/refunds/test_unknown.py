"""A payment whose answer never came, at the real sandbox: each answer that a person can give ends as they said."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable
from typing import Any

import pytest
from django.core import mail as outbox
from django.db.models.functions import Now

from agents.examples.refunds.state import Payment
from approvals.models import Gate
from checkpoints.models import Run
from tests.conftest import Starter
from tests.factories.driven_runs import advance, advance_to_rest, answer, decide, effects, open_gate
from tests.harness.waiting import until

from .conftest import World
from .refund_runs import make_refund_run

ORDER, AMOUNT = "20418", "1284.00"
WORK = "import django; django.setup(); from agents.runner import engine; engine.advance({})"


@pytest.fixture
def sandbox(start_sandbox: Callable[..., World]) -> World:
    """Each test has a sandbox of its own: the money of one order is paid once."""
    return start_sandbox()


def approved() -> Run:
    """A run that is about to pay."""
    run = make_refund_run("01")
    decide(run)
    return run


def in_doubt(world: World, kind: str) -> Gate:
    """The question that is left when the first request met `kind` and the provider has not been heard of since."""
    run = approved()
    world.fault("refunds", kind)
    advance(run)
    world.fault("refunds", "cut_before", times=100)
    world.fault("reads", "cut_before", times=100)
    gate = open_gate(advance_to_rest(run))
    world.http.delete("/faults").raise_for_status()
    assert (gate.kind, gate.step) == ("recovery", "pay")
    assert [row.status for row in effects(run, "pay")] == ["unknown"]
    return gate


def paid(world: World) -> dict[str, Any]:
    """What the provider's ledger has of the refund, as the step returns it."""
    [made] = world.http.get("/ledger").json()["refunds"]
    return {"payment": {name: made[name] for name in Payment.model_fields}}


def test_it_happened_and_its_result_is_taken_from_the_person_who_looked_it_up(world: World) -> None:
    gate = in_doubt(world, "cut_after")
    answer(gate.run, "happened", paid(world))
    assert advance_to_rest(gate.run).status == "completed"
    assert world.refunds(ORDER) == [(AMOUNT, "succeeded")]
    assert [row.status for row in effects(gate.run, "pay")] == ["done"]
    assert len(outbox.outbox) == 1


@pytest.mark.parametrize(("choice", "status"), [("not_happened", "failed"), ("again", "abandoned")])
def test_it_did_not_happen_and_is_done_under_a_new_key(choice: str, status: str, world: World) -> None:
    gate = in_doubt(world, "cut_before")
    assert world.refunds(ORDER) == []
    answer(gate.run, choice)
    assert advance_to_rest(gate.run).status == "completed"
    assert world.refunds(ORDER) == [(AMOUNT, "succeeded")]
    assert [row.status for row in effects(gate.run, "pay")] == [status, "done"]


def test_the_worker_that_everybody_thought_dead_answers_first(world: World, start_service: Starter) -> None:
    run = approved()
    world.fault("refunds", "slow", seconds=2)
    known = {
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "HOLDPOINT_AGENTS": "agents.examples.refunds",
        "SANDBOX_URL": world.url,
    }
    worker = start_service("worker", [sys.executable, "-c", WORK.format(run.pk)], known)
    until(lambda: not world.http.get("/faults").json()["faults"], what="the provider is at it")
    worker.pause()
    Run.objects.filter(pk=run.pk).update(lease_until=Now() - dt.timedelta(seconds=1))
    world.fault("refunds", "cut_before", times=100)
    world.fault("reads", "cut_before", times=100)
    gate = open_gate(advance_to_rest(run))
    assert (gate.kind, gate.step) == ("recovery", "pay")
    worker.resume()
    assert worker.process.wait(30) == 0
    gate.refresh_from_db()
    assert (gate.status, [row.status for row in effects(run, "pay")]) == ("withdrawn", ["done"])
    assert advance_to_rest(run).status == "completed"
    assert world.refunds(ORDER) == [(AMOUNT, "succeeded")]
