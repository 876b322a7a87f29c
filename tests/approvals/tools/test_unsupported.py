"""Amounts and names in a title that no argument bears out are found, and those that one does are left alone."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from approvals.cards.action import Action, ToolVersion
from approvals.cards.card import Card
from approvals.presentation.decision_form import send_button
from approvals.presentation.gate_facts import unsupported
from approvals.presentation.gate_facts.provenance import Provenance
from approvals.presentation.inbox import InboxRow
from approvals.presentation.text import exact_call
from checkpoints.runs.plans import PlanSpec, StepSpec
from checkpoints.values.canonical_json import encode_canonical


def card(title: str, arguments: Any, *, pinned: tuple[str, ...] = (), **more: Any) -> Card:
    action = Action(id="do", tool="bank.wire", title="bank.wire", arguments=arguments, pinned=pinned)
    return Card(title=title, actions=[action], **more)


@pytest.mark.parametrize(
    ("title", "arguments"),
    [
        ("Wire €10.00 to ACME Ltd", {"to": "ACME Ltd", "amount": "10.00"}),
        ("Wire 10 EUR to Acme Ltd", {"to": "ACME LTD", "amount": 10}),
        ("Wire 1.284,00 € to ACME", {"to": "ACME Ltd", "amount": "1284.00"}),
        ("Wire $1,284 to ACME", {"to": "ACME", "amount": "1284"}),
        ("Wire €1.5k to ACME", {"to": "ACME", "total": "1500"}),
        ("Wire €12.34 to ACME", {"to": "ACME", "amount_cents": 1234}),
        ("Order three things for €30.00", {"lines": [{"price": "10.00"}, {"price": "20.00"}]}),
        ("Mail marit@fernhollow.example", {"to": "marit@fernhollow.example", "text": "Hello"}),
        ("Pay Marit Ellery", {"customer": {"first": "Marit", "last": "Ellery"}}),
        ("Close ticket 4711", {"ticket": 4711}),
        ("Wire to DE02 1203 0000 0000 2020 51", {"iban": "DE02120300000000202051"}),
        ("Tell them that €10.00 comes back", {"text": "You get €10.00 back."}),
        ("Deploy version 2.10 to production", {"version": "2.10"}),
    ],
)
def test_what_an_argument_bears_out(title: str, arguments: Any) -> None:
    assert unsupported.found(card(title, arguments)) == []


@pytest.mark.parametrize(
    ("title", "arguments", "said"),
    [
        ("Wire €10.00", {"amount": "99999.00"}, "“€10.00” in the title is not what runs: amount is 99999.00."),
        ("Wire 10,00 EUR", {"total": 1000}, "“10,00 EUR” in the title is not what runs: total is 1000."),
        ("Wire €10", {"amount": "100", "ref": "10"},
         "“€10” in the title is not what runs: amount is 100. It appears only in ref."),
        ("Wire €10.00", {"x": "eve"}, "“€10.00” in the title is in no argument that runs."),
        ("Wire to ACME Ltd", {"to": "eve", "memo": "ACME Ltd"},
         "“ACME Ltd” in the title is not what runs: to is eve. It appears only in memo."),
        ("Write to bob@acme.example", {"recipient": "eve@evil.example"},
         "“bob@acme.example” in the title is not what runs: recipient is eve@evil.example."),
        ("Pay “Marit Ellery”", {"iban": "DE02"}, "“Marit Ellery” in the title is not what runs: iban is DE02."),
    ],
)  # fmt: skip
def test_what_none_does(title: str, arguments: Any, said: str) -> None:
    assert unsupported.found(card(title, arguments)) == [said]


def test_the_other_words_of_the_card_are_read_too() -> None:
    told = unsupported.found(card("Wire", {"amount": "5.00"}, amount="€7.00", for_whom="ACME"))
    assert told == ["“€7.00” in the amount is not what runs: amount is 5.00.", "“ACME” is in no argument that runs."]


def test_a_pinned_number_counts_where_no_name_speaks_of_money() -> None:
    assert unsupported.found(card("Wire €10.00", {"x": "10.00", "y": "99.00"}, pinned=("/y",))) == [
        "“€10.00” in the title is not what runs: y is 99.00. It appears only in x."
    ]


def test_more_arguments_than_are_compared_are_said() -> None:
    [told] = unsupported.found(card("Wire €10.00", {"lines": [str(at) for at in range(exact_call.LEAVES + 5)]}))
    assert told.startswith("There are too many arguments")


def test_a_secret_is_no_argument_that_is_told_of() -> None:
    schema = {"type": "object", "properties": {"amount": {"type": "string", "writeOnly": True}}}
    action = Action(id="do", tool="t", title="t", arguments={"amount": "77.00"}, schema=schema)
    assert "77" not in " ".join(unsupported.found(Card(title="Wire €10.00", actions=[action])))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("1.284", {1284, "1.284"}), ("1,284.50", {"1284.50"}), ("1.284,5", {"1284.5"}), ("1'000", {1000}), ("2k", {2000}),
     ("1.284.000", {1284000}), ("3 million", {3000000}), ("7", {7})],
)  # fmt: skip
def test_what_an_amount_may_mean(text: str, numbers: set[Any]) -> None:
    assert exact_call.readings(text) == {Decimal(each) for each in numbers}


def test_the_amount_that_our_sentences_name_is_the_arguments() -> None:
    one, two = ({"amount": "9.00", **more} for more in ({"currency": "EUR"}, {"fee": "1.00"}))
    assert exact_call.amount(card("Wire €1", one), masked=exact_call.AT_GATE) == "9.00 EUR"
    assert exact_call.amount(card("Wire €1", two), masked=exact_call.AT_GATE) == ""


@pytest.mark.parametrize(
    ("arguments", "pinned"),
    [({"amount": "99,999.00", "fee": "10.00"}, ()), ({"transfer": "99999.00", "fee": "10.00"}, ("/transfer",))],
)
def test_an_amount_that_is_written_out_or_oddly_named_is_not_passed_over(arguments: Any, pinned: Any) -> None:
    """Our button said "10.00", which is the fee."""
    asked = card("Wire", arguments, pinned=pinned)
    assert exact_call.amount(asked, masked=exact_call.AT_GATE) == ""
    plan = PlanSpec("robo", "1", steps=(StepSpec("do", kind="effect"),), external=True)
    assert "10.00" not in send_button.approving(replace(asked, allows=["do"]), plan, edited=False)


def test_the_button_names_no_amount_that_a_program_picked_by_pinning_it() -> None:
    """It read "Approve: wire €10.00", the fee of a transfer of 99999.00."""
    schema = {"type": "object", "properties": {"fee": {"type": "string", "format": "decimal"}}}
    arguments = {"amount": "99999.00", "fee": "10.00", "currency": "EUR"}
    action = Action(
        id="do", tool="t", title="Wire €10.00", effect="wire", arguments=arguments, schema=schema, pinned=["/fee"]
    )
    plan = PlanSpec("robo", "1", steps=(StepSpec("wire", kind="effect"),))
    asked = Card(title="Wire €10.00", actions=[action], allows=["wire"])
    assert "10.00" in send_button.approving(asked, plan, edited=False)
    assert send_button.approving(asked, replace(plan, external=True), edited=False) == "Approve: wire"


@pytest.mark.parametrize(("tools", "theirs"), [([], True), ([None], True), (["low", None], True), (["low"], False)])
def test_the_risk_is_ours_only_where_all_that_is_asked_is_registered(tools: list[str | None], theirs: bool) -> None:
    """One registered action of low risk beside another made the program's word ours; so did a card without any."""
    given = [ToolVersion(version=1, risk=risk) if risk else None for risk in tools]
    actions = [Action(id=f"a{at}", tool="t", title="t", registered=each) for at, each in enumerate(given)]
    wire = Card(title="Wire", actions=actions)
    row = InboxRow(asked=encode_canonical(wire.to_json()), provenance=Provenance(agent="robo", outside=True))
    assert row.risk_theirs is theirs
