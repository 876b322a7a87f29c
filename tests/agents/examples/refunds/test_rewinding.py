"""A finished refund whose order turns out to be in another currency: what was paid is taken back and paid anew."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.core import mail as outbox

from agents.definition import registry
from agents.examples.refunds import Refunds
from agents.models import Effect
from agents.moves import impact, rewind
from agents.runs.start import start_run
from checkpoints import actors
from checkpoints.models import Checkpoint, Run
from tests.factories import ann, decide, make_team, make_user
from tests.factories.driven_runs import advance_to_rest, open_gate, state

from .conftest import World
from .test_mail import MAILS

PATCH = [{"op": "replace", "path": "/order/currency", "value": "USD"}]


@pytest.fixture(autouse=True)
def _only_refunds(settings: Any, sandbox: World) -> Iterator[None]:
    settings.HOLDPOINT_AGENTS = ["agents.examples.refunds"]
    settings.SANDBOX_URL = sandbox.url
    registry.forget()
    yield
    registry.forget()


def finished(mail: str) -> Run:
    """A refund that was agreed to, paid and told."""
    [input] = Refunds.inputs_from(next(MAILS.glob(f"{mail}-*.eml")))
    run = advance_to_rest(start_run("refunds", input, by=actors.SYSTEM, team=make_team()))
    decide(open_gate(run), ann(run.team))
    assert advance_to_rest(run).status == "completed"
    return run


def test_what_the_page_said_is_what_comes_true(sandbox: World) -> None:
    run = finished("01")
    charge = state(run)["order"]["charge"]
    at = Checkpoint.objects.get(run=run, step="find_order").seq
    by = make_user("Bob Lindqvist", run.team)

    shown = impact.of_edit(run, at, PATCH)
    said = {(row.verdict, row.step) for row in shown.rows}
    assert said >= {
        ("stands", "read_mail"), ("stands", "find_order"), ("will", "ask_facts"), ("will", "ask_doubts"),
        ("will", "propose"),
        ("will", "review"), ("undone", "pay"), ("cannot", "reply"),
    }  # fmt: skip

    seq = run.seq
    rewind.edit(run, at=at, patch=PATCH, by=by, seen=shown.digest())
    advance_to_rest(run)
    assert open_gate(run).title.startswith("Refund $")
    [offered] = open_gate(run).standing().card.preconditions
    assert offered.label == "Nothing else has been refunded on this charge: {value}"  # the run's own refund is there
    assert ran(run, seq) == ["ask_facts", "ask_doubts", "propose"]
    decide(open_gate(run), ann(run.team))
    assert advance_to_rest(run).status == "completed"

    mine = [each for each in sandbox.http.get("/ledger").json()["refunds"] if each["charge"] == charge]
    assert [(each["currency"], each["status"]) for each in mine] == [("EUR", "cancelled"), ("USD", "succeeded")]
    rows = Effect.objects.filter(run=run, undoes=None).order_by("pk")
    assert [(row.step, row.status) for row in rows] == [
        ("pay", "undone"), ("reply", "kept"), ("pay", "done"), ("reply", "done"),
    ]  # fmt: skip
    assert len(outbox.outbox) == 2


def ran(run: Run, since: int) -> list[str]:
    """The steps that were executed, and not reused, after a checkpoint."""
    found = Checkpoint.objects.filter(run=run, seq__gt=since, kind__in=["step", "gate"]).order_by("seq")
    return list(found.values_list("step", flat=True))
