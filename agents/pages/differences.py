"""The difference between two states, for reading: secrets are masked, a new or removed object is shown leaf by leaf."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from approvals.schema.redact import Redaction
from checkpoints.values import json_pointer, patch

ROWS = 200  # drawn at once
LEAVES = 24  # of one object that is shown leaf by leaf; a larger one is shown as a whole
EMPTY: tuple[Any, ...] = (None, {}, [])

Row = Mapping[str, Any]


def difference_context(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    names: Collection[str],
    *hidden: Redaction,
    inner: Collection[str] = (),
) -> dict[str, Any]:
    """Return, for a page, how two states differ in these fields; each of `hidden` masks its secrets.

    The rows of `inner` fields are apart.
    """
    old, new = ({name: value for name, value in state.items() if name in names} for state in (before, after))
    changed = patch.list_changes(old, new)
    for veil in hidden:
        changed = veil.rows(changed)
    rows, apart = list[Row](), list[Row]()
    for row in expand_objects(changed):
        field = json_pointer.split_pointer(row["pointer"])[:1]
        (rows if set(inner).isdisjoint(field) else apart).append(row)
    return {"rows": rows[:ROWS], "inner_rows": apart[:ROWS], "more_rows": max(len(rows) - ROWS, 0)}


def expand_objects(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows of checkpoints.values.patch.list_changes, with small added or removed objects taken apart."""
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
    """Yield (pointer, value) of each value that is not an object, and of each empty object."""
    if not (isinstance(value, dict) and value):
        yield pointer, value
        return
    for name, inner in value.items():
        yield from _leaves(json_pointer.join(pointer, name), inner)
