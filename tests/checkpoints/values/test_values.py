"""What a state may hold, its one canonical form, what is refused and where; and differences, exact to the type."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpoints.errors import ValueRefused
from checkpoints.values import patch
from checkpoints.values.canonical_json import MOST_VALUES, decode_canonical, encode_canonical, parse_json
from tests.factories.arbitrary_states import values
from tests.harness.examples import many

A, B, C = {"sku": "a", "n": 1}, {"sku": "b", "n": 2}, {"sku": "c", "n": 3}
lists = st.lists(st.integers(0, 4) | st.fixed_dictionaries({"a": st.integers(0, 2), "b": st.booleans()}), max_size=9)


@given(values)
def test_every_value_has_the_standard_librarys_canonical_form_and_is_read_back_with_its_types(value: Any) -> None:
    expected = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    assert encode_canonical(value) == expected.encode()
    assert repr(decode_canonical(encode_canonical(value))) == repr(json.loads(json.dumps(value, sort_keys=True)))
    assert repr(parse_json(json.dumps(value))) == repr(value)


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def circle() -> Any:
    value: dict[str, Any] = {"inner": []}
    value["inner"].append(value)
    return value


REFUSED: list[tuple[Callable[[Any], Any], Any, str, str]] = [
    (encode_canonical, {"a": [1, float("nan")]}, "/a/1", "nan"),
    (encode_canonical, {"a": float("-inf")}, "/a", "inf"),
    (encode_canonical, {"a/b": {"~": "x\ud800"}}, "/a~1b/~0", "lone surrogate"),
    (encode_canonical, {"a": {"\udfff": 1}}, "/a", "lone surrogate"),
    (encode_canonical, {"a": {1: 2}}, "/a", "no text"),
    (encode_canonical, {"a": {True: 2}}, "/a", "no text"),
    (encode_canonical, [1, {"when": object()}], "/1/when", "object"),
    (encode_canonical, [b"bytes"], "/0", "bytes"),
    (encode_canonical, [{1, 2}], "/0", "set"),
    (encode_canonical, [10**5000], "/0", "too many digits"),
    (parse_json, '{"a": {"k": 1, "k": 2}}', "/a", "'k' twice"),
    (parse_json, '[{"x": NaN}]', "/0/x", "NaN"),
    (parse_json, '{"a": -Infinity}', "/a", "-Infinity"),
    (parse_json, '{"a": 1e999}', "/a", "too large"),
    (parse_json, '{"a": "\\ud800"}', "/a", "lone surrogate"),
    (parse_json, '{"a": ' + "9" * 5000 + "}", "/a", "too many digits"),
    (parse_json, "[" * 100_000, "", "nested deeper"),
    (parse_json, "{nope}", "", "is not JSON"),
    (parse_json, b"\xff\xfe", "", "not UTF-8"),
    # Each quotation mark was taken for the beginning of another text: that took hours.
    (parse_json, '"' + "," * 250_001 + '\\"' * 500_000, "", ""),
    (parse_json, '\\"' * 500_000 + "," * 250_001, "", ""),
]


def test_what_cannot_be_saved_or_read_is_refused_by_its_pointer() -> None:
    for refuses, value, pointer, reason in REFUSED:
        with pytest.raises(ValueRefused) as refused:
            refuses(value)
        assert refused.value.pointer == pointer
        assert reason in refused.value.reason


def test_nesting_and_the_number_of_values_end_at_a_bound_and_what_a_string_holds_is_none() -> None:
    assert decode_canonical(encode_canonical(deep(128))) == deep(128)
    for value in (deep(130), deep(5000), circle()):
        with pytest.raises(ValueRefused, match="nested deeper"):
            encode_canonical(value)
    # `[]` takes two bytes in a text and sixty in memory.
    many = "[" + "[]," * MOST_VALUES + "[]]"
    with pytest.raises(ValueRefused, match="has more than 250,000 values"):
        parse_json(many)
    text = '{"said": "' + ',[{\\"' * MOST_VALUES + '"}'
    assert len(parse_json(text)["said"]) == 4 * MOST_VALUES


@given(values, values)
def test_a_diff_gives_the_second_value_and_is_empty_exactly_where_there_is_none(a: Any, b: Any) -> None:
    before = encode_canonical(a)
    assert encode_canonical(patch.apply(patch.diff(a, b), a)) == encode_canonical(b)
    assert encode_canonical(a) == before
    assert bool(patch.list_changes(a, b)) == (encode_canonical(a) != encode_canonical(b)) == bool(patch.diff(a, b))


def test_changes_say_what_was_and_is_and_are_listed_in_time() -> None:
    assert patch.list_changes({"a": 1, "b": None}, {"a": 2, "c": None}) == [
        {"pointer": "/a", "kind": "changed", "before": 1, "after": 2},
        {"pointer": "/b", "kind": "removed", "before": None},
        {"pointer": "/c", "kind": "added", "after": None},
    ]
    rows = patch.list_changes(list(range(5_000)), list(range(50_000, 55_000)))
    assert len(rows) == 5_000
    rows = patch.list_changes(list(range(5_000)), list(range(4_999, -1, -1)))
    assert len([row for row in rows if row["kind"] == "moved"]) == 4_999


# From RFC 6902, appendix A, and its neighbourhood.
GOOD: list[tuple[list[Any], Any, Any]] = [
    ([{"op": "add", "path": "/foo/1", "value": "q"}], {"foo": ["a", "b"]}, {"foo": ["a", "q", "b"]}),
    ([{"op": "add", "path": "/foo/-", "value": 1}], {"foo": []}, {"foo": [1]}),
    ([{"op": "move", "from": "/a/b", "path": "/c"}], {"a": {"b": 1}}, {"a": {}, "c": 1}),
    ([{"op": "copy", "from": "/a", "path": "/b"}], {"a": [1]}, {"a": [1], "b": [1]}),
    ([{"op": "test", "path": "/~01", "value": 10}], {"~1": 10}, {"~1": 10}),
    ([{"op": "replace", "path": "", "value": 3}], {"a": 1}, 3),
]
BAD: list[list[Any]] = [
    [{"op": "remove", "path": "/nope"}],
    [{"op": "add", "path": "/l/3", "value": 1}],
    [{"op": "add", "path": "/l/01", "value": 1}],
    [{"op": "add", "path": "/n/x", "value": 1}],
    [{"op": "add", "path": "/l/0"}],
    [{"op": "test", "path": "/n", "value": 1.0}],
    [{"op": "move", "from": "/l", "path": "/l/0"}],
    [{"op": "frobnicate", "path": "/n"}],
    [{"op": "remove", "path": ""}],
    ["remove"],
]


def test_a_patch_does_what_the_rfc_says_or_is_refused() -> None:
    for ops, before, after in GOOD:
        assert patch.apply(ops, before) == after
    for ops in BAD:
        with pytest.raises(ValueRefused):
            patch.apply(ops, {"l": [1, 2], "n": 1})


def test_copies_of_copies_end_at_a_bound() -> None:
    """Forty operations that each copy the whole made a state of 2^40 values, at which the web process stood still."""
    ops = [{"op": "copy", "from": "", "path": f"/x{n}"} for n in range(40)]
    with pytest.raises(ValueRefused, match="copies more than"):
        patch.apply(ops, {"a": 1})
    assert len(str(patch.apply(ops[:10], {"a": 1}))) > 10_000


@pytest.mark.parametrize(
    ("before", "after", "rows"),
    [
        ([A, B, C], [B, C], [("removed", "/0")]),
        ([A, B, C], [C, A, B], [("moved", "/0")]),
        ([A, B, C], [A, {"sku": "x", "n": 9}, B, C], [("added", "/1")]),
        ([A, B, C], [{**B, "n": 5}, C], [("changed", "/0/n"), ("removed", "/0")]),
        ([A, B, C], [C, {**A, "n": 5}, B], [("moved", "/0"), ("changed", "/1/n")]),
        ([1, 2, 3], [1, 5, 3], [("changed", "/1")]),
        ([1, 2], [2, 1], [("moved", "/0")]),
        (["a", "a", "b"], ["b", "a", "a"], [("moved", "/0")]),
    ],
)
def test_rows_name_what_came_went_moved_or_changed(before: Any, after: Any, rows: list[tuple[str, str]]) -> None:
    assert [(row["kind"], row["pointer"]) for row in patch.list_changes(before, after)] == rows


@settings(max_examples=many(300))
@given(lists, lists)
def test_the_patch_gives_the_second_list_whatever_moved(before: list[Any], after: list[Any]) -> None:
    assert encode_canonical(patch.apply(patch.diff(before, after), before)) == encode_canonical(after)
    assert bool(patch.list_changes(before, after)) == (encode_canonical(before) != encode_canonical(after))
