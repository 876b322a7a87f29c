"""Two changes of one sequence: what both made of it, and where they oppose each other."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.forms.merging import merge_stretches

SEQUENCES = st.lists(st.sampled_from("abcdef"), max_size=8)


def merged(base: str, mine: str, theirs: str) -> list[str]:
    """Return each stretch after both changes; `mine|theirs` where they oppose each other."""
    found = merge_stretches(list(base), list(mine), list(theirs))
    return [
        "".join(stretch.merged) if stretch.merged is not None else f"{''.join(stretch.mine)}|{''.join(stretch.theirs)}"
        for stretch in found
    ]


@pytest.mark.parametrize(
    ("base", "mine", "theirs", "after"),
    [
        ("abcde", "aXcde", "abcdY", ["a", "X", "cd", "Y"]),
        ("abc", "abXc", "abYc", ["ab", "X|Y", "c"]),
        ("abc", "aXc", "aXc", ["a", "X", "c"]),
        ("abcd", "aXcd", "abYd", ["a", "Xc|bY", "d"]),  # nothing unchanged parts them
        ("abc", "c", "abcX", ["", "c", "X"]),
        ("", "X", "Y", ["X|Y"]),
    ],
)
def test_changes_apart_are_both_kept_and_changes_of_one_place_oppose_each_other(
    base: str, mine: str, theirs: str, after: list[str]
) -> None:
    assert merged(base, mine, theirs) == after


@given(SEQUENCES, SEQUENCES, SEQUENCES)
def test_the_stretches_are_each_version_in_order(base: list[str], mine: list[str], theirs: list[str]) -> None:
    found = list(merge_stretches(base, mine, theirs))
    versions: list[Sequence[str]] = [base, mine, theirs]
    for at, version in enumerate(versions):
        assert [item for stretch in found for item in stretch[at]] == version


@given(SEQUENCES, SEQUENCES)
def test_where_one_changed_nothing_the_other_counts(base: list[str], changed: list[str]) -> None:
    for mine, theirs in ((base, changed), (changed, base)):
        parts = [stretch.merged for stretch in merge_stretches(base, mine, theirs)]
        assert [item for part in parts for item in part or ()] == changed
        assert None not in parts
