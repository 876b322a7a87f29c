"""The restock agent from the shelf to the supplier: one gate, three actions."""

from __future__ import annotations

import pytest
from django.core import mail as outbox

from approvals.errors import Invalid
from tests.agents.examples.refunds.conftest import World
from tests.factories import ann, decide
from tests.factories.driven_runs import advance_to_rest, open_gate, state

from .restock_runs import made, make_restock


def test_one_gate_asks_for_an_order_a_price_and_a_message() -> None:
    run = make_restock()
    card = open_gate(run).asked
    assert [(each.id, each.effect) for each in card.actions] == [
        ("order", "order"), ("price", "reprice"), ("message", "notify"),
    ]  # fmt: skip
    line = card.actions[0].arguments["lines"][0]
    assert line["sku"] == "COF-250"
    assert line["needed_by"] == "2026-03-06T08:15:00+01:00"


def test_a_yes_orders_reprices_and_writes_to_those_who_wait(world: World) -> None:
    run = make_restock()
    decide(open_gate(run), ann(run.team))
    assert advance_to_rest(run).status == "completed"
    assert [each["wanted"]["supplier"] for each in made(world, "orders", run)] == ["Nordkaffee AB"]
    assert [each["wanted"]["price"] for each in made(world, "prices", run)] == ["13.09"]
    assert outbox.outbox[-1].bcc == ["marit@ellery.example", "j.brandt@post.example"]
    assert "Nothing ordered" not in state(run)["summary"]


def test_reviewers_words_change_the_proposal() -> None:
    run = make_restock()
    before = open_gate(run).asked.actions[0].arguments["lines"][0]["quantity"]
    decide(open_gate(run), ann(run.team), "reject", then="back", comment="Half of that. And no price change.")
    advance_to_rest(run)
    order, price, _ = open_gate(run).asked.actions
    assert order.arguments["lines"][0]["quantity"] == before // 2
    assert price.arguments["price"] == price.arguments["old"]


def test_an_order_edited_a_price_refused_and_a_message_answered_for_make_one_report(world: World) -> None:
    run = make_restock()
    order = open_gate(run).asked.actions[0].arguments
    lines = [{**order["lines"][0], "quantity": 12, "note": None}, *order["lines"][1:]]
    each = {
        "order": {"verdict": "edit", "arguments": {**order, "lines": lines}},
        "price": {"verdict": "reject", "reason": "Regulars would not forgive it."},
        "message": {"verdict": "respond", "response": "I rang both of them."},
    }
    before = len(outbox.outbox)
    decide(open_gate(run), ann(run.team), "", verdicts=each)
    assert advance_to_rest(run).status == "completed"
    assert [each["wanted"]["lines"][0]["quantity"] for each in made(world, "orders", run)] == [12]
    assert made(world, "prices", run) == []
    assert len(outbox.outbox) == before
    now = state(run)
    assert now["sent"] == "I rang both of them."
    assert "The price stays: Regulars would not forgive it." in now["summary"]
    assert ("order", "/purchase/lines/0/quantity") in [(said["action"], said["pointer"]) for said in now["feedback"]]


def test_no_edit_says_that_an_article_costs_what_it_does_not() -> None:
    run = make_restock()
    price = open_gate(run).asked.actions[1].arguments
    with pytest.raises(Invalid, match="does not cost"):
        decide(open_gate(run), ann(run.team), "edit", arguments={"price": {**price, "old": "1.00"}})
