"""Remembers of the threads that a saver reads and writes what it takes to send the next put as a change.

And to tell two invocations apart: a put goes on from the newest checkpoint, or it is a branch, from a checkpoint that
was asked for, or from the beginning where whoever looked for an earlier one found none. One that goes on from what
*was* the newest comes from an invocation that another one has overtaken.

A put sends the items at the end of a list alone. The list is compared with the bytes that it had when it was last saved
or read: not by identity, since a node may have changed a message in place. ormsgpack writes a thousand messages in a
fraction of a millisecond, so the comparison is much cheaper than encoding them. A list that it cannot write is sent as
a whole, and compared where it is stored.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import ormsgpack
from langchain_core.messages import BaseMessage

from .backend import Seen
from .saver_errors import ThreadMoved

KEPT, LARGEST = 256, 64 * 1024 * 1024  # namespaces of threads, and bytes of their lists
_STATES, _NEWEST, _REFUSED = 4, 256, 16  # states, ids that were the newest, and refusals, of one namespace
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


class KnownState(NamedTuple):
    """A saved checkpoint: the versions and fields of its channels, and its lists as they were saved."""

    versions: Mapping[str, Any]
    channels: frozenset[str]
    lists: Mapping[str, SavedList]


@dataclass
class KnownThread:
    """A namespace of a thread. `lock`: held by whoever puts; `guard`: for moments by whoever reads or changes this.

    `refused`: of the graph's own namespace, why a put in any was refused, by the graph's checkpoint that it belonged to
    and the invocation that put: two that go on from one checkpoint have only the latter to be told apart by.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    seen: Seen = None
    newest: str | None = None
    were_newest: OrderedDict[str | None, None] = field(default_factory=OrderedDict)
    states: OrderedDict[str, KnownState] = field(default_factory=OrderedDict)
    guard: threading.RLock = field(default_factory=threading.RLock)
    early: dict[str, list[Callable[[], None]]] = field(default_factory=dict)
    refused: OrderedDict[tuple[str, int], tuple[object, Callable[[], Exception]]] = field(default_factory=OrderedDict)

    def begin(self, invocation: object) -> None:
        """Forget what was refused to an invocation that begins anew: its program may give all of them one control."""
        with self.guard:
            for place in [key for key in self.refused if key[1] == id(invocation)]:
                del self.refused[place]

    def refuse(self, root: str, invocation: object, error: Exception) -> None:
        """Note why a put was refused; without the traceback, which holds whole states."""
        again = partial(_rebuild_error, type(error), error.args, dict(vars(error)))
        with self.guard:
            # The invocation is held, so that nothing else gets its id meanwhile.
            _put_newest(self.refused, (root, id(invocation)), (invocation, again), most=_REFUSED)

    def refusal(self, root: str, invocation: object) -> Exception | None:
        """Return why a put was refused."""
        with self.guard:
            _, again = self.refused.get((root, id(invocation)), (None, None))
        return again() if again else None

    def interrupted(self, id: str, send: Callable[[], None]) -> None:
        """Note an interrupt at a checkpoint whose put may still be under way: then it is sent again after that.

        LangGraph saves in the background, where the interrupt may be quicker; the run waits from its checkpoint on.
        """
        with self.guard:
            if id not in self.were_newest and id not in self.states:
                self.early.setdefault(id, []).append(send)

    def put_through(self, id: str, seen: Seen, state: KnownState) -> list[Callable[[], None]]:
        """Note a checkpoint that was put; return what is to be sent again."""
        with self.guard:
            self.is_newest(id, seen)
            self.know(id, state)
            return self.early.pop(id, [])

    def is_newest(self, id: str | None, seen: Seen) -> None:
        """Note the newest checkpoint, as read or put; None: there is none."""
        with self.guard:
            self.newest, self.seen = id, seen
            _put_newest(self.were_newest, id, None, most=_NEWEST)

    def asked_for(self, id: str | None) -> None:
        """Note that a checkpoint was read by its id, or None before the first: whoever did may go on from there."""
        with self.guard:
            self.were_newest.pop(id, None)

    def know(self, id: str, state: KnownState) -> None:
        """Remember a saved state."""
        with self.guard:
            _put_newest(self.states, id, state, most=_STATES)

    def goes_on(self, thread: str, parent: str | None, *, forks: bool) -> Seen:
        """Return what a put after `parent` goes on from: the newest checkpoint as seen, or None, whatever that is now.

        `forks`: the program says that it branches. Raises ThreadMoved if whoever puts has been overtaken.
        """
        if parent == self.newest:
            return self.seen
        if parent in self.were_newest and not forks:
            raise ThreadMoved(
                f"The thread {thread!r} has moved on from checkpoint {parent} in this program: two invocations of one "
                "thread run at once. Nothing was saved. Invoke the graph again once the other is through."
            )
        return None

    @property
    def size(self) -> int:
        """Return the bytes of the lists that are kept."""
        with self.guard:
            return sum(len(saved_list.data) for state in self.states.values() for saved_list in state.lists.values())


def known_state(versions: Mapping[str, Any], values: Mapping[str, Any]) -> KnownState:
    """Return what to remember of a checkpoint with these values."""
    lists = {name: made for name, value in values.items() if (made := pack_list(value)) is not None}
    return KnownState(dict(versions), frozenset(values), lists)


def _put_newest(entries: OrderedDict[Any, Any], key: Any, value: Any, *, most: int) -> None:
    entries[key] = value
    entries.move_to_end(key)
    while len(entries) > most:
        entries.popitem(last=False)


def _rebuild_error(kind: type[Exception], args: tuple[Any, ...], members: Mapping[str, Any]) -> Exception:
    made = kind.__new__(kind, *args)  # the initialisers of some take other arguments
    vars(made).update(members)
    return made


class Memory:
    """The namespaces that were used most recently."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._threads: OrderedDict[tuple[str, str], KnownThread] = OrderedDict()

    def known_thread(self, thread: str, namespace: str) -> KnownThread:
        """Return what is known of a namespace."""
        with self._guard:
            found = self._threads.get((thread, namespace))
            if found is None:
                found = self._threads[thread, namespace] = KnownThread()
                self._forget_some()
            self._threads.move_to_end((thread, namespace))
            return found

    def forget(self, thread: str) -> None:
        """Forget a thread that was removed or changed as a whole."""
        with self._guard:
            for place in [key for key in self._threads if key[0] == thread]:
                del self._threads[place]

    def forget_all(self) -> None:
        """Forget all threads."""
        with self._guard:
            self._threads.clear()

    def _forget_some(self) -> None:
        # Where one is new: the others have their lists by then.
        while len(self._threads) > 1 and (
            len(self._threads) > KEPT or sum(known.size for known in self._threads.values()) > LARGEST
        ):
            self._threads.popitem(last=False)
