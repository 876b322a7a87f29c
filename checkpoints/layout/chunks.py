"""Expands the lines of payloads: fetches the chunks that they name, once and verified, and rebuilds lists.

A payload's line may name a chunk, and a chunk's content is again lines. A reader of payloads first collects all the
chunks that their lines name, level by level, and then expands the lines without a query.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from checkpoints.errors import NotVerified
from checkpoints.layout import payloads
from checkpoints.postgresql.sql import run_sql
from checkpoints.values import digests
from checkpoints.values.canonical_json import decode
from checkpoints.values.list_digests import ListDigest, measure

from .parts import SealedStretch, size_of

Fetch = Callable[[set[bytes]], dict[bytes, tuple[bytes, bool]]]  # digests -> content and wide, verified
MARKS = (b"@", b"#")  # the first byte of a line that is a reference
_CHUNKS = "SELECT digest, codec, payload, checksum FROM checkpoints_chunk WHERE lineage = $1 AND digest = ANY($2)"


@dataclass(slots=True)
class ListItems:
    """A list field being rebuilt: `entries` seal the first items of `lines`; references among the lines are kept.

    `digest` and `size` are those of the first `measured` lines, so that a list that only grows is hashed once;
    `sealed` is the digest of what `entries` seal.
    """

    entries: list[SealedStretch]
    lines: list[bytes]
    digest: ListDigest
    sealed: ListDigest
    size: int = 0
    measured: int = 0

    def measure(self) -> None:
        """Update `digest` and `size` to the last line. Raises ValueError if a sealed stretch is not what it records."""
        if not self.measured:
            for entry in self.entries:
                self._extend(self.measured + entry.count)
                if self.digest.head != entry.head:
                    raise ValueError("a sealed stretch does not match its digest")
            self.sealed = self.digest
        self._extend(len(self.lines))

    def _extend(self, upto: int) -> None:
        stretch = self.lines[self.measured : upto]
        self.digest, self.measured = self.digest.extended(stretch), upto
        self.size += size_of(stretch)

    def splice(self, start: int, delete: int, lines: list[bytes]) -> None:
        if start < 0 or delete < 0 or start + delete > len(self.lines):
            raise ValueError("a splice outside its list")
        self.lines[start : start + delete] = lines
        sealed = sum(entry.count for entry in self.entries)
        while self.entries and sealed > start:
            sealed -= self.entries.pop().count
        if start < self.measured:
            self.digest, self.size, self.measured = type(self.digest).empty(), 0, 0


@dataclass(slots=True)
class ChunkContents:
    """The chunks of one lineage that were fetched so far; assemblies may share them."""

    fetch: Fetch
    content: dict[bytes, tuple[bytes, bool]] = field(default_factory=dict)
    stretches: dict[bytes, list[bytes]] = field(default_factory=dict)
    wide: bool = False  # whether an integer in any of them may not fit 64 bits

    def collect(self, lines: set[bytes]) -> None:
        """Fetch the chunks that these references name, and those that sealed stretches among them name in turn.

        Raises NotVerified, and ValueError for a malformed reference.
        """
        while lines:
            values = {measure(line)[0] for line in lines if line[:1] == b"@"}
            stretches = {SealedStretch.of_line(line).digest for line in lines if line[:1] == b"#"}
            wanted = (values | stretches) - self.content.keys()
            found = self.fetch(wanted) if wanted else {}
            for digest in values & found.keys():
                # A stretch is checked by its list's digest, a value by its own.
                if digests.of_canonical(found[digest][0]) != digest:
                    raise NotVerified(f"chunk {digests.brief(digest)}", "the content does not match its digest")
            self.content.update(found)
            self.wide = self.wide or any(wide for _, wide in found.values())
            for digest in stretches - self.stretches.keys():
                self.stretches[digest] = self.content[digest][0].split(b"\n")
            named = [line for digest in stretches for line in self.stretches[digest] if line[:1] in MARKS]
            lines = set(named)

    def items(self, lines: Sequence[bytes], lists: type[ListDigest]) -> ListItems:
        """Return the list that these lines describe, its sealed stretches checked. Raises ValueError."""
        entries = [SealedStretch.of_line(line) for line in lines if line[:1] == b"#"]
        expanded = [item for line in lines for item in self._expand(line)]
        made = ListItems(entries, expanded, lists.empty(), lists.empty())
        made.measure()
        return made

    def _expand(self, line: bytes) -> list[bytes]:
        """Return the item lines of a line: itself, or those of the sealed stretch that it names."""
        if line[:1] != b"#":
            return [line]
        lines = self.stretches[SealedStretch.of_line(line).digest]
        if lines[0][:1] == b"#":
            return [item for inner in lines for item in self._expand(inner)]
        return lines

    def value(self, line: bytes, *, wide: bool) -> Any:
        """Return the value on a line."""
        return decode(self._text(line), wide=wide or self.wide)

    def values(self, lines: Sequence[bytes], *, wide: bool) -> list[Any]:
        """Return the values on item lines."""
        # One comprehension for the common case: a Python call for each line would take longer than the parsing.
        texts = [self._text(line) if line[:1] == b"@" else line for line in lines]
        made: list[Any] = decode(b"[" + b",".join(texts) + b"]", wide=wide or self.wide)
        return made

    def _text(self, line: bytes) -> bytes:
        return self.content[measure(line)[0]][0] if line[:1] == b"@" else line


def fetcher(lineage: int) -> Fetch:
    """Return a function that reads chunks of one lineage from the database, each verified by its checksum."""

    def fetch(wanted: set[bytes]) -> dict[bytes, tuple[bytes, bool]]:
        found = {}
        for digest, codec, payload, checksum in run_sql(_CHUNKS, [lineage, list(wanted)]):
            found[digest] = read_chunk(lineage, digest, codec, payload, checksum)
        for digest in wanted - found.keys():
            raise NotVerified(f"chunk {digests.brief(digest)}", "is missing")
        return found

    return fetch


def read_chunk(lineage: int, digest: bytes, codec: int, payload: bytes, checksum: bytes) -> tuple[bytes, bool]:
    """Verify a chunk by its checksum; return its content and whether it holds wide integers. Raises NotVerified."""
    name = f"chunk {digests.brief(digest)}"
    if payloads.chunk_checksum(lineage, digest, codec, payload) != checksum:
        raise NotVerified(name, "the stored bytes do not match their checksum")
    try:
        content = payloads.unpack(codec, payload)
    except ValueError as error:
        raise NotVerified(name, f"cannot be read ({error})") from error
    return content, bool(codec & payloads.WIDE)
