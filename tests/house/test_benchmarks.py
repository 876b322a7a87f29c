"""The benchmarks: every section is there and in the page, figures are judged, and two states' tables are compared."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks import compare
from benchmarks.figures import HEAD, Figure, format_table
from benchmarks.sections import SECTIONS
from tests.harness.services import run
from tests.harness.session import ROOT


def test_each_section_has_its_function_and_its_row_in_the_page() -> None:
    for section in SECTIONS.values():
        module, _, function = section.function.partition(".")
        assert callable(getattr(import_module(f"benchmarks.sections.{module}"), function))
    page = (ROOT / "docs" / "performance.md").read_text()
    assert set(re.findall(r"^\| (\w+): ", page, re.MULTILINE)) == set(SECTIONS)


@pytest.mark.parametrize(
    ("figure", "cells"),
    [
        (Figure("save", 1.889, most=1.5, parts={"commit": "0.2 ms"}), ["1.89", "commit 0.2 ms", "<= 1.5", "MISSED"]),
        (Figure("rate", 1234.5, "/s", least=100), ["1,234 /s", "", ">= 100", "holds"]),
        (Figure("rate", 99.4, "/s", least=100), ["99.4 /s", "", ">= 100", "MISSED"]),
        (Figure("weight", 0, "kB"), ["0 kB", "", "", ""]),
    ],
)
def test_a_figure_is_judged_by_its_aim(figure: Figure, cells: list[str]) -> None:
    assert figure.cells("store") == [f"store: {figure.name}", *cells]


def printed(**measured: float) -> str:
    shapes = {
        "load": Figure("load, p50", 0, "ms", parts={"peer": "4.2 ms"}),
        "rate": Figure("saves", 0, "/s"),
        "cleared": Figure("cleared", 0, "gates a second", least=3),
        "lost": Figure("facts lost", 0, most=0),
        "memory": Figure("worker, after 1,000 runs", 0, "MB"),
    }
    rows = [Figure(**vars(shapes[name]) | {"measured": figure}).cells("store") for name, figure in measured.items()]
    return f"\n== store\n\n{format_table([HEAD, *rows])}\n\nall of it: 0.1 min\n"


def test_states_are_paired_by_name_and_the_worse_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = tmp_path / "old.txt", tmp_path / "new.txt"
    # Three tables in one file: the median counts.
    old.write_text("".join(printed(load=load, rate=1000, cleared=3, memory=216) for load in (2.0, 9.0, 1.0)))
    new.write_text(printed(load=2.5, rate=1_200, cleared=2.5, memory=220, lost=0))
    compare.main(str(old), str(new))
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split(" | ")]
                      for line in capsys.readouterr().out.splitlines())  # fmt: skip
    assert head == ["mark", "old", "new", "new/old", ""]
    assert rows == [
        ["store: load, p50", "2 ms", "2.5 ms", "1.25", "worse"],
        ["store: saves", "1,000 /s", "1,200 /s", "1.20", "better"],
        ["store: cleared", "3 gates a second", "2.5 gates a second", "0.83", "worse"],
        ["store: worker, after 1,000 runs", "216 MB", "220 MB", "1.02", ""],
        ["store: facts lost", "", "0", "", ""],
    ]


def test_a_figure_that_was_nothing_and_is_something_is_worse() -> None:
    last = compare.compare_tables(printed(lost=0), printed(lost=3)).splitlines()[-1]
    assert re.split(r" *\| *", last)[1:-1] == ["store: facts lost", "0", "3", "inf", "worse"]


@pytest.mark.long
def test_runs_that_sleep_are_killed_and_are_edited_go_on_at_a_small_size() -> None:
    """A section fails where a run is lost, or does anything twice; its times are not looked at here."""
    done = run(sys.executable, "-m", "benchmarks", "--quick", "rewinds", "flow", within=400)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = compare.read_rows(done.stdout)
    assert [name.partition(":")[0] for name in rows] == ["rewinds"] * 3 + ["flow"] * 3
    (again, unit, _), _ = rows[
        "rewinds: steps that run again after an edit, of all on the path"
    ]  # as reached, at the end
    assert (0 < again < 100, unit) == (True, "%")
