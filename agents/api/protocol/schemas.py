"""The base of every schema of the API: members described by the docstrings below them, and one example."""

from __future__ import annotations

from typing import Any, ClassVar

from ninja import Schema
from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
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
