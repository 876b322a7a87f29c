"""Digests of values, never of history or of encoding.

A value's digest is SHA-256 over its canonical JSON. A state's covers names and field digests; a checkpoint's covers
its header, its parent's digest and its state's. Each kind starts with its own tag, so that no two kinds can share a
digest.

A list's digest has two formats. A run and its forks keep the format that the run began with. Both are made from the
list's lines: an item's canonical JSON, or for an item of more than LARGE bytes the reference `@size:digest` to it. A
line depends on the item alone, so equal lists have equal digests, however they came about. LARGE and the length of a
stretch are part of the formats.

- Chain, the first format: SHA-256 over the digest before the item and the item's own.
- Stretches: SHA-256 over the length, a chain over the digests of all full stretches of 64 lines, and the digest of
  the lines since, each ended by a newline. A megabyte is verified by twenty calls over bytes that are there.

A digest knows how to go on, so that an append costs its own items and nobody chooses a format.
"""

from __future__ import annotations

import hashlib
import struct
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

from .canonical_json import encode_canonical

VALUE = hashlib.sha256(b"holdpoint value\n")
_SEGMENT = hashlib.sha256(b"holdpoint segment\n")
_STATE = hashlib.sha256(b"holdpoint state\n")
_HEADER = hashlib.sha256(b"holdpoint checkpoint\n")
_LENGTHS = struct.Struct("!17i").pack
LARGE = 2048  # bytes of canonical JSON
_CHAIN = hashlib.sha256(b"holdpoint list\n").digest()
_LIST = hashlib.sha256(b"holdpoint list of stretches\n")
_STRETCH = hashlib.sha256(b"holdpoint stretch\n")
_HEAD = hashlib.sha256(b"holdpoint stretches\n").digest()


def of_canonical(data: bytes) -> bytes:
    """Compute the digest of the value whose canonical JSON is `data`."""
    made = VALUE.copy()
    made.update(data)
    return made.digest()


def of_value(value: Any) -> bytes:
    """Compute the digest of any value, 32 bytes."""
    return of_canonical(encode_canonical(value))


def of_state(fields: Mapping[str, bytes]) -> bytes:
    """Compute the digest of a state, from its fields' digests."""
    made = _STATE.copy()
    for name in sorted(fields):
        data = name.encode()
        made.update(b"%d:%b" % (len(data), data))
        made.update(fields[name])
    return made.digest()


def of_header(header: Sequence[bytes | None]) -> bytes:
    """Compute the digest of a checkpoint, from the columns of its header in binary form (layout.rows.HEADER)."""
    made = _HEADER.copy()
    try:
        made.update(_LENGTHS(*map(len, header)) + b"".join(header))  # type: ignore[arg-type]
    except TypeError:  # of a NULL, which few rows have
        made.update(_LENGTHS(*[-1 if column is None else len(column) for column in header]))
        made.update(b"".join([column for column in header if column is not None]))
    return made.digest()


def of_segment(content: bytes) -> bytes:
    """Compute the digest of a sealed stretch of a list, from its lines."""
    made = _SEGMENT.copy()
    made.update(content)
    return made.digest()


def shorten_digest(digest: bytes) -> str:
    """Return the first eight hex digits, for people."""
    return bytes(digest).hex()[:8]


class ListDigest(bytes):
    """The digest of a list, 32 bytes.

    `head` covers all full stretches, from whose end the digest can be resumed with the lines since.
    """

    CODEC: ClassVar[int]  # the bit of a row's codec
    STRETCH: ClassVar[int]  # lines
    head: bytes

    @classmethod
    @abstractmethod
    def resume(cls, head: bytes, length: int) -> Self:
        """Return the digest of a list of `length` items, a multiple of STRETCH, whose head is known."""

    @classmethod
    @abstractmethod
    def empty(cls) -> Self:
        """Return the digest of the empty list."""

    @abstractmethod
    def extended(self, lines: bytes, count: int) -> Self:
        """Return the digest after `count` items on these lines, joined by newlines, were appended; O(items).

        A wrong count raises ValueError or gives a digest that matches no list; every byte is covered.
        """

    def appended(self, items: Iterable[Any]) -> Self:
        """Return the digest after these items were appended. Raises ValueRefused."""
        lines = [_line(item) for item in items]
        return self.extended(b"\n".join(lines), len(lines))


class ChainDigest(ListDigest):
    """The first format."""

    CODEC, STRETCH = 0, 1

    @property
    def head(self) -> bytes:  # type: ignore[override]
        return self

    @classmethod
    def resume(cls, head: bytes, length: int) -> Self:
        return cls(head)

    @classmethod
    def empty(cls) -> Self:
        return cls(_CHAIN)

    def extended(self, lines: bytes, count: int) -> Self:
        digest, sha256, start = bytes(self), hashlib.sha256, VALUE.copy
        items = lines.split(b"\n") if lines else []
        if len(items) != count:
            raise ValueError("lines are missing or left over")
        for line in items:
            if line.startswith(b"@"):
                item = measure_line(line)[0]
            else:  # without another call of a function: there may be thousands
                made = start()
                made.update(line)
                item = made.digest()
            digest = sha256(digest + item).digest()
        return type(self)(digest)


class StretchDigest(ListDigest):
    """The second format. `rest` is the hash over the lines since the last full stretch; never updated in place."""

    CODEC, STRETCH = 4, 64
    length: int
    rest: hashlib._Hash

    @classmethod
    def _from_parts(cls, head: bytes, length: int, rest: hashlib._Hash) -> Self:
        digest = _LIST.copy()
        digest.update(b"%d:%b%b" % (length, head, rest.digest()))
        made = cls(digest.digest())
        made.head, made.length, made.rest = head, length, rest
        return made

    @classmethod
    def resume(cls, head: bytes, length: int) -> Self:
        return cls._from_parts(head, length, _STRETCH)

    @classmethod
    def empty(cls) -> Self:
        return cls._from_parts(_HEAD, 0, _STRETCH)

    def extended(self, lines: bytes, count: int) -> Self:
        if count < 1 and (count or lines):
            raise ValueError("lines are left over")
        head, length, rest, at, content = self.head, self.length, self.rest.copy(), 0, memoryview(lines)
        while count:
            taken = min(count, self.STRETCH - length % self.STRETCH)
            end = len(lines) if taken == count else _end(lines, at, taken)
            rest.update(content[at:end])
            rest.update(b"\n")
            at, count, length = end + 1, count - taken, length + taken
            if length % self.STRETCH == 0:
                head, rest = hashlib.sha256(head + rest.digest()).digest(), _STRETCH.copy()
        return self._from_parts(head, length, rest)


def _end(lines: bytes, at: int, count: int) -> int:
    """Return where the `count` lines from a place on end. Raises ValueError if there are not so many, and more."""
    end = at - 1
    for _ in range(count):
        end = lines.index(b"\n", end + 1)
    return end


def of_field(value: Any, list_format: type[ListDigest]) -> bytes:
    """Compute the digest of a field's value, a list's in the format of the state that it belongs to."""
    return list_format.empty().appended(value) if isinstance(value, (list, tuple)) else of_value(value)


def make_reference(size: int, digest: bytes) -> bytes:
    """Return the line of a large value."""
    return b"@%d:%b" % (size, digest.hex().encode())


def measure_line(line: bytes) -> tuple[bytes, int]:
    """Return digest and size of the value on a line. Raises ValueError for a malformed reference."""
    if line[:1] == b"@":
        size, digest = line[1:].decode("ascii").split(":")
        return bytes.fromhex(digest), int(size)
    return of_canonical(line), len(line)


def _line(value: Any) -> bytes:
    data = encode_canonical(value)
    return data if len(data) <= LARGE else make_reference(len(data), of_canonical(data))
