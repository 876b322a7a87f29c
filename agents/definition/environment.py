"""A run's environment: its configuration, the versions of the libraries that its agent declares, and what steps hold.

Configuration and versions are recorded when a run starts and stay with it. Reviewers are told, before they decide, of a
configuration that newer code reads differently and of a library of another version. What a step holds open is
described in the step's checkpoint and reopened by an `on_restore` method; of an environment variable, whose name
begins with $, the value is compared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from typing import Any, TypedDict

from pydantic import BaseModel, ValidationError

from agents.errors import AgentError, ConfigRefused, FieldError
from checkpoints.models import Run
from checkpoints.runs.plans import PlanSpec, StepSpec
from checkpoints.values.canonical_json import decode_canonical
from checkpoints.values.json_pointer import make_pointer

from . import fields
from .agent import Agent
from .decorators import MARK, Restore

WHOLE = "*"  # in StepSpec.config: the step takes the configuration as one
VARIABLE = "$"  # in StepSpec.holds: begins the name of an environment variable
SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)  # in the name of a variable


class Environment(TypedDict, total=False):
    """A recorded environment. `config` is missing where the agent has none; a library not installed has no version."""

    config: dict[str, Any]
    libraries: dict[str, str | None]


def recorded(run: Run) -> Environment:
    """Return the environment recorded when the run started; empty for a run of a program elsewhere."""
    found: Environment = decode_canonical(bytes(run.environment))
    return found


def current(agent: type[Agent], config: Mapping[str, Any] | None = None) -> Environment:
    """Return the environment of a run that would start now, with `config` over the defaults. Raises ConfigRefused."""
    found: Environment = {"libraries": {name: version(name) for name in agent.libraries}}
    made = configured(agent, {} if config is None else config, known_only=True)
    if made is not None:
        found["config"] = made.model_dump(mode="json", by_alias=False)
    return found


def config_for(run: Run, agent: type[Agent]) -> BaseModel | None:
    """Return a new copy of the run's configuration, as its steps get it; None where the agent has none.

    Names that the agent no longer has are ignored, and new ones have their defaults. Raises ConfigRefused.
    """
    return configured(agent, recorded(run).get("config", {}))


def configured(agent: type[Agent], values: Mapping[str, Any], *, known_only: bool = False) -> BaseModel | None:
    """Return the agent's configuration with these values; None where it has none. Raises ConfigRefused with all errors.

    `known_only`: a name that the agent does not have is an error.
    """
    if not isinstance(values, Mapping):
        raise ConfigRefused([FieldError(pointer="", message="the configuration must be a JSON object")])
    model = agent.Config
    known = {} if model is None else model.model_fields
    strange = [name for name in values if name not in known] if known_only else []
    errors = [
        FieldError(pointer=make_pointer(name), message="the agent's Config has no such field") for name in strange
    ]
    fitting = {name: values[name] for name in values if name in known}
    try:
        made = None if model is None else model.model_validate(fitting, by_name=True)
    except ValidationError as error:
        raise ConfigRefused([*fields.errors_of(error), *errors]) from error
    if errors:
        raise ConfigRefused(errors)
    return made


@cache
def version(library: str) -> str | None:
    """Return the installed version of a distribution; None where it is not installed."""
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None


def restorers(agent: type[Agent]) -> dict[str, str]:
    """Return the name of the method that reopens each thing, by the thing's name; the most derived class's counts."""
    found: dict[str, str] = {}
    for base in reversed(agent.__mro__):
        for method, made in vars(base).items():
            if isinstance(restore := getattr(made, MARK, None), Restore):
                found[restore.name] = method
    return found


def reopening(agent: type[Agent], step: StepSpec) -> list[str]:
    """List the methods that reopen what a step holds, in the order of `holds`."""
    known = restorers(agent)
    return [known[name] for name in step.holds if name in known]


def check_held(agent: type[Agent], plan: PlanSpec) -> None:
    """Refuse what could not be reopened, and what must not be kept. Raises AgentError."""
    known, held = restorers(agent), {name for step in plan.steps for name in step.holds}
    for step in plan.steps:
        where = f"{plan.agent}.{step.name}"
        for name in step.holds:
            if name.startswith(VARIABLE) and SECRET.search(name):
                raise AgentError(f"{where} holds {name}, whose value is kept and shown; name no secret.")
            if not name.startswith(VARIABLE) and name not in known:
                raise AgentError(
                    f'{where} holds {name}, which nothing reopens; write a method with @on_restore("{name}").'
                )
    for name, method in known.items():
        if name not in held:
            raise AgentError(f"{plan.agent}.{method} reopens {name}, which no step holds; name it in a step's `holds`.")


def check(agent: type[Agent], plan: PlanSpec) -> None:
    """Refuse a Config or libraries with which no run could start, and what cannot be held. Raises AgentError."""
    check_held(agent, plan)
    model, where = agent.Config, f"The agent {agent.__name__}"
    if model is not None and not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise AgentError(f"{where} has a Config that is not a pydantic BaseModel.")
    known = {} if model is None else model.model_fields
    for name, field in known.items():
        if field.is_required():
            raise AgentError(f"{where}: the field {name} of its Config has no default; give it one.")
        if field.alias or field.validation_alias or field.serialization_alias:
            raise AgentError(f"{where}: the field {name} of its Config has an alias; it is saved by its name.")
    if model is not None and fields.veil(model).hides:
        raise AgentError(
            f"{where} has a secret in its Config, which is kept with each run and shown: "
            "put it into the State, or let the step read it from the process's environment."
        )
    own = model is None and hasattr(agent, "config")  # an attribute that the agent's author defined
    for step in () if own else plan.steps:
        missing = [name for name in step.config if name not in known and not (name == WHOLE and model)]
        if missing:
            raise AgentError(
                f"{agent.name}.{step.name} uses self.config.{missing[0]}, which is not a field of its Config."
            )
    libraries: Any = agent.libraries
    if not isinstance(libraries, (tuple, list)) or not all(isinstance(name, str) and name for name in libraries):
        raise AgentError(f"{where}: `libraries` is a tuple of the names of distributions.")
