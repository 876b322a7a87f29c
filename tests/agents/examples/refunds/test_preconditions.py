"""What is given back by others while people think: nothing is paid on top of it unasked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import httpx
import pytest
from django.core import mail as outbox

from agents import EffectUnknown
from agents.definition import registry
from agents.definition.agent import RunInfo
from agents.examples import sending
from agents.examples.refunds import Refunds, payments
from agents.examples.refunds.state import Proposal, Reason, Refund, Reply
from agents.moves import rewind
from agents.questions import answering
from agents.runs.start import start_run
from approvals.gates import questions, thread
from checkpoints import actors
from checkpoints.models import Run
from tests.approvals.cards.preconditions.watched_world import world_rows
from tests.factories import ann, decide, make_team
from tests.factories.driven_runs import advance_to_rest, effects, open_gate
from tests.harness.signed_in_clients import signed_in

from .conftest import World
from .test_mail import MAILS

CONDITION = "nothing-else-refunded"


@pytest.fixture(scope="module")
def shared_sandbox(start_sandbox: Callable[..., World]) -> World:
    """A sandbox of this module's own: its tests count refunds."""
    return start_sandbox()


@pytest.fixture(autouse=True)
def world(settings: Any, sandbox: World) -> Iterator[World]:
    settings.HOLDPOINT_AGENTS = ["agents.examples.refunds"]
    settings.SANDBOX_URL = sandbox.url
    registry.forget()
    yield sandbox
    registry.forget()


def make_refund_run(mail: str) -> Run:
    """A run over the bundled mail of that number, at its gate."""
    [input] = Refunds.inputs_from(next(MAILS.glob(f"{mail}-*.eml")))
    return advance_to_rest(start_run("refunds", input, by=actors.SYSTEM, team=make_team()))


def edited(run: Run, amount: str) -> dict[str, Any]:
    return {"refund": {**open_gate(run).standing().card.actions[0].arguments, "amount": amount}}


def test_approved_then_the_world_drifts_before_the_worker_wakes(world: World) -> None:
    """Nothing is performed, the gate is open again with the difference, and a yes to that pays once."""
    run = make_refund_run("01")
    [offered] = open_gate(run).standing().card.preconditions
    assert (offered.id, offered.value, offered.required) == (CONDITION, "€0.00", False)
    decide(open_gate(run), ann(run.team), preconditions=[CONDITION])
    world.refund("somebody at the bank", "ch_20418", "20.00").raise_for_status()
    advance_to_rest(run)
    assert run.status == "waiting"
    assert world.refunds("20418") == [("20.00", "succeeded")]
    assert (effects(run), outbox.outbox) == ([], [])
    gate = open_gate(run)
    assert gate.step == "review"
    assert world_rows(gate) == [("/refunded", "€0.00", "€20.00")]

    decide(gate, ann(run.team), "edit", arguments=edited(run, "1264.00"), preconditions=[CONDITION])
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
    assert [each.preselected for each in open_gate(second).standing().card.preconditions] == [True]
    before = len(world.refunds("20412"))
    approve_by_api(first)
    assert advance_to_rest(first).status == "completed"
    approve_by_api(second, **({"dropped": [CONDITION]} if dropped else {}))
    advance_to_rest(second)
    assert (second.status == "waiting") is not dropped
    assert len(world.refunds("20412")) - before == 1 + dropped


def test_what_was_taken_back_again_is_no_refund(world: World) -> None:
    run = make_refund_run("06")
    made = world.refund("a slip", "ch_20431", "5.00", "GBP").json()
    world.http.post(f"/refunds/{made['id']}/cancel").raise_for_status()
    decide(open_gate(run), ann(run.team), preconditions=[CONDITION])
    assert advance_to_rest(run).status == "completed"


def test_what_the_run_itself_paid_is_no_news_to_it(world: World) -> None:
    run = make_refund_run("03")
    agent = Refunds(RunInfo(run.pk, ""), 1)
    order: Any = type("Order", (), {"charge": "ch_20402"})
    before = agent.refunded(order)
    decide(open_gate(run), ann(run.team), preconditions=[CONDITION])
    assert advance_to_rest(run).status == "completed"
    assert world.refunds("20402") == [("147.90", "succeeded")]
    assert agent.refunded(order) == before == "€0.00"
    assert Refunds(RunInfo(run.pk + 1, ""), 1).refunded(order) == "€147.90"


@pytest.mark.parametrize("others", [False, True])
def test_a_finished_run_sent_back_asks_again_only_where_others_were_paid(others: bool, world: World) -> None:
    """Its own refund, counted as a change of the world, would have asked people what they had answered already."""
    mail, order = ("11", "20440") if others else ("14", "20391")
    run = make_refund_run(mail)
    decide(open_gate(run), ann(run.team), preconditions=[CONDITION])
    assert advance_to_rest(run).status == "completed"
    paid = world.refunds(order)
    assert len(paid) == 1
    if others:
        world.refund("somebody else", f"ch_{order}", "1.00", "USD").raise_for_status()
    rewind.rewind(run, to=2, by=ann(run.team))  # the mail was read; the order is looked up again
    advance_to_rest(run)
    assert run.status == ("waiting" if others else "completed")
    assert world.refunds(order)[: len(paid)] == paid
    assert len(world.refunds(order)) == len(paid) + others
    assert len(outbox.outbox) == 1


def test_a_provider_that_cannot_be_asked_opens_no_gate_and_pays_nothing(world: World) -> None:
    world.fault("charges", "500", times=4)
    run = make_refund_run("13")
    assert (open_gate(run).kind, open_gate(run).step) == ("recovery", "find_order")
    waiting = make_refund_run("12")
    decide(open_gate(waiting), ann(waiting.team), preconditions=[CONDITION])
    world.fault("charges", "cut_before", times=4)
    advance_to_rest(waiting)
    assert (open_gate(waiting).kind, open_gate(waiting).step) == ("recovery", "pay")
    assert (world.refunds("20455"), effects(waiting)) == ([], [])


def proposal(amount: str, charge: str = "ch_20424") -> Proposal:
    refund = Refund(amount=Decimal(amount), currency="EUR", reason=Reason.FAULTY, charge=charge, card="9071")
    return Proposal(refund=refund, reply=Reply(to="a@b.example", subject="", text=""))


def test_a_refund_is_found_by_its_key_as_paying_would_have_returned_it(world: World) -> None:
    agent, wanted = Refunds(RunInfo(0, ""), 1), proposal("1.00")
    assert agent.find_refund(wanted, key="k-found") is None
    paid = payments.refund(wanted.refund, "k-found", reference=agent.reference)
    assert agent.find_refund(wanted, key="k-found") == {"payment": paid}
    payments.cancel(paid.id)
    assert agent.find_refund(wanted, key="k-found") is None
    assert agent.find_refund(proposal("0.00"), key="k-nothing") == {"payment": None}


@pytest.mark.parametrize("kind", ["500", "500_after", "timeout", "cut_before", "cut_after"])
def test_a_provider_that_does_not_answer_has_not_said_no(
    kind: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.refund(f"k-{kind}", "ch_20424", "1.00").raise_for_status()
    monkeypatch.setattr(sending, "TIMEOUT", 0.3)
    world.fault("reads", kind, seconds=1)
    with pytest.raises(EffectUnknown):
        Refunds(RunInfo(0, ""), 1).find_refund(proposal("1.00"), key=f"k-{kind}")


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
    monkeypatch.setattr(payments, "provider", lambda: client)
    with pytest.raises(EffectUnknown):
        Refunds(RunInfo(0, ""), 1).find_refund(proposal("1.00"), key="k")


def test_a_question_at_the_gate_is_answered_from_the_facts_and_from_the_amount_as_it_stands() -> None:
    run = make_refund_run("01")
    gate = open_gate(run)
    assert answering.answer(questions.ask(gate, by=ann(run.team), text="Why this amount?", key="why").pk)
    [said] = [each.text or "" for each in thread.of_gate(gate) if each.by_agent]
    assert "I read the mail of" in said
    assert "is left" in said
    assert "The money goes back to the card ending 4417" in said
    assert "I have no model" in said
    assert [each.kind for each in thread.of_gate(gate)].count("gate.unanswered") == 0
