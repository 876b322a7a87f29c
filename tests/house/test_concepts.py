"""The concepts by which the names of files are judged: there are fifty, and each leads to a file that is there."""

from __future__ import annotations

import pytest

from tests.harness.session import ROOT

FIRST, *LINES = (ROOT / "tests" / "house" / "concepts.txt").read_text().splitlines()
PLACES = dict(line.split("\t") for line in LINES)


def test_there_are_fifty_under_a_line_that_says_what_they_are_for() -> None:
    assert FIRST.startswith("# ")
    assert len(LINES) == len(PLACES) == 50


@pytest.mark.parametrize("words", PLACES)
def test_a_concept_is_in_one_file_or_two_that_are_there(words: str) -> None:
    paths = PLACES[words].split(" ")
    assert len(paths) in {1, 2}
    assert [path for path in paths if not (ROOT / path).is_file()] == []
