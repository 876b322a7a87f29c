"""What is given back by others while people think: nothing is paid on top of it unasked."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from django.core import mail as outbox

from agents import EffectUnknown
from agents.definition.agent import RunInfo
from agents.examples import refunds, sending
from agents.examples.orders import find
from agents.examples.refunds import Refunds
from agents.moves import rewind
from checkpoints.models import Run
from tests.approvals.cards.preconditions.watched_world import world_rows
from tests.factories import ann
from tests.factories.driven_runs import advance_to_rest, decide, effects, open_gate
from tests.harness.signed_in_clients import signed_in

from .conftest import World
from .refund_runs import CONDITION, edit, make_refund_run

pytestmark = pytest.mark.usefixtures("world")


def test_approved_then_the_world_drifts_before_the_worker_wakes(world: World) -> None:
    """Nothing is performed, the gate is open again with the difference, and a yes to that pays once."""
    run = make_refund_run("01")
    [offered] = open_gate(run).standing().card.preconditions
    assert (offered.id, offered.value, offered.required) == (CONDITION, "€0.00", False)
    decide(run, preconditions=[CONDITION])
    world.refund("somebody at the bank", "ch_20418", "20.00").raise_for_status()
    advance_to_rest(run)
    assert run.status == "waiting"
    assert world.refunds("20418") == [("20.00", "succeeded")]
    assert (effects(run), outbox.outbox) == ([], [])
    gate = open_gate(run)
    assert gate.step == "review"
    assert world_rows(gate) == [("/refunded", "€0.00", "€20.00")]

    edit(run, "refund", amount="1264.00")
    advance_to_rest(run)
    assert run.status == "completed"
    assert world.refunds("20418") == [("20.00", "succeeded"), ("1264.00", "succeeded")]
    assert len(outbox.outbox) == 1


def approve_by_api(run: Run, **more: Any) -> None:
    """Approve what the run asks with nothing said of preconditions but what `more` says."""
    gate = open_gate(run)
    body = {"seen": bytes(gate.standing().digest).hex(), "verdict": "approve", **more}
    answer = signed_in(ann(run.team)).post(f"/api/gates/{gate.pk}/decisions", body, content_type="application/json")
    assert answer.status_code == 201, answer.content


@pytest.mark.parametrize("dropped", [False, True])
def test_the_same_mail_in_two_runs_is_paid_twice_only_where_somebody_drops_the_check(
    dropped: bool, world: World
) -> None:
    """A bare approval over the API passed over the check that the page had ticked, and both runs paid."""
    first, second = make_refund_run("05"), make_refund_run("05")
    assert [offered.preselected for offered in open_gate(second).standing().card.preconditions] == [True]
    approve_by_api(first)
    assert advance_to_rest(first).status == "completed"
    approve_by_api(second, **({"dropped": [CONDITION]} if dropped else {}))
    advance_to_rest(second)
    assert (second.status == "waiting") is not dropped
    assert len(world.refunds("20412")) == 1 + dropped


def test_what_was_taken_back_again_is_no_refund(world: World) -> None:
    run = make_refund_run("06")
    slip = world.refund("a slip", "ch_20431", "5.00", "GBP").json()
    world.http.post(f"/refunds/{slip['id']}/cancel").raise_for_status()
    decide(run, preconditions=[CONDITION])
    assert advance_to_rest(run).status == "completed"


def test_what_the_run_itself_paid_is_no_news_to_it(world: World) -> None:
    run = make_refund_run("03")
    order = find("20402")
    assert order is not None
    agent = Refunds(RunInfo(run.pk, ""), 1)
    before = agent.refunded(order)
    decide(run, preconditions=[CONDITION])
    assert advance_to_rest(run).status == "completed"
    assert world.refunds("20402") == [("147.90", "succeeded")]
    assert agent.refunded(order) == before == "€0.00"
    assert Refunds(RunInfo(run.pk + 1, ""), 1).refunded(order) == "€147.90"


@pytest.mark.parametrize("others", [False, True])
def test_a_finished_run_sent_back_asks_again_only_where_others_were_paid(others: bool, world: World) -> None:
    """Its own refund, counted as a change of the world, would have asked people what they had answered already."""
    run = make_refund_run("11")
    decide(run, preconditions=[CONDITION])
    assert advance_to_rest(run).status == "completed"
    paid = world.refunds("20440")
    assert len(paid) == 1
    if others:
        world.refund("somebody else", "ch_20440", "1.00", "USD").raise_for_status()
    rewind.rewind(run, to=2, by=ann(run.team))  # the mail was read; the order is looked up again
    advance_to_rest(run)
    assert run.status == ("waiting" if others else "completed")
    assert world.refunds("20440")[:1] == paid
    assert len(world.refunds("20440")) == 1 + others
    assert len(outbox.outbox) == 1


def test_a_provider_that_cannot_be_asked_opens_no_gate_and_pays_nothing(world: World) -> None:
    world.fault("charges", "500", times=4)
    run = make_refund_run("13")
    assert (open_gate(run).kind, open_gate(run).step) == ("recovery", "find_order")
    waiting = make_refund_run("12")
    decide(waiting, preconditions=[CONDITION])
    world.fault("charges", "cut_before", times=4)
    advance_to_rest(waiting)
    assert (open_gate(waiting).kind, open_gate(waiting).step) == ("recovery", "pay")
    assert (world.refunds("20455"), effects(waiting)) == ([], [])


def find_refund(key: str) -> Any:
    return Refunds(RunInfo(0, ""), 1).find_refund(key=key)


def test_a_refund_is_found_by_its_key_as_paying_would_have_returned_it(world: World) -> None:
    assert find_refund("k-found") is None
    paid = world.refund("k-found", "ch_20424", "1.00").json()
    [payment] = find_refund("k-found").values()
    assert (payment.id, str(payment.amount), payment.status) == (paid["id"], "1.00", "succeeded")
    world.http.post(f"/refunds/{paid['id']}/cancel").raise_for_status()
    assert find_refund("k-found") is None


@pytest.mark.parametrize("kind", ["500", "500_after", "timeout", "cut_before", "cut_after"])
def test_a_provider_that_does_not_answer_has_not_said_no(
    kind: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.refund(f"k-{kind}", "ch_20424", "1.00").raise_for_status()
    monkeypatch.setattr(sending, "TIMEOUT", 0.3)
    world.fault("reads", kind, seconds=1)
    with pytest.raises(EffectUnknown):
        find_refund(f"k-{kind}")


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(404, text="not here"),
        httpx.Response(404, json={"error": "there is nothing here"}),
        httpx.Response(403, json={"error": "there is no such refund"}),
        httpx.Response(200, json={"id": "re_1"}),
        httpx.Response(200, text="<html>"),
    ],
)
def test_only_the_providers_own_no_is_a_no(answer: httpx.Response, monkeypatch: pytest.MonkeyPatch) -> None:
    """A 404 of a proxy, taken for "it did not happen", would have paid a second time."""
    client = httpx.Client(base_url="http://elsewhere", transport=httpx.MockTransport(lambda request: answer))
    monkeypatch.setattr(refunds, "open_provider", lambda: client)
    with pytest.raises(EffectUnknown):
        find_refund("k")
