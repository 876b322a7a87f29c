"""Every section of the benchmarks can be read without settings; marks of several runs are compared; the flow runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import compare, marks
from benchmarks.__main__ import SECTIONS
from benchmarks.flow.flow import PARTS
from tests.harness.services import run


def test_each_section_is_read_before_any_server_runs() -> None:
    """Moved imports read models too early: most sections failed at their first line, and nothing had noticed."""
    lines = "\n".join(f"import benchmarks.{module}" for module in SECTIONS.values() if "jobshop" not in module)
    done = run(sys.executable, "-c", f"{lines}\nimport benchmarks.examples.jobshop", env={"DJANGO_SETTINGS_MODULE": ""})
    assert done.returncode == 0, done.stderr


def test_marks_of_runs_stand_beside_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = []
    for number, (save, rate) in enumerate([(1.4, 90), (1.7, 110), (1.5, 1200)]):
        kept = tmp_path / f"marks-{number}"
        monkeypatch.setenv(marks.FILE, str(kept))
        monkeypatch.setenv(marks.SECTION, "store")
        marks.mark("save over a commit", save, most=1.5, beside={"commit": f"0.{number} ms"})
        if number:  # the first run was cut off
            marks.mark("saves", rate, "/s", least=100)
        files.append(tmp_path / f"{number}.json")
        files[-1].write_text(json.dumps([json.loads(line) for line in kept.read_text().splitlines()]))
    assert "save over a commit: 1.7 (aim <= 1.5; commit 0.1 ms) MISSED" in capsys.readouterr().out
    compare.main([str(file) for file in files])
    _, _, save_row, rate_row = (
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in capsys.readouterr().out.splitlines()
    )
    commits = "commit 0.0 ms / 0.1 ms / 0.2 ms"
    assert save_row == ["store: save over a commit", "1.4", "1.7", "1.5", "1.5", commits, "<= 1.5", "2 of 3"]
    assert rate_row == ["store: saves", "", "110", "1,200", "655 /s", "", ">= 100", "2 of 2"]


@pytest.mark.long
def test_each_part_of_the_flow_runs_at_a_small_size_and_loses_no_run(tmp_path: Path) -> None:
    """A part fails where a run is lost, or does anything twice; its times are not looked at here."""
    kept = tmp_path / "marks"
    told = {marks.FILE: str(kept), marks.SECTION: "flow", "HOLDPOINT_LOG_LEVEL": "INFO"}
    done = run(sys.executable, "-m", "benchmarks.flow.flow", "--quick", env=told, within=400)
    assert done.returncode == 0, done.stderr[-3000:]
    assert [line.removeprefix("-- ") for line in done.stdout.splitlines() if line.startswith("-- ")] == list(PARTS)
    reached = {each.name: each for each in marks.read(kept.read_text().splitlines())}
    assert len(reached) == 16
    flat = reached["statements of one child more, among many over among few"]
    assert flat.verdict == "holds", flat
