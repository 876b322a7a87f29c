"""Types for members of answers that a row holds in another form, and lists of a member's values for the description."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any

from django.db.models import Choices
from pydantic import AfterValidator, BeforeValidator, Field

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
