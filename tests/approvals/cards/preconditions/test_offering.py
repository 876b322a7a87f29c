"""What a card may offer, and what of it is bound."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from agents import observation
from agents.definition.plan_builder import plan_of
from approvals.cards import binding, precondition
from approvals.cards.binding import Approved, ProposalTarget
from approvals.cards.card import Card
from approvals.cards.precondition import Precondition
from approvals.errors import CardRefused
from approvals.models import Gate
from checkpoints.values import digests
from tests.factories import make_card, make_gate, make_question

from .offering_gates import make_observing_gate, make_precondition
from .watched_world import Watcher

TARGET = ProposalTarget(run=7, agent="refunds", version="1", plan="aa", step="review", checkpoint="bb")
OFFERED = make_precondition(effects=["pay"])
OTHERS: dict[str, Any] = {
    "id": "other",
    "label": "the balance is whatever",
    "observes": "mood",
    "effects": ["reply"],
    "required": True,
    "preselected": True,
    "value": "0.01 EUR",
}


def approved(offered: Precondition = OFFERED, *, counted: list[str] | None = None) -> Approved:
    body = binding.body(TARGET, Card(title="Refund", allows=["pay", "reply"], preconditions=[offered]))
    ids = [offered.id] if counted is None else counted
    return Approved.of(body, gate=3, bound={}, arguments={}, preconditions=ids)


def test_a_precondition_and_its_json_are_one_thing() -> None:
    card = Card(
        title="Refund", preconditions=[OFFERED, make_precondition("mood", required=True, value=[1, {"a": 1.0}])]
    )
    assert Card.from_json(card.to_json()) == card


@pytest.mark.parametrize("name", [field.name for field in fields(Precondition)])
def test_each_part_of_a_precondition_alone_breaks_what_was_seen_and_what_may_run(name: str) -> None:
    other = replace(OFFERED, **{name: OTHERS[name]})
    seen = [binding.seen(binding.body(TARGET, Card(title="t", preconditions=[each]))) for each in (OFFERED, other)]
    assert seen[0] != seen[1]
    assert approved(other).digest() != approved().digest()


def test_a_precondition_that_counts_cannot_be_left_out_and_one_that_does_not_cannot_be_put_in() -> None:
    assert approved(counted=[]).digest() != approved().digest()


def test_what_was_approved_before_cards_offered_preconditions_keeps_its_digest() -> None:
    """A key in the digest for what is not there would have reopened every gate that waited through the upgrade."""
    plain = replace(approved(counted=[]), actions=(), allows=())
    content = {
        "run": 7,
        "gate": 3,
        "step": "review",
        "agent": "refunds",
        "version": "1",
        "plan": "aa",
        "resource": "",
        "actions": [],
        "allows": [],
        "bound": {},
        "answer": None,
    }
    assert plain.digest() == digests.of_value(content)


@pytest.mark.parametrize(
    ("label", "around"),
    [
        ("the balance is still {value}", ("the balance is still", "")),
        ("still {value} on the account", ("still", "on the account")),
        ("nothing else was refunded", ("nothing else was refunded", "")),
        ("{value} and {value!r} and {0}", ("", "and {value!r} and {0}")),
    ],
)
def test_the_value_stands_where_the_label_says_and_nothing_else_in_it_is_a_format(
    label: str, around: tuple[str, str]
) -> None:
    assert make_precondition(label=label).around() == around


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("0.00", "0.00", []),
        ("0.00", "12.00", [("/balance", "changed")]),
        (0, 0.0, [("/balance", "changed")]),
        (1, True, [("/balance", "changed")]),
        (0.0, -0.0, [("/balance", "changed")]),
        ("\u00e9", "e\u0301", [("/balance", "changed")]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
        ({"a": 1}, {"b": 1}, [("/balance/a", "removed"), ("/balance/b", "added")]),
        ([1, 2], [1, 2, 3], [("/balance/2", "added")]),
        (None, 0, [("/balance", "changed")]),
    ],
)
def test_the_world_is_compared_to_the_byte(before: Any, after: Any, told: list[tuple[str, str]]) -> None:
    rows = precondition.drifts([make_precondition(value=before)], {"balance": after})
    assert [(row["pointer"], row["kind"]) for row in rows] == told
    assert {row["of"] for row in rows} <= {"world"}


def test_what_was_not_looked_at_says_nothing_and_one_observation_of_two_preconditions_is_told_once() -> None:
    two = [make_precondition(), make_precondition("same")]
    assert precondition.drifts(two, {"mood": "calm"}) == []
    assert len(precondition.drifts(two, {"balance": "1.00 EUR"})) == 1


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"id": "a b"}, "'a b' is not an identifier"),
        ({"id": "b\u0430lance"}, "is not an identifier"),
        ({"label": " "}, "needs a label of 1 to 200 characters"),
        ({"label": "x" * 201}, "needs a label of 1 to 200 characters"),
        ({"observes": "propose"}, "observes 'propose', which the gate does not name"),
        ({"effects": ["pay", "find_order"]}, "guards 'find_order', which the gate does not allow"),
    ],
)
def test_a_precondition_that_cannot_be_kept_is_refused_with_its_gate(fields: dict[str, Any], fault: str) -> None:
    offered = make_precondition(**{"id": "balance", **fields})
    before = Gate.objects.count()
    with pytest.raises(CardRefused, match=fault):
        make_observing_gate(offered)
    assert Gate.objects.count() == before


def test_two_of_one_id_are_refused_and_so_is_one_that_guards_nothing() -> None:
    with pytest.raises(CardRefused, match="precondition 'balance' is there twice"):
        make_observing_gate(make_precondition(), make_precondition())
    with pytest.raises(CardRefused, match="'balance' observes 'balance', which the gate does not name"):
        make_gate(card=make_card(preconditions=[make_precondition()]))
    nothing = make_question(allows=())
    with pytest.raises(CardRefused, match="guards nothing"):
        make_gate(kind="recovery", card=replace(nothing, preconditions=[make_precondition()]))


def test_what_was_observed_is_part_of_what_is_seen() -> None:
    gate, other = (make_observing_gate(make_precondition(value=value)) for value in ("0.00 EUR", "12.00 EUR"))
    assert gate.standing().card.preconditions[0].value == "0.00 EUR"
    body = {**other.standing().content, "run": gate.run_id, "agent": gate.standing().content["agent"]}
    body |= {name: gate.standing().content[name] for name in ("plan", "checkpoint")}
    assert binding.seen(body) != bytes(gate.standing().digest)


def test_an_observation_that_looks_at_something_else_makes_another_plan() -> None:
    """An approval would have been held against an observation that nobody saw the result of."""

    class Other(Watcher):
        @observation
        def mood(self, world: str) -> str:
            return f"never {world}"

    assert plan_of(Other).step("review").code_hash != plan_of(Watcher).step("review").code_hash
    assert plan_of(Other).step("pay").code_hash == plan_of(Watcher).step("pay").code_hash
