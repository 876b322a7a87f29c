"""A process reads a saved card once; what one reader or one edit does to it reaches no other."""

from __future__ import annotations

from dataclasses import replace

from approvals.cards.card import Card
from approvals.cards.stored import card_of
from approvals.models import Gate
from approvals.presentation.decision_form import send_button
from checkpoints.runs.plans import PlanSpec, StepSpec
from checkpoints.values.canonical_json import decode_canonical, encode_canonical
from tests.factories import ann, bob, make_action, make_card, make_gate, make_team
from tests.factories.runs import Proposal
from tests.harness.signed_in_clients import form_of, post, signed_in

PLAN = PlanSpec("robo", "1", state_schema={}, steps=(StepSpec("pay", kind="effect", title="Pay the refund"),))


def body(amount: str) -> bytes:
    given = {"amount": amount, "currency": "GBP", "note": "4417"}
    pay = make_action(pinned=["/amount"], arguments=given, schema=Proposal.model_json_schema())
    return encode_canonical(make_card(amount="", actions=[pay], allows=("pay",)).to_json())


def test_a_card_is_that_of_its_very_bytes() -> None:
    one, two = body("5.25"), body("5.26")
    assert card_of(one, external=bool) is card_of(bytes(bytearray(one)), external=bool)
    assert (card_of(one, external=bool), card_of(two, external=bool)) == (
        Card.from_json(decode_canonical(one)),
        Card.from_json(decode_canonical(two)),
    )
    assert card_of(one, external=bool) != card_of(two, external=bool)


def test_an_edited_card_is_worded_by_its_own_amounts() -> None:
    card = card_of(body("5.25"), external=bool)
    for _ in range(2):
        assert "£5.25" in send_button.approving(card, PLAN, edited=False)
    edited = card.with_arguments({"refund": {**card.actions[0].arguments, "amount": "9.00"}})
    assert "£9.00" in send_button.approving(edited, PLAN, edited=True)
    assert "£5.25" in send_button.approving(card, PLAN, edited=False)
    assert replace(card.actions[0], title="x").derived == {}


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


def test_the_plans_row_is_read_only_for_a_card_that_may_mark_something_as_secret() -> None:
    """Who wrote a schema matters where it hides something; each outcome in a list would cost three more queries."""
    asked: list[str] = []

    def external() -> bool:
        asked.append("plan")
        return True

    plain = body("5.27")
    assert not card_of(plain, external=external).actions[0].external
    assert asked == []
    marked = plain.replace(b'"type":"object"', b'"type":"object","writeOnly":true', 1)
    assert card_of(marked, external=external).actions[0].external
