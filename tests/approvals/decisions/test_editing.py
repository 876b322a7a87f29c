"""An edit changes what the gate offers, or the whole state where the policy says so, as the agent's model takes it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from approvals.cards import binding
from approvals.errors import CardRefused, EditRefused, Invalid, StaleGate
from approvals.models import Decision, Gate, Outcome
from checkpoints import store
from checkpoints.models import Event
from checkpoints.values import patch
from checkpoints.values.canonical_json import encode_canonical
from checkpoints.values.digests import StretchDigest, of_field
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
    make_state,
    make_team,
)

Kind = type[Invalid] | type[EditRefused]
REFUND = {"amount": "120.00", "currency": "EUR", "reply": "Dear Marit, here you are.", "note": None}


def outcome_of(arguments: dict[str, Any], **gate: Any) -> Outcome:
    team = make_team()
    opened = make_gate(team=team, **gate)
    decide(opened, ann(team), "edit", arguments=arguments)
    return Outcome.objects.get(gate=opened)


def refused(kind: Kind, gate: Gate | None = None, *, card: Any = None, **said: Any) -> list[tuple[str, str]]:
    """The (pointer within the arguments, pointer within the state) of each fault; the gate is as it was."""
    gate = gate or make_gate(team=make_team(), card=card)
    with pytest.raises(kind) as caught:
        decide(gate, ann(gate.team), "edit", **said)
    after = Gate.objects.get(pk=gate.pk)
    assert (after.status, after.proposal, after.version) == ("open", 1, 1)
    assert type(caught.value) is kind
    return [(error["pointer"], error["at"]) for error in caught.value.errors]


def test_an_edit_is_a_patch_on_the_saved_state_and_what_runs_is_bound_to_it() -> None:
    outcome = outcome_of({"refund": {**REFUND, "amount": "80.50"}})
    assert outcome.kind == "edited"
    assert outcome.state_patch == [{"op": "replace", "path": "/proposal/amount", "value": "80.50"}]
    assert outcome.approved().actions[0].arguments == {**REFUND, "amount": "80.50"}
    assert outcome.decisions.get().verdict == "edit"
    saved = store.load_checkpoint(outcome.gate.checkpoint).state

    def digest_over(state: dict[str, Any]) -> bytes:
        was, fields = outcome.approved(), {name: of_field(value, StretchDigest) for name, value in state.items()}
        of = {"run": was.run, "agent": was.agent, "version": was.version, "plan": was.plan}
        return binding.recompute(was, effect="pay", state=state, fields=fields, **of)

    assert digest_over(patch.apply(outcome.state_patch, saved)) == bytes(outcome.to_run or b"")
    assert digest_over(saved) != bytes(outcome.to_run or b"")
    assert outcome.gate.asked.amount == "€120.00"
    assert outcome.proposal.card.amount == ""


@pytest.mark.parametrize(
    ("arguments", "pointer"),
    [
        ({"refund": {**REFUND, "tool": "payments.wipe"}}, "/tool"),
        ({"status": "approved"}, ""),
    ],
)
def test_names_that_the_gate_does_not_offer_are_refused_and_not_dropped(
    arguments: dict[str, Any], pointer: str
) -> None:
    assert [place for place, _ in refused(EditRefused, arguments=arguments)] == [pointer]


def test_what_the_gate_or_its_policy_does_not_let_be_edited_is_refused_with_every_place() -> None:
    card = make_card(actions=[make_action(edits=False)])
    places = refused(EditRefused, arguments={"refund": {**REFUND, "amount": "1", "currency": "USD"}}, card=card)
    assert places == [("/amount", "/proposal/amount"), ("/currency", "/proposal/currency")]
    card = make_card(actions=[make_action(), make_action(id="order", effect="", pointer="/order", pinned=())])
    places = refused(EditRefused, arguments={"order": {"number": "A-2"}}, card=card)
    assert places == [("/number", "/order/number")]
    gate = make_gate(team=make_team())
    with pytest.raises(EditRefused) as caught:
        decide(gate, ann(gate.team), "edit", state=as_saved(gate) | {"order": NUMBERED})
    assert "does not let the state be edited as a whole" in caught.value.errors[0]["message"]
    assert Gate.objects.get(pk=gate.pk).proposal == 1
    assert Event.objects.filter(subject=gate.subject, kind="decision.refused").count() == 1


def test_one_item_that_is_offered_is_no_leave_to_shift_the_others() -> None:
    steps = tuple(
        replace(step, edits=("/order/items/0",)) if step.kind == "gate" else step for step in make_spec().steps
    )
    run = make_run(plan=make_plan(make_spec(steps=steps)), state=make_state(order={"items": ["a", "b", "c"]}))
    gate = make_gate(run=run, card=make_card(actions=[make_action(pointer="/order", pinned=[])]))
    for items in (["c", "a", "b"], ["b", "c"], ["x", "a", "b", "c"]):
        with pytest.raises(EditRefused) as caught:
            decide(gate, ann(run.team), "edit", arguments={"refund": {"items": items}})
        assert {error["message"] for error in caught.value.errors} == {"This cannot be edited here."}
    decide(gate, ann(run.team), "edit", arguments={"refund": {"items": ["x", "b", "c"]}})


def test_one_action_is_edited_apart_from_others_that_take_none_or_share_its_value() -> None:
    reply = make_action(id="mail", effect="reply", pointer="/proposal/reply", pinned=())
    card = make_card(actions=[make_action(), reply])
    both = {"refund": {**REFUND, "reply": "One"}, "mail": "Two"}
    assert refused(EditRefused, arguments=both, card=card) == [("", "/proposal/reply")]
    outcome = outcome_of({"mail": "Two"}, card=card)
    assert [action.arguments for action in outcome.approved().actions] == [{**REFUND, "reply": "Two"}, "Two"]
    # What lay in it was changed along: an action that takes no edit was approved with another value.
    beside = amount_beside(verdicts=["approve", "reject"])
    found = refused(EditRefused, make_gate(**beside), arguments={"refund": {**REFUND, "amount": "1.00"}})
    assert found == [("/amount", "/proposal/amount")]
    assert outcome_of({"refund": {**REFUND, "reply": "No."}}, **beside).kind == "edited"
    assert outcome_of({"refund": {**REFUND, "amount": "1.00"}}, **amount_beside()).kind == "edited"


def test_an_edit_that_no_installed_agent_can_check_is_refused_with_what_to_do() -> None:
    team = make_team()
    gate = make_gate(run=make_run(team=team, plan=make_plan(make_spec("stranger"))))
    with pytest.raises(Invalid, match="does not know the agent's version"):
        decide(gate, ann(team), "edit", arguments={"refund": {**REFUND, "amount": "80"}})
    assert decide(gate, ann(team))


def amount_beside(**more: Any) -> dict[str, Any]:
    """The refund with an action of its own for the amount, which lies in it."""
    amount = make_action(id="amount", tool="payments.limit", effect="", pointer="/proposal/amount", pinned=[], **more)
    return {"card": make_card(actions=[make_action(pinned=[]), amount])}


def test_nobody_pins_more_than_anybody_reads() -> None:
    """A pinned value is never folded, so that eight million characters of one made a page of them."""
    state = make_state()
    state["proposal"]["reply"] = "x" * 100_000
    with pytest.raises(CardRefused, match="pins more than 100,000 bytes"):
        make_gate(run=make_run(state=state), card=make_card(actions=[make_action(pinned=["/reply"])]))
    card = make_card(actions=[make_action(pinned=["/reply"])])
    assert refused(Invalid, arguments={"refund": {**REFUND, "reply": "x" * 100_000}}, card=card) == [("", "")]


NUMBERED = {"number": "A-2"}


def make_open(*, quorum: int = 1, card: Any = None, **fields: Any) -> Gate:
    """A gate whose policy lets the whole state be edited."""
    team = make_team()
    run = make_run(team=team, plan=make_plan(), state=make_state(**fields))
    return make_gate(run=run, policy=make_policy(team, quorum=quorum, whole_state=True), card=card)


def as_saved(gate: Gate) -> dict[str, Any]:
    return dict(store.load_checkpoint(gate.checkpoint).state)


def places_refused(gate: Gate, kind: Kind, state: Any, **said: Any) -> list[str]:
    """The place of each fault within the state."""
    return sorted(at for _, at in refused(kind, gate, state=state, **said))


def test_what_is_edited_beside_the_actions_is_bound_and_kept() -> None:
    gate = make_open()
    before, wanted, by = bytes(gate.standing().digest), as_saved(gate) | {"order": NUMBERED}, ann(gate.team)
    first = decide(gate, by, "edit", state=wanted, key="k", seen=before)
    assert decide(gate, by, "edit", state=wanted, key="k", seen=before) == first
    with pytest.raises(Invalid, match="sent before"):
        decide(gate, by, "edit", state=wanted | {"mailed": True}, key="k", seen=before)
    outcome = Outcome.objects.get(gate=gate)
    assert outcome.kind == "edited"
    assert encode_canonical(patch.apply(outcome.state_patch, as_saved(gate))) == encode_canonical(wanted)
    assert outcome.proposal.content["state"] == [{"op": "replace", "path": "/order/number", "value": "A-2"}]
    assert bytes(outcome.proposal.digest) != before
    gate = make_open()
    wanted = as_saved(gate)
    wanted["proposal"] = {**wanted["proposal"], "amount": 80.5}
    decide(gate, ann(gate.team), "edit", state=wanted)
    outcome = Outcome.objects.get(gate=gate)
    assert outcome.approved().actions[0].arguments["amount"] == "80.5"
    assert "state" not in outcome.proposal.content
    gate = make_open(quorum=2)
    decide(gate, ann(gate.team), "edit", state=as_saved(gate) | {"order": NUMBERED})
    decide(gate, bob(gate.team), "edit", arguments=edit_amount(gate, "80.00"))
    standing = Gate.objects.get(pk=gate.pk).standing()
    state = patch.apply(standing.state_patch, as_saved(gate))
    assert (state["order"], state["proposal"]["amount"]) == (NUMBERED, "80.00")
    assert standing.content["state"] == standing.state_patch


def test_what_others_said_lapses_and_they_are_told_what_changed() -> None:
    gate = make_open(quorum=2)
    approver, editor = ann(gate.team), bob(gate.team)
    seen = bytes(gate.standing().digest)
    decide(gate, approver)
    decide(gate, editor, "edit", state=as_saved(gate) | {"order": NUMBERED})
    counted = Decision.objects.filter(gate=gate, counts=True).values_list("user", "proposal__number")
    assert list(counted) == [(editor.pk, 2)]
    with pytest.raises(StaleGate) as stale:
        decide(gate, approver, seen=seen)
    assert stale.value.changes == [
        {"of": "state", "pointer": "/order/number", "kind": "changed", "before": "A-1", "after": "A-2"}
    ]
    decide(gate, approver)
    assert Outcome.objects.get(gate=gate).kind == "edited"


def test_what_is_no_edit_of_the_agents_state_is_refused_by_its_place() -> None:
    gate = make_open()
    wanted = as_saved(gate) | {"mailed": "perhaps", "order": []}
    wanted["proposal"] = {**wanted["proposal"], "amount": "a lot"}
    assert places_refused(gate, Invalid, wanted) == ["/mailed", "/order", "/proposal/amount"]
    wanted = {name: value for name, value in as_saved(gate).items() if name != "proposal"}
    assert places_refused(gate, EditRefused, wanted) == ["/proposal"]
    for name in ("status", "run", "team", "owner"):
        assert places_refused(gate, EditRefused, as_saved(gate) | {name: "completed"}) == [f"/{name}"]
    words = [{"text": "I said so.", "by": "Somebody Else"}]
    assert places_refused(gate, EditRefused, as_saved(gate) | {"feedback": words}) == ["/feedback"]
    assert places_refused(gate, Invalid, as_saved(gate)) == [""]
    wanted = as_saved(gate) | {"order": NUMBERED}
    assert places_refused(gate, Invalid, wanted, arguments=edit_amount(gate, "80.00")) == [""]
