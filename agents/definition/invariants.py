"""The rules of an agent's state: the validators of its model, checked over the whole state before it is saved.

Each field that a step writes is validated by itself (agents.definition.fields), which costs as much as that field.
What fields have to do with each other, and how long a list that grows may be, shows in the whole state alone. So the
whole is validated where a write touches a field that such a rule reads; a state without rules costs nothing. An agent
may have its rules checked at edits alone (`invariants = "edits"`), since the check reads the whole state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any

from pydantic import BaseModel, ValidationError

from agents.errors import FieldError, InvariantBroken
from checkpoints.values.ops import DROP, apply_write

from . import fields
from .agent import Agent

SAVES, EDITS = WHEN = ("saves", "edits")


def check(agent: type[Agent], before: Mapping[str, Any], writes: Mapping[str, Any]) -> None:
    """Check the state that these writes make of the state before. Raises InvariantBroken, and ValueRefused."""
    if agent.invariants != SAVES or ruled(agent.State).isdisjoint(writes):
        return
    after = {**before, **{name: apply_write(before.get(name), write) for name, write in writes.items()}}
    kept = {name: fields.copied(value) for name, value in after.items() if value is not DROP}
    try:
        agent.State.model_validate(kept, by_name=True, by_alias=False)
    except ValidationError as error:
        raise InvariantBroken(list(_faults(agent.State, error))) from None  # its text has the values, also secret ones
    except Exception as error:  # noqa: BLE001 - a bug in a rule: what is to be saved is not known to be sound
        words = f"a rule of the state could not be checked: {type(error).__name__}: {error}"
        raise InvariantBroken([FieldError(pointer="", message=words + _rule(agent.State, error))]) from None


def ruled(state: type[BaseModel]) -> frozenset[str]:
    """Return the fields whose writes may break a rule that the validation of one field does not see.

    Found once for each class.
    """
    return fields.derived(state, "ruled", lambda: frozenset(_ruled(state)))


def _ruled(state: type[BaseModel]) -> Iterator[str]:
    declared, names = state.__pydantic_decorators__, list(state.model_fields)
    if declared.model_validators or declared.root_validators:
        yield from names
    named = [validator.info.fields for validator in declared.field_validators.values()]
    named += [validator.info.fields for validator in declared.validators.values()]
    for read in named:
        for name in names if "*" in read else read:
            yield from names[: names.index(name) + 1] if name in names else ()  # `info.data` has those before it
    yield from (name for name, field in state.model_fields.items() if fields.is_list(state, name) and field.metadata)


def _faults(state: type[BaseModel], error: ValidationError) -> Iterator[FieldError]:
    """Yield each fault with the name of the validator that found it."""
    faults = error.errors(include_url=False, include_input=False)
    for fault, item in zip(fields.errors_of(error), faults, strict=True):
        raised = item.get("ctx", {}).get("error")
        rule = _rule(state, raised) if isinstance(raised, BaseException) else ""
        yield FieldError(pointer=fault["pointer"], message=fault["message"] + rule)


def _rule(state: type[BaseModel], raised: BaseException) -> str:
    """Name the state's validator that raised this, in brackets; "" for a rule without a name."""
    declared = state.__pydantic_decorators__
    known = {*declared.model_validators, *declared.field_validators, *declared.validators, *declared.root_validators}
    at: TracebackType | None = raised.__traceback__
    while at is not None:
        if (name := at.tb_frame.f_code.co_name) in known:
            return f" ({name})"
        at = at.tb_next
    return ""
