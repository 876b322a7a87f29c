"""Pinned values and amounts as people read them: all of each, every digit, and no JSON where there is a shape."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.presentation.text import state_tree
from approvals.presentation.text.amounts import grouped, in_words, written
from checkpoints.values.artifacts import MARK
from tests.factories import ann, make_action, make_card, make_gate, make_team
from tests.harness.signed_in_clients import form_of, signed_in

FILE = {MARK: "a" * 64, "size": 24, "media_type": "image/png", "name": "scan.png"}
GONE = '<span class="hint">not there</span>'


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("ann@example.org", "ann@example.org"),
        ("", '<span class="hint">empty</span>'),
        (None, "null"),
        (True, "true"),
        (["a, b", "c"], '<ul class="values"><li>a, b</li><li>c</li></ul>'),
        (["", 1], '<ul class="values"><li><span class="hint">empty</span></li><li>1</li></ul>'),
        ([], '<span class="hint">none</span>'),
        ({}, '<span class="hint">no fields</span>'),
        (
            {"city": "Bern", "lines": [1, 2]},
            '<table class="values"><tr><th scope="row"><bdi>city</bdi></th><td>Bern</td></tr>'
            '<tr><th scope="row"><bdi>lines</bdi></th><td><ul class="values"><li>1</li><li>2</li></ul></td></tr>'
            "</table>",
        ),
        (
            [{"sku": "A", "n": 1}, {"sku": "B", "why": ""}],
            '<table class="values"><thead><tr><th scope="col"><bdi>sku</bdi></th><th scope="col"><bdi>n</bdi></th>'
            f'<th scope="col"><bdi>why</bdi></th></tr></thead><tbody><tr><td>A</td><td>1</td><td>{GONE}</td></tr>'
            f'<tr><td>B</td><td>{GONE}</td><td><span class="hint">empty</span></td></tr></tbody></table>',
        ),
    ],
)
def test_a_value_is_spelled_out(value: Any, said: str) -> None:
    assert state_tree.spell_out(value) == said


def test_what_is_nested_is_json_and_whole_a_file_is_a_file_and_nothing_becomes_markup() -> None:
    deep = {"a": {"b": {"c": {"d": "x" * 5_000}}}}
    said = state_tree.spell_out(deep)
    assert said.count("<table") == 3
    assert "x" * 5_000 in said
    assert "&quot;d&quot;" in said

    assert "scan.png" in state_tree.spell_out([FILE, FILE])
    assert MARK not in state_tree.spell_out([FILE, FILE])

    evil = "<img src=x>\u202e"
    for value in ([evil], {evil: evil}, [{evil: evil}, {evil: evil}], {"a": {"b": {"c": {"d": evil}}}}):
        said = state_tree.spell_out(value)
        assert "<img" not in said
        assert "U+202E" in said or "\\u202e" in said.lower() or "codepoint" in said


@pytest.mark.parametrize(
    ("value", "currency", "words", "signs"),
    [
        ("1264.1", "EUR", "one thousand, two hundred and sixty-four euro, ten cents", "€1,264.10"),
        ("12480.00", "GBP", "twelve thousand, four hundred and eighty pounds sterling", "£12,480.00"),
        ("0.05", "USD", "zero dollars, five cents", "$0.05"),
        ("-3.2", "EUR", "minus three euro, twenty cents", "-€3.20"),
        ("5", "JPY", "five JPY", None), ("12.345", "KWD", "twelve point three four five KWD", None),
        ("0.0051", "EUR", None, "€0.0051"), ("Infinity", "EUR", "", ""), (True, "EUR", "", ""),
        ("1e400", "EUR", "", ""), ("4\u0669", "EUR", "", ""),
    ],
)  # fmt: skip
def test_an_amount_is_said_in_words_and_written_one_way_and_never_rounded(
    value: Any, currency: str, words: str | None, signs: str | None
) -> None:
    assert words is None or in_words(value, currency) == words
    assert signs is None or written(value, currency) == signs


def test_a_pinned_amount_is_in_words_with_its_thousands_apart_and_follows_what_is_typed() -> None:
    gate = make_gate(team=(team := make_team()), card=make_card(actions=[make_action(pinned=["/amount"])]))
    reader = signed_in(ann(team))
    assert "one hundred and twenty euro" in reader.get(f"/gates/{gate.pk}/").content.decode()
    typed = form_of(gate, "edit", **{"args.refund/amount": "80.50"})
    told = reader.post(f"/gates/{gate.pk}/impacts/", typed, HTTP_HX_REQUEST="true").content.decode()
    assert 'hx-target="#words-1-1"' in told
    assert "eighty euro, fifty cents" in told

    gate = make_gate(team=(team := make_team()))
    typed = form_of(gate, "edit", **{"args.refund/amount": "1284.00"})
    page = signed_in(ann(team)).post(f"/gates/{gate.pk}/impacts/", typed).content.decode()
    pinned = page.partition('data-unit="EUR"')[2].partition("</dd>")[0]
    assert '<del>120.00</del> <ins>1<span class="thousands">284</span>.00</ins> EUR' in pinned
    assert 'value="1284.00"' in page


@pytest.mark.parametrize(
    ("value", "groups"),
    [
        ("1264.10", ["1", "264", ".10"]), ("12480", ["12", "480", ""]), ("-1234567.005", ["-1", "234", "567", ".005"]),
        ("999.99", None), ("1,284.00", None), ("١٢٣٤", None), (True, None), ("1284\n", None), ("1" * 31, None),
    ],
)  # fmt: skip
def test_thousands_are_set_apart_by_a_gap_that_is_no_character(value: object, groups: list[str] | None) -> None:
    shown = grouped(value)
    if groups is None:
        assert shown is None
    else:
        first, *threes, decimals = groups
        assert shown == first + "".join(f'<span class="thousands">{three}</span>' for three in threes) + decimals
