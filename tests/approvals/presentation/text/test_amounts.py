"""Amounts in words: every digit counts, and nothing is rounded away."""

from __future__ import annotations

import pytest

from approvals.presentation.text.amounts import grouped, in_words
from tests.factories import ann, make_action, make_card, make_gate, make_team
from tests.harness.signed_in_clients import form_of, signed_in


@pytest.mark.parametrize(
    ("value", "currency", "words"),
    [
        ("1264.10", "EUR", "one thousand, two hundred and sixty-four euro, ten cents"),
        ("12480.00", "GBP", "twelve thousand, four hundred and eighty pounds sterling"),
        ("0.05", "USD", "zero dollars, five cents"),
        ("-3.2", "EUR", "minus three euro, twenty cents"),
        ("1e3", "EUR", "one thousand euro"),
        (19.9, "EUR", "nineteen euro, ninety cents"),
        ("5", "JPY", "five JPY"),
        ("1.005", "EUR", "one point zero zero five EUR"),
        ("12.345", "KWD", "twelve point three four five KWD"),
        ("0.00", "EUR", "zero euro"),
        ("NaN", "EUR", ""),
        ("Infinity", "EUR", ""),
        ("12abc", "EUR", ""),
        (True, "EUR", ""),
        (None, "EUR", ""),
        ("1e400", "EUR", ""),
        ("100.0000000001", "EUR", ""),
        ("4\u0669", "EUR", ""),
        ("1_000", "EUR", ""),
    ],
)
def test_an_amount_is_said_in_words(value: object, currency: str, words: str) -> None:
    assert in_words(value, currency) == words


def test_a_pinned_amount_is_also_in_words_and_follows_what_is_typed() -> None:
    gate = make_gate(team=(team := make_team()), card=make_card(actions=[make_action(pinned=["/amount"])]))
    reader = signed_in(ann(team))
    assert "one hundred and twenty euro" in reader.get(f"/gates/{gate.pk}/").content.decode()
    typed = form_of(gate, "edit", **{"args.refund/amount": "80.50"})
    told = reader.post(f"/gates/{gate.pk}/impacts/", typed, HTTP_HX_REQUEST="true").content.decode()
    assert 'hx-target="#words-1-1"' in told
    assert "eighty euro, fifty cents" in told


@pytest.mark.parametrize(
    ("value", "groups"),
    [
        ("1264.10", ["1", "264", ".10"]), ("12480", ["12", "480", ""]), ("-1234567.005", ["-1", "234", "567", ".005"]),
        (1284, ["1", "284", ""]), ("999.99", None), ("1,284.00", None), ("1 284.00", None), ("1e9", None),
        ("+1284", None), ("1284.", None), ("١٢٣٤", None), (True, None), (None, None), ("1284\n", None),
        ("1" * 31, None),
    ],
)  # fmt: skip
def test_thousands_are_set_apart_by_a_gap_that_is_no_character(value: object, groups: list[str] | None) -> None:
    shown = grouped(value)
    if groups is None:
        assert shown is None
    else:
        first, *threes, decimals = groups
        assert shown == first + "".join(f'<span class="thousands">{three}</span>' for three in threes) + decimals


def test_a_pinned_amount_sets_its_thousands_apart_and_what_is_sent_stays_as_it_is() -> None:
    gate = make_gate(team=(team := make_team()))
    typed = form_of(gate, "edit", **{"args.refund/amount": "1284.00"})
    page = signed_in(ann(team)).post(f"/gates/{gate.pk}/impacts/", typed).content.decode()
    pinned = page.partition('data-unit="EUR"')[2].partition("</dd>")[0]
    assert '<del>120.00</del> <ins>1<span class="thousands">284</span>.00</ins> EUR' in pinned
    assert 'value="1284.00"' in page
