"""Every section of the benchmarks can be read without settings: its servers, whose URLs settings hold, start later."""

from __future__ import annotations

import sys

from benchmarks.__main__ import SECTIONS
from tests.harness.services import run


def test_each_section_is_read_before_any_server_runs() -> None:
    """Moved imports read models too early: most sections failed at their first line, and nothing had noticed."""
    lines = "\n".join(f"import benchmarks.{module}" for module in SECTIONS.values() if module != "jobshop")
    done = run(sys.executable, "-c", f"{lines}\nimport benchmarks.jobshop", env={"DJANGO_SETTINGS_MODULE": ""})
    assert done.returncode == 0, done.stderr
