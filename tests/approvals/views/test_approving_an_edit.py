"""What is typed and approved is an approval with an edit: one press, said beforehand; without script, both ways."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from approvals.cards.card import Card
from approvals.models import Gate
from approvals.presentation.decision_form import send_button
from approvals.presentation.text import amounts
from checkpoints.runs.plans import PlanSpec, StepSpec
from tests.approvals.cards.verdicts.conftest import known_agents, ledger
from tests.approvals.cards.verdicts.verdict_forms import make_three
from tests.factories import ann, make_action, make_card, make_gate, make_policy, make_team
from tests.factories.driven_runs import open_gate
from tests.factories.runs import Proposal
from tests.harness.browser_checks import each_width
from tests.harness.signed_in_clients import form_of, post, signed_in

__all__ = ["known_agents", "ledger"]
NewPage = Callable[..., Page]
AMOUNT = "args.refund/amount"
FIELD = f"[name='{AMOUNT}']"
STEPS = (
    StepSpec("review", kind="gate", allows=("pay", "reply", "log")),
    StepSpec("pay", kind="effect", title="Pay the refund"),
    StepSpec("reply", kind="effect", title="Reply to the customer"),
    StepSpec("log", kind="effect", title="SMS the owner"),
)
PLAN = PlanSpec("robo", "1", state_schema={}, steps=STEPS)


def fresh(gate: Gate) -> Gate:
    return Gate.objects.get(pk=gate.pk)


def card(**amount: Any) -> Card:
    given = {"amount": "5.25", "currency": "GBP", "note": "4417", **amount}
    pay = make_action(id="p", pinned=["/amount", "/note"], arguments=given, schema=Proposal.model_json_schema())
    return make_card(
        amount="", actions=[pay, make_action(id="r", effect="reply", pinned=[])], allows=("pay", "reply", "log")
    )


def make_two() -> Gate:
    actions = [make_action(), make_action(id="letter", pointer="/order", effect="reply", pinned=[])]
    return make_gate(team=make_team(), card=make_card(actions=actions))


@pytest.mark.parametrize(
    ("value", "currency", "words"),
    [
        ("5.25", "GBP", "£5.25"),
        ("1264.1", "EUR", "€1,264.10"),
        (1284, "SEK", "1,284.00 SEK"),
        ("-3", "USD", "-$3.00"),
        ("0.0051", "EUR", "€0.0051"),
        ("0.00000001", "EUR", ""),
        ("much", "EUR", ""),
        (True, "EUR", ""),
        (None, "EUR", ""),
        ("NaN", "EUR", ""),
        ("1e30", "EUR", ""),
    ],
)
def test_an_amount_is_written_one_way_and_never_rounded(value: Any, currency: str, words: str) -> None:
    assert amounts.written(value, currency) == words


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        ("approve approve", "Approve: pay the refund £5.25, reply to the customer, SMS the owner"),
        ("edit approve", "Approve with edit: pay the refund £5.25, reply to the customer, SMS the owner"),
        ("approve reject", "Approve: pay the refund £5.25, SMS the owner; reject 1"),
        ("respond reject", "Approve: SMS the owner; reject 1; answer 1 instead"),
    ],
)
def test_the_button_says_what_a_mix_does(verdicts: str, words: str) -> None:
    said = dict(zip("pr", verdicts.split(), strict=True))
    assert send_button.deciding(card(), PLAN, said) == words
    assert send_button.deciding(card(), PLAN, {**said, "r": ""}) == "Send these verdicts"


def test_the_button_says_which_approval_it_is_where_one_is_not_enough() -> None:
    words = send_button.approving(card(amount="7.00"), PLAN, edited=False, votes="2 of 3")
    assert words == "Approve: pay the refund £7.00, reply to the customer, SMS the owner (2 of 3)"
    gate = make_gate(policy=make_policy(make_team(), quorum=2))
    page = signed_in(ann(gate.team)).get(f"/gates/{gate.pk}/").content.decode()
    assert "Approve: pay €120.00, reply (1 of 2)" in page


def test_an_amount_that_no_action_has_is_said_of_the_whole_until_it_is_edited() -> None:
    asked = replace(card(), amount="€759.80")
    assert send_button.approving(asked, PLAN, edited=False).startswith("Approve €759.80: pay the refund £5.25, ")
    assert send_button.approving(asked, PLAN, edited=True).startswith("Approve with edit: pay the refund £5.25, ")
    assert send_button.approving(replace(asked, amount="£5.25"), PLAN, edited=False).startswith(
        "Approve: pay the refund £5.25"
    )


def test_the_words_for_what_is_typed_come_with_the_number_of_its_entry() -> None:
    gate = make_gate(team=make_team())
    form = form_of(gate, "edit", **{AMOUNT: "30.00", "typed": "7"})
    told = signed_in(ann(gate.team)).post(f"/gates/{gate.pk}/impacts/", form, HTTP_HX_REQUEST="true").content.decode()
    assert '<span id="says-edit" data-says="7">Approve with edit: pay €30.00, reply</span>' in told


def test_an_approval_of_changed_fields_offers_both_ways_and_each_works() -> None:
    """It was refused with an advice that the page did not offer."""
    gate = make_gate(team=make_team())
    form = form_of(gate, "approve", **{AMOUNT: "30.00", "comment": "Half"})
    answer = post(ann(gate.team), gate, form)
    page = html.unescape(answer.content.decode())
    assert answer.status_code == 422
    assert "You changed a field but chose Approve. Send your change, or restore the original value." in page
    assert re.search(r'name="instead" value="edit">Approve with edit: pay €30.00, reply<', page)
    assert 'name="instead" value="restore"' in page
    restored = signed_in(ann(gate.team)).post(f"/gates/{gate.pk}/impacts/", {**form, "instead": "restore"})
    page = restored.content.decode()
    assert restored.status_code == 200
    assert 'value="120.00"' in page
    assert "30.00" not in page
    assert "Half" in page
    assert fresh(gate).status == "open"
    assert post(ann(gate.team), gate, {**form, "instead": "edit"}).status_code == 303
    assert fresh(gate).outcome.kind == "edited"
    assert fresh(gate).standing().card.actions[0].arguments["amount"] == "30.00"


def test_all_at_once_with_one_of_them_changed_offers_both_ways_too(ledger: Path) -> None:
    gate = open_gate(make_three(ledger))
    form = form_of(gate, "approve", **{"args.b/amount": "20"})
    page = post(ann(gate.team), gate, form).content.decode()
    assert 'name="instead" value="edit">Approve with edit: ' in page
    assert post(ann(gate.team), gate, {**form, "instead": "edit"}).status_code == 303
    assert fresh(gate).outcome.by_action == {"a": "approve", "b": "edit", "c": "approve"}


def test_all_at_once_with_edit_chosen_beside_what_is_changed_is_an_edit(ledger: Path) -> None:
    gate = open_gate(make_three(ledger))
    form = form_of(gate, "approve", **{"args.b/amount": "20", "verdict.b": "edit"})
    assert post(ann(gate.team), gate, form).status_code == 303
    assert fresh(gate).outcome.by_action == {"a": "approve", "b": "edit", "c": "approve"}


def test_all_approved_and_one_rejected_beside_it_is_no_approval() -> None:
    """Without script the rejection was passed over, and all of it ran."""
    gate = make_two()
    form = form_of(gate, "approve", **{"verdict.letter": "reject", "reason.letter": "Not this one."})
    answer = post(ann(gate.team), gate, form)
    assert answer.status_code == 422
    assert "You chose Approve for all actions, and something else for this one." in answer.content.decode()
    assert fresh(gate).status == "open"


@pytest.mark.parametrize("button", [{}, {"instead": "edit"}])
def test_an_edit_beside_a_rejection_turns_it_into_no_approval(button: dict[str, str]) -> None:
    """The rejected action was approved with the rest, and its reason was lost."""
    gate = make_two()
    each = {"verdict.refund": "edit", AMOUNT: "30.00", "verdict.letter": "reject", "reason.letter": "Not this one."}
    answer = post(ann(gate.team), gate, form_of(gate, "approve", **each, **button))
    assert answer.status_code == 422
    assert "You chose Approve for all actions, and something else for this one." in answer.content.decode()
    assert fresh(gate).status == "open"


@each_width
def test_an_approval_of_what_is_typed_is_an_edit_and_says_so(new_page: NewPage, width: int) -> None:
    """The field said 30.00 and the button "Approve €120.00"."""
    gate = make_gate(team=make_team())
    page = new_page(ann(gate.team), viewport={"width": width, "height": 844})
    page.goto(f"/gates/{gate.pk}/")
    button = page.locator("[data-commit]:visible")
    page.keyboard.press("a")
    expect(button).to_contain_text("Approve: pay €120.00, reply")
    page.fill(FIELD, "30.00")
    expect(button).to_contain_text("Approve with edit")
    page.locator("label[data-choice=approve]").click()
    expect(page.locator("[name=verdict][value=edit]")).to_be_checked()
    expect(button).to_contain_text("Approve with edit")
    page.fill(FIELD, "120.00")
    expect(button).to_have_count(0)


def test_an_action_without_a_verdict_is_gone_to_and_nothing_is_sent(new_page: NewPage, ledger: Path) -> None:
    gate = open_gate(make_three(ledger))
    page = new_page(ann(gate.team))
    page.goto(f"/gates/{gate.pk}/")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.url.endswith("/decisions/") else None)
    for name in "ab":
        page.locator(f"#action-{name} label[data-choice=approve]").click()
    button = page.locator("[data-commit]:visible")
    expect(button).to_contain_text("1 action still needs a verdict")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#action-c [data-ballot]").first).to_be_focused()
    expect(page.locator("#action-c")).to_be_in_viewport()
    page.keyboard.press("a")
    expect(button).to_contain_text("Approve: do one, do two, do three")
    assert sent == []
