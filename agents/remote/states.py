"""The state of an external agent: a pydantic model made from its JSON Schema, which the engine reads and writes by.

The schema comes from outside and is as little trusted as a value: it is read by approvals.schema.validate, which
follows no reference out of it and runs no pattern that backtracks.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import InitErrorDetails, PydanticCustomError, core_schema

from approvals.schema import validate
from checkpoints.values import json_pointer

NULL = {"type": "null"}


class Held:
    """An annotation: the value must be valid under a schema; with `optional` it may be null."""

    def __init__(self, schema: Mapping[str, Any], *, optional: bool = False) -> None:
        self.schema, self.optional = schema, optional

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        """Return a schema that checks by JSON Schema and writes the value as it is."""
        return core_schema.no_info_plain_validator_function(self.checked)

    def checked(self, value: Any) -> Any:
        """Return a valid value. Raises an error that pydantic reports."""
        for place, message in self.faults(value):
            raise _error(f"{place}: {message}" if place else message)
        return value

    def faults(self, value: Any) -> list[tuple[str, str]]:
        """List the faults as (JSON Pointer, message)."""
        if not self.schema or (self.optional and value is None):
            return []
        return validate.faults_of(self.schema, value)


def state_of(schema: Mapping[str, Any]) -> type[BaseModel]:
    """Return the model of a state with the properties of `schema`, an object's JSON Schema with its definitions.

    A property that is not required may be null, and starts as its default, else null, or empty for a list. Others are
    taken as they are only where the schema says so by `additionalProperties`.
    """
    required = set(schema.get("required", ()))
    beside = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    members: dict[str, Any] = {}
    held: dict[str, Held] = {}
    for name, part in schema.get("properties", {}).items():
        optional = name not in required
        listed = _lists(part)
        held[name] = Held({**_bare(part), **beside} if part else {}, optional=optional and not listed)
        kind = _annotated(held[name], part, beside) if listed else Annotated[Any, held[name]]
        start = part.get("default", [] if listed else None)
        members[name] = (kind, Field(default_factory=partial(copy.deepcopy, start)) if optional else ...)
    with warnings.catch_warnings():  # a field may have the name of one of pydantic's own attributes
        warnings.simplefilter("ignore", UserWarning)
        base: type[_State] = _OpenState if schema.get("additionalProperties") is True else _State
        made = create_model("State", __base__=base, **members)
    made.described, made.field_checks = dict(schema), held
    return made


def completed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema as the plan keeps it: an optional property may be null."""
    required, kept = set(schema.get("required", ())), {}
    for name, part in schema.get("properties", {}).items():
        fixed = name in required or _lists(part)
        kept[name] = part if fixed else _or_null(part, {"$defs": schema.get("$defs", {})})
    return {"type": "object", "additionalProperties": False, **schema, "properties": kept}


class _State(BaseModel):
    """The base of such states: its own schema, and each fault at its exact place."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())
    described: ClassVar[dict[str, Any]] = {}
    field_checks: ClassVar[dict[str, Held]] = {}

    @classmethod
    def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the schema that was registered."""
        return cls.described

    @classmethod
    def model_validate(cls, obj: Any, **kwargs: Any) -> Self:
        """Validate as pydantic does, with every fault at its own place."""
        lines: list[InitErrorDetails] = []
        with validate.counted():
            for name, value in obj.items() if isinstance(obj, Mapping) else ():
                for place, message in cls.field_checks[name].faults(value) if name in cls.field_checks else ():
                    lines.append(
                        {"type": _error(message), "loc": (name, *json_pointer.split_pointer(place)), "input": value}
                    )
            if lines:
                raise ValidationError.from_exception_data("State", lines)
            return super().model_validate(obj, **kwargs)


class _OpenState(_State):
    """The base of states that may have any fields."""

    model_config = ConfigDict(extra="allow")


def _annotated(list_check: Held, part: Mapping[str, Any], definitions: Mapping[str, Any]) -> Any:
    """Annotate a list and its items, so that an appended item is checked alone."""
    items = part.get("items", {})
    item = Held({**items, **definitions} if items else {})
    return Annotated[list[Annotated[Any, item]], list_check]


def _lists(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "array" and isinstance(schema.get("items", {}), Mapping)


def _or_null(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    if not schema or not validate.faults_of({**schema, **definitions}, None):
        return dict(schema)
    kept = {name: value for name, value in schema.items() if name in ("title", "description")}
    bare = {name: value for name, value in schema.items() if name not in (*kept, "default")}
    return {**kept, "anyOf": [bare, dict(NULL)], "default": schema.get("default")}


def _bare(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema without the null that `_or_null` added, so that faults are reported at their own places."""
    either = schema.get("anyOf", [])
    return either[0] if len(either) == 2 and either[1] == NULL else schema


def _error(message: str) -> PydanticCustomError:
    return PydanticCustomError("schema", "{said}", {"said": message})
