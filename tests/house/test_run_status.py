"""A run's status, and what goes with it, is written in two files alone: checkpoints/models/run_status.py and run.py."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.harness.session import ROOT

from .test_rooms import modules

WRITERS = {Path("checkpoints/models/run_status.py"), Path("checkpoints/models/run.py")}
COLUMNS = {
    "status", "wake_at", "reason", "frozen_at", "finished_at", "lease_until", "token", "halt", "settling", "ending",
}  # fmt: skip
UPDATE = re.compile(r"UPDATE\s+checkpoints_run\b")


def writes(source: str) -> bool:
    """Whether the source updates runs: in SQL, or by a queryset of runs."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and UPDATE.search(node.value):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("update"):
            given = {each.arg for each in node.keywords}
            if ast.unparse(node.func).startswith("Run.objects") and given & (COLUMNS | {None}):
                return True
    return False


def test_no_other_module_writes_a_runs_status() -> None:
    assert {path for path in modules() if writes((ROOT / path).read_text())} == WRITERS


@pytest.mark.parametrize(
    "source",
    [
        'SQL = "WITH moved AS (UPDATE checkpoints_run SET status = $1) SELECT 1"',
        'SQL = f"UPDATE\\n checkpoints_run SET {columns}"',
        'Run.objects.live().filter(pk=1).update(status="failed")',
        "Run.objects.filter(pk=1).update(**columns)",
    ],
)
def test_another_writer_is_found(source: str) -> None:
    assert writes(source)


def test_what_only_reads_or_counts_is_let_be() -> None:
    assert not writes('Run.objects.filter(status="queued").update(attempts=1)')
    assert not writes('SQL = "SELECT status FROM checkpoints_run FOR UPDATE"')
