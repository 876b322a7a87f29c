"""The writes that a step may return for a field: a new value, or a change of its list.

Append and Splice save the store the comparison with the old list. A plain list is compared with the old one item by
item, by canonical form, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from checkpoints.errors import ValueRefused

from .canonical_json import encode_canonical
from .patch import shared_ends


@dataclass(frozen=True, slots=True)
class Append:
    """Add `items` to the end of a list field."""

    items: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Splice:
    """Replace the `delete` items from `start` on by `items`; 0 <= start, start + delete <= length."""

    start: int
    delete: int
    items: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class Drop:
    """Remove the field from the state."""


DROP: Final = Drop()
Write = Any  # a value, Append, Splice or DROP


def apply_write(value: Any, write: Write) -> Any:
    """Return the field's value after `write`; `value` itself is not changed.

    Raises ValueRefused as `check_write` does.
    """
    if not isinstance(write, (Append, Splice)):
        return write
    old, start, delete, items = check_write(value, write)
    return [*old[:start], *items, *old[start + delete :]]


def check_write(value: Any, write: Append | Splice) -> tuple[list[Any], int, int, Sequence[Any]]:
    """Return the old list, the start, the number of items to delete and the items to insert.

    Raises ValueRefused for what is not a list, and for a range outside it.
    """
    if value is None:
        value = []  # a list that nobody wrote yet
    if not isinstance(value, list):
        raise ValueRefused("", f"is no list, so it takes no {type(write).__name__}")
    if not isinstance(write.items, (list, tuple)):
        raise ValueRefused("", f"{type(write).__name__} takes a list of items")
    if isinstance(write, Append):
        return value, len(value), 0, write.items
    if write.start < 0 or write.delete < 0 or write.start + write.delete > len(value):
        raise ValueRefused("", f"has {len(value)} items; cannot take {write.delete} from {write.start} on")
    return value, write.start, write.delete, write.items


def smallest_write(old: Any, new: Any) -> Any:
    """Find the smallest write that turns the list `old` into the list `new`: an Append, a Splice or `new` itself.

    Items are compared by canonical form, since Python considers 1, 1.0 and True equal.
    """
    if not (isinstance(old, list) and isinstance(new, (list, tuple)) and old and new):
        return new
    before, after = [encode_canonical(item) for item in old], [encode_canonical(item) for item in new]
    head, tail = shared_ends(before, after)
    if head == len(before):
        return Append(new[head:])
    if not head and not tail:
        return new
    return Splice(head, len(before) - head - tail, new[head : len(after) - tail])
