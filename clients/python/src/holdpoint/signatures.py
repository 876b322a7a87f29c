"""A function's signature for a gate: the JSON Schema of its arguments, and their conversion to JSON and back."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Mapping
from string import Formatter
from types import MethodType, SimpleNamespace
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, TypeAdapter, create_model
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from .calls import read_arguments

KEY = "key"  # the parameter that gets the idempotency key, where a function has one
DECIMAL = r"^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?$"
VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Schemas(GenerateJsonSchema):
    """Pydantic's schemas for serialized values, without lookaround patterns: those backtrack."""

    def decimal_schema(self, schema: Any) -> JsonSchemaValue:
        """Write a Decimal as text."""
        return {"type": "string", "pattern": DECIMAL}


class Signature:
    """The arguments and the result of a function. `method`: its first parameter is its object, which no gate shows."""

    def __init__(self, function: Callable[..., Any], *, method: bool = False) -> None:
        self.function = function
        self.name = function.__name__
        self.doc = inspect.getdoc(function) or ""
        found = inspect.signature(function)
        parameters = list(found.parameters.values())[1 if method else 0 :]
        self.signature = found.replace(parameters=parameters)
        hints = _hints(function, *found.parameters)
        returned, self.returns = _result_of(function)
        taken = {parameter.name: parameter for parameter in parameters if parameter.name != KEY}
        if odd := [name for name, parameter in taken.items() if parameter.kind in VARIADIC]:
            raise TypeError(
                f"{self.name} takes any number of {', '.join(odd)}; name its arguments, so people see them."
            )
        # The signature for people and models: with real types instead of their names, and without the key.
        shown = [
            parameter.replace(annotation=hints.get(name, parameter.annotation)) for name, parameter in taken.items()
        ]
        self.asked = found.replace(parameters=shown, return_annotation=returned)
        # By alias, since names may clash with a model's own.
        fields: dict[str, Any] = {
            f"a{number}": (hints.get(name, Any), Field(alias=name)) for number, name in enumerate(taken)
        }
        self.names = dict(zip(fields, taken, strict=True))
        self.model = create_model(self.name, __config__=ConfigDict(extra="forbid"), **fields)

    def bound_to(self, obj: object) -> Signature:
        """Return the signature of this object's method."""
        found = copy.copy(self)
        found.function = MethodType(self.function, obj)
        return found

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the arguments."""
        found: dict[str, Any] = self.model.model_json_schema(mode="serialization", schema_generator=Schemas)
        return found

    def response(self) -> dict[str, Any]:
        """Return the JSON Schema of its result. Raises TypeError where its type has none."""
        try:
            if self.returns is not None:
                return self.returns.json_schema(mode="serialization", schema_generator=Schemas)
        except PydanticUserError:
            pass
        name = inspect.formatannotation(self.signature.return_annotation).strip("'")
        raise TypeError(
            f"{self.name} returns {name}, which people cannot answer instead: leave respond out, or return a model."
        )

    def result(self, result: Any) -> Any:
        """Return a result that was recorded or answered, in the function's own type; as it came if it does not fit."""
        try:
            return result if self.returns is None else self.returns.validate_python(result)
        except ValueError:
            return result

    def bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call by name, defaults included. Raises TypeError, ValueError."""
        found = self.asked.bind(*args, **kwargs)
        found.apply_defaults()
        model = self.model.model_validate(found.arguments)
        return {name: getattr(model, field) for field, name in self.names.items()}

    def sent(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments as JSON."""
        found: dict[str, Any] = self.model.model_validate(values).model_dump(mode="json", by_alias=True)
        return found

    def names_in(self, template: str) -> None:
        """Raise ValueError if a template names something that is not an argument."""
        named = [field for _, field, _, _ in Formatter().parse(template) if field is not None]
        if odd := [field for field in named if re.split(r"[.\[]", field)[0] not in self.names.values()]:
            raise ValueError(f"{template!r} names {{{odd[0]}}}; {self.name} takes {', '.join(self.names.values())}.")

    def call(self, arguments: Mapping[str, Any], key: str) -> Any:
        """Call the function with the approved arguments. Raises NotDone if they do not fit, and whatever it raises."""
        values = {**self.values(arguments), KEY: key}
        bound = self.signature.bind_partial()
        bound.arguments.update({name: values[name] for name in self.signature.parameters})
        return self.function(*bound.args, **bound.kwargs)

    def values(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments by name, in the function's types. Raises NotDone where they do not fit."""
        model: BaseModel = read_arguments(TypeAdapter(self.model), arguments)
        return {name: getattr(model, field) for field, name in self.names.items()}


def _hints(function: Callable[..., Any], *names: str) -> dict[str, Any]:
    """Resolve these annotations of a function. Raises what resolving them raises."""
    written = {
        name: annotation for name, annotation in getattr(function, "__annotations__", {}).items() if name in names
    }
    params = getattr(function, "__type_params__", ())
    part = SimpleNamespace(__annotations__=written, __wrapped__=function, __type_params__=params)
    return get_type_hints(part, include_extras=True)


def _result_of(function: Callable[..., Any]) -> tuple[Any, TypeAdapter[Any] | None]:
    """Return the annotation of the result, and its type: any without one, or with None; None for an unknown one.

    Only typing may know it: its name is imported for type checkers alone, or pydantic cannot describe the class.
    """
    returned: Any = inspect.Signature.empty
    try:
        returned = _hints(function, "return").get("return", returned)
        return returned, TypeAdapter(Any if returned in (inspect.Signature.empty, type(None)) else returned)
    except Exception:  # noqa: BLE001 - the annotation is evaluated, and the class has hooks of its own
        return returned, None
