"""A payment whose answer never came, at the real sandbox: each answer that a person can give ends as they said."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core import mail as outbox
from django.db.models.functions import Now

from agents.definition import registry
from agents.examples.refunds import Refunds
from agents.examples.refunds.state import Payment
from agents.runs.start import start_run
from approvals.models import Gate
from checkpoints import actors
from checkpoints.models import Run
from tests.conftest import Starter
from tests.factories import ann, decide, make_team
from tests.factories.driven_runs import advance, advance_to_rest, answer, effects, open_gate
from tests.harness.waiting import until

from .conftest import World
from .test_mail import MAILS

ORDER, AMOUNT = "20418", "1284.00"
WORK = "import django; django.setup(); from agents.runner import engine; engine.advance({})"


@pytest.fixture(scope="module")
def shared_sandbox() -> None:
    """Each test has a sandbox of its own: the money of one order is paid once."""


@pytest.fixture
def world(settings: Any, start_sandbox: Callable[..., World]) -> Iterator[World]:
    sandbox = start_sandbox()
    settings.HOLDPOINT_AGENTS = ["agents.examples.refunds"]
    settings.SANDBOX_URL = sandbox.url
    registry.forget()
    yield sandbox
    registry.forget()


def approved() -> Run:
    """A run that is about to pay."""
    [input] = Refunds.inputs_from(next(MAILS.glob("01-*.eml")))
    run = advance_to_rest(start_run("refunds", input, by=actors.SYSTEM, team=make_team()))
    decide(open_gate(run), ann(run.team))
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


def test_it_did_not_happen_and_is_done_under_a_new_key(world: World) -> None:
    gate = in_doubt(world, "cut_before")
    assert world.refunds(ORDER) == []
    answer(gate.run, "not_happened")
    assert advance_to_rest(gate.run).status == "completed"
    assert world.refunds(ORDER) == [(AMOUNT, "succeeded")]
    assert [row.status for row in effects(gate.run, "pay")] == ["failed", "done"]


def test_done_again_whatever_became_of_it(world: World) -> None:
    gate = in_doubt(world, "cut_before")
    answer(gate.run, "again")
    assert advance_to_rest(gate.run).status == "completed"
    assert world.refunds(ORDER) == [(AMOUNT, "succeeded")]
    assert [row.status for row in effects(gate.run, "pay")] == ["abandoned", "done"]


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
