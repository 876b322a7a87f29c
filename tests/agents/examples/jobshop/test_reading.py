"""Job shops in both published forms, and what is said of text that is none."""

from __future__ import annotations

import pytest

from agents.examples.jobshop import reading
from agents.examples.jobshop.reading import InstanceRefused, Shop, read

from . import taillard

FT03 = Shop(3, [[(0, 3), (1, 2), (2, 2)], [(0, 2), (2, 1), (1, 4)], [(1, 4), (2, 3), (0, 1)]])
STANDARD = "3 3\n0 3 1 2 2 2\n0 2 2 1 1 4\n1 4 2 3 0 1\n"
TAILLARD = """Nb of jobs, Nb of Machines, Time seed, Machine seed, Upper bound, Lower bound :
          3          3   840612802   398197754        11        10
Times
  3  2  2
  2  1  4
  4  3  1
Machines
  1  2  3
  1  3  2
  2  3  1
"""


def faults(text: str) -> list[str]:
    with pytest.raises(InstanceRefused) as refused:
        read(text)
    return refused.value.faults


def test_the_standard_form_is_read() -> None:
    assert read(STANDARD) == [FT03]


def test_comments_blank_lines_tabs_and_a_byte_order_mark_are_passed_over() -> None:
    text = "\ufeff# a shop of three\n\n 3\t3  // jobs machines\n\n0 3 1 2 2 2 ; first\n% second\n"
    assert read(text + "0 2 2 1 1 4\r\n1 4 2 3 0 1") == [FT03]


def test_machines_that_count_from_one_are_told_by_their_highest() -> None:
    assert read("3 3\n1 3 2 2 3 2\n1 2 3 1 2 4\n2 4 3 3 1 1\n") == [FT03]


def test_taillards_two_tables_are_read_with_their_labels_and_seeds() -> None:
    assert read(TAILLARD) == [FT03]


def test_a_file_of_several_shops_gives_each_of_them() -> None:
    assert read(TAILLARD + TAILLARD) == [FT03, FT03]
    bare = "3 3\ntimes\n3 2 2\n2 1 4\n4 3 1\nmachines\n1 2 3\n1 3 2\n2 3 1\n"
    assert read(bare + bare) == [FT03, FT03]


def test_a_shop_that_is_written_is_read_again() -> None:
    assert read(reading.written(FT03)) == [FT03]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "line 1: there is nothing in it but comments and blank lines"),
        ("# nothing\n\n", "line 1: there is nothing in it but comments and blank lines"),
        ("3\n0 1\n", "line 1: it should hold two numbers, of jobs and of machines; it holds 1"),
        ("2 0\n", "line 1: a shop needs a job and a machine; it says 2 and 0"),
        ("100 100\n", "line 1: 100 jobs of 100 operations are more than the 2,500 that are taken"),
        ("1 2\n0 1 1\n", "line 2: job 0 needs 4 numbers, 2 pairs of a machine and a duration; it has 3"),
        ("1 2\n0 1.5 1 2\n", "line 2: “1.5” is no whole number of 0 or more"),
        ("1 2\n0 -1 1 2\n", "line 2: “-1” is no whole number of 0 or more"),
        ("1 2\n0 1 2 2\n", "line 2: there is no machine 2; they count 0 to 1"),
        ("1 2\n0 1 1 2000000\n", "line 2: 2000000 is longer than the 1,000,000 that are taken"),
        ("2 1\n0 1\n", "line 2: after it 1 of 2 jobs are missing"),
        ("1 1\n0 1\n\n0 2\n", "line 4: line 1 says 1 jobs, and this is one more"),
        ("Times\n1 2\n", "line 1: a table before any line with the numbers of jobs and machines"),
        ("1 2\nTimes\n3 4\n", "line 1: the table “Machines” of this shop is missing"),
        ("1 2\nTimes\n3 4\nMachines\n1\n", "line 5: job 0 needs 2 numbers, 2 machines; it has 1"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, fault: str) -> None:
    assert fault in faults(text)


def test_every_fault_is_said_and_not_only_the_first() -> None:
    assert faults("2 2\n0 x 1 2\n0 1 1\n") == [
        "line 2: “x” is no whole number of 0 or more",
        "line 3: job 1 needs 4 numbers, 2 pairs of a machine and a duration; it has 3",
    ]


def test_the_bundled_shops_are_those_that_the_generator_makes() -> None:
    files = sorted(taillard.BUNDLED.iterdir())
    assert [file.stem for file in files] == sorted(taillard.SEEDS)
    for file in files:
        assert file.read_text() == taillard.text_of(file.stem)


def test_the_generator_makes_the_published_first_job_of_the_first_shop() -> None:
    first = taillard.generate(840612802, 398197754)[0]
    assert [duration for _, duration in first] == [94, 66, 10, 53, 26, 15, 65, 82, 10, 27, 93, 92, 96, 70, 83]
    assert [machine + 1 for machine, _ in first] == [7, 13, 5, 8, 4, 3, 11, 12, 9, 15, 10, 14, 6, 1, 2]
