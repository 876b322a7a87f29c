"""What people said, quoted on a card from the saved state."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.cards.card import Card
from approvals.cards.quote import Quote
from approvals.errors import CardRefused
from checkpoints import store
from checkpoints.values import json_pointer
from tests.factories import ann, decide, edit_amount, make_card, make_gate, make_run, make_state, make_team

WORDS = "I am sending the frames back, they do not fit."
MARIT = Quote(label="Ellery, Marit", role="customer, by mail", pointer="/order/mail")


def make_quoting_gate(**fields: Any) -> Any:
    run = make_run(state=make_state(order={"number": "A-1", "mail": WORDS}), first_step="review", team=fields["team"])
    return make_gate(run=run, card=make_card(quotes=[MARIT]))


def test_a_quote_is_part_of_what_is_shown_and_bound() -> None:
    gate = make_quoting_gate(team=make_team())
    body = gate.standing().content
    assert body["quotes"] == [{"label": "Ellery, Marit", "role": "customer, by mail", "pointer": "/order/mail"}]
    assert gate.asked.quotes == gate.standing().card.quotes == (MARIT,)
    state = store.load_checkpoint(gate.checkpoint).state
    assert json_pointer.find_value(state, MARIT.pointer) == WORDS


def test_an_edit_keeps_the_quotes() -> None:
    team = make_team()
    gate = make_quoting_gate(team=team)
    decide(gate, ann(team), "edit", arguments=edit_amount(gate, "80.00"))
    gate.refresh_from_db()
    assert gate.proposal == 2
    assert gate.standing().card.quotes == (MARIT,)


def test_a_card_of_before_there_were_quotes_has_none() -> None:
    body = {name: value for name, value in make_card().to_json().items() if name != "quotes"}
    assert Card.from_json(body).quotes == ()


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
