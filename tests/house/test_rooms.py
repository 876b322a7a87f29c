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


def test_no_slow_read_of_one_object_holds_up_the_others_of_its_class() -> None:
    """functools' cached property has one lock for all instances before Python 3.12: a state was loaded under it."""
    locking = re.compile(r"^from functools import .*\bcached_property\b|functools\.cached_property", re.MULTILINE)
    assert locking.search("from functools import cached_property, partial")
    found = {str(path) for path in modules() if locking.search((ROOT / path).read_text())}
    assert found == {"agents/examples/jobshop/shop.py"}  # of a pydantic model, which takes no other, and reads nothing


def test_no_import_hides_behind_a_type_check() -> None:
    hidden = "if TYPE_CHECKING:\n    from .run import Run\n    from openai import OpenAI\n"
    assert hidden_imports(hidden) == ["run"]
    assert [str(path) for path in modules() if hidden_imports((ROOT / path).read_text())] == []


OWN = {"examples", "migrations", "commands"}  # folders whose names nobody looks for elsewhere


def test_no_two_classes_of_the_apps_have_the_same_name() -> None:
    found = defaultdict(list)
    for path in sorted(path for app in APPS for path in (ROOT / app).rglob("*.py")):
        if OWN.isdisjoint(path.parts):
            for name in re.findall(r"(?m)^class (\w+)", path.read_text()):
                found[name].append(str(path.relative_to(ROOT)))
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


FOLDERS = ("agents", "approvals", "checkpoints", "clients", "config")
# The code hash of a step covers the text of what it calls: reworded, each example would be another version.
LEFT = ROOT / "agents" / "examples"
RIDDLES = {"What", "Whatever", "Whether", "Where", "When", "Which", "Who", "Whoever", "Whom", "Whose", "How"}
BEGINS = re.compile(rf'"""({"|".join(RIDDLES)})\b')
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def riddles_in(source: str) -> Iterator[str]:
    """Yield the docstrings that begin with a question's word."""
    if not BEGINS.search(source):
        return
    for node in ast.walk(ast.parse(source)):
        said = ast.get_docstring(node) if isinstance(node, DOCUMENTED) else None
        if said and said.split()[0].strip(",:.") in RIDDLES:
            yield said.splitlines()[0]


def sources() -> Iterator[Path]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "migrations" not in path.parts and not path.is_relative_to(LEFT):
                yield path


def test_no_docstring_begins_with_a_questions_word() -> None:
    source = '"""Votes."""\ndef count():\n    """Whether enough agree."""\nclass Vote:\n    """How one decided."""\n'
    assert list(riddles_in(source)) == ["Whether enough agree.", "How one decided."]
    assert [(str(path), said) for path in sources() for said in riddles_in(path.read_text())] == []


WRITES = re.compile(r"\bPolicy\.objects\.\w*create\w*\(")
PLACES = ("agents", "approvals", "benchmarks", "checkpoints", "config", "docs", "tests/chaos")


def test_nobody_else_makes_a_policys_row() -> None:
    files = (file for place in PLACES for file in (ROOT / place).rglob("*.py"))
    assert [str(file) for file in files if WRITES.search(file.read_text())] == []


# A call -> the modules that may make it. Whatever else counted votes, or closed a gate by them, would be a second rule.
DECISION = {
    r"(?<!def )\bjudge\(": {"approvals/gates/projection.py"},
    r"\bgate\.project\(": {"approvals/gates/projection.py"},
    r"(?<!def )\bclosing\.close\(": {"approvals/gates/projection.py"},
}


def test_votes_are_judged_and_what_follows_is_written_in_one_place() -> None:
    texts = {str(path): (ROOT / path).read_text() for path in modules()}
    found = {call: {path for path, text in texts.items() if re.search(call, text)} for call in DECISION}
    assert found == DECISION


def test_no_test_has_the_browser_wait_for_a_condition() -> None:
    """The pages' own policy refuses what evaluates it a second time: `tests.harness.waiting.until` asks again."""
    waits = re.compile(r"\.wait_for_function\(")
    assert [str(path) for path in (ROOT / "tests").rglob("*.py") if waits.search(path.read_text())] == []


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
    "Gate": (
        "approvals_gate",
        {
            "status", "version", "proposal", "closed_at", "awaits", "turn", "settles_at", "settles_as", "ending",
            "risk", "deadline", "terms",
        },
        {Path("approvals/models/gate.py")},
    ),
    "Effect": (
        "agents_effect", {"status", "version", "result", "settled_at"}, {Path("agents/models/effect.py")},
    ),
}  # fmt: skip
EXCEPTIONS = {Path("agents/drill/walk.py")}  # ends the lease of a worker that it has killed, instead of waiting


def writes(source: str, model: str = "Run") -> bool:
    """Whether the source updates rows of the model: in SQL, by a queryset, kept in a name or not, or by saving one."""
    table, columns, _ = STATUSES[model]
    if not re.search(rf"{table}|\b{model}\.(?s:.*)update|\b{model.lower()}\.a?save\b", source):
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


def test_no_other_module_writes_a_status() -> None:
    sources = {path: (ROOT / path).read_text() for path in modules()}
    for model, (*_, places) in STATUSES.items():
        assert {path for path, source in sources.items() if writes(source, model)} - EXCEPTIONS == places


@pytest.mark.parametrize(
    "source",
    [
        'SQL = f"UPDATE\\n checkpoints_run SET {columns}"',
        'Run.objects.live().filter(pk=1).update(status="failed")',
        "Run.objects.filter(pk=1).update(**columns)",
        'mine = Run.objects.filter(pk=1)\nmine.live().update(status="failed")',
        'Run.objects.bulk_update(runs, ["status"])',
        'session.run.save(update_fields=["status"])',
    ],
)
def test_another_writer_is_found(source: str) -> None:
    assert writes(source)


def test_what_only_reads_or_counts_is_let_be() -> None:
    assert not writes('Run.objects.filter(status="queued").update(attempts=1)')
    assert not writes('SQL = "SELECT status FROM checkpoints_run FOR UPDATE"')
    assert not writes("run.save(force_insert=True)")
    assert not writes('mine = Prune.objects.filter(pk=1)\nmine.update(status="shown")')
