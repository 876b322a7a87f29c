"""How the description lists the values of a member that may be left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def optional(*values: str) -> Callable[[dict[str, Any]], None]:
    """List the values for `json_schema_extra`. The default, which is empty, is none of them: it is to leave it out."""

    def tell(schema: dict[str, Any]) -> None:
        schema["enum"] = list(values)
        schema.pop("default", None)

    return tell
