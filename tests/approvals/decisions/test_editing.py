"""An edit changes what the gate offers, in values that the agent's own model takes, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from approvals.cards import binding
from approvals.errors import CardRefused, EditRefused, Invalid
from approvals.models import Gate, Outcome
from checkpoints import store
from checkpoints.runs.plans import StepSpec
from checkpoints.values import patch
from checkpoints.values.digests import StretchDigest, of_field
from tests.factories import (
    ann,
    decide,
    make_action,
    make_card,
    make_gate,
    make_plan,
    make_policy,
    make_run,
    make_spec,
    make_state,
    make_team,
)

REFUND = {"amount": "120.00", "currency": "EUR", "reply": "Dear Marit, here you are.", "note": None}


def outcome_of(arguments: dict[str, Any], **gate: Any) -> Outcome:
    """Say how a gate ends when ann edits it so."""
    team = make_team()
    opened = make_gate(team=team, **gate)
    decide(opened, ann(team), "edit", arguments=arguments)
    return Outcome.objects.get(gate=opened)


def refused(kind: type[Invalid] | type[EditRefused], arguments: dict[str, Any], **gate: Any) -> list[tuple[str, str]]:
    """The (pointer within the arguments, pointer within the state) of each fault; the gate is as it was."""
    team = make_team()
    opened = make_gate(team=team, **gate)
    with pytest.raises(kind) as caught:
        decide(opened, ann(team), "edit", arguments=arguments)
    after = Gate.objects.get(pk=opened.pk)
    assert (after.status, after.proposal, after.version) == ("open", 1, 1)
    assert type(caught.value) is kind
    return [(error["pointer"], error["at"]) for error in caught.value.errors]


def test_an_edit_is_kept_as_a_patch_on_the_saved_state_and_as_what_will_run() -> None:
    outcome = outcome_of({"refund": {**REFUND, "amount": "80.50"}})
    assert outcome.kind == "edited"
    assert outcome.state_patch == [{"op": "replace", "path": "/proposal/amount", "value": "80.50"}]
    assert outcome.approved().actions[0].arguments == {**REFUND, "amount": "80.50"}
    assert outcome.decisions.get().verdict == "edit"


def test_what_may_run_is_bound_to_the_state_with_the_edit_in_it() -> None:
    outcome = outcome_of({"refund": {**REFUND, "amount": "80.50"}})
    saved = store.load_checkpoint(outcome.gate.checkpoint).state

    def digest_over(state: dict[str, Any]) -> bytes:
        approved = outcome.approved()
        return binding.recompute(
            approved,
            effect="pay",
            run=approved.run,
            agent=approved.agent,
            version=approved.version,
            plan=approved.plan,
            state=state,
            fields={name: of_field(value, StretchDigest) for name, value in state.items()},
        )

    assert digest_over(patch.apply(outcome.state_patch, saved)) == bytes(outcome.to_run or b"")
    assert digest_over(saved) != bytes(outcome.to_run or b"")


def test_what_runs_is_the_normal_form_of_what_was_typed() -> None:
    outcome = outcome_of({"refund": {**REFUND, "amount": 80.5}})
    assert outcome.approved().actions[0].arguments["amount"] == "80.5"


def test_an_edited_card_no_longer_names_the_amount_that_will_not_run() -> None:
    outcome = outcome_of({"refund": {**REFUND, "amount": "80.50"}})
    assert outcome.gate.asked.amount == "€120.00"
    assert outcome.proposal.card.amount == ""


def test_all_values_that_do_not_hold_are_named_at_once_by_pointer() -> None:
    places = refused(Invalid, {"refund": {**REFUND, "amount": "a lot", "currency": None}})
    assert sorted(places) == [("/amount", "/proposal/amount"), ("/currency", "/proposal/currency")]


def test_an_edit_without_a_difference_is_refused_in_favour_of_an_approval() -> None:
    team = make_team()
    gate = make_gate(team=team)
    for arguments in ({"refund": REFUND}, {}):
        with pytest.raises(Invalid, match="choose Approve"):
            decide(gate, ann(team), "edit", arguments=arguments)


@pytest.mark.parametrize(
    ("arguments", "pointer"),
    [
        ({"refund": {**REFUND, "status": "decided"}}, "/status"),
        ({"refund": {**REFUND, "tool": "payments.wipe"}}, "/tool"),
        ({"refund": {**REFUND, "decided_by": 1, "amount": "80"}}, "/decided_by"),
        ({"other": {"amount": "80"}}, ""),
        ({"status": "approved"}, ""),
    ],
)
def test_names_that_the_gate_does_not_offer_are_refused_and_not_dropped(
    arguments: dict[str, Any], pointer: str
) -> None:
    assert [place for place, _ in refused(EditRefused, arguments)] == [pointer]


def test_an_action_that_may_not_be_edited_is_refused_with_every_place_touched() -> None:
    card = make_card(actions=[make_action(edits=False)])
    places = refused(EditRefused, {"refund": {**REFUND, "amount": "1", "currency": "USD"}}, card=card)
    assert places == [("/amount", "/proposal/amount"), ("/currency", "/proposal/currency")]


def test_an_action_outside_what_the_gate_lets_people_edit_is_shown_and_refused() -> None:
    card = make_card(actions=[make_action(), make_action(id="order", effect="", pointer="/order", pinned=())])
    places = refused(EditRefused, {"order": {"number": "A-2"}}, card=card)
    assert places == [("/number", "/order/number")]


def test_a_gate_may_offer_one_place_of_an_action_only() -> None:
    steps = tuple(
        step
        if step.kind != "gate"
        else StepSpec("review", kind="gate", allows=("pay", "reply"), edits=("/proposal/reply",))
        for step in make_spec().steps
    )
    plan = make_plan(make_spec(steps=steps))
    team = make_team()
    gate = make_gate(run=make_run(team=team, plan=plan))
    with pytest.raises(EditRefused):
        decide(gate, ann(team), "edit", arguments={"refund": {**REFUND, "amount": "1", "reply": "Hello"}})
    decide(gate, ann(team), "edit", arguments={"refund": {**REFUND, "reply": "Hello"}})
    assert [op["path"] for op in Outcome.objects.get(gate=gate).state_patch] == ["/proposal/reply"]


@pytest.mark.parametrize("items", [["c", "a", "b"], ["b", "c"], ["x", "a", "b", "c"]])
def test_one_item_that_is_offered_is_no_leave_to_shift_the_others(items: list[str]) -> None:
    steps = tuple(
        replace(step, edits=("/order/items/0",)) if step.kind == "gate" else step for step in make_spec().steps
    )
    run = make_run(plan=make_plan(make_spec(steps=steps)), state=make_state(order={"items": ["a", "b", "c"]}))
    gate = make_gate(run=run, card=make_card(actions=[make_action(pointer="/order", pinned=[])]))
    with pytest.raises(EditRefused) as caught:
        decide(gate, ann(run.team), "edit", arguments={"refund": {"items": items}})
    assert {error["message"] for error in caught.value.errors} == {"This cannot be edited here."}
    decide(gate, ann(run.team), "edit", arguments={"refund": {"items": ["x", "b", "c"]}})


def test_two_actions_that_share_a_value_are_edited_in_one_of_them() -> None:
    reply = make_action(id="mail", effect="reply", pointer="/proposal/reply", pinned=())
    card = make_card(actions=[make_action(), reply])
    both = {"refund": {**REFUND, "reply": "One"}, "mail": "Two"}
    assert refused(EditRefused, both, card=card) == [("", "/proposal/reply")]
    outcome = outcome_of({"mail": "Two"}, card=card)
    assert [action.arguments for action in outcome.approved().actions] == [{**REFUND, "reply": "Two"}, "Two"]


def test_an_edit_that_no_installed_agent_can_check_is_refused_with_what_to_do() -> None:
    team = make_team()
    gate = make_gate(run=make_run(team=team, plan=make_plan(make_spec("stranger"))))
    with pytest.raises(Invalid, match="does not know the agent's version"):
        decide(gate, ann(team), "edit", arguments={"refund": {**REFUND, "amount": "80"}})
    assert decide(gate, ann(team))


@pytest.mark.parametrize("value", [float("nan"), "\ud800", {1: "one"}])
def test_a_value_that_no_state_can_hold_is_refused(value: Any) -> None:
    team = make_team()
    gate = make_gate(team=team)
    with pytest.raises(Invalid) as caught:
        decide(gate, ann(team), "edit", arguments={"refund": {**REFUND, "note": value}})
    assert [(error["action"], error["pointer"]) for error in caught.value.errors] == [("refund", "/note")]
    assert not gate.decisions.exists()


def test_a_value_that_only_looks_the_same_is_an_edit() -> None:
    composed, decomposed = "Caf\u00e9", "Cafe\u0301"
    state = make_state(proposal={**REFUND, "reply": composed})
    team = make_team()
    gate = make_gate(run=make_run(team=team, state=state))
    decide(gate, ann(team), "edit", arguments={"refund": {**REFUND, "reply": decomposed}})
    assert Outcome.objects.get(gate=gate).approved().actions[0].arguments["reply"] == decomposed


def amount_beside(**more: Any) -> dict[str, Any]:
    """The refund with an action of its own for the amount, which lies in it."""
    amount = make_action(id="amount", tool="payments.limit", effect="", pointer="/proposal/amount", pinned=[], **more)
    return {"card": make_card(actions=[make_action(pinned=[]), amount])}


def test_an_edit_of_one_action_changes_no_other_that_takes_none() -> None:
    """What lay in it was changed along: an action that takes no edit was approved with another value."""
    beside = amount_beside(verdicts=["approve", "reject"])
    found = refused(EditRefused, {"refund": {**REFUND, "amount": "1.00"}}, **beside)
    assert found == [("/amount", "/proposal/amount")]
    assert outcome_of({"refund": {**REFUND, "reply": "No."}}, **beside).kind == "edited"
    assert outcome_of({"refund": {**REFUND, "amount": "1.00"}}, **amount_beside()).kind == "edited"


def test_an_edit_takes_no_place_away_that_another_action_asks_about() -> None:
    """The answer was 500: the place was looked for in what the edit made."""
    steps = tuple(replace(step, edits=("order",)) if step.kind == "gate" else step for step in make_spec().steps)
    state = make_state(order={"lines": [{"sku": "a"}, {"sku": "b"}]})
    actions = [
        make_action(id="lines", pointer="/order/lines", pinned=[]),
        make_action(id="second", effect="", pointer="/order/lines/1", pinned=[]),
    ]
    run = make_run(plan=make_plan(make_spec(steps=steps)), state=state)
    gate = make_gate(run=run, card=make_card(actions=actions))
    with pytest.raises(EditRefused) as caught:
        decide(gate, ann(run.team), "edit", arguments={"lines": [{"sku": "a"}]})
    assert [each["at"] for each in caught.value.errors] == ["/order/lines/1"]


def test_an_edit_beside_a_refusal_leaves_what_is_refused_as_it_is() -> None:
    """A refused action took the value that another's edit had put into it."""
    team = make_team()
    opened = make_gate(policy=make_policy(team, quorum=2), **amount_beside())
    new = {**REFUND, "amount": "1.00"}
    each = {
        "refund": {"verdict": "edit", "arguments": new},
        "amount": {"verdict": "reject", "reason": "As the shop says."},
    }
    with pytest.raises(EditRefused):
        decide(opened, ann(team), "", verdicts=each)
    assert Gate.objects.get(pk=opened.pk).proposal == 1


def test_more_is_not_pinned_than_anybody_reads() -> None:
    """A pinned value is never folded, so that eight million characters of one made a page of them."""
    state = make_state()
    state["proposal"]["reply"] = "x" * 100_000
    with pytest.raises(CardRefused, match="pins more than 100,000 bytes"):
        make_gate(run=make_run(state=state), card=make_card(actions=[make_action(pinned=["/reply"])]))


def test_an_edit_puts_no_more_into_a_pinned_value_than_anybody_reads() -> None:
    card = make_card(actions=[make_action(pinned=["/reply"])])
    assert refused(Invalid, {"refund": {**REFUND, "reply": "x" * 100_000}}, card=card) == [("", "")]
