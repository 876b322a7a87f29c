"""The page for authors has every public name, field and option: `@validator` and much of a card were not there."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

import agents
from agents import Action, Agent, Card, Chart, Drawing, Precondition, Quote
from agents.definition import options
from agents.testing import Trial
from tests.harness.session import ROOT

PAGE = (ROOT / "docs" / "agents.md").read_text()
INSIDE = {"memory", "notes"}  # of an instance, for the runtime
DECORATORS: dict[str, Any] = {
    "step": options.StepOptions, "effect": options.EffectOptions, "gate": options.GateOptions,
    "undo": options.Undo, "observation": options.Observation, "on_restore": options.Restore, "upcast": options.Upcast,
}  # fmt: skip


def rows(section: str) -> list[list[str]]:
    """The cells of the tables in a section of the reference, without their heads."""
    [text] = re.findall(rf"(?ms)^### {section}\n(.*?)(?=^###? |\Z)", PAGE)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"(?m)^\| `.*\|$", text)]


def first(section: str) -> list[str]:
    return [cells[0].strip("`") for cells in rows(section)]


def call(name: str, function: Callable[..., Any]) -> str:
    """A call as the page has it: parameters and defaults, without types."""
    parts = list(inspect.signature(function).parameters.values())
    kept = [each.replace(annotation=inspect.Parameter.empty) for each in parts if each.name not in ("self", "cls")]
    return f"{name}{inspect.Signature(kept)}"


def named(name: str) -> str:
    """A public name; with the fields of what a step returns, or gets."""
    thing = getattr(agents, name)
    own_table = (Action, Card, Chart, Drawing, Precondition, Quote)
    if (
        not inspect.isclass(thing)
        or not is_dataclass(thing)
        or thing in own_table
        or issubclass(thing, options.Options)
    ):
        return name
    return f"{name}({', '.join(each.name for each in fields(thing))})"


def test_every_name_that_is_imported() -> None:
    assert sorted(first("Names")) == sorted(map(named, agents.__all__))


def test_every_attribute_of_the_class_and_of_its_instances() -> None:
    own = {name for name in inspect.get_annotations(Agent) if not name.startswith("_")}
    of_instances = {name for name, each in vars(Agent).items() if isinstance(each, property)}
    of_instances |= set(re.findall(r"self\.(\w+)", inspect.getsource(Agent.__init__))) - INSIDE
    assert sorted(first("Attributes")) == sorted(own | of_instances)


def test_every_method_with_what_it_takes() -> None:
    public = {name: getattr(Agent, name) for name in vars(Agent) if not name.startswith("_")}
    methods = [call(name, each) for name, each in public.items() if inspect.isroutine(each)]
    assert sorted(first("Methods")) == sorted(methods)


def test_every_option_of_each_decorator() -> None:
    shown = {(kind, cells[0].strip("`")) for cells in rows("Options") for kind in cells[1].split(", ")}
    taken = {(kind, each.name) for kind, of in DECORATORS.items() for each in fields(of) if each.init}
    assert shown == taken
    assert isinstance(agents.validator, options.Validator), "it is the decorator itself and takes no options"


@pytest.mark.parametrize("kind", [Card, Action, Precondition, Quote, Chart, Drawing])
def test_every_field_of_what_a_gate_shows(kind: Any) -> None:
    assert sorted(first(kind.__name__)) == sorted(each.name for each in fields(kind))


def test_every_public_name_of_a_trial() -> None:
    [text] = re.findall(r"(?ms)^## Testing\n(.*?)^## ", PAGE)
    assert [name for name in vars(Trial) if not name.startswith("_") and f".{name}" not in text] == []
