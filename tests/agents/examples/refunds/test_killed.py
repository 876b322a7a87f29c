"""A worker is killed while it pays: the money goes out once, whatever it had got to."""

from __future__ import annotations

import datetime as dt
import signal
import sys
from collections.abc import Iterator

import pytest
from django.core import mail as outbox
from django.db.models.functions import Now

from checkpoints.models import Run
from tests.factories.driven_runs import advance_to_rest, effects
from tests.harness.examples import one_in
from tests.harness.services import Talking

from .conftest import World
from .refund_runs import edit, make_refund_run, past_doubts

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


@pytest.mark.parametrize("place", one_in(3, PLACES))
def test_a_worker_killed_while_it_pays_leaves_one_refund(place: str, world: World, hand: Talking) -> None:
    run = past_doubts(make_refund_run("06"))
    amount = f"{100 + PLACES.index(place)}.00"
    edit(run, "refund", amount=amount)

    name, _, hit = place.partition(":")
    assert killed(hand, run, f"{name}:kill:{hit or 1}") == -signal.SIGKILL
    Run.objects.filter(pk=run.pk).update(lease_until=Now() - dt.timedelta(seconds=1))  # as if it had run out
    advance_to_rest(run)

    assert run.status == "completed"
    assert world.refunds("20431") == [(amount, "succeeded")]
    assert [row.status for row in effects(run, "pay")] == ["done"]
    assert len(outbox.outbox) == 1


def killed(hand: Talking, run: Run, wish: str) -> int:
    """Take the run on in a process that kills itself there; its exit status."""
    return int(hand.tell(f"{run.pk} {wish}"))
