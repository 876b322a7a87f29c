"""No circle is hidden, names stand for one thing, and a status is written by its model alone."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.session import ROOT

APPS = ("agents", "approvals", "checkpoints", "config")


def modules() -> Iterator[Path]:
    """Yield the apps' Python files beside __init__ and migrations, relative to the project."""
    for app in APPS:
        for path in sorted((ROOT / app).rglob("*.py")):
            if path.name != "__init__.py" and "migrations" not in path.parts:
                yield path.relative_to(ROOT)


def hidden_imports(source: str) -> list[str]:
    """Return the modules of the project that are imported for type checkers alone, which hides circles."""
    found = []
    for node in ast.walk(ast.parse(source)) if "TYPE_CHECKING" in source else ():
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            inside = [each for part in node.body for each in ast.walk(part) if isinstance(each, ast.ImportFrom)]
            found += [each.module or "." for each in inside if each.level or (each.module or "").startswith(APPS)]
    return found


def test_no_import_hides_behind_a_type_check() -> None:
    assert [str(path) for path in modules() if hidden_imports((ROOT / path).read_text())] == []


def test_a_hidden_import_is_found() -> None:
    source = (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .run import Run\n    from openai import OpenAI\n"
    )
    assert hidden_imports(source) == ["run"]


OWN = {"examples", "migrations", "commands"}  # folders whose names nobody looks for elsewhere


def test_no_two_classes_of_the_apps_have_the_same_name() -> None:
    found = defaultdict(list)
    for path in sorted(path for app in APPS for path in (ROOT / app).rglob("*.py")):
        if OWN.isdisjoint(path.parts):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef):
                    found[node.name].append(str(path.relative_to(ROOT)))
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


FOLDERS = ("agents", "approvals", "checkpoints", "clients", "config")
# The code hash of a step covers the text of what it calls: reworded, each example would be another version.
LEFT = ROOT / "agents" / "examples"
RIDDLES = {"What", "Whatever", "Whether", "Where", "When", "Which", "Who", "Whoever", "Whom", "Whose", "How"}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def riddles_in(source: str) -> Iterator[str]:
    """Yield the docstrings that begin with a question's word."""
    for node in ast.walk(ast.parse(source)):
        said = ast.get_docstring(node) if isinstance(node, DOCUMENTED) else None
        if said and said.split()[0].strip(",:.") in RIDDLES:
            yield said.splitlines()[0]


def sources() -> Iterator[Path]:
    """Yield the product's modules, the examples' left out."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "migrations" not in path.parts and not path.is_relative_to(LEFT):
                yield path


def test_no_docstring_begins_with_a_questions_word() -> None:
    assert [(str(path), said) for path in sources() for said in riddles_in(path.read_text())] == []


def test_one_that_does_is_found() -> None:
    source = '"""Votes."""\ndef count():\n    """Whether enough agree."""\nclass Vote:\n    """How one decided."""\n'
    assert list(riddles_in(source)) == ["Whether enough agree.", "How one decided."]


WRITES = re.compile(r"\bPolicy\.objects\.\w*create\w*\(")
PLACES = ("agents", "approvals", "benchmarks", "checkpoints", "config", "docs", "tests/chaos")


@pytest.mark.parametrize("place", PLACES)
def test_nobody_else_makes_a_policys_row(place: str) -> None:
    found = [str(file) for file in (ROOT / place).rglob("*.py") if WRITES.search(file.read_text())]
    assert found == []


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
    if not re.search(rf"{table}|\b{model}\b|\b{model.lower()}\.a?save\b", source):
        return False
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
