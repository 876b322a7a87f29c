"""A difference between two states, cut fine enough to read: an object that came or went is told leaf by leaf."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

LEAVES = 24  # of one object, told one by one; a larger one is told as a whole
EMPTY: tuple[Any, ...] = (None, {}, [])

Row = Mapping[str, Any]


def told(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows of checkpoints.values.patch.changes, with small added or removed objects taken apart."""
    for row in rows:
        kind, value = row["kind"], row.get("after", row.get("before"))
        if kind == "changed" and row["before"] in EMPTY and isinstance(row["after"], dict):
            kind, value = "added", row["after"]
        elif kind == "changed" and row["after"] in EMPTY and isinstance(row["before"], dict):
            kind, value = "removed", row["before"]
        leaves = (
            list(_leaves(row["pointer"], value)) if kind in ("added", "removed") and isinstance(value, dict) else []
        )
        if not 1 <= len(leaves) <= LEAVES:
            yield row
            continue
        for pointer, leaf in leaves:
            yield {"pointer": pointer, "kind": kind, "after" if kind == "added" else "before": leaf}


def _leaves(pointer: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the values that are no object, or an empty one, with their pointers."""
    if not (isinstance(value, dict) and value):
        yield pointer, value
        return
    for name, inner in value.items():
        yield from _leaves(f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}", inner)
