"""Rejecting on the page: the reason is asked for, what ends a run is chosen by a person, and nothing typed is lost."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from playwright.sync_api import Page, expect

from approvals.models import Gate
from tests.factories import (
    ann,
    make_action,
    make_card,
    make_gate,
    make_plan,
    make_policy,
    make_run,
    make_spec,
    make_team,
)
from tests.factories.runs import STEPS
from tests.harness.browser_checks import each_width
from tests.harness.signed_in_clients import form_of, post, signed_in

from .test_gate_page import make_lacking

NewPage = Callable[..., Page]


def fresh(gate: Gate) -> Gate:
    return Gate.objects.get(pk=gate.pk)


def page_of(gate: Gate) -> str:
    return signed_in(ann(gate.team)).get(f"/gates/{gate.pk}/").content.decode()


def checked(page: str) -> list[str]:
    """What becomes of the run after a rejection, as the page has it chosen."""
    return re.findall(r'name="then" value="(\w+)" checked', page)


def make_final(**policy: Any) -> Gate:
    """A gate that names no step to go back to: a rejection of it can only end the run."""
    team, steps = make_team(), tuple(replace(step, on_reject="") for step in STEPS)
    run = make_run(team=team, plan=make_plan(make_spec(steps=steps)))
    return make_gate(run=run, policy=make_policy(team, **policy))


def make_two() -> Gate:
    actions = [make_action(), make_action(id="letter", pointer="/order", effect="reply", pinned=[])]
    return make_gate(team=make_team(), card=make_card(actions=actions))


def test_what_ends_a_run_is_never_chosen_beforehand() -> None:
    """`r`, Ctrl+Enter stopped the run at gates that name no step to go back to."""
    assert checked(page_of(make_final())) == []
    assert checked(page_of(make_gate(team=make_team()))) == ["back"]


def test_a_rejection_without_a_reason_and_a_choice_is_refused_with_both_named_at_their_fields() -> None:
    gate = make_final()
    answer = post(ann(gate.team), gate, form_of(gate, "reject"))
    page = html.unescape(answer.content.decode())
    assert answer.status_code == 422
    notice = page[page.index('id="refusal"') :]
    assert re.findall(r'href="#([^"]+)"', notice[: notice.index("</ul>")]) == ["feedback", "then"]
    assert 'id="feedback-error"' in page
    assert "Write why you reject this." in notice
    assert fresh(gate).status == "open"


def test_the_page_says_whether_the_policy_asks_for_a_reason() -> None:
    assert "The policy of this gate requires a reason." in page_of(make_gate(team=make_team()))
    gate = make_gate(policy=make_policy(make_team(), reason_required=False))
    page = page_of(gate)
    assert 'id="feedback"' in page
    assert "The policy of this gate requires a reason." not in page
    assert post(ann(gate.team), gate, form_of(gate, "reject", then="stop")).status_code == 303


def test_the_reasons_of_the_actions_go_with_a_rejection_of_all() -> None:
    """They were asked for beside each action, and dropped."""
    gate = make_two()
    form = form_of(gate, "reject", then="stop", feedback="Not today.", **{"reason.refund": "Twice the price."})
    assert post(ann(gate.team), gate, form).status_code == 303
    assert bytes(fresh(gate).outcome.feedback).decode() == "Not today.\n\n“Refund”: Twice the price."


def test_rejecting_each_by_itself_without_script_asks_what_becomes_of_the_run() -> None:
    gate = make_two()
    each = {f"verdict.{name}": "reject" for name in ("refund", "letter")}
    answer = post(ann(gate.team), gate, form_of(gate, "each", **each, **{"reason.refund": "Twice the price."}))
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "Choose what happens after the rejection." in page
    assert re.search(r'name="verdict" value="reject"[^>]* checked', page)
    assert "Twice the price." in page


@each_width
def test_r_and_control_enter_ask_for_the_reason_and_then_for_what_happens(new_page: NewPage, width: int) -> None:
    """They rejected at once, without a word, and ended the run."""
    gate = make_final()
    page = new_page(ann(gate.team), viewport={"width": width, "height": 844})
    page.goto(f"/gates/{gate.pk}/")
    page.keyboard.press("r")
    expect(page.locator("#feedback")).to_be_focused()
    page.keyboard.press("Control+Enter")
    button = page.locator("[data-commit]:visible")
    expect(button).to_contain_text("Write a reason to reject")
    assert fresh(gate).status == "open"
    page.keyboard.type("Wrong customer.")
    expect(button).to_contain_text("Choose what happens next")
    page.keyboard.press("Control+Enter")
    expect(page.locator("[name=then]").first).to_be_focused()
    assert fresh(gate).status == "open"
    page.keyboard.press("ArrowDown")
    expect(page.locator("[name=then][value=stop]")).to_be_checked()
    expect(button).to_contain_text("Reject and close this gate")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#gate-news")).to_contain_text("Rejected by Ann Okafor")
    assert bytes(fresh(gate).outcome.feedback).decode() == "Wrong customer."


def test_a_comment_that_was_written_before_rejecting_is_the_reason(new_page: NewPage) -> None:
    gate = make_gate(team=make_team())
    page = new_page(ann(gate.team))
    page.goto(f"/gates/{gate.pk}/")
    page.get_by_text("Add a comment for the record").click()
    page.fill("#comment", "Seen by Mira.")
    page.locator("label[data-choice=reject]").click()
    expect(page.locator("#feedback")).to_have_value("Seen by Mira.")
    expect(page.locator("#comment")).to_be_hidden()


def test_control_enter_at_a_gate_that_lacks_something_goes_where_it_is_filled_in(new_page: NewPage) -> None:
    """It was sent, and refused with the advice to choose an approval that is not offered there."""
    gate = make_lacking(make_team())
    page = new_page(ann(gate.team))
    page.goto(f"/gates/{gate.pk}/")
    button = page.locator("[data-commit]:visible")
    expect(button).to_contain_text("Fill in: Order number")
    page.keyboard.press("Control+Enter")
    page.keyboard.type("4417")
    expect(page.locator("[name$='/order']")).to_have_value("4417")
    expect(button).to_contain_text("Approve with edit")


def test_whoever_rejects_all_is_asked_for_one_reason(new_page: NewPage) -> None:
    """Every action had an empty box for a reason of its own as well."""
    actions = [make_action(), make_action(id="reply", effect="reply", pinned=[])]
    gate = make_gate(team=make_team(), card=make_card(actions=actions))
    page = new_page(ann(gate.team))
    page.goto(f"/gates/{gate.pk}/")
    own = page.locator("[name^='reason.']").filter(visible=True)
    page.locator("#decide label[data-choice=reject]").click()
    expect(page.locator("#feedback")).to_be_visible()
    expect(own).to_have_count(0)
    page.locator("#decide label[data-choice=each]").click()
    expect(own).to_have_count(2)
    own.first.fill("Not this one.")
    page.locator("#decide label[data-choice=reject]").click()
    expect(own).to_have_count(1)
    expect(own).to_have_value("Not this one.")
