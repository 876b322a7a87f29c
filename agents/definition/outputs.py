"""A step's output, checked against its plan: the writes as JSON values, and the next step.

`packed` is the form in which an effect's result is kept: `{field: value}`, and for anything but a plain value a name
that no field can have: `field+` for an Append's items, `field~` for a Splice, `>` for a Jump or Done, and `@` for
the plan whose fields it has, where that is not the one under which the effect was started.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.errors import OutputRefused
from checkpoints.errors import ValueRefused
from checkpoints.runs.plans import PlanSpec, StepSpec
from checkpoints.values.json_pointer import make_pointer
from checkpoints.values.ops import Append, Splice, apply_write

from . import fields
from .agent import Agent, Done, Jump

APPENDED, SPLICED, GOTO, PLAN = "+", "~", ">", "@"


@dataclass(frozen=True)
class StepOutput:
    """Writes by field, and the next step: None for the one that the plan names, empty for done.

    `plan` is the id of the plan whose fields the writes have, where it was kept with one.
    """

    writes: dict[str, Any] = field(default_factory=dict)
    goto: str | None = None
    plan: int | None = None

    def over(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return the state as the step would leave it. Raises ValueRefused."""
        return {**state, **{name: apply_write(state.get(name), write) for name, write in self.writes.items()}}


def checked(agent: type[Agent], plan: PlanSpec, spec: StepSpec, returned: Any) -> StepOutput:
    """Check an output. Raises OutputRefused for what the plan does not declare, ValueRefused for a misfitting value."""
    goto = None
    if isinstance(returned, Jump):
        goto = returned.step
        if goto not in {step.name for step in plan.steps}:
            raise OutputRefused(f"{spec.name} jumps to {goto!r}, which is not a step of {plan.agent}.")
        if goto not in spec.jumps:
            raise OutputRefused(f"{spec.name} jumps to {goto!r}, which its plan does not declare; add it to `jumps`.")
    elif isinstance(returned, Done):
        if not spec.ends:
            raise OutputRefused(f"{spec.name} ends the run, which its plan does not declare; write `Done` in the step.")
        goto = ""
    written = returned.writes if isinstance(returned, (Jump, Done)) else returned
    if written is None:
        written = {}
    if not isinstance(written, Mapping):
        raise OutputRefused(f"{spec.name} returned {type(written).__name__}; a step returns a dict of fields.")
    for name in written:
        if name not in spec.writes:
            raise OutputRefused(f"{spec.name} returned {name!r}, which is not among the fields that its plan writes.")
    return StepOutput({name: fields.dumped(agent.State, name, value) for name, value in written.items()}, goto)


def check_entered(agent: type[Agent], spec: StepSpec, value: Any) -> StepOutput:
    """Check the result that a person entered for a step, an object of its fields. Raises ValueRefused."""
    if not isinstance(value, Mapping):
        raise ValueRefused("", "the result has to be an object of the step's fields")
    for name in value:
        if name not in spec.writes:
            raise ValueRefused(make_pointer(name), f"{spec.name} writes {', '.join(spec.writes) or 'nothing'}")
    return StepOutput({name: fields.dumped(agent.State, name, item) for name, item in value.items()})


def packed(output: StepOutput) -> dict[str, Any]:
    """Return the output as one JSON object."""
    data: dict[str, Any] = {}
    for name, value in output.writes.items():
        if isinstance(value, Append):
            data[name + APPENDED] = list(value.items)
        elif isinstance(value, Splice):
            data[name + SPLICED] = [value.start, value.delete, list(value.items)]
        else:
            data[name] = value
    return data if output.goto is None else data | {GOTO: output.goto}


def unpacked(data: Mapping[str, Any]) -> StepOutput:
    """Reverse `packed`."""
    writes: dict[str, Any] = {}
    for name, value in data.items():
        if name.endswith(APPENDED):
            writes[name[:-1]] = Append(value)
        elif name.endswith(SPLICED):
            writes[name[:-1]] = Splice(*value)
        elif name not in (GOTO, PLAN):
            writes[name] = value
    return StepOutput(writes, data.get(GOTO), data.get(PLAN))
