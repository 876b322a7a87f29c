"""The parts of a state in memory: each field's digest, size and lines, beside its plain value.

A WholeField is written whole. A ListField is a list: the stretches already sealed in chunks, and the tail of item
lines since. An append changes neither; an anchor seals only the tail.

Parts are immutable: snapshots share them. Their sizes are bytes of canonical JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from checkpoints.layout.payloads import ChunkBlob
from checkpoints.values import digests
from checkpoints.values.canonical_json import encode_with_width
from checkpoints.values.list_digests import LARGE, ListDigest, make_reference, measure_line

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
