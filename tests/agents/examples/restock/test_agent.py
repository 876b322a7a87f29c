"""The restock agent from the shelf to the supplier: one gate, three actions, of which one has lists and branches."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core import mail as outbox

from agents.examples.restock import Restock
from agents.runs.start import start_run
from approvals.errors import Invalid
from approvals.models import Decision, Gate
from checkpoints import actors
from checkpoints.models import Run
from tests.agents.examples.refunds.conftest import World
from tests.factories import ann, decide, make_team
from tests.factories.driven_runs import advance_to_rest, open_gate, state
from tests.harness.session import ROOT
from tests.harness.signed_in_clients import form_of, post, signed_in

SHELVES: Path = ROOT / "agents" / "examples" / "restock" / "shelves"


def make_restock(number: int = 0, *, team: Group | None = None) -> Run:
    input = Restock.inputs_from(SHELVES)[number]
    return advance_to_rest(start_run("restock", input, by=actors.SYSTEM, team=team or make_team()))


def made(world: World, kind: str, run: Run) -> list[dict[str, Any]]:
    """What the supplier ("orders") or the till ("prices") made of a run, oldest first."""
    keys = set(run.effects.values_list("key", flat=True))
    return [each for each in world.http.get(f"/{kind}").json()["items"] if each["key"] in keys]


def test_one_gate_asks_for_three_and_a_yes_orders_reprices_and_writes_to_those_who_wait(world: World) -> None:
    run = make_restock()
    card = open_gate(run).asked
    assert [(each.id, each.effect) for each in card.actions] == [
        ("order", "order"), ("price", "reprice"), ("message", "notify"),
    ]  # fmt: skip
    line = card.actions[0].arguments["lines"][0]
    assert (line["sku"], line["needed_by"]) == ("COF-250", "2026-03-06T08:15:00+01:00")
    price = card.actions[1].arguments
    with pytest.raises(Invalid, match="does not cost"):
        decide(open_gate(run), ann(run.team), "edit", arguments={"price": {**price, "old": "1.00"}})
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


def changed(gate: Gate, change: str, form: dict[str, str], **headers: str) -> Any:
    client = signed_in(ann(gate.team))
    return client.post(f"/gates/{gate.pk}/forms/", {**form, "change": change}, headers=headers)


LINES = {"args.order!order/lines": "/0/1/2"}  # as the page posts which lines the order has


def test_a_button_draws_the_page_or_with_script_the_one_form_anew_with_all_that_was_typed() -> None:
    gate = open_gate(make_restock())
    typed = {"args.order/lines/0/quantity": "50", "args.message/subject": "Soon", "comment": "my words"}
    answer = changed(gate, "args.order/lines:add", form_of(gate, "", **LINES, **typed))
    page = answer.content.decode()
    assert answer.status_code == 200
    assert 'name="args.order/lines/~new1/sku"' in page
    assert 'value="50"' in page
    assert 'value="Soon"' in page
    assert "my words" in page
    assert re.search(r'name="verdict\.order" value="edit"[^>]* checked', page)
    assert not Decision.objects.filter(gate=gate).exists()

    form = form_of(gate, "", **LINES, **{"args.order/lines/0/quantity": "50"})
    page = changed(gate, "args.order/lines/1:up", form, **{"X-Fragment": "form"}).content.decode()
    assert page.lstrip().startswith('<div class="action-form" id="form-args.order">')
    assert page.count('class="action-form"') == 1
    assert page.index("args.order/lines/1/sku") < page.index("args.order/lines/0/sku")
    assert 'value="50"' in page
    assert "Your edit" in page
    decide(gate, ann(gate.team), "reject", then="stop")
    assert changed(gate, "args.order/lines:add", form).status_code == 409


def test_a_time_that_the_browser_sends_back_without_its_seconds_is_no_edit() -> None:
    gate = open_gate(make_restock())
    line = gate.asked.actions[0].arguments["lines"][0]["needed_by"]
    form = {"args.order/lines/0/needed_by": line[:16], "args.order!zone/lines/0/needed_by": line[19:]}
    assert post(ann(gate.team), gate, form_of(gate, "approve", **form)).status_code == 303
