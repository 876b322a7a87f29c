"""Applies a checkpoint's writes to a state, and records them as ops, lines and chunks. No database access."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from checkpoints.errors import ValueRefused
from checkpoints.layout.payloads import PLAIN, ChunkBlob, Op
from checkpoints.values.canonical_json import decode_canonical
from checkpoints.values.json_pointer import make_pointer
from checkpoints.values.list_digests import ListDigest
from checkpoints.values.ops import Append, Drop, Splice, Write, check_write, smallest_write

from . import parts
from .parts import ListField, Part, ValueLine


class _Edit(NamedTuple):
    """A field's new value: the value on its one line, or if `old` is a list, that list with a range replaced."""

    name: str
    lines: list[ValueLine]
    old: list[Any] | None = None
    start: int = 0
    delete: int = 0


@dataclass(slots=True)
class StateChanges:
    """A state with writes applied, and the ops, lines and chunks that record them."""

    state: dict[str, Any]
    parts: dict[str, Part]
    list_format: type[ListDigest]
    ops: list[Op] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    blobs: list[ChunkBlob] = field(default_factory=list)
    wide: bool = False
    edits: list[_Edit] = field(default_factory=list)

    def finish(self) -> dict[str, Any]:
        """Return the state after the writes.

        It equals what a load would return: it shares nothing with values that a step still holds.
        """
        for name, lines, old, start, delete in self.edits:
            values = _plain(lines)
            self.state[name] = values[0] if old is None else [*old[:start], *values, *old[start + delete :]]
        self.edits = []
        return self.state

    def write(self, name: str, value: Write) -> None:
        """Apply one field's write. Raises ValueRefused with the pointer from the state's root."""
        try:
            self._write(name, value)
        except ValueRefused as error:
            raise ValueRefused(make_pointer(name) + error.pointer, error.reason) from error

    def _write(self, name: str, value: Write) -> None:
        if isinstance(value, Drop):
            self.state.pop(name, None)
            self.parts.pop(name, None)
            self.ops.append(["drop", name])
        elif isinstance(value, (Append, Splice)):
            self._splice(name, value)
        elif isinstance(value, (list, tuple)):
            smaller = smallest_write(self.state.get(name), value)
            if isinstance(smaller, (Append, Splice)):
                self._splice(name, smaller, PLAIN)
            else:
                self._list(name, value)
        else:
            line = parts.line_of(value)
            self._take([line], [line.text])
            self.ops.append(["set", name])
            self.parts[name] = parts.whole(line)
            self.edits.append(_Edit(name, [line]))

    def _splice(self, name: str, write: Append | Splice, mark: tuple[str, ...] = ()) -> None:
        old, start, delete, items = check_write(self.state.get(name), write)
        verb = "append" if isinstance(write, Append) else "splice"
        series = self.parts.get(name)
        if not isinstance(series, ListField):
            self._list(name, items, (verb,))
            return
        lines = _lines(items)
        place = (start, delete) if verb == "splice" else ()
        self.ops.append([verb, name, *place, *mark, len(lines)])
        if not lines and not delete:
            return
        at_end = start == len(old)
        self.parts[name] = parts.append(series, lines) if at_end else parts.splice(series, old, start, delete, lines)
        self.edits.append(_Edit(name, lines, old, start, delete))
        self._take(lines, [line.text for line in lines])

    def _list(self, name: str, value: Any, mark: tuple[str, ...] = ()) -> None:
        """Write a whole new list. A long one is sealed at once, so that the next anchor does not write it again."""
        lines = _lines(value)
        self._take(lines, [])
        series, sealed = parts.seal(parts.append(parts.empty(self.list_format), lines))
        self.blobs.extend(sealed)
        taken = [*(entry.line() for entry in series.entries), *parts.unwind(series.tail)]
        self.ops.append(["list", name, *mark, len(taken)])
        self.lines.extend(taken)
        self.parts[name] = series
        self.edits.append(_Edit(name, lines, []))

    def _take(self, values: list[ValueLine], lines: list[bytes]) -> None:
        self.lines.extend(lines)
        self.blobs.extend(value.blob for value in values if value.blob)
        self.wide = self.wide or any(value.wide for value in values)

    def seal(self, *, record: bool) -> None:
        """Turn into an anchor: the whole state, with long tails in chunks, and with `record` the writes themselves."""
        written, lines, wide = self.ops, self.lines, self.wide
        for name, part in self.parts.items():
            if isinstance(part, ListField):
                self.parts[name], blobs = parts.seal(part)
                self.blobs.extend(blobs)
        self.ops, self.lines = parts.manifest(self.parts)
        self.wide = any(part.wide for part in self.parts.values())
        if record:
            self.ops.append(["wrote", written, len(lines)])
            self.lines.extend(lines)
            self.wide = self.wide or wide


def _lines(items: Any) -> list[ValueLine]:
    made: list[ValueLine] = []
    try:
        for item in items:
            made.append(parts.line_of(item))
    except ValueRefused as error:
        raise ValueRefused(make_pointer(len(made)) + error.pointer, error.reason) from error
    return made


def _plain(lines: list[ValueLine]) -> list[Any]:
    """Decode lines that were just made."""
    return [decode_canonical(line.blob.content if line.blob else line.text, wide=line.wide) for line in lines]
