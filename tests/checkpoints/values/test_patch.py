"""Differences: exact to the type, item by item, applied without touching what they are applied to."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpoints.errors import ValueRefused
from checkpoints.values import patch
from checkpoints.values.canonical_json import encode_canonical
from tests.factories.arbitrary_states import values
from tests.harness.examples import many


@given(values, values)
def test_a_diff_applied_to_the_first_gives_the_second(a: Any, b: Any) -> None:
    before = encode_canonical(a)
    assert encode_canonical(patch.apply(patch.diff(a, b), a)) == encode_canonical(b)
    assert encode_canonical(a) == before


@given(values, values)
def test_there_is_a_change_exactly_where_two_values_differ(a: Any, b: Any) -> None:
    assert bool(patch.list_changes(a, b)) == (encode_canonical(a) != encode_canonical(b)) == bool(patch.diff(a, b))


@pytest.mark.parametrize(("a", "b"), [(1, 1.0), (1, True), (0.0, -0.0), (0, False), ("1", 1), (None, [])])
def test_equal_values_of_two_types_differ(a: Any, b: Any) -> None:
    assert repr(patch.apply(patch.diff({"x": [a]}, {"x": [b]}), {"x": [a]})) == repr({"x": [b]})


def test_a_list_that_lost_its_middle_shows_what_it_lost() -> None:
    assert patch.list_changes({"l": [1, 2, 3, 4]}, {"l": [1, 4]}) == [
        {"pointer": "/l/1", "kind": "removed", "before": 2},
        {"pointer": "/l/2", "kind": "removed", "before": 3},
    ]


def test_changes_say_what_was_and_what_is() -> None:
    assert patch.list_changes({"a": 1, "b": None}, {"a": 2, "c": None}) == [
        {"pointer": "/a", "kind": "changed", "before": 1, "after": 2},
        {"pointer": "/b", "kind": "removed", "before": None},
        {"pointer": "/c", "kind": "added", "after": None},
    ]


# From RFC 6902, appendix A, and its neighbourhood.
GOOD = [
    ([{"op": "add", "path": "/foo/1", "value": "q"}], {"foo": ["a", "b"]}, {"foo": ["a", "q", "b"]}),
    ([{"op": "add", "path": "/foo/-", "value": 1}], {"foo": []}, {"foo": [1]}),
    ([{"op": "move", "from": "/a/b", "path": "/c"}], {"a": {"b": 1}}, {"a": {}, "c": 1}),
    ([{"op": "copy", "from": "/a", "path": "/b"}], {"a": [1]}, {"a": [1], "b": [1]}),
    ([{"op": "test", "path": "/~01", "value": 10}], {"~1": 10}, {"~1": 10}),
    ([{"op": "replace", "path": "", "value": 3}], {"a": 1}, 3),
]
BAD = [
    [{"op": "remove", "path": "/nope"}],
    [{"op": "replace", "path": "/l/2", "value": 1}],
    [{"op": "add", "path": "/l/3", "value": 1}],
    [{"op": "add", "path": "/l/01", "value": 1}],
    [{"op": "add", "path": "/nope/x", "value": 1}],
    [{"op": "add", "path": "/n/x", "value": 1}],
    [{"op": "add", "path": "/l/0"}],
    [{"op": "test", "path": "/n", "value": 1.0}],
    [{"op": "move", "from": "/l", "path": "/l/0"}],
    [{"op": "frobnicate", "path": "/n"}],
    [{"op": "remove", "path": ""}],
    [{"op": "remove", "path": "n"}],
    ["remove"],
]


@pytest.mark.parametrize(("ops", "before", "after"), GOOD)
def test_a_patch_of_the_rfc_does_what_the_rfc_says(ops: list[Any], before: Any, after: Any) -> None:
    assert patch.apply(ops, before) == after


@pytest.mark.parametrize("ops", BAD)
def test_a_patch_that_does_not_fit_is_refused(ops: list[Any]) -> None:
    with pytest.raises(ValueRefused):
        patch.apply(ops, {"l": [1, 2], "n": 1})


def test_copies_of_copies_end_at_a_bound() -> None:
    """Forty operations that each copy the whole made a state of 2^40 values, at which the web process stood still."""
    ops = [{"op": "copy", "from": "", "path": f"/x{n}"} for n in range(40)]
    with pytest.raises(ValueRefused, match="copies more than"):
        patch.apply(ops, {"a": 1})
    assert len(str(patch.apply(ops[:10], {"a": 1}))) > 10_000


A, B, C = {"sku": "a", "n": 1}, {"sku": "b", "n": 2}, {"sku": "c", "n": 3}


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


def test_a_moved_row_says_from_where() -> None:
    (row,) = patch.list_changes({"l": [A, B, C]}, {"l": [C, A, B]})
    assert row == {"pointer": "/l/0", "kind": "moved", "from": "/l/2", "after": C}


def test_a_patch_of_a_list_takes_out_and_puts_in_what_moved_and_leaves_the_rest() -> None:
    assert patch.diff([A, B, C], [B, {**C, "n": 4}]) == [
        {"op": "remove", "path": "/0"},
        {"op": "replace", "path": "/1/n", "value": 4},
    ]


lists = st.lists(st.integers(0, 4) | st.fixed_dictionaries({"a": st.integers(0, 2), "b": st.booleans()}), max_size=9)


@settings(max_examples=many(300))
@given(lists, lists)
def test_the_patch_gives_the_second_list_whatever_moved(before: list[Any], after: list[Any]) -> None:
    assert encode_canonical(patch.apply(patch.diff(before, after), before)) == encode_canonical(after)
    assert bool(patch.list_changes(before, after)) == (encode_canonical(before) != encode_canonical(after))


def test_two_long_lists_that_share_nothing_are_compared_in_time() -> None:
    rows = patch.list_changes(list(range(20_000)), list(range(50_000, 70_000)))
    assert len(rows) == 20_000
    rows = patch.list_changes(list(range(20_000)), list(range(19_999, -1, -1)))
    assert len([row for row in rows if row["kind"] == "moved"]) == 19_999
