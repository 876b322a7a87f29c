"""What agents write is shown in a terminal and never obeyed by it, and what people type in a form gets its type."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest
from holdpoint import json_pointer
from holdpoint.json_pointer import MISSING, Change, changes
from holdpoint.terminal import describe
from holdpoint.terminal.forms import JSON, NotValid, fields_of, filled
from holdpoint.terminal.lines import count_columns, make_visible, one_line, quote_text, render_lines
from hypothesis import given
from hypothesis import strategies as st

DANGEROUS = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x1b]0;mine\x07", "<U+001B>[2J<U+001B>]0;mine<U+0007>"),
        ("\x9b31m", "<U+009B>31m"),
        ("pay\x08\x08\x08", "pay<U+0008><U+0008><U+0008>"),
        ("a\rb", "a<U+000D>b"),
        ("100\u202e001", "100<U+202E>001"),
        ("\u2066x\u2069", "<U+2066>x<U+2069>"),
        ("no\u200bw", "no<U+200B>w"),
        ("tag\U000e0041", "tag<U+E0041>"),
        ("a\ufe01", "a<U+FE01>"),
        ("\u3164", "<U+3164>"),
        ("\ud800", "<U+D800>"),
        ("z" + "\u0301" * 9, "z" + "<U+0301>" * 9),
        ("\u0e01" + "\u0e31" * 5, "\u0e01" + "\u0e31" * 3 + "<U+0E31>" * 2),
        ("one\ntwo\r\nthree", "one ⏎ two ⏎ three"),
        ("a\tb\u2003c 5\u00a0km", "a b<U+2003>c 5 km"),
        ("Grüße, 日本 ❤️ 👩\u200d💻", "Grüße, 日本 ❤️ 👩\u200d💻"),
    ],
)
def test_what_is_not_seen_or_moves_what_is_becomes_a_code_point(text: str, shown: str) -> None:
    assert make_visible(text) == shown


@pytest.mark.examples
@given(st.text(st.characters(codec=None)))
def test_no_text_leaves_anything_that_a_terminal_obeys(text: str) -> None:
    for shown in (make_visible(text), one_line(text, 20), render_lines(quote_text(text)).replace("\n", "")):
        for at, character in enumerate(shown):
            joins = character == "\u200d" and 0 < at < len(shown) - 1
            assert joins or unicodedata.category(character) not in DANGEROUS


def test_a_line_is_cut_by_its_columns() -> None:
    assert one_line("日本日本", 5) == "日本…"
    assert count_columns("日本") == 4
    assert one_line("plain", 5) == "plain"


def test_a_box_in_which_one_edits_gets_no_control_characters_either() -> None:
    arguments = {"text": "\x1b[2J", "more": ["\x7f\u202e"], "plain": "fine"}
    schema = {"properties": {"text": {"type": "string"}}}
    fields = fields_of(arguments, schema)
    for field in fields:
        assert make_visible(field.text) == field.text
    assert fields[0].kind == JSON
    assert filled(arguments, fields, {field.pointer: field.text for field in fields}) is arguments
    assert filled(arguments, fields, {"/text": json.dumps("clean")})["text"] == "clean"


def test_labels_and_names_are_shown_safely_too() -> None:
    hostile = "\x1b[31m"
    gate = {
        "id": 1, "run": 2, "title": hostile, "agent": hostile, "team": hostile, "risk": hostile, "status": "open",
        "opened_at": "2026-03-02T09:15:05Z", "deadline": None, "url": "https://h/gates/1/", "outside": True,
        "unsupported": [hostile], "tokens_decide": True, "step_up": False,
        "agreement": {"quorum": 1, "agreed": 0, "who": hostile, "voices": [
            {"name": hostile, "verdict": hostile, "comment": hostile, "counts": True}]},
        "card": {"summary": hostile, "for_whom": hostile, "amount": hostile, "reasons": [hostile],
                 "quotes": [{"label": hostile, "role": hostile, "pointer": "/x"}],
                 "actions": [{"id": hostile, "title": hostile, "tool": hostile, "undo": hostile,
                              "verdicts": ["approve"], "arguments": {hostile: hostile}, "pinned": []}],
                 "question": {"text": hostile, "choices": [{"id": hostile, "label": hostile}]},
                 "preconditions": [{"id": hostile, "label": hostile, "value": hostile}]},
    }  # fmt: skip
    impact = {"rows": [{"step": hostile, "kind": "step", "verdict": hostile, "on": [hostile], "asks": False,
                        "kept": False, "again": False, "irreversible": False, "title": hostile}],
              "asks": hostile, "ends": False, "children": [{"run": 3, "fate": hostile}],
              "repeats": [{"effect": 1, "title": hostile, "step": hostile, "at": None}]}  # fmt: skip
    assert "\x1b" not in render_lines([*describe.gate(gate, {"x": hostile}), *describe.impact(impact)])


def test_an_edit_is_drawn_as_a_diff_beside_its_exact_texts() -> None:
    draws = [{"kind": "diff", "before": "/old", "at": "/new"}, {"kind": "command", "at": "/new"}]
    arguments = {"old": "a\nb\nc", "new": "a\nB\x1b\nc"}
    told = render_lines(describe.action({"id": "edit", "title": "", "arguments": arguments, "draws": draws}))
    assert "     a\n    -b\n    +B<U+001B>\n     c\n" in told
    assert told.count("+B") == 1
    assert "│ B<U+001B>" in told
    was = render_lines(describe.action({"id": "write", "title": "", "arguments": {"new": "a\nb"},
                                 "draws": [{"kind": "diff", "at": "/new", "was": "a\nc"}]}))  # fmt: skip
    assert "compared with what the agent found there when it asked:" in was
    assert "    -c\n    +b\n" in was
    long = {"old": "a\n" * 1001, "new": "b"}
    assert "@@" not in render_lines(describe.action({"id": "edit", "title": "", "arguments": long, "draws": draws}))


def drawn(old: list[str], new: list[str]) -> list[str]:
    arguments = {"old": "\n".join(old), "new": "\n".join(new)}
    return render_lines(describe.draw_diff({"kind": "diff", "before": "/old", "at": "/new"}, arguments)).splitlines()


def test_lines_that_are_costly_to_compare_are_drawn_as_replaced() -> None:
    """An edit of 1,000 like lines held the terminal for half a minute, and an action may carry fifty of them."""
    old, new = ["a"] * 300, ["a", "b"] * 150
    assert drawn(["x", *old, "y"], ["x", *new, "y"]) == [
        "     x", "     a", *["    -a"] * 299, *["    +b", "    +a"] * 149, "    +b", "     y",
    ]  # fmt: skip


def test_a_long_text_with_few_changes_is_compared_between_them() -> None:
    old = [f"{at}" if at % 5 else "" for at in range(300)]
    new = ["first", *old[1:-1], "last"]
    changes = [text for text in drawn(old, new) if text[4:5] in ("-", "+")]
    assert changes == ["    -", "    +first", "    -299", "    +last"]


ORDER: dict[str, Any] = {
    "to": {"name": "ACME", "street": "Quay 7"},
    "amount": "120.00",
    "count": 3,
    "share": 1.0,
    "huge": 2**70,
    "urgent": False,
    "speed": "slow",
    "lines": [{"sku": "COF-250"}],
    "note": None,
}
SCHEMA: dict[str, Any] = {
    "$defs": {"Address": {"properties": {"name": {"type": "string", "title": "Name"}, "street": {"type": "string"}}}},
    "properties": {
        "to": {"$ref": "#/$defs/Address"},
        "amount": {"type": "string", "description": "in EUR"},
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "huge": {"type": "integer"},
        "urgent": {"type": "boolean"},
        "speed": {"enum": ["slow", "fast"]},
        "memo": {"type": "string"},
    },
    "required": ["amount", "count"],
}


def typed(**by_pointer: str) -> Any:
    """The order with this typed into its form."""
    return filled(ORDER, fields_of(ORDER, SCHEMA), {f"/{name}": each for name, each in by_pointer.items()})


def test_a_field_is_made_for_each_value_and_for_what_the_schema_knows_besides() -> None:
    fields = {each.pointer: each for each in fields_of(ORDER, SCHEMA)}
    assert list(fields) == ["/to/name", "/to/street", "/amount", "/count", "/share", "/huge", "/urgent", "/speed",
                            "/lines", "/note", "/memo"]  # fmt: skip
    assert (fields["/to/name"].label, fields["/amount"].hint) == ("Name", "in EUR")
    assert fields["/speed"].options == ("slow", "fast")
    assert (fields["/memo"].value, fields["/memo"].text, fields["/memo"].required) == (MISSING, "", False)


def test_what_was_not_touched_is_the_very_value() -> None:
    fields = fields_of(ORDER, SCHEMA)
    assert filled(ORDER, fields, {each.pointer: each.text for each in fields}) is ORDER


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("amount", "100.00", "100.00"),
        ("amount", "1", "1"),
        ("count", "4", 4),
        ("share", "0.5", 0.5),
        ("share", "1", 1),
        ("huge", str(2**71), 2**71),
        ("urgent", "true", True),
        ("speed", "fast", "fast"),
        ("lines", '[{"sku": "TEA-100"}]', [{"sku": "TEA-100"}]),
        ("memo", "new", "new"),
    ],
)
def test_what_is_typed_gets_its_type(name: str, text: str, value: Any) -> None:
    found = typed(**{name: text})[name]
    assert (found, type(found)) == (value, type(value))
    assert ORDER.get(name, MISSING) != value or type(ORDER[name]) is not type(value)


@pytest.mark.parametrize(
    ("name", "text"),
    [("count", "4.5"), ("count", "many"), ("urgent", "1"), ("share", "NaN"), ("lines", "["), ("count", "")],
)
def test_what_does_not_fit_is_refused_with_its_label(name: str, text: str) -> None:
    with pytest.raises(NotValid, match=name):
        typed(**{name: text})


def test_what_may_be_left_out_is_left_out_when_it_is_emptied() -> None:
    assert "speed" not in typed(speed="")


def test_a_schema_that_refers_to_itself_ends() -> None:
    schema = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}
    assert [each.pointer for each in fields_of({"a": "b"}, schema)] == ["/a"]


def test_differences_tell_one_number_from_another_of_the_same_value() -> None:
    assert list(changes({"a": 1, "b": [1, 2]}, {"a": 1.0, "b": [1, 3], "c/d": None})) == [
        Change("/a", 1, 1.0), Change("/b/1", 2, 3), Change("/c~1d", MISSING, None),
    ]  # fmt: skip
    assert list(changes(ORDER, json.loads(json.dumps(ORDER)))) == []


def test_a_value_is_replaced_in_a_copy() -> None:
    before = {"a": [{"b": 1}]}
    assert json_pointer.replaced(before, "/a/0/b", 2) == {"a": [{"b": 2}]}
    assert json_pointer.replaced(before, "/a/0", MISSING) == {"a": []}
    assert before == {"a": [{"b": 1}]}
