"""The parts of a state in memory, and the writes that change them: what a checkpoint's row records.

A part is a field's digest, size and lines, beside its plain value. A WholeField is written whole. A ListField is a
list: the stretches already sealed in chunks, and the tail of item lines since. An append changes neither; an anchor
seals only the tail. Parts are immutable: snapshots share them. Their sizes are bytes of canonical JSON.

StateChanges applies a checkpoint's writes and records them as ops, lines and chunks. No database access.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from checkpoints.errors import ValueRefused
from checkpoints.layout.payloads import PLAIN, ChunkBlob, Op
from checkpoints.values import digests
from checkpoints.values.canonical_json import decode_canonical, encode_with_width
from checkpoints.values.digests import LARGE, ListDigest, make_reference, measure_line
from checkpoints.values.json_pointer import make_pointer
from checkpoints.values.ops import Append, Drop, Splice, Write, check_write, smallest_write

SEGMENT = 128 * 1024  # bytes after which a sealed stretch is cut
INLINE = 2048  # bytes; a smaller tail is not worth a chunk yet
FOLD = 32  # entries of a level that become one of the next


class ValueLine(NamedTuple):
    """One value, encoded for a payload. `blob` is its chunk if it is large, so that anchors and forks share it."""

    text: bytes
    size: int
    wide: bool
    blob: ChunkBlob | None


@dataclass(frozen=True, slots=True)
class SealedStretch:
    """A sealed stretch of a list: `count` items, and the `head` of the list's digest after them."""

    level: int
    count: int
    size: int
    head: bytes
    digest: bytes

    def is_plain(self, content: bytes) -> bool:
        """Tell whether no line of its content names a large value, whose size exceeds its line's."""
        return self.size == len(content) - self.count + 1

    def line(self) -> bytes:
        return f"#{self.level}:{self.count}:{self.size}:{self.head.hex()}:{self.digest.hex()}".encode()

    @classmethod
    def of_line(cls, line: bytes) -> SealedStretch:
        """Parse a stretch from its line. Raises ValueError for anything else."""
        level, count, size, head, digest = line[1:].decode("ascii").split(":")
        return cls(int(level), int(count), int(size), bytes.fromhex(head), bytes.fromhex(digest))


class WholeField(NamedTuple):
    """A field that is written whole."""

    digest: bytes
    size: int
    line: bytes
    wide: bool


class ListTail(NamedTuple):
    """The item lines since the last seal, linked newest stretch first, so that an append copies nothing."""

    before: ListTail | None
    lines: tuple[bytes, ...]
    size: int  # bytes of all lines down to the first stretch
    wide: bool


class ListField(NamedTuple):
    """A list field. `items` is the sum of its items' sizes, `sealed` the digest of those before the tail."""

    digest: ListDigest
    sealed: ListDigest
    length: int = 0
    items: int = 0
    entries: tuple[SealedStretch, ...] = ()
    tail: ListTail | None = None

    @property
    def wide(self) -> bool:
        return self.tail is not None and self.tail.wide

    @property
    def size(self) -> int:
        return self.items + max(self.length - 1, 0) + 2


Part = WholeField | ListField


def line_of(value: Any) -> ValueLine:
    """Encode a value as a line, with its chunk if it is large. Raises ValueRefused."""
    data, wide = encode_with_width(value)
    if len(data) <= LARGE:
        return ValueLine(data, len(data), wide, None)
    digest = digests.of_canonical(data)
    return ValueLine(make_reference(len(data), digest), len(data), wide, ChunkBlob(digest, data, wide))


def whole(line: ValueLine) -> WholeField:
    """Return the field whose value is on this line."""
    digest = line.blob.digest if line.blob else digests.of_canonical(line.text)
    return WholeField(digest, line.size, line.text, line.wide)


def size_of(lines: Iterable[bytes]) -> int:
    """Return the bytes of the items on these lines. Raises ValueError for a malformed reference."""
    return sum([measure_line(line)[1] if line.startswith(b"@") else len(line) for line in lines])


def empty(list_format: type[ListDigest]) -> ListField:
    """Return the empty list field of a state with this format."""
    return ListField(list_format.empty(), list_format.empty())


def append(series: ListField, lines: Sequence[ValueLine]) -> ListField:
    """Return the list field with these items appended; O(items)."""
    if not lines:
        return series
    digest, sealed, length, items, entries, before = series
    stored, wide = (before.size, before.wide) if before else (0, False)
    for line in lines:
        items += line.size
        stored += len(line.text)
        wide = wide or line.wide
    tail = ListTail(before, tuple([line.text for line in lines]), stored, wide)
    digest = digest.extended(b"\n".join(tail.lines), len(lines))
    return ListField(digest, sealed, length + len(lines), items, entries, tail)


def splice(series: ListField, old: list[Any], start: int, delete: int, lines: Sequence[ValueLine]) -> ListField:
    """Return the list field of `old` with a range replaced.

    Stretches sealed before `start` stay; the rest is encoded again.
    """
    kept = truncate(series, old, start)
    if kept.length < start:
        kept = append(kept, [line_of(item) for item in old[kept.length : start]])
    kept = append(kept, lines)
    return append(kept, [line_of(item) for item in old[start + delete :]])


def truncate(series: ListField, old: list[Any], length: int) -> ListField:
    """Return the list field of only the sealed stretches that end at or before `length` items of `old`."""
    count = size = 0
    entries: list[SealedStretch] = []
    for entry in series.entries:
        if count + entry.count > length:
            break
        entries.append(entry)
        count += entry.count
        size += entry.size
    list_format = type(series.digest)
    if not entries:
        return empty(list_format)
    covered = count - count % list_format.STRETCH
    digest = list_format.resume(entries[-1].head, covered).appended(old[covered:count])
    return ListField(digest, digest, count, size, tuple(entries))


def unwind(tail: ListTail | None) -> list[bytes]:
    """Return the tail's lines in order."""
    stretches: list[tuple[bytes, ...]] = []
    while tail:
        stretches.append(tail.lines)
        tail = tail.before
    return [line for stretch in reversed(stretches) for line in stretch]


def seal(series: ListField) -> tuple[ListField, list[ChunkBlob]]:
    """Return the list field with its tail in chunks, and those chunks. A small tail stays as it is."""
    if not series.tail or series.tail.size <= INLINE:
        return series, []
    entries, blobs = list(series.entries), []
    sealed = series.sealed
    for stretch in _cut(unwind(series.tail)):
        blob = _segment(stretch, series.tail.wide)
        blobs.append(blob)
        sealed = sealed.extended(blob.content, len(stretch))
        entries.append(SealedStretch(0, len(stretch), size_of(stretch), sealed.head, blob.digest))
        blobs.extend(_fold(entries))
    return series._replace(sealed=sealed, entries=tuple(entries), tail=None), blobs


def _segment(lines: Iterable[bytes], wide: bool) -> ChunkBlob:
    content = b"\n".join(lines)
    return ChunkBlob(digests.of_segment(content), content, wide)


def _cut(lines: list[bytes]) -> Iterable[list[bytes]]:
    stretch: list[bytes] = []
    size = 0
    for line in lines:
        if stretch and size + len(line) > SEGMENT:
            yield stretch
            stretch, size = [], 0
        stretch.append(line)
        size += len(line)
    yield stretch


def _fold(entries: list[SealedStretch]) -> list[ChunkBlob]:
    """Merge the newest entries in place while a level is full, so that a manifest grows logarithmically."""
    blobs = []
    while len(entries) >= FOLD and entries[-FOLD].level == entries[-1].level:
        group = entries[-FOLD:]
        blob = _segment((entry.line() for entry in group), False)
        count, size = sum(entry.count for entry in group), sum(entry.size for entry in group)
        entries[-FOLD:] = [SealedStretch(group[0].level + 1, count, size, group[-1].head, blob.digest)]
        blobs.append(blob)
    return blobs


def manifest(parts: dict[str, Part]) -> tuple[list[list[Any]], list[bytes]]:
    """Return ops and lines that make these parts from nothing."""
    ops: list[list[Any]] = []
    lines: list[bytes] = []
    for name in sorted(parts):
        part = parts[name]
        if isinstance(part, WholeField):
            ops.append(["set", name])
            lines.append(part.line)
        else:
            taken = [*(entry.line() for entry in part.entries), *unwind(part.tail)]
            ops.append(["list", name, len(taken)])
            lines.extend(taken)
    return ops, lines


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
            line = line_of(value)
            self._take([line], [line.text])
            self.ops.append(["set", name])
            self.parts[name] = whole(line)
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
        self.parts[name] = append(series, lines) if at_end else splice(series, old, start, delete, lines)
        self.edits.append(_Edit(name, lines, old, start, delete))
        self._take(lines, [line.text for line in lines])

    def _list(self, name: str, value: Any, mark: tuple[str, ...] = ()) -> None:
        """Write a whole new list. A long one is sealed at once, so that the next anchor does not write it again."""
        lines = _lines(value)
        self._take(lines, [])
        series, sealed = seal(append(empty(self.list_format), lines))
        self.blobs.extend(sealed)
        taken = [*(entry.line() for entry in series.entries), *unwind(series.tail)]
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
                self.parts[name], blobs = seal(part)
                self.blobs.extend(blobs)
        self.ops, self.lines = manifest(self.parts)
        self.wide = any(part.wide for part in self.parts.values())
        if record:
            self.ops.append(["wrote", written, len(lines)])
            self.lines.extend(lines)
            self.wide = self.wide or wide


def _lines(items: Any) -> list[ValueLine]:
    made: list[ValueLine] = []
    try:
        for item in items:
            made.append(line_of(item))
    except ValueRefused as error:
        raise ValueRefused(make_pointer(len(made)) + error.pointer, error.reason) from error
    return made


def _plain(lines: list[ValueLine]) -> list[Any]:
    """Decode lines that were just made."""
    return [decode_canonical(line.blob.content if line.blob else line.text, wide=line.wide) for line in lines]
