"""The docs name what is there: every path, module, class member and test in backticks is resolved."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.harness.session import ROOT

ADR = ROOT / "docs" / "adr"
DOCS = (*sorted((ROOT / "docs").glob("*.md")), *sorted(ADR.glob("*.md")), ROOT / "README.md")
PARTS = ["Context", "Decision", "Consequences", "Alternatives"]  # of a decision's page
TOPS = ("agents", "approvals", "benchmarks", "checkpoints", "clients", "config", "docs", "static", "templates", "tests")
PATH = re.compile(r"(?:[\w@-]+(?:\.[\w-]+)*/)*(?:[\w@-]+/|[\w@.-]*\w\.(?:py|js|csv)(?:::\w+)?)")
MEMBER = re.compile(r"([A-Z]\w+)((?:\.\w+)+)(?:\(.*\))?")
THEIRS = re.compile(r"(test_)?my_agent\b|audit/$")  # what a reader writes, or keeps beside the project
BROWSERS = {"JSON"}


def named(text: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


@cache
def files() -> tuple[str, ...]:
    """Return every file and folder of the project, folders with a slash at their end."""
    every = (path for top in TOPS for path in (ROOT / top).rglob("*"))
    found = [*every, *ROOT.glob("*.py"), *(ROOT / top for top in TOPS)]
    return tuple(f"/{path.relative_to(ROOT)}{'/' * path.is_dir()}" for path in found if "__pycache__" not in str(path))


def faults(text: str) -> Iterator[str]:
    """Yield each name that leads nowhere, and each module's that leads to several."""
    for name in named(text):
        if PATH.fullmatch(name) and not THEIRS.match(name):
            yield from _of_path(name)
        elif (found := MEMBER.fullmatch(name)) and found[1] not in BROWSERS and not _resolves(found[1], found[2][1:]):
            yield f"{name}: no such member"


def _of_path(name: str) -> Iterator[str]:
    path, _, test = name.partition("::")
    ours = (each for each in files() if not each.startswith("/clients/"))
    found = [f"/{path}"] if f"/{path}" in files() else [each for each in ours if each.endswith(f"/{path}")]
    if len(found) != 1 and not (found and path.endswith("/")):
        yield f"{name}: {len(found)} such files"
    elif test and not re.search(rf"^ *(async )?def {test}\(", (ROOT / found[0][1:]).read_text(), re.MULTILINE):
        yield f"{name}: no such test"


def _resolves(kind: str, members: str) -> bool:
    return any(_has(getattr(import_module(module), kind), members) for module in _modules().get(kind, ()))


def _has(value: Any, members: str) -> bool:
    name, _, rest = members.partition(".")
    if name in getattr(value, "__annotations__", ()):
        return True
    return hasattr(value, name) and (not rest or _has(getattr(value, name), rest))


@cache
def _modules() -> dict[str, list[str]]:
    """Return the modules of the apps that define each class, by its name."""
    found: dict[str, list[str]] = {}
    for app in ("agents", "approvals", "checkpoints", "config"):
        for path in (ROOT / app).rglob("*.py"):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            for name in re.findall(r"(?m)^class (\w+)", path.read_text()):
                found.setdefault(name, []).append(module)
    return found


@pytest.mark.parametrize("doc", DOCS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_the_docs_name_is_there(doc: Path) -> None:
    assert list(faults(doc.read_text())) == []


def attacks_without_tests(page: str) -> list[str]:
    """List the attacks of the security page's table whose last cell names no test."""
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in page.splitlines() if "|" in line[:1]]
    rows = [row for row in cells if re.match(r"\d", row[0])]
    assert len(rows) >= 36, "the table has another form"
    return [row[0] for row in rows if not re.search(r"\.py::\w+`", row[-1])]


def test_every_attack_names_a_test_of_its_defence() -> None:
    """Nine of its sentences had become untrue, and some named no test."""
    page = (ROOT / "docs" / "security.md").read_text()
    assert attacks_without_tests(page) == []
    assert attacks_without_tests(f"{page}\n| 99 Swap | Bound. | `config/test_roles.py` |") == ["99 Swap"]


def headings(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("doc", [*DOCS, *(ROOT / "docs" / "frameworks").glob("*.md")], ids=lambda path: path.name)
def test_every_link_leads_to_a_page_and_a_heading(doc: Path) -> None:
    text = re.sub(r"```.*?```", "", doc.read_text(), flags=re.DOTALL)
    for target, place in re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)]+))?\)", text):
        page = doc.parent / target if target else doc
        assert page.exists(), target
        assert not place or place in headings(page), f"{target}#{place}"


def test_every_decision_is_in_the_index_and_has_its_parts() -> None:
    index = (ADR / "README.md").read_text()
    for page in ADR.glob("0*.md"):
        [(number, title)] = re.findall(r"\A# (\d{4})\. (.+)", page.read_text())
        assert f"- [{number}]({page.name}) {title}\n" in index
        assert page.name.startswith(number)
        assert re.findall(r"^## (.+)$", page.read_text(), re.MULTILINE) == PARTS, page.name


def test_the_table_of_frameworks_leads_to_every_page() -> None:
    pages = ROOT / "docs" / "frameworks"
    targets = re.findall(r"\]\(([^)#]+)", (pages / "README.md").read_text())
    assert {path.name for path in pages.glob("*.md")} - {"README.md"} <= set(targets)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("by `agents/nowhere.py`", "agents/nowhere.py: 0 such files"),
        ("`opening.py` draws it", "opening.py: 2 such files"),
        ("`Gate.judge` does", "Gate.judge: no such member"),
        ("`tests/house/test_docs.py::test_more`", "tests/house/test_docs.py::test_more: no such test"),
    ],
)
def test_a_name_that_leads_nowhere_is_found(text: str, fault: str) -> None:
    assert list(faults(text)) == [fault]


@pytest.mark.parametrize("text", ["`Gate.objects.visible_to`", "`schema/walk.py`", "`views/`", "`runs/<id>/forms/`"])
def test_a_name_that_is_there_is_none(text: str) -> None:
    assert list(faults(text)) == []
