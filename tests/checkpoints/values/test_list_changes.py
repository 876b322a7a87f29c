"""What happened to a list is told item by item, not place by place."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpoints.values import patch
from checkpoints.values.canonical_json import encode_canonical
from tests.harness.examples import many

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
