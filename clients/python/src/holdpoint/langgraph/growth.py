"""Finds the items at the end of a channel's list, so that a put sends these alone.

The list is compared with the bytes that it had when it was last saved or read: not by identity, since a node may have
changed a message in place. orjson writes a thousand messages in a fraction of a millisecond, so the comparison is much
cheaper than encoding them. A list that it cannot write is sent as a whole, and compared where it is stored.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson
from langchain_core.messages import BaseMessage

_OPTION = orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME


class SavedList(NamedTuple):
    """A list as it was saved: the number of its items, and its bytes without the bracket at the end."""

    items: int
    data: bytes

    def grown(self, now: SavedList) -> bool:
        """Tell whether `now` is this list with some items, or none, at its end."""
        if now.items == self.items or not self.items:
            return not self.items or now.data == self.data
        return now.items > self.items and now.data.startswith(self.data) and now.data[len(self.data)] == _COMMA


_COMMA = ord(",")


def saved(value: Any) -> SavedList | None:
    """Return the bytes of a list; None for anything else, and for what orjson cannot write exactly."""
    if type(value) is not list:
        return None
    try:
        return SavedList(len(value), orjson.dumps(value, default=_parts, option=_OPTION)[:-1])
    except (TypeError, ValueError, RecursionError):
        return None


def _parts(value: Any) -> Any:
    """Return a message's class and fields; orjson refuses everything else."""
    if isinstance(value, BaseMessage):
        return [type(value).__name__, vars(value), value.__pydantic_extra__]
    raise TypeError
