"""Every field of what was approved is in the digest: each one alone breaks it."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from approvals.cards import binding
from approvals.cards.action import Action, SettledAction, ToolVersion
from approvals.cards.amount import Delay
from approvals.cards.binding import Approved, ProposalTarget
from approvals.cards.card import Card
from approvals.cards.chart import Chart
from approvals.cards.drawing import Drawing
from approvals.cards.precondition import Precondition
from approvals.cards.quote import Quote
from checkpoints.runs.plans import PlanSpec, StepSpec
from checkpoints.values.digests import StretchDigest, of_field

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
    """The digest of each field."""
    return {name: of_field(value, StretchDigest) for name, value in state.items()}


def approved() -> Approved:
    """What an approval of the card lets run."""
    bound = binding.bound_fields(PLAN, gate_step="review", effects=["pay", "reply"], fields=digests_of(STATE))
    return Approved.of(binding.body(TARGET, CARD), gate=3, bound=bound, arguments={"refund": ACTION.arguments})


def world(state: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """What the runtime sees before the effect."""
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


@pytest.mark.parametrize(
    "change",
    [
        {"id": "other"},
        {"tool": "payments.charge"},
        {"effect": "reply"},
        {"pointer": "/order"},
        {"arguments": {"amount": "120.0"}},
        {"arguments": {"amount": 120}},
        {"settled": SettledAction(verdict="reject", by="Ann Okafor", reason="No.")},
    ],
)
def test_each_part_of_an_action_alone_breaks_the_digest_to_run(change: dict[str, Any]) -> None:
    changed = replace(approved(), actions=(replace(ACTION, **change),))
    assert changed.digest() != approved().digest()


@pytest.mark.parametrize("name", [field.name for field in fields(ProposalTarget)])
def test_each_part_of_the_target_alone_breaks_what_was_seen(name: str) -> None:
    change: dict[str, Any] = {name: 9 if name == "run" else "other"}
    other = replace(TARGET, **change)
    assert binding.seen(binding.body(other, CARD)) != binding.seen(binding.body(TARGET, CARD))


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


@pytest.mark.parametrize("name", [field.name for field in fields(Card) if field.compare])
def test_each_part_of_a_card_alone_breaks_what_was_seen(name: str) -> None:
    other = binding.body(TARGET, replace(CARD, **{name: CARDS[name]}))
    assert binding.seen(other) != binding.seen(binding.body(TARGET, CARD))


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


@pytest.mark.parametrize("name", [field.name for field in fields(Action) if field.compare])
def test_each_part_of_an_action_alone_breaks_what_was_seen(name: str) -> None:
    other = replace(CARD, actions=[replace(ACTION, **{name: ACTIONS[name]})])
    assert binding.seen(binding.body(TARGET, other)) != binding.seen(binding.body(TARGET, CARD))


@pytest.mark.parametrize(
    ("one", "other"), [(1, 1.0), (0.0, -0.0), (1, True), ("\u00e9", "e\u0301"), (2**64, float(2**64)), (None, "null")]
)
def test_values_that_look_alike_are_bound_apart(one: Any, other: Any) -> None:
    def digest(value: Any) -> bytes:
        return replace(approved(), actions=(replace(ACTION, arguments=value),)).digest()

    assert digest(one) != digest(other)


def test_the_order_of_keys_is_no_difference() -> None:
    one = replace(ACTION, arguments={"a": 1, "b": 2})
    other = replace(ACTION, arguments={"b": 2, "a": 1})
    assert replace(approved(), actions=(one,)).digest() == replace(approved(), actions=(other,)).digest()


def test_a_card_and_its_json_are_one_thing() -> None:
    assert Card.from_json(CARD.to_json()) == CARD
    assert Card.from_json(binding.body(TARGET, CARD)) == CARD


@pytest.mark.parametrize(("effect", "names"), [("pay", ["proposal"]), ("reply", ["proposal"]), ("gone", [])])
def test_an_effect_binds_what_it_reads_but_for_what_is_written_on_the_way_to_it(effect: str, names: list[str]) -> None:
    assert binding.bound_names(PLAN, gate_step="review", effect=effect) == names


def test_an_effect_before_the_gate_in_the_plan_binds_all_that_it_reads() -> None:
    plan = PlanSpec("a", "1", steps=(StepSpec("pay", reads=("a", "b")), StepSpec("review", kind="gate")))
    assert binding.bound_names(plan, gate_step="review", effect="pay") == ["a", "b"]


@pytest.mark.parametrize(
    ("actions", "allows", "pairs"),
    [
        ([ACTION], ["pay"], [("refund", "pay")]),
        ([ACTION], ["pay", "reply"], [("refund", "pay"), ("refund", "reply")]),
        ([replace(ACTION, effect="")], ["pay"], [("refund", "pay")]),
        ([ACTION, replace(ACTION, id="b")], ["pay"], [("refund", "pay"), ("b", "pay")]),
        ([ACTION, replace(ACTION, id="b", effect="reply")], ["pay", "reply"], [("refund", "pay"), ("b", "reply")]),
        ([], ["pay"], [("", "pay")]),
        ([ACTION], [], []),
    ],
)
def test_every_allowed_effect_gets_its_grants(
    actions: list[Action], allows: list[str], pairs: list[tuple[str, str]]
) -> None:
    assert binding.pairs(actions, allows) == pairs


def test_an_unchanged_world_recomputes_to_the_digest_to_run() -> None:
    assert binding.recompute(approved(), **world(STATE)) == approved().digest()
    assert binding.differences(approved(), **world(STATE)) == []


def test_what_the_plan_writes_between_the_gate_and_the_effect_may_change() -> None:
    state = {**STATE, "order": {"number": "A-2"}}
    assert binding.recompute(approved(), **world(state)) == approved().digest()


@pytest.mark.parametrize(
    ("change", "row"),
    [
        ({"run": 8}, ("target", "/run", 7, 8)),
        ({"agent": "payouts"}, ("target", "/agent", "refunds", "payouts")),
        ({"version": "2"}, ("target", "/version", "1", "2")),
        ({"plan": "ab"}, ("target", "/plan", "aa", "ab")),
    ],
)
def test_another_target_is_a_difference(change: dict[str, Any], row: tuple[Any, ...]) -> None:
    assert binding.recompute(approved(), **world(STATE, **change)) != approved().digest()
    (found,) = binding.differences(approved(), **world(STATE, **change))
    assert (found["of"], found["pointer"], found["before"], found["after"]) == row


def test_arguments_swapped_after_the_approval_are_a_difference_told_once() -> None:
    state = {**STATE, "proposal": {"amount": "1200.00"}}
    assert binding.recompute(approved(), **world(state)) != approved().digest()
    rows = binding.differences(approved(), approved_state=STATE, **world(state))
    assert rows == [
        {"of": "action:refund", "pointer": "/amount", "kind": "changed", "before": "120.00", "after": "1200.00"}
    ]


def test_arguments_that_are_gone_are_a_difference_even_where_null_was_approved() -> None:
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


def test_a_row_that_was_tampered_with_recomputes_to_something_else_whatever_the_state_says() -> None:
    tampered = replace(approved(), bound={"pay": {}, "reply": {}})
    assert binding.recompute(tampered, **world(STATE)) != approved().digest()
