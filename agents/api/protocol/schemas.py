"""The base of every schema of the API, and the types of members and of the numbers in its addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any, ClassVar

from django.conf import settings
from django.db.models import Choices
from django.urls import reverse
from ninja import P, PathEx, Schema
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema


class Described(BaseModel):
    """A model whose description gives each member its docstring, and its value in `example`, a parent's too."""

    model_config = ConfigDict(use_attribute_docstrings=True)
    example: ClassVar[dict[str, Any]] = {}

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the JSON Schema, with the examples where OpenAPI's readers look for them."""
        shape = handler(core)
        members = handler.resolve_ref_schema(shape).get("properties", {})
        for base in cls.__mro__:
            for name, value in vars(base).get("example", {}).items():
                if name in members and "examples" not in members[name]:
                    members[name]["examples"] = [value]
        for member in members.values():
            if "description" in member:
                member["description"] = " ".join(member["description"].split())
        return shape


class ApiSchema(Described, Schema):
    """An answer of the API, or the parameters of a request."""


class Order(Described):
    """A body that may have no unknown members: a misspelt guard would guard nothing.

    Not ninja's Schema, which reads each member through an object that can resolve a model's: a body is plain JSON.
    """

    model_config = ConfigDict(extra="forbid")


RunId = PathEx[int, P(title="Run", description="The run's number.", example=7)]
Seq = PathEx[int, P(title="Checkpoint", description="The checkpoint's number in the run.", example=3)]
GateId = PathEx[int, P(title="Gate", description="The gate's number.", example=42)]
AgentName = PathEx[str, P(title="Agent", description="The agent's name.", example="refunds")]


def gate_page(gate: int) -> str:
    """Return the address of the gate's page, as people reach this server."""
    return str(settings.HOLDPOINT_ORIGINS[0]).rstrip("/") + reverse("gate", args=[gate])


# A UUID, or words.
Text = Annotated[str, BeforeValidator(lambda value: None if value is None else str(value))]
# A digest.
Hex = Annotated[str, BeforeValidator(lambda digest: None if digest is None else bytes(digest).hex())]
# Null for what a row has empty or 0: `Annotated[int | None, or_null]`.
or_null = BeforeValidator(lambda value: value or None)


def one_of(values: type[Choices] | Iterable[str | None]) -> Any:
    """List the values that a member has: `Annotated[str, one_of(Run.Status)]`."""
    return Field(json_schema_extra={"enum": [choices and str(choices) for choices in values]})


def refuse_unknown(*values: str) -> AfterValidator:
    """Refuse a value that is none of these: `Annotated[str, refuse_unknown("", *Run.Status.values)]`."""

    def check(value: str) -> str:
        if value not in values:
            raise ValueError(f"{value[:40]!r} is none of {', '.join(filter(None, values))}")
        return value

    return AfterValidator(check)


def optional_one_of(*values: str) -> Callable[[dict[str, Any]], None]:
    """List the values for `json_schema_extra`, without a default: the empty one means that the member is left out."""

    def tell(schema: dict[str, Any]) -> None:
        schema["enum"] = list(values)
        schema.pop("default", None)

    return tell
