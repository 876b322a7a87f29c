"""The Python client's extras are spelt as packages are, everywhere.

pip before 23.3, Debian 12's own, installed nothing for `holdpoint[openai_agents]` and only warned, so the program ended
at its first import.
"""

from __future__ import annotations

import re
import tomllib

import pytest
from holdpoint.command import COMMANDS

from tests.harness.session import ROOT

CLIENT = ROOT / "clients" / "python"
EXTRAS = tomllib.loads((CLIENT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
# A message of the client fills in the name of a subcommand's extra.
NAMED = re.compile(r"(?:\bholdpoint|clients/python|(?<=[\s`'\"])\.)\[([\w.,\s-]+)\]|\bextras? `([\w.-]+)`")
TEXTS = (
    *(path for suffix in ("*.md", "*.py", "*.toml", "*.in") for path in CLIENT.rglob(suffix)),
    *(ROOT / "docs").rglob("*.md"), *(ROOT / "agents").rglob("*.py"), *(ROOT / "clients" / "typescript").glob("*.md"),
    *ROOT.glob("*.md"), *ROOT.glob("*.in"), ROOT / "Makefile",
)  # fmt: skip


def named_in(text: str) -> set[str]:
    """List the extras of the client that a text names."""
    found = (listed or alone for listed, alone in NAMED.findall(text))
    return {name.strip() for names in found for name in names.split(",")}


def test_extras_are_spelt_as_packages_are_and_a_subcommand_names_one_of_them() -> None:
    assert {each.extra for each in COMMANDS.values() if each.extra} <= EXTRAS.keys()
    assert EXTRAS.keys() == {re.sub(r"[-_.]+", "-", name).lower() for name in EXTRAS}


def test_a_page_or_message_names_only_extras_that_there_are() -> None:
    named = {str(path.relative_to(ROOT)): named_in(path.read_text()) for path in TEXTS}
    assert {path: names - EXTRAS.keys() for path, names in named.items() if names - EXTRAS.keys()} == {}


def test_each_extra_is_on_a_page_that_says_how_to_install_it() -> None:
    pages = "".join(path.read_text() for path in (ROOT / "docs" / "frameworks").glob("*.md"))
    assert named_in(pages) == EXTRAS.keys()


@pytest.mark.parametrize("text", ["pip install 'holdpoint[a_b]'", '"./clients/python[c,a_b]"', "with its extra `a_b`,"])
def test_an_extra_is_seen_however_it_is_named(text: str) -> None:
    assert "a_b" in named_in(text)
