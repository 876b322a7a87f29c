"""The rooms stay small, and no import hides from the contracts that hold their layers."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.harness.session import ROOT

APPS = ("agents", "approvals", "checkpoints", "config")
IN_AN_APP, IN_A_ROOM = 12, 15  # modules, beside __init__; a folder of templates is a room


def modules(apps: Sequence[str] = APPS) -> Iterator[Path]:
    """Yield these folders' Python files beside __init__ and migrations, relative to the project."""
    for app in apps:
        for path in sorted((ROOT / app).rglob("*.py")):
            if path.name != "__init__.py" and "migrations" not in path.parts:
                yield path.relative_to(ROOT)


def templates() -> Iterator[Path]:
    """Yield the pages' templates, relative to the project."""
    yield from (path.relative_to(ROOT) for path in (ROOT / "templates").rglob("*.html"))


def crowded(paths: Iterator[Path]) -> list[str]:
    """Return the folders that hold more modules or templates than they may, with their number."""
    held = Counter(path.parent for path in paths)
    return [
        f"{folder}: {count}"
        for folder, count in sorted(held.items())
        if count > (IN_AN_APP if len(folder.parts) == 1 else IN_A_ROOM)
    ]


def hidden_imports(source: str) -> list[str]:
    """Return the modules of the project that are imported for type checkers alone, which hides circles."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            inside = [each for part in node.body for each in ast.walk(part) if isinstance(each, ast.ImportFrom)]
            found += [each.module or "." for each in inside if each.level or (each.module or "").startswith(APPS)]
    return found


def test_no_room_is_crowded() -> None:
    assert crowded(modules((*APPS, "benchmarks"))) == []


def test_no_folder_of_templates_is_crowded() -> None:
    assert crowded(templates()) == []


def test_a_crowded_room_is_named() -> None:
    many = [Path("agents") / f"m{number}.py" for number in range(13)]
    more = [Path("agents/steps") / f"m{number}.py" for number in range(16)]
    assert crowded(iter(many + more)) == ["agents: 13", "agents/steps: 16"]


def test_no_import_hides_behind_a_type_check() -> None:
    assert [str(path) for path in modules() if hidden_imports((ROOT / path).read_text())] == []


def test_a_hidden_import_is_found() -> None:
    source = (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .run import Run\n    from openai import OpenAI\n"
    )
    assert hidden_imports(source) == ["run"]
