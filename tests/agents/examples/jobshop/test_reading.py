"""Job shops in the standard form, and what is said of text that is none."""

from __future__ import annotations

import pytest

from agents.examples.jobshop.shop import Shop, read_shop

from . import taillard

FT03 = Shop(machines=3, jobs=[[(0, 3), (1, 2), (2, 2)], [(0, 2), (2, 1), (1, 4)], [(1, 4), (2, 3), (0, 1)]])
STANDARD = "3 3\n0 3 1 2 2 2\n0 2 2 1 1 4\n1 4 2 3 0 1\n"


def faults(text: str) -> list[str]:
    with pytest.raises(ValueError, match="line") as refused:
        read_shop(text)
    return str(refused.value).split("; ")


def test_the_standard_form_is_read() -> None:
    assert read_shop(STANDARD) == FT03


def test_comments_blank_lines_and_tabs_are_passed_over() -> None:
    text = "# a shop of three\n\n 3\t3  # jobs machines\n\n0 3 1 2 2 2 # first\n"
    assert read_shop(text + "0 2 2 1 1 4\r\n1 4 2 3 0 1") == FT03


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "line 1: there is nothing in it but comments and blank lines"),
        ("# nothing\n\n", "line 1: there is nothing in it but comments and blank lines"),
        ("3\n0 1\n", "line 1: it should hold two numbers, of jobs and of machines"),
        ("2 0\n", "line 1: a shop has 1 to 2,500 operations"),
        ("100 100\n", "line 1: a shop has 1 to 2,500 operations"),
        ("1 2\n0 1 1\n", "line 2: it should hold 2 pairs of a machine and a duration"),
        ("1 2\n0 1.5 1 2\n", "line 2: “1.5” is no whole number of 0 or more"),
        ("1 2\n0 -1 1 2\n", "line 2: “-1” is no whole number of 0 or more"),
        ("1 2\n0 1 2 2\n", "line 2: there is no machine 2, they count 0 to 1"),
        ("1 2\n0 1 1 2000000\n", "line 2: 2000000 is longer than 1,000,000"),
        ("2 1\n0 1\n", "line 1: it says 2 jobs, and there are 1"),
        ("1 1\n0 1\n\n0 2\n", "line 1: it says 1 jobs, and there are 2"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, fault: str) -> None:
    assert fault in faults(text)


def test_every_fault_is_said_and_not_only_the_first() -> None:
    assert faults("2 2\n0 1 2 2\n0 1 1\n") == [
        "line 2: there is no machine 2, they count 0 to 1",
        "line 3: it should hold 2 pairs of a machine and a duration",
    ]


def test_the_bundled_shops_are_those_that_the_generator_makes() -> None:
    files = sorted(taillard.BUNDLED.iterdir())
    assert [file.stem for file in files] == sorted(taillard.SEEDS)
    for file in files:
        assert file.read_text() == taillard.file_of(file.stem)


def test_the_generator_makes_the_published_first_job_of_the_first_shop() -> None:
    first = taillard.generate("ta01").jobs[0]
    assert [duration for _, duration in first] == [94, 66, 10, 53, 26, 15, 65, 82, 10, 27, 93, 92, 96, 70, 83]
    assert [machine + 1 for machine, _ in first] == [7, 13, 5, 8, 4, 3, 11, 12, 9, 15, 10, 14, 6, 1, 2]
