"""A status, and what goes with it, is written by its model alone: of runs, of gates and of effects."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.harness.session import ROOT

from .test_rooms import modules

# Model -> (its table, the columns, the modules that write them by name).
STATUSES: dict[str, tuple[str, set[str], set[Path]]] = {
    "Run": (
        "checkpoints_run",
        {
            "status", "wake_at", "reason", "frozen_at", "finished_at", "lease_until", "token", "halt", "settling",
            "ending",
        },
        {Path("checkpoints/models/run_status.py"), Path("checkpoints/models/run.py")},
    ),
    "Gate": ("approvals_gate", {"status", "version", "proposal", "closed_at"}, {Path("approvals/models/gate.py")}),
    "Effect": (
        "agents_effect", {"status", "version", "result", "settled_at"}, {Path("agents/models/effect.py")},
    ),
}  # fmt: skip
EXCEPTIONS = {Path("agents/drill/walk.py")}  # ends the lease of a worker that it has killed, instead of waiting


def writes(source: str, model: str = "Run") -> bool:
    """Whether the source updates rows of the model: in SQL, by a queryset, kept in a name or not, or by saving one."""
    table, columns, _ = STATUSES[model]
    update, tree = re.compile(rf"UPDATE\s+{table}\b"), ast.parse(source)
    begun = [model + "."]
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith(f"{model}.objects"):
            begun += [f"{each.id}." for each in node.targets if isinstance(each, ast.Name)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and update.search(node.value):
            return True
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        given, whose = {each.arg for each in node.keywords}, ast.unparse(node.func)
        if whose.startswith(tuple(begun)) and node.func.attr == "bulk_update":
            return True
        if whose.startswith(tuple(begun)) and node.func.attr.endswith("update") and given & (columns | {None}):
            return True
        if re.fullmatch(rf"(\w+\.)*{model.lower()}\.a?save", whose) and "force_insert" not in given:
            return True
    return False


@pytest.mark.parametrize("model", STATUSES)
def test_no_other_module_writes_a_status(model: str) -> None:
    found = {path for path in modules() if writes((ROOT / path).read_text(), model)}
    assert found - EXCEPTIONS == STATUSES[model][2]


@pytest.mark.parametrize(
    "source",
    [
        'SQL = "WITH moved AS (UPDATE checkpoints_run SET status = $1) SELECT 1"',
        'SQL = f"UPDATE\\n checkpoints_run SET {columns}"',
        'Run.objects.live().filter(pk=1).update(status="failed")',
        "Run.objects.filter(pk=1).update(**columns)",
        'mine = Run.objects.filter(pk=1)\nmine.live().update(status="failed")',
        'Run.objects.bulk_update(runs, ["status"])',
        'run.status = "failed"\nrun.save()',
        'session.run.save(update_fields=["status"])',
    ],
)
def test_another_writer_is_found(source: str) -> None:
    assert writes(source)


def test_another_writer_of_a_gate_or_an_effect_is_found() -> None:
    assert writes('Gate.objects.open().filter(pk=1).update(status="decided")', "Gate")
    assert writes('effect.save(update_fields=["status"])', "Effect")


def test_what_only_reads_or_counts_is_let_be() -> None:
    assert not writes('Run.objects.filter(status="queued").update(attempts=1)')
    assert not writes('SQL = "SELECT status FROM checkpoints_run FOR UPDATE"')
    assert not writes("run.save(force_insert=True)")
    assert not writes('mine = Prune.objects.filter(pk=1)\nmine.update(status="shown")')
