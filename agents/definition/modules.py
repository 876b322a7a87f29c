"""Imports the modules that declare agents, and reports each that cannot be used in a sentence.

Whatever an author's module raises while it is imported is a fault of that module alone: the processes go on serving
all other agents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType
from typing import TypeGuard

from django.conf import settings

from agents.errors import AgentError
from checkpoints.values.characters import one_line

from .agent import Agent

ENTRY_POINTS = "holdpoint.agents"
EXAMPLES = "agents.examples."
LONGEST = 300  # characters of what a module raised


def read() -> tuple[list[type[Agent]], list[str]]:
    """Return the agents' classes of HOLDPOINT_AGENTS and the entry points, and a sentence for each unusable module."""
    classes: list[type[Agent]] = []
    faults: list[str] = []
    for name, load in _homes():
        try:
            found = _agents_in(load())
        except ModuleNotFoundError as error:
            faults.append(_missing(name, error))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - an author's module may raise anything
            faults.append(f"{name} cannot be imported: {describe_error(error)}. Correct it.")
        else:
            classes += found
            if not found:
                faults.append(
                    f"{name} declares no agent: write a class of `agents.Agent` in it that has a `name`, "
                    "or take it out of HOLDPOINT_AGENTS."
                )
    return classes, faults


def _homes() -> Iterator[tuple[str, Callable[[], object]]]:
    for name in settings.HOLDPOINT_AGENTS:
        yield name, partial(import_module, name)
    for point in entry_points(group=ENTRY_POINTS):
        yield point.value, point.load


def _missing(name: str, error: ModuleNotFoundError) -> str:
    if error.name and (name == error.name or name.startswith(f"{error.name}.")):
        where = f"{name.replace('.', '/')}.py"
        return (
            f"There is no module {name}, which HOLDPOINT_AGENTS names: put {where} beside manage.py, "
            "or the folder that it is in on PYTHONPATH, or correct the name."
        )
    if name.startswith(EXAMPLES):
        return (
            f"{name} needs {error.name}, which is not installed: install requirements-examples.txt, "
            "or take it out of HOLDPOINT_AGENTS."
        )
    return f"{name} cannot be imported: {describe_error(error)}. Install it, or correct the import."


def describe_error(error: BaseException) -> str:
    """Describe the exception and its line in the author's file, without a full stop."""
    words = one_line(str(error), LONGEST).rstrip(".")
    if isinstance(error, AgentError):
        return words
    if isinstance(error, (SyntaxError, ModuleNotFoundError)):  # these say the place themselves
        return f"{type(error).__name__}: {words}"
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    place = f" ({at.tb_frame.f_code.co_filename}, line {at.tb_lineno})" if at else ""
    return f"{type(error).__name__}: {words}{place}"


def _agents_in(home: object) -> list[type[Agent]]:
    things = vars(home).values() if isinstance(home, ModuleType) else [home]
    return [thing for thing in things if _is_agent(thing)]


def _is_agent(thing: object) -> TypeGuard[type[Agent]]:
    return isinstance(thing, type) and issubclass(thing, Agent) and bool(thing.name)
