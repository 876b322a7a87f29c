"""A docstring begins with what a thing does or is, so that the first words of a list of modules can be read as one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.harness.session import ROOT

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
