"""A worker is killed while it pays: the money goes out once, whatever it had got to."""

from __future__ import annotations

import datetime as dt
import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from django.core import mail as outbox
from django.db.models.functions import Now

from agents.definition import registry
from agents.examples.refunds import Refunds
from agents.runs.start import start_run
from checkpoints import actors
from checkpoints.models import Run
from tests.factories import ann, decide, make_team
from tests.factories.driven_runs import advance_to_rest, effects, open_gate
from tests.harness.examples import one_in
from tests.harness.services import Talking

from .conftest import World, past_doubts
from .test_mail import MAILS

AGENTS = "agents.examples.refunds"
PLACES = ["after_claim", "before_outcome", "after_outcome", "before_step", "after_intent", "after_effect"]
PLACES += ["before_save:2", "after_save", "after_save:2"]  # the gate's outcome is saved first, then the payment


@pytest.fixture(scope="module")
def hand(shared_sandbox: World) -> Iterator[Talking]:
    """A process that forks a worker for each run it is told; see tests/harness/forked_worker.py."""
    wishes = {"HOLDPOINT_AGENTS": AGENTS, "SANDBOX_URL": shared_sandbox.url, "HOLDPOINT_LOG_LEVEL": "ERROR"}
    command = [sys.executable, "-m", "tests.harness.forked_worker"]
    process = Talking(*command, env=wishes)
    yield process
    process.close()


@pytest.fixture
def only_refunds(settings: Any, sandbox: World) -> Iterator[None]:
    settings.HOLDPOINT_AGENTS = [AGENTS]
    settings.SANDBOX_URL = sandbox.url
    registry.forget()
    yield
    registry.forget()


@pytest.mark.usefixtures("only_refunds")
@pytest.mark.parametrize("place", one_in(3, PLACES))
def test_a_worker_killed_while_it_pays_leaves_one_refund(place: str, sandbox: World, hand: Talking) -> None:
    [input] = Refunds.inputs_from(next(MAILS.glob("06-*.eml")))
    run = past_doubts(advance_to_rest(start_run("refunds", input, by=actors.SYSTEM, team=make_team())))
    amount = f"{100 + PLACES.index(place)}.00"  # each its own, so that the ledger tells the runs apart
    standing = open_gate(run).standing().card.actions[0].arguments
    decide(open_gate(run), ann(run.team), "edit", arguments={"refund": {**standing, "amount": amount}})

    name, _, hit = place.partition(":")
    assert killed(hand, run, f"{name}:kill:{hit or 1}") == -signal.SIGKILL
    Run.objects.filter(pk=run.pk).update(lease_until=Now() - dt.timedelta(seconds=1))  # as if it had run out
    advance_to_rest(run)

    assert run.status == "completed"
    assert [paid for paid, _ in sandbox.refunds("20431")].count(amount) == 1
    assert [row.status for row in effects(run, "pay")] == ["done"]
    assert len(outbox.outbox) == 1


def killed(hand: Talking, run: Run, wish: str) -> int:
    """Take the run on in a process that kills itself there; its exit status."""
    return int(hand.tell(f"{run.pk} {wish}"))
