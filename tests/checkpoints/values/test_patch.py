"""Differences: exact to the type, applied without touching what they are applied to."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from checkpoints.errors import ValueRefused
from checkpoints.values import patch
from checkpoints.values.canonical_json import encode_canonical
from tests.factories.arbitrary_states import values


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
