"""Every field of what was approved is in the digest; a card as it is stored, read and quoted is one thing."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from approvals.cards import binding
from approvals.cards.action import Action, SettledAction, ToolVersion
from approvals.cards.amount import Delay
from approvals.cards.binding import Approved, ProposalTarget
from approvals.cards.card import Card, card_of, scrubbed
from approvals.cards.chart import Chart
from approvals.cards.drawing import Drawing
from approvals.cards.precondition import Precondition
from approvals.cards.quote import Quote
from approvals.errors import CardRefused
from approvals.models import Gate
from checkpoints import store
from checkpoints.runs.plans import PlanSpec, StepSpec
from checkpoints.values import digests, json_pointer
from checkpoints.values.canonical_json import decode_canonical
from checkpoints.values.digests import StretchDigest, of_field
from tests.factories import ann, bob, decide, edit_amount, make_card, make_gate, make_run, make_state, make_team
from tests.harness.signed_in_clients import form_of, post, signed_in

TARGET = ProposalTarget(run=7, agent="refunds", version="1", plan="aa", step="review", checkpoint="bb")
ACTION = Action(
    id="refund",
    title="Refund",
    tool="payments.refund",
    effect="pay",
    pointer="/proposal",
    arguments={"amount": "120.00"},
)
CONDITION = Precondition(id="balance", label="the balance is still {value}", observes="balance", value="0.00")
CARD = Card(title="Refund", resource="sandbox", actions=[ACTION], allows=["pay", "reply"])
STATE = {"order": {"number": "A-1"}, "proposal": {"amount": "120.00"}, "payment": None}
PLAN = PlanSpec(
    "refunds",
    "1",
    steps=(
        StepSpec("propose", writes=("proposal",)),
        StepSpec("review", kind="gate", allows=("pay", "reply")),
        StepSpec("look_up", writes=("order",)),
        StepSpec("pay", kind="effect", reads=("order", "proposal"), writes=("payment",)),
        StepSpec("reply", kind="effect", reads=("proposal", "payment")),
    ),
)
WORLD: dict[str, Any] = {"effect": "pay", "run": 7, "agent": "refunds", "version": "1", "plan": "aa"}


def digests_of(state: dict[str, Any]) -> dict[str, bytes]:
    return {name: of_field(value, StretchDigest) for name, value in state.items()}


def approved() -> Approved:
    bound = binding.bound_fields(PLAN, gate_step="review", effects=["pay", "reply"], fields=digests_of(STATE))
    return Approved.of(binding.body(TARGET, CARD), gate=3, bound=bound, arguments={"refund": ACTION.arguments})


def world(state: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {**WORLD, "state": state, "fields": digests_of(state), **changes}


OTHERS: dict[str, Any] = {
    "run": 8,
    "gate": 4,
    "step": "audit",
    "agent": "payouts",
    "version": "2",
    "plan": "ab",
    "resource": "production",
    "actions": (),
    "allows": ("pay",),
    "bound": {},
    "preconditions": (CONDITION,),
    "answer": {"choice": "again", "value": None},
}


@pytest.mark.parametrize("name", [field.name for field in fields(Approved)])
def test_each_field_of_what_may_run_alone_breaks_the_digest(name: str) -> None:
    assert replace(approved(), **{name: OTHERS[name]}).digest() != approved().digest()


def test_each_part_of_an_action_alone_breaks_the_digest_to_run() -> None:
    changes = [{name: ACTIONS[name]} for name in ("id", "tool", "effect", "pointer", "settled")]
    for change in (*changes, {"arguments": {"amount": "120.0"}}, {"arguments": {"amount": 120}}):
        changed = replace(approved(), actions=(replace(ACTION, **change),))
        assert changed.digest() != approved().digest(), change


CARDS: dict[str, Any] = {
    "title": "Charge",
    "summary": "Do as I say",
    "for_whom": "Eve",
    "amount": "€1",
    "resource": "production",
    "cost_of_delay": Delay(amount="5.00", currency="EUR", per="hour"),
    "risk": "low",
    "reasons": ["none"],
    "actions": [],
    "quotes": [Quote(label="Marit Ellery", pointer="/order/note")],
    "preconditions": [CONDITION],
    "charts": [Chart(title="The plan", pointer="/plan")],
    "allows": ["pay"],
    "back_to": ["propose"],
    "on_reject": "propose",
    "on_expire": "propose",
    "question": {"text": "?", "choices": []},
    "reopened": {"gate": 1, "changes": []},
}
ACTIONS: dict[str, Any] = {
    "id": "other",
    "title": "Charge",
    "tool": "payments.charge",
    "effect": "reply",
    "pointer": "/order",
    "schema": {"type": "object"},
    "arguments": {"amount": "1"},
    "edits": False,
    "pinned": ["/amount"],
    "irreversible": True,
    "undo": "cancel_payment",
    "verdicts": ["approve"],
    "response": {"type": "string"},
    "settled": SettledAction(verdict="reject", by="Ann Okafor", reason="No."),
    "missing": ["/amount"],
    "draws": [Drawing(kind="command", at="/amount")],
    "registered": ToolVersion(version=1, risk="high"),
}


CONDITIONS: dict[str, Any] = {
    "id": "other",
    "label": "the balance is whatever",
    "observes": "mood",
    "effects": ["reply"],
    "required": True,
    "preselected": True,
    "value": "0.01",
}


def test_each_part_of_the_target_of_a_card_and_of_an_action_alone_breaks_what_was_seen() -> None:
    seen = binding.seen(binding.body(TARGET, CARD))
    for name in (field.name for field in fields(ProposalTarget)):
        change: dict[str, Any] = {name: 9 if name == "run" else "other"}
        assert binding.seen(binding.body(replace(TARGET, **change), CARD)) != seen, name
    for name in (field.name for field in fields(Card) if field.compare):
        assert binding.seen(binding.body(TARGET, replace(CARD, **{name: CARDS[name]}))) != seen, name
    for name in (field.name for field in fields(Action) if field.compare):
        other = replace(CARD, actions=[replace(ACTION, **{name: ACTIONS[name]})])
        assert binding.seen(binding.body(TARGET, other)) != seen, name


@pytest.mark.parametrize("name", [field.name for field in fields(Precondition)])
def test_each_part_of_a_precondition_alone_breaks_what_was_seen_and_what_may_run(name: str) -> None:
    conditions = (CONDITION, replace(CONDITION, **{name: CONDITIONS[name]}))
    cards = [binding.body(TARGET, replace(CARD, preconditions=[each])) for each in conditions]
    assert binding.seen(cards[0]) != binding.seen(cards[1])
    runs = [replace(approved(), preconditions=(each,)).digest() for each in conditions]
    assert runs[0] != runs[1]


def test_what_was_approved_before_cards_offered_preconditions_keeps_its_digest() -> None:
    """A key in the digest for what is not there would have reopened every gate that waited through the upgrade."""
    content = {"run": 7, "gate": 3, "step": "review", "agent": "refunds", "version": "1", "plan": "aa"}
    content |= {"resource": "sandbox", "actions": [], "allows": [], "bound": {}, "answer": None}
    assert replace(approved(), actions=(), allows=(), bound={}).digest() == digests.of_value(content)


def test_a_card_and_its_json_are_one_thing() -> None:
    card = replace(CARD, preconditions=[CONDITION, replace(CONDITION, id="mood", required=True, value=[1, {"a": 1.0}])])
    assert Card.from_json(card.to_json()) == card
    assert Card.from_json(binding.body(TARGET, card)) == card


@pytest.mark.parametrize(("effect", "names"), [("pay", ["proposal"]), ("reply", ["proposal"]), ("gone", [])])
def test_an_effect_binds_what_it_reads_but_for_what_is_written_on_the_way_to_it(effect: str, names: list[str]) -> None:
    assert binding.bound_names(PLAN, gate_step="review", effect=effect) == names


def test_only_what_the_plan_writes_between_the_gate_and_the_effect_may_change() -> None:
    assert binding.recompute(approved(), **world(STATE)) == approved().digest()
    assert binding.differences(approved(), **world(STATE)) == []

    state = {**STATE, "order": {"number": "A-2"}}
    assert binding.recompute(approved(), **world(state)) == approved().digest()


def test_another_target_is_a_difference() -> None:
    for name, other in {"run": 8, "agent": "payouts", "version": "2", "plan": "ab"}.items():
        there = world(STATE, **{name: other})
        assert binding.recompute(approved(), **there) != approved().digest()
        (found,) = binding.differences(approved(), **there)
        row = (found["of"], found["pointer"], found["before"], found["after"])
        assert row == ("target", f"/{name}", WORLD[name], other)


def test_arguments_swapped_or_gone_after_the_approval_are_a_difference_told_once() -> None:
    state = {**STATE, "proposal": {"amount": "1200.00"}}
    assert binding.recompute(approved(), **world(state)) != approved().digest()
    rows = binding.differences(approved(), approved_state=STATE, **world(state))
    assert rows == [
        {"of": "action:refund", "pointer": "/amount", "kind": "changed", "before": "120.00", "after": "1200.00"}
    ]

    nothing = replace(approved(), actions=(replace(ACTION, arguments=None),), bound={})
    gone = {"order": STATE["order"]}
    assert binding.recompute(nothing, **world(gone)) != nothing.digest()


def test_a_bound_field_that_no_action_shows_is_a_difference_with_its_values() -> None:
    plan = replace(PLAN, steps=tuple(s for s in PLAN.steps if s.name != "look_up"))
    bound = binding.bound_fields(plan, gate_step="review", effects=["pay"], fields=digests_of(STATE))
    fixed = replace(approved(), bound=bound)
    state = {**STATE, "order": {"number": "A-2"}}
    (row,) = binding.differences(fixed, approved_state=STATE, **world(state))
    assert row == {"of": "state", "pointer": "/order/number", "kind": "changed", "before": "A-1", "after": "A-2"}
    (row,) = binding.differences(fixed, **world(state))
    assert (row["pointer"], row["before"]) == ("/order", of_field(STATE["order"], StretchDigest).hex())


WORDS = "I am sending the frames back, they do not fit."
MARIT = Quote(label="Ellery, Marit", role="customer, by mail", pointer="/order/mail")


def test_a_quote_is_part_of_what_is_shown_and_bound_and_an_edit_keeps_it() -> None:
    state = make_state(order={"number": "A-1", "mail": WORDS})
    run = make_run(state=state, first_step="review", team=(team := make_team()))
    gate = make_gate(run=run, card=make_card(quotes=[MARIT]))
    body = gate.standing().content
    assert body["quotes"] == [{"label": "Ellery, Marit", "role": "customer, by mail", "pointer": "/order/mail"}]
    assert gate.asked.quotes == gate.standing().card.quotes == (MARIT,)
    assert json_pointer.find_value(store.load_checkpoint(gate.checkpoint).state, MARIT.pointer) == WORDS
    decide(gate, ann(team), "edit", arguments=edit_amount(gate, "80.00"))
    gate.refresh_from_db()
    assert gate.proposal == 2
    assert gate.standing().card.quotes == (MARIT,)


@pytest.mark.parametrize(
    ("quote", "why"),
    [
        (Quote(label="Marit", pointer="/order/nothing"), "there is nothing at /order/nothing in the state to quote"),
        (Quote(label="Marit", pointer="order"), "there is nothing at order in the state to quote"),
        (Quote(label="Marit", pointer="/order"), "what is at /order in the state is no text to quote"),
        (Quote(label=" ", pointer="/order/number"), "needs a label that says whose words it quotes"),
    ],
)
def test_a_quote_of_nothing_or_nobody_is_refused_when_the_gate_opens(quote: Quote, why: str) -> None:
    with pytest.raises(CardRefused, match=why):
        make_gate(card=make_card(quotes=[quote]))


def test_neither_pages_nor_an_edit_change_the_card_that_all_readers_share() -> None:
    team = make_team()
    gate, reviewer = make_gate(team=team), ann(team)
    proposed = bytes(gate.card)
    shared = card_of(proposed, external=bool)
    assert "120.00" in signed_in(reviewer).get(f"/gates/{gate.pk}/").content.decode()
    assert post(reviewer, gate, form_of(gate, "edit", **{"args.refund/amount": "99.50"})).status_code == 303
    page = signed_in(bob(team)).get(f"/gates/{gate.pk}/").content.decode()
    assert "99.50" in page
    assert card_of(proposed, external=bool) is shared
    assert shared == Card.from_json(decode_canonical(proposed))
    read = Gate.objects.get(pk=gate.pk)
    assert [each.arguments["amount"] for each in read.standing().card.actions if each.id == "refund"] == ["99.50"]
    assert [each.arguments["amount"] for each in read.asked.actions if each.id == "refund"] == ["120.00"]


def test_the_text_that_was_there_is_drawn_without_the_states_secrets() -> None:
    """It stood as it was read, beside arguments whose secrets are hidden."""
    drawing = Drawing(kind="diff", at="/content", was="key = hunter22\nmode = fast\n")
    action = Action(id="write", title="Write", tool="write", arguments={"content": "mode = slow\n"}, draws=[drawing])
    shown = scrubbed(Card(title="Write a file", actions=[action]), ["hunter22"])
    assert "hunter22" not in shown.actions[0].draws[0].was
    assert "mode = fast" in shown.actions[0].draws[0].was
