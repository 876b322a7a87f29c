"""Finds the items at the end of a channel's list, so that a put sends these alone.

The list is compared with the bytes that it had when it was last saved or read: not by identity, since a node may have
changed a message in place. orjson writes a thousand messages in a fraction of a millisecond, so the comparison is much
cheaper than encoding them. A list that it cannot write is sent as a whole, and compared where it is stored.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import ormsgpack
from langchain_core.messages import BaseMessage

_OPTION = (
    ormsgpack.OPT_PASSTHROUGH_SUBCLASS | ormsgpack.OPT_PASSTHROUGH_DATACLASS | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM | ormsgpack.OPT_PASSTHROUGH_UUID
)  # fmt: skip


class SavedList(NamedTuple):
    """A list as it was saved: the number of its items, and their bytes one after the other."""

    items: int
    data: bytes

    def grown(self, now: SavedList) -> bool:
        """Tell whether `now` is this list with some items, or none, at its end."""
        return now.items >= self.items and now.data.startswith(self.data)


def pack_list(value: Any) -> SavedList | None:
    """Return the bytes of a list's items; None for anything else, and for what ormsgpack cannot write exactly."""
    if type(value) is not list:
        return None
    try:
        data = ormsgpack.packb(value, default=_parts, option=_OPTION)
    except (TypeError, ValueError, RecursionError):
        return None
    count = len(value)
    return SavedList(count, data[1 if count < 16 else 3 if count < 65536 else 5 :])  # without the list's header


def _parts(value: Any) -> Any:
    """Return a message's class and fields; ormsgpack refuses everything else."""
    if isinstance(value, BaseMessage):
        return [type(value).__name__, vars(value), value.__pydantic_extra__]
    raise TypeError
