"""Each attack of docs/security.md names the tests of its defence, and they are there.

Nine of its sentences had become untrue: nothing looked at whether a named test still existed, and some named none.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from django.conf import settings

TESTS = Path(settings.BASE_DIR) / "tests"
PAGE = Path(settings.BASE_DIR) / "docs" / "security.md"
_NAMED = re.compile(r"`([\w/]+\.py)(?:::(\w+))?`")


def rows(page: str) -> list[tuple[str, str]]:
    """List the attacks of the table, each with the cell of its tests."""
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in page.splitlines() if "|" in line[:1]]
    return [(row[0].strip("| "), row[-1]) for row in cells if re.match(r"\d", row[0].strip("| "))]


def faults(page: str) -> list[str]:
    """List the attacks without a test by name, and the tests that are gone."""
    found = [f"{attack} names no test" for attack, tests in rows(page) if not re.search(r"\.py::\w+`", tests)]
    for file, function in _NAMED.findall(page):
        if file.rpartition("/")[2].startswith("test_") and functions_of(file) is None:
            found.append(f"{file} is gone")
        elif function and function not in (functions_of(file) or ()):
            found.append(f"{file}::{function} is gone")
    return found


@cache
def functions_of(file: str) -> frozenset[str] | None:
    """Return the names of a file's tests, of its classes too; None if there is no such file."""
    path = TESTS / file
    if not path.exists():
        return None
    nodes = ast.walk(ast.parse(path.read_text()))
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_every_attack_names_tests_that_are_there() -> None:
    page = PAGE.read_text()
    assert len(rows(page)) >= 36, "the table has another form"
    assert faults(page) == []


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("| 1 Swap | Bound. | `config/test_roles.py` |", ["1 Swap names no test"]),
        ("| 1 Swap | Bound. | `config/test_roles.py::test_gone` |", ["config/test_roles.py::test_gone is gone"]),
        ("| 1 Swap | Bound. | `config/test_gone.py::test_x` |", ["config/test_gone.py is gone"]),
        ("| 1 Swap | Bound. | `config/test_roles.py::test_the_application_may_not_change_what_is_append_only` |", []),
    ],
    ids=["none", "a function that is gone", "a file that is gone", "one that is there"],
)
def test_a_row_that_proves_nothing_is_found(row: str, fault: list[str]) -> None:
    assert faults(row) == fault
