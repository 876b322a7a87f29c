"""The reference has every public name, field and option: `@validator` and much of a card were once on no page."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

import agents
from agents import Agent
from agents.definition import decorators
from agents.testing import Trial
from docs.generated_pages import DOCS, write_reference
from tests.harness.session import ROOT

SECTIONS = dict(re.findall(r"(?ms)^## (\S+)\n(.*?)(?=^## |\Z)", (DOCS / "reference.md").read_text()))
DECORATORS: dict[str, Any] = {
    "@step": decorators.StepOptions, "@effect": decorators.EffectOptions, "@gate": decorators.GateOptions,
    "@undo": decorators.Undo, "@observation": decorators.Observation, "@validator": decorators.Validator,
    "@on_restore": decorators.Restore, "@upcast": decorators.Upcast,
}  # fmt: skip


def test_the_page_is_as_it_would_be_generated() -> None:
    assert (DOCS / "reference.md").read_text() == write_reference(), "run `make generated`"


def test_every_name_that_is_imported_has_a_section_in_words() -> None:
    assert {name.strip("@") for name in SECTIONS} == {*agents.__all__, "Trial"}
    assert {name for name in SECTIONS if name[0] == "@"} == set(DECORATORS)
    assert all(re.search(r"\A\n[A-Z`][^\n]{10,}\n", text) for text in SECTIONS.values())


@pytest.mark.parametrize("name", [name for name in SECTIONS if name not in ("Agent", "Trial")])
def test_every_field_and_option_is_listed(name: str) -> None:
    kind = DECORATORS.get(name) or getattr(agents, name)
    given = [each.name for each in fields(kind) if each.init] if is_dataclass(kind) else []
    assert sorted(re.findall(r"(?m)^(\w+): ", SECTIONS[name])) == sorted(given)


@pytest.mark.parametrize("kind", [Agent, Trial])
def test_every_attribute_and_method_is_listed(kind: type) -> None:
    text = SECTIONS[kind.__name__]
    public = {name for name, member in vars(kind).items() if inspect.isroutine(member) or isinstance(member, property)}
    public |= set(inspect.get_annotations(kind)) | {"Trial"}
    listed = {*re.findall(r"(?m)^(\w+): ", text), *re.findall(r"(?m)^- `(\w+)", text), "Trial"}
    assert listed == {name for name in public if name[0] != "_"}


def test_the_page_for_authors_names_what_an_instance_has() -> None:
    page = (ROOT / "docs" / "agents.md").read_text()
    own = set(re.findall(r"self\.(\w+)", inspect.getsource(Agent.__init__))) - {"memory", "notes"}
    assert own == {"run", "attempt", "config"}
    assert [name for name in own if f"`self.{name}" not in page] == []
