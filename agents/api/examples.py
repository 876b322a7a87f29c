"""An example of each body and answer, put together of those of its members, which the description has anyway."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Shape = Mapping[str, Any]
LEFT_OUT: tuple[Any, ...] = (None, "", [], {})


def add(operation: dict[str, Any], shapes: Mapping[str, Shape]) -> None:
    """Give each body of an operation, and each of its answers, an example."""
    for holder in (operation.get("requestBody", {}), *operation["responses"].values()):
        for media in holder.get("content", {}).values():
            if "example" not in media and media["schema"].keys() != {"type"}:
                media["example"] = example_of(media["schema"], shapes)


def example_of(shape: Shape, shapes: Mapping[str, Shape]) -> Any:
    """Return a shape's first example; of an object without one all that its members say, but what may be left out."""
    if "$ref" in shape:
        return example_of(shapes[shape["$ref"].rpartition("/")[2]], shapes)
    if "examples" in shape:
        return shape["examples"][0]
    if "anyOf" in shape:
        return example_of(shape["anyOf"][0], shapes)
    if shape.get("type") == "array":
        return [example_of(shape["items"], shapes)]
    told = {name: example_of(part, shapes) for name, part in shape.get("properties", {}).items()}
    required = shape.get("required", ())
    return {name: value for name, value in told.items() if value not in LEFT_OUT or name in required}
