"""How a difference is cut for reading."""

from __future__ import annotations

from typing import Any

import pytest

from agents.pages import differences
from agents.pages.checkpoint import members
from checkpoints.errors import ValueRefused
from checkpoints.values import json_pointer, patch


@pytest.mark.parametrize(
    ("before", "after", "rows"),
    [
        ({"a": 1}, {"a": 2}, [("/a", "changed")]),
        ({}, {"a": {"b": 1, "c": {"d": 2}}}, [("/a/b", "added"), ("/a/c/d", "added")]),
        ({"a": {"b": 1}}, {}, [("/a/b", "removed")]),
        ({"a": None}, {"a": {"b": 1}}, [("/a/b", "added")]),
        ({"a": {"b": 1}}, {"a": None}, [("/a/b", "removed")]),
        ({"a": 0}, {"a": {"b": 1}}, [("/a", "changed")]),
        ({}, {"a": {}}, [("/a", "added")]),
        ({}, {"a": [1, 2]}, [("/a", "added")]),
        ({}, {"a": {"x/y": {"~": 1}}}, [("/a/x~1y/~0", "added")]),
        ({}, {"a": {str(n): n for n in range(25)}}, [("/a", "added")]),
    ],
    ids=[
        "value",
        "object",
        "removed object",
        "from null",
        "to null",
        "from a value",
        "empty",
        "list",
        "escapes",
        "too many",
    ],
)
def test_an_object_that_came_or_went_is_told_leaf_by_leaf(before: Any, after: Any, rows: list[tuple[str, str]]) -> None:
    told = list(differences.expand_objects(patch.list_changes(before, after)))
    assert [(row["pointer"], row["kind"]) for row in told] == rows


def test_each_leaf_carries_its_value_on_the_side_where_it_is() -> None:
    (added,) = differences.expand_objects(patch.list_changes({}, {"a": {"b": 1}}))
    (removed,) = differences.expand_objects(patch.list_changes({"a": {"b": 1}}, {}))
    assert (added["after"], removed["before"]) == (1, 1)


@pytest.mark.parametrize(("pointer", "found"), [("", {"a": [{"b/c": 3}]}), ("/a/0/b~1c", 3)])
def test_a_pointer_finds_its_value(pointer: str, found: Any) -> None:
    assert json_pointer.find_value({"a": [{"b/c": 3}]}, pointer) == found


@pytest.mark.parametrize("pointer", ["/b", "/a/1", "/a/-1", "/a/x", "/a/0/b~1c/d"])
def test_a_pointer_to_nothing_is_refused(pointer: str) -> None:
    with pytest.raises(ValueRefused):
        json_pointer.find_value({"a": [{"b/c": 3}]}, pointer)


def test_a_page_of_a_list_keeps_its_places() -> None:
    assert members(["a", "b", "c", "d"], 1, 2) == {"1": "b", "2": "c"}
    assert members({"x": 1, "y": 2, "z": 3}, 1, 9) == {"y": 2, "z": 3}
