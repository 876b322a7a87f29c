"""Two texts are compared line by line: each line is there or counted, whatever the texts are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.presentation.text import line_diff
from approvals.presentation.text.line_diff import HEAD, TAIL, Line, compared, counted, split

TEXTS = st.lists(st.sampled_from(["", " ", "a", "b", "c", "\r", "  a"]), max_size=40).map("\n".join)


@given(TEXTS, TEXTS)
def test_both_texts_can_be_made_of_it(before: str, after: str) -> None:
    lines = list(line_diff._all(split(before), split(after)))
    assert [line.text for line in lines if line.kind != "put"] == split(before)
    assert [line.text for line in lines if line.kind != "gone"] == split(after)


@given(TEXTS, TEXTS)
def test_every_line_is_drawn_or_counted(before: str, after: str) -> None:
    drawn = compared(before, after)
    added, removed = counted(before, after)
    assert sum(line.count or 1 for line in drawn if "put" in (line.kind, line.of)) == added
    assert sum(line.count or 1 for line in drawn if "gone" in (line.kind, line.of)) == removed


@given(TEXTS, TEXTS)
def test_numbers_are_those_of_the_texts(before: str, after: str) -> None:
    for line in compared(before, after):
        if line.kind in ("same", "gone"):
            assert split(before)[line.old - 1] == line.text
        if line.kind in ("same", "put"):
            assert split(after)[line.new - 1] == line.text


def test_unchanged_lines_far_away_are_counted() -> None:
    before = "".join(f"{at}\n" for at in range(40))
    drawn = compared(before, before.replace("20\n", "twenty\n"))
    assert drawn[0] == Line("unchanged", count=17, of="same")
    assert [line.text for line in drawn[1:-1]] == ["17", "18", "19", "20", "twenty", "21", "22", "23"]
    assert drawn[-1] == Line("unchanged", count=16, of="same")


def test_the_end_is_always_there() -> None:
    drawn = compared("", "".join(f"{at}\n" for at in range(5_000)) + "rm -rf /")
    assert len(drawn) == HEAD + TAIL + 1
    assert drawn[HEAD] == Line("more", count=5_001 - HEAD - TAIL)
    assert drawn[-1].text == "rm -rf /"


def test_blanks_that_run_are_within_reach_in_a_long_row_of_blank_lines() -> None:
    """They are no line breaks alone: what was counted showed none of them."""
    blanks = ["\t", "\u00a0", "  ", "\t", "\t", "\u3000"]
    [_, row] = compared("a", "\n".join(["a", *blanks]))
    assert (row.kind, row.count, row.folded.split("\n")) == ("blank", 6, blanks)
    [_, removed] = compared("\n".join(["a", *blanks]), "a")
    assert (removed.of, removed.folded) == ("gone", "")


def test_a_long_row_of_blank_lines_is_one() -> None:
    drawn = compared("", "a\n" + " \n" * 300 + "b\n")
    assert [(line.kind, line.text, line.count) for line in drawn] == [
        ("put", "a", 0),
        ("blank", "", 300),
        ("put", "b", 0),
    ]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("a", ["a"]),
        ("a\n", ["a"]),
        ("a\n\n", ["a", ""]),
        ("a\r\nb\r\n", ["a", "b"]),
        ("a\r\nb", ["a\r", "b"]),
    ],
)
def test_lines_are_split_as_editors_do(text: str, lines: list[str]) -> None:
    assert split(text) == lines
