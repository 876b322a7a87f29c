"""Deciding by the form, all at once or action by action: what is taken, what is refused, and that nothing is lost."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from approvals.cards.action import Action
from approvals.cards.card import Card
from approvals.models import Decision, Gate
from approvals.presentation.decision_form import posted
from tests.approvals.cards.verdicts.conftest import known_agents, ledger
from tests.approvals.cards.verdicts.verdict_forms import APPROVE, make_three, reject, respond, say
from tests.approvals.views.test_drafts import page_of
from tests.factories import (
    ann,
    bob,
    decide,
    edit_amount,
    make_action,
    make_card,
    make_gate,
    make_plan,
    make_policy,
    make_run,
    make_spec,
    make_team,
    make_user,
)
from tests.factories.driven_runs import open_gate
from tests.factories.runs import STEPS
from tests.harness.signed_in_clients import form_of, post, signed_in


def fresh(gate: Gate) -> Gate:
    return Gate.objects.get(pk=gate.pk)


def test_an_approval_leads_back_to_the_gate_which_says_what_runs_now() -> None:
    gate, reviewer = make_gate(team=(team := make_team())), ann(team)
    answer = post(reviewer, gate, form_of(gate))
    assert (answer.status_code, answer["Location"]) == (303, f"/gates/{gate.pk}/")
    page = signed_in(reviewer).get(answer["Location"]).content.decode()
    assert "Approved by Ann Okafor" in page
    assert "Next: “Pay” and “Reply”." in page


def test_a_refused_edit_leads_from_its_notice_to_each_place_and_keeps_all_that_was_typed() -> None:
    """The notice said "correct what is marked" far above it; and "much" stood over the old amount in words."""
    gate = make_gate(team=(team := make_team()))
    typed = {"args.refund/amount": "much", "args.refund/currency": "USD", "comment": "my words"}
    answer = post(ann(team), gate, form_of(gate, "edit", **typed))
    page = answer.content.decode()
    assert answer.status_code == 422
    notice = page[page.index('id="refusal"') :].partition("</ul>")[0]
    linked = re.search(r'href="#(f-args-refund-amount-[^"]+)"', notice)
    assert linked, notice
    for shown in (f'id="{linked[1]}"', 'aria-invalid="true"', "Write a number with a point", *typed.values()):
        assert shown in page
    assert "autofocus" in notice
    assert re.search(r'<dd class="pin-words"[^>]*></dd>', page)
    untouched = signed_in(ann(team)).get(f"/gates/{gate.pk}/").content.decode()
    assert re.search(r'<dd class="pin-words"[^>]*>one hundred', untouched)
    assert not Decision.objects.filter(gate=gate).exists()


def test_a_value_put_in_its_place_is_an_edit_and_junk_there_is_refused_beside_the_field() -> None:
    gate = make_gate(team=(team := make_team()))
    answer = post(ann(team), gate, form_of(gate, "reject", then="override", **{"override.refund": '{"amount": NaN}'}))
    assert (answer.status_code, fresh(gate).status) == (422, "open")
    page = answer.content.decode()
    assert re.search(r'id="override-1-error">\s*<svg.*Write JSON', page), "beside the field, and not only above"
    assert 'aria-describedby="override-1-error"' in page
    value = '{"amount": "0.00", "currency": "EUR", "reply": "", "note": null}'
    answer = post(ann(team), gate, form_of(gate, "reject", then="override", **{"override.refund": value}))
    assert (answer.status_code, fresh(gate).outcome.kind) == (303, "edited")


def test_whoever_was_slower_is_told_who_was_faster_and_keeps_the_edit() -> None:
    gate = make_gate(team=(team := make_team()))
    form = form_of(gate, "edit", **{"args.refund/amount": "55.55"}) | {"comment": "my comment"}
    decide(gate, bob(team))
    answer = post(ann(team), gate, form)
    page = answer.content.decode()
    assert answer.status_code == 409
    assert "Bob Lindqvist already decided this" in page
    assert "55.55" in page
    assert "my comment" in page
    assert 'id="decision"' not in page


def test_a_decision_on_what_has_changed_is_refused_with_the_difference_and_the_edit_is_kept() -> None:
    gate = make_gate(policy=make_policy(team := make_team(), quorum=2))
    form = form_of(gate, "edit", **{"args.refund/amount": "55.55"})
    decide(gate, bob(team), "edit", arguments=edit_amount(gate, "7.00"))
    answer = post(ann(team), gate, form)
    page = answer.content.decode()
    assert answer.status_code == 409
    assert "Bob Lindqvist edited this gate after you opened it" in page
    assert "<del>120.00</del>" in page
    assert 'value="55.55"' in page
    assert 'name="conflict.args.refund/amount" value="55.55"' in page
    assert 'name="proposal" value="2"' in page


def test_a_forged_digest_decides_nothing() -> None:
    gate = make_gate(team=(team := make_team()))
    for seen in ("", "zz", "00" * 32):
        assert post(ann(team), gate, form_of(gate) | {"seen": seen}).status_code == 409
    assert fresh(gate).status == "open"


def test_a_session_that_ended_leads_to_sign_in_and_back_to_the_gate() -> None:
    gate = make_gate()
    answer = Client().post(f"/gates/{gate.pk}/decisions/", form_of(gate))
    assert answer["Location"] == f"/accounts/login/?next=/gates/{gate.pk}/"


def test_a_recovery_gate_takes_an_answer_with_its_value() -> None:
    gate, reviewer = make_gate(team=(team := make_team()), kind="recovery"), ann(team)
    page = signed_in(reviewer).get(f"/gates/{gate.pk}/").content.decode()
    assert "It happened" in page
    assert 'name="value.happened"' in page
    bad = post(reviewer, gate, form_of(gate, "answer", answer="happened", **{"value.happened": "[1]"}))
    assert bad.status_code == 422
    assert "checked" in bad.content.decode()
    assert post(reviewer, gate, form_of(gate, "answer")).status_code == 422
    good = form_of(gate, "answer", answer="happened", **{"value.happened": '{"reference": "x"}'})
    assert (post(reviewer, gate, good).status_code, fresh(gate).outcome.kind) == (303, "answered")


def test_the_first_of_two_is_told_for_whom_it_waits_and_may_change_their_mind() -> None:
    gate, reviewer = make_gate(policy=make_policy(team := make_team(), quorum=2)), ann(team)
    assert "Approve: pay €120.00, reply (1 of 2)" in page_of(reviewer, gate)
    assert post(reviewer, gate, form_of(gate)).status_code == 303
    page = signed_in(reviewer).get(f"/gates/{gate.pk}/").content.decode()
    assert "Approved by you." in page
    assert "Waiting for 1 more approval" in page
    assert "Change your mind" in page
    assert post(make_user("Bob", team), gate, form_of(gate)).status_code == 303
    assert fresh(gate).status == "decided"


def test_a_value_or_an_answer_that_only_python_takes_for_the_same_is_another() -> None:
    """A typed `true` where 1 stood was dropped: Approve went through beside it, and Edit said that nothing changed."""
    card = Card(title="t", actions=[Action(id="a", pointer="/x", arguments={"n": 1, "share": 1.0})])
    typed = {"args.a": '{"n": true, "share": 1}'}
    assert posted.read({"verdict": "approve", **typed}, card).typed.errors
    assert posted.read({"verdict": "edit", **typed}, card).decision["arguments"] == {"a": {"n": True, "share": 1}}
    override = {"verdict": "reject", "then": "override", "override.a": typed["args.a"]}
    assert not posted.read(override, card).typed.errors

    # `true` was counted as agreement with 1: two people closed the gate on a value that one of them never gave.
    gate = make_gate(policy=make_policy(team := make_team(), name="default", quorum=2), kind="recovery")
    decide(gate, ann(team), "answer", answer={"choice": "happened", "value": {"paid": 1}})
    decide(gate, bob(team), "answer", answer={"choice": "happened", "value": {"paid": True}})
    assert (fresh(gate).status, fresh(gate).proposal) == ("open", 3)


@pytest.mark.parametrize(
    ("typed", "limit"),
    [
        ({"args.refund/reason": "x" * 2_700_000}, "A form may carry 2.5\u00a0MB"),
        ({f"args.refund/more/{n}": "x" for n in range(20_001)}, "A form may have 20,000 fields"),
    ],
    ids=["long", "many"],
)
def test_a_form_that_is_too_large_is_refused_with_the_limit_and_nothing_is_decided(
    typed: dict[str, str], limit: str
) -> None:
    gate = make_gate(team=(team := make_team()))
    form, kind = urlencode(form_of(gate) | typed), "application/x-www-form-urlencoded"
    answer = signed_in(ann(team)).post(f"/gates/{gate.pk}/decisions/", form, content_type=kind)
    assert (answer.status_code, fresh(gate).status) == (413, "open")
    assert limit in answer.content.decode()
    many = {f"args.refund/more/{n}": "x" for n in range(1_500)}  # more than Django reads by itself
    assert (post(ann(team), gate, form_of(gate) | many).status_code, fresh(gate).status) == (303, "decided")


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
    final, other = make_final(), make_gate(team=make_team())
    assert checked(page_of(ann(final.team), final)) == []
    assert checked(page_of(ann(other.team), other)) == ["back"]


def test_a_rejection_without_a_choice_or_a_reason_that_the_policy_requires_is_refused_at_their_fields() -> None:
    gate = make_final()
    assert "The policy of this gate requires a reason." in page_of(ann(gate.team), gate)
    answer = post(ann(gate.team), gate, form_of(gate, "reject"))
    page = html.unescape(answer.content.decode())
    assert answer.status_code == 422
    notice = page[page.index('id="refusal"') :]
    assert re.findall(r'href="#([^"]+)"', notice[: notice.index("</ul>")]) == ["feedback", "then"]
    assert 'id="feedback-error"' in page
    assert "Write why you reject this." in notice
    assert fresh(gate).status == "open"
    gate = make_final(reason_required=False)
    page = page_of(ann(gate.team), gate)
    assert 'id="feedback"' in page
    assert "The policy of this gate requires a reason." not in page
    assert post(ann(gate.team), gate, form_of(gate, "reject", then="stop")).status_code == 303


def test_the_reasons_of_the_actions_go_with_a_rejection_of_all() -> None:
    """They were asked for beside each action, and dropped."""
    gate = make_two()
    form = form_of(gate, "reject", then="stop", feedback="Not today.", **{"reason.refund": "Twice the price."})
    assert post(ann(gate.team), gate, form).status_code == 303
    assert bytes(fresh(gate).outcome.feedback).decode() == "Not today.\n\n“Refund”: Twice the price."


__all__ = ["known_agents", "ledger"]
AMOUNT_B = "args.b/amount"


def each(a: str, b: str, c: str, **more: str) -> dict[str, str]:
    """A form that decides each action by itself; `reason_c` is the field reason.c."""
    fields = {name.replace("_", "."): text for name, text in more.items()}
    return {"verdict": "each", "verdict.a": a, "verdict.b": b, "verdict.c": c, **fields}


def test_each_action_has_a_choice_with_what_it_takes_and_one_gate_has_none(ledger: Path) -> None:
    run = make_three(ledger)
    page = page_of(ann(run.team), open_gate(run))
    found = {name: re.findall(rf'name="verdict\.{name}" value="(\w+)"', page) for name in "abc"}
    plain = ["approve", "edit", "reject"]
    assert found == {"a": plain, "b": plain, "c": [*plain, "respond"]}
    team = make_team()
    assert 'name="verdict.' not in page_of(ann(team), make_gate(team=team))


def test_a_form_that_approves_edits_and_rejects_makes_one_outcome(ledger: Path) -> None:
    run = make_three(ledger)
    gate = open_gate(run)
    form = form_of(gate) | each("approve", "edit", "reject", reason_c="Not now.") | {AMOUNT_B: "20"}
    assert post(ann(run.team), gate, form).status_code == 303
    outcome = fresh(gate).outcome
    assert (outcome.kind, outcome.by_action) == ("mixed", {"a": "approve", "b": "edit", "c": "reject"})
    page = page_of(ann(run.team), gate)
    for words in ("Approved 1, edited 1, rejected 1 by Ann Okafor", "Not now.", 'data-verdict="reject"'):
        assert words in page
    assert "Approved 1, edited 1, rejected 1 by" in signed_in(bob(run.team)).get("/?queue=decided").content.decode()


def test_what_is_missing_is_said_beside_each_and_everything_typed_is_kept(ledger: Path) -> None:
    run = make_three(ledger)
    gate = open_gate(run)

    def refused(*verdicts: str, **more: str) -> str:
        form = form_of(gate) | each(*verdicts, **more) | {AMOUNT_B: "20", "comment": "Mine"}
        answer = post(ann(run.team), gate, form)
        assert answer.status_code == 422
        return str(answer.content.decode())

    page = refused("approve", "", "respond", reason_c="half a thought")
    for said in (
        "Choose a verdict for this action.",
        "Write what the agent gets in its place.",
        'value="20"',
        "half a thought",
        "Mine",
    ):
        assert said in page
    assert re.search(r'name="verdict\.c" value="respond"[^>]* checked', page)
    page = refused("approve", "", "reject")
    notice = page[page.index('id="refusal"') :].partition("</ul>")[0]
    places = re.findall(r'href="#([^"]+)"', notice)
    assert places == ["action-b", "reason-3"]
    assert all(f'id="{place}"' in page for place in (*places, "reason-3-error"))
    assert re.search(r'name="reason\.c"[^>]*aria-invalid="true"', page)
    assert "You changed a field but chose Approve." in refused("approve", "approve", "approve")
    assert fresh(gate).status == "open"


def test_the_slower_one_sees_what_was_decided_and_what_they_had_chosen(ledger: Path) -> None:
    run = make_three(ledger)
    gate = open_gate(run)
    form = form_of(gate) | each("approve", "edit", "reject", reason_c="My own reason.") | {AMOUNT_B: "33"}
    say(run, by=bob(run.team), each={"a": reject("Too dear."), "b": APPROVE, "c": respond("I rang them.")})
    answer = post(ann(run.team), gate, form)
    page = answer.content.decode()
    assert answer.status_code == 409
    assert "Bob Lindqvist already decided this" in page
    for words in ("Approved 1, rejected 1, answered 1 by Bob Lindqvist", "Too dear.", "My own reason.", "33"):
        assert words in page


def told(gate: Gate, **form: str) -> str:
    sent = form_of(gate) | {name.replace("__", "."): text for name, text in form.items()}
    answer = signed_in(ann(gate.team)).post(f"/gates/{gate.pk}/impacts/", sent, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_whoever_rejects_is_not_told_what_does_not_hold_in_what_is_not_sent(ledger: Path) -> None:
    """A rejection said that a value does not hold, which read as if it could not be sent."""
    gate = make_gate(team=make_team())
    wrong = {"args__refund/amount": "much"}
    assert "1 field to correct" in told(gate, verdict="edit", **wrong)
    for then in ("stop", "back", "override"):
        shown = told(gate, verdict="reject", then=then, **wrong)
        assert "to correct" not in shown
        assert "data-fault" not in shown

    gate = open_gate(make_three(ledger))
    wrong = {"args__b/amount": "much", "args__c/amount": "more"}
    each = {"verdict": "each", "verdict__a": "approve", "verdict__b": "edit"}
    assert "2 fields to correct" in told(gate, **each, verdict__c="edit", **wrong)
    for refusal in ("reject", "respond"):
        assert "1 field to correct" in told(gate, **each, verdict__c=refusal, **wrong)
