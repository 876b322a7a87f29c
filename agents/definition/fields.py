"""Converts state fields between their stored JSON and a step's typed values.

Reading validates a field's stored value by its annotation; writing validates what a step returned and dumps it to
JSON. Both cost as much as the one field, never the whole state. A step gets its own copy, so that it cannot change the
saved state.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Annotated, Any, TypeVar, get_args, get_origin
from weakref import WeakKeyDictionary

from pydantic import BaseModel, SecretBytes, SecretStr, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticSerializationError, core_schema

from agents.errors import FieldError
from approvals.schema import redact
from approvals.schema.redact import Redaction
from checkpoints.errors import ValueRefused
from checkpoints.values.json_pointer import make_pointer
from checkpoints.values.ops import Append, Splice

Made = TypeVar("Made")

ANY: TypeAdapter[Any] = TypeAdapter(Any)
# By the class, and gone with it: the class of a plan from outside is made and dropped again while the process lives.
_DERIVED: WeakKeyDictionary[type[BaseModel], dict[str, Any]] = WeakKeyDictionary()
WORDS = {"missing": "This is needed."}  # by pydantic's type of error; its own words are for those who wrote the model


class StateSchema(GenerateJsonSchema):
    """The JSON Schema of stored values: decimals are text with the format `decimal`."""

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        """Return a decimal's schema, with `format` for forms."""
        return super().decimal_schema(schema) | {"format": "decimal"}


def schema_of(state: type[BaseModel]) -> dict[str, Any]:
    """Return the state's JSON Schema in the form in which it is stored (pydantic's serialization mode)."""
    return state.model_json_schema(mode="serialization", by_alias=False, schema_generator=StateSchema)


def adapter(state: type[BaseModel], name: str) -> TypeAdapter[Any]:
    """Return the adapter that validates and dumps one field, with its constraints; made once for each class."""
    return derived(state, f"field {name}", lambda: _adapter(state.model_fields[name]))


def item_adapter(state: type[BaseModel], name: str) -> TypeAdapter[Any]:
    """Return the adapter for one item of a list field; it takes anything where the annotation names no list."""
    return derived(state, f"item {name}", lambda: _item_adapter(state, name))


def _adapter(field: FieldInfo) -> TypeAdapter[Any]:
    constrained: Any = Annotated[field.annotation, field]
    return TypeAdapter(constrained)


def _item_adapter(state: type[BaseModel], name: str) -> TypeAdapter[Any]:
    kind = state.model_fields[name].annotation
    for candidate in (kind, *get_args(kind)):
        if get_origin(candidate) in (list, Sequence):
            return TypeAdapter(get_args(candidate)[0])
    return ANY


def is_list(state: type[BaseModel], name: str) -> bool:
    """Tell whether the field is annotated as a list."""
    kind = state.model_fields[name].annotation
    return kind is list or any(get_origin(argument) is list for argument in (kind, *get_args(kind)))


def read(state: type[BaseModel], name: str, values: Mapping[str, Any]) -> Any:
    """Return the field's typed value, as a new copy; its default where nothing was ever written.

    Raises ValueRefused where the stored value does not fit the annotation.
    """
    if name not in values:
        return state.model_fields[name].get_default(call_default_factory=True, validated_data={})
    try:
        return adapter(state, name).validate_python(copied(values[name]))
    except ValidationError as error:
        raise _refused(error, name) from error


def dumped(state: type[BaseModel], name: str, value: Any) -> Any:
    """Dump the value, Append or Splice that a step returned for a field to JSON values. Raises ValueRefused."""
    if isinstance(value, Append):
        return Append(_items(state, name, value.items))
    if isinstance(value, Splice):
        return Splice(value.start, value.delete, _items(state, name, value.items))
    return _json(adapter(state, name), value, name, secret=veil(state).within(name).hides)


def errors_of(error: ValidationError, *at: str | int) -> list[FieldError]:
    """List every error of a validation, by JSON Pointer."""
    return [
        FieldError(pointer=make_pointer(*at, *item["loc"]), message=WORDS.get(item["type"], strip_prefix(item["msg"])))
        for item in error.errors(include_url=False)
    ]


def strip_prefix(message: str) -> str:
    """Return the message of a model's own check without pydantic's prefix."""
    return message.removeprefix("Value error, ").removeprefix("Assertion failed, ")


def normalised(state: type[BaseModel], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the whole state, validated and dumped to JSON values. Raises pydantic's ValidationError."""
    return whole(state.model_validate(dict(values), by_name=True, by_alias=False))


def whole(state: BaseModel) -> dict[str, Any]:
    """Return a state as JSON values, with its secrets in clear."""
    plain = state.model_dump(mode="json", by_alias=False)
    return _unmasked(state.model_dump(by_alias=False), plain) if veil(type(state)) else plain


def veil(state: type[BaseModel]) -> Redaction:
    """Return the redaction of the state's secret fields; found once for each class."""
    return derived(state, "veil", lambda: redact.veil_marks(schema_of(state)))


def derived(state: type[BaseModel], what: str, make: Callable[[], Made]) -> Made:
    """Return what is made of a class, made once for each."""
    kept = _DERIVED.setdefault(state, {})
    if what not in kept:
        kept[what] = make()
    made: Made = kept[what]
    return made


def _items(state: type[BaseModel], name: str, items: Any) -> list[Any]:
    if isinstance(items, (str, bytes, Mapping)) or not isinstance(items, Sequence):
        raise ValueRefused(make_pointer(name), "Append and Splice take a list of items")
    secret = veil(state).within(name).hides
    return [_json(item_adapter(state, name), item, name, index, secret=secret) for index, item in enumerate(items)]


def _json(kind: TypeAdapter[Any], value: Any, *at: str | int, secret: bool) -> Any:
    try:
        valid = kind.validate_python(value)
        plain = kind.dump_python(valid, mode="json", by_alias=False)
        return _unmasked(kind.dump_python(valid, by_alias=False), plain) if secret else plain
    except ValidationError as error:
        raise _refused(error, *at) from error
    except (PydanticSerializationError, RecursionError, UnicodeDecodeError) as error:
        raise ValueRefused(make_pointer(*at), f"cannot be written as JSON: {error}") from error


def _unmasked(typed: Any, plain: Any) -> Any:
    """Put the secrets of `typed` back into `plain`, its dump, in which pydantic wrote stars in their place.

    Otherwise the stars would be saved and used. Raises UnicodeDecodeError for bytes that are no UTF-8.
    """
    if isinstance(typed, SecretStr):
        return typed.get_secret_value()
    if isinstance(typed, SecretBytes):
        return typed.get_secret_value().decode()
    if isinstance(typed, Mapping) and isinstance(plain, dict) and len(typed) == len(plain):
        return {name: _unmasked(item, plain[name]) for item, name in zip(typed.values(), plain, strict=True)}
    if isinstance(typed, Collection) and isinstance(plain, list) and len(typed) == len(plain):
        return [_unmasked(*row) for row in zip(typed, plain, strict=True)]
    return plain


def _refused(error: ValidationError, *at: str | int) -> ValueRefused:
    first = errors_of(error, *at)[0]
    return ValueRefused(first["pointer"], first["message"])


def copied(value: Any) -> Any:
    """Return a copy of JSON values that shares nothing with them that could be changed."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copied(item) for item in value]
    return value
