"""The operations of a place that keeps threads, as JSON: one backend is this process, one the HTTP API."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from .values import JSON

# What becomes of a field: its new value; the items at the end of its list; or nothing any more.
Change = tuple[Literal["set", "append", "drop"], JSON]
# What the program knows of a thread: it is handed back with the next put. None: it goes on from the parent that it
# names, whatever has been put since.
Seen = Any
PAGE = 50  # checkpoints that are read at once
P = TypeVar("P")


class Write(NamedTuple):
    """A pending write, as it is read."""

    task: str
    channel: str
    value: JSON


@dataclass(frozen=True)
class Stored:
    """A checkpoint, as it is read. `edited`: a person changed these fields after the graph saved them."""

    thread: str
    namespace: str
    id: str
    parent: str | None
    fields: Mapping[str, JSON]
    writes: Sequence[Write] = ()
    edited: Sequence[str] = ()


@dataclass(frozen=True)
class New:
    """A checkpoint to put. `whole`: the changes set the whole state, else they change the parent's.

    `invocation`: the `run_id` that LangGraph gave to the invocation, if any.
    """

    id: str
    parent: str | None
    changes: Mapping[str, Change]
    whole: bool = False
    invocation: str = ""


@dataclass(frozen=True)
class ChannelHistory:
    """A channel's writes on the path to a checkpoint, oldest first, and its stored value before them, if any."""

    writes: Sequence[Write]
    stored: bool = False
    value: JSON = None


class Backend(Protocol):
    """A place that keeps threads."""

    def get(self, thread: str, namespace: str, id: str | None) -> tuple[Stored | None, Seen]:
        """Return the newest checkpoint, or the one with this id."""

    def listed(
        self,
        thread: str | None,
        namespace: str | None,
        *,
        before: str | None = None,
        limit: int | None = None,
        only: Mapping[str, JSON] | None = None,
    ) -> Iterator[Stored]:
        """Yield checkpoints, the newest first; `only`: what their metadata hold."""

    def put(self, thread: str, namespace: str, new: New, seen: Seen) -> Seen:
        """Save a checkpoint; return what the program knows then."""

    def put_writes(
        self, thread: str, namespace: str, id: str, writes: Sequence[tuple[int, str, JSON]], task: str, path: str
    ) -> None:
        """Keep a task's writes at a checkpoint, each as (LangGraph's number, channel, value)."""

    def history(
        self, thread: str, namespace: str, id: str, channels: Mapping[str, str]
    ) -> Mapping[str, ChannelHistory]:
        """Return the histories of channels, given with their fields' names."""

    def delete(self, thread: str) -> None:
        """Remove a thread's checkpoints."""

    def delete_for_runs(self, invocations: Sequence[str]) -> None:
        """Remove the checkpoints of invocations."""

    def copy(self, thread: str, to: str) -> None:
        """Copy a thread's checkpoints and writes."""

    def prune(self, thread: str) -> None:
        """Keep the newest checkpoint of each namespace, and what it is rebuilt from."""

    def close(self) -> None:
        """Close its connections."""


def read_pages(
    read: Callable[[P | None, int], tuple[Sequence[Stored], P | None]], limit: int | None
) -> Iterator[Stored]:
    """Yield `limit` checkpoints of a list, or all; a page is read when it is needed.

    `read`: returns at most so many from a place on, None at first, and where the list goes on, None at its end.
    """
    place = None
    while limit is None or limit > 0:
        page, place = read(place, PAGE if limit is None else min(limit, PAGE))
        yield from page
        if place is None:
            return
        limit = None if limit is None else limit - len(page)
