"""A state as its JSON Schema says it, as a pydantic model: what the runner reads and writes fields by.

The schema comes from outside and is as little trusted as a value: it is asked by approvals.holding, which follows no
reference out of it and runs no pattern that backtracks.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import InitErrorDetails, PydanticCustomError, core_schema

from approvals import holding, pointers

NULL = {"type": "null"}


class Held:
    """The annotation of a value that holds under a schema."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = schema

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        """Checked as the schema says, and written as it is."""
        return core_schema.no_info_plain_validator_function(self.checked)

    def checked(self, value: Any) -> Any:
        """Raises what pydantic makes an error of."""
        if not self.schema:
            return value
        for place, message in holding.faults_of(self.schema, value):
            raise _error(f"{place}: {message}" if place else message)
        return value


def state_of(schema: Mapping[str, Any]) -> type[BaseModel]:
    """The model of a state with the properties of `schema`, an object's JSON Schema with its definitions beside them.

    A property that is not required may be null, and is null, or empty for a list, where nobody wrote it.
    """
    required = set(schema.get("required", ()))
    definitions = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    members: dict[str, Any] = {}
    for name, part in schema.get("properties", {}).items():
        whole = {**part, **definitions}
        if name in required:
            members[name] = (_annotated(whole), ...)
        elif _lists(part):
            members[name] = (_annotated(whole), Field(default_factory=partial(list, part.get("default", []))))
        else:
            members[name] = (_annotated(_or_null(part, definitions)), part.get("default"))
    with warnings.catch_warnings():  # a field may have the name of something that pydantic has besides
        warnings.simplefilter("ignore", UserWarning)
        made = create_model("State", __base__=_State, **members)
    made.described = dict(schema)
    return made


def completed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as it is kept with the plan: what may be missing may be null."""
    required = set(schema.get("required", ()))
    kept = {name: part if name in required or _lists(part) else _or_null(part, {}) for name, part in
            schema.get("properties", {}).items()}  # fmt: skip
    return {"type": "object", "additionalProperties": False, **schema, "properties": kept}


class _State(BaseModel):
    """What every such state has: its own schema, and errors at the very places."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())
    described: ClassVar[dict[str, Any]] = {}

    @classmethod
    def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The schema that was registered."""
        return cls.described

    @classmethod
    def model_validate(cls, obj: Any, **kwargs: Any) -> Self:
        """As pydantic does, with every fault at its own place."""
        found = holding.faults_of(cls.described, {**_defaults(cls), **obj}) if isinstance(obj, Mapping) else []
        if found:
            lines: list[InitErrorDetails] = [
                {"type": _error(said), "loc": tuple(pointers.tokens(place)), "input": obj} for place, said in found
            ]
            raise ValidationError.from_exception_data("State", lines)
        return super().model_validate(obj, **kwargs)


def _defaults(state: type[BaseModel]) -> dict[str, Any]:
    return {
        name: field.get_default(call_default_factory=True, validated_data={})
        for name, field in state.model_fields.items()
        if not field.is_required()
    }


def _annotated(schema: Mapping[str, Any]) -> Any:
    if not _lists(schema):
        return Annotated[Any, Held(schema)]
    items = {**schema.get("items", {}), **({"$defs": schema["$defs"]} if "$defs" in schema else {})}
    return Annotated[list[Annotated[Any, Held(items)]], Held(schema)]


def _lists(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "array" and isinstance(schema.get("items", {}), Mapping)


def _or_null(schema: Mapping[str, Any], beside: Mapping[str, Any]) -> dict[str, Any]:
    if not schema or not holding.faults_of({**schema, **beside}, None):
        return {**schema, **beside}
    kept = {name: value for name, value in schema.items() if name in ("title", "description", "default")}
    bare = {name: value for name, value in schema.items() if name not in kept}
    return {**kept, "anyOf": [bare, dict(NULL)], "default": schema.get("default"), **beside}


def _error(message: str) -> PydanticCustomError:
    return PydanticCustomError("schema", "{said}", {"said": message})
