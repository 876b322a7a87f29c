"""Expands the lines of payloads: fetches the chunks that they name, once and verified, and rebuilds lists.

A payload's line may name a chunk, and a chunk's content is again lines. A reader of payloads first collects all the
chunks that their lines name, level by level, and then expands the lines without a query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from checkpoints.errors import NotVerified
from checkpoints.layout import payloads
from checkpoints.postgresql.sql import run_sql
from checkpoints.values import digests
from checkpoints.values.canonical_json import decode_canonical
from checkpoints.values.list_digests import ListDigest, measure_line

from .parts import SealedStretch, size_of

Fetch = Callable[[set[bytes]], dict[bytes, tuple[bytes, bool]]]  # digests -> content and wide, verified
MARKS = (b"@", b"#")  # the first byte of a line that is a reference
_CHUNKS = "SELECT digest, codec, payload, checksum FROM checkpoints_chunk WHERE lineage = $1 AND digest = ANY($2)"


@dataclass(slots=True)
class ListItems:
    """A list field being rebuilt: what each of `entries` seals, and the `tail` of lines since.

    `blocks` has for each entry the sealed stretches of items in it, with their lines. `digest` and `size` are those of
    the first `measured` items, so that a list that only grows is hashed once; `sealed` is the digest of what is sealed.
    """

    entries: list[SealedStretch]
    blocks: list[list[tuple[SealedStretch, bytes]]]
    tail: list[bytes]
    digest: ListDigest
    sealed: ListDigest
    size: int = 0
    measured: int = 0

    def __len__(self) -> int:
        return sum([entry.count for entry in self.entries]) + len(self.tail)

    def portions(self) -> list[bytes]:
        """Return all lines in portions, each joined by newlines."""
        return [content for blocks in self.blocks for _, content in blocks] + [b"\n".join(self.tail)] * bool(self.tail)

    def measure(self) -> None:
        """Update `digest` and `size` to the last line. Raises ValueError if a sealed stretch is not what it records."""
        if not self.measured:
            for entry, blocks in zip(self.entries, self.blocks, strict=True):
                for block, content in blocks:
                    if content.count(b"\n") + 1 != block.count:
                        raise ValueError("a sealed stretch has not the lines that it records")
                    self.digest = self.digest.extended(content, block.count)
                    self.size += block.size if block.is_plain(content) else size_of(content.split(b"\n"))
                    self.measured += block.count
                if self.digest.head != entry.head:
                    raise ValueError("a sealed stretch does not match its digest")
            self.sealed = self.digest
        rest = self.tail[len(self.tail) - len(self) + self.measured :]
        self.digest = self.digest.extended(b"\n".join(rest), len(rest))
        self.size += size_of(rest)
        self.measured += len(rest)

    def splice(self, start: int, delete: int, lines: list[bytes]) -> None:
        if start < 0 or delete < 0 or start + delete > len(self):
            raise ValueError("a splice outside its list")
        sealed = len(self) - len(self.tail)
        while sealed > start:
            sealed -= self.entries.pop().count
            self.tail[:0] = b"\n".join([content for _, content in self.blocks.pop()]).split(b"\n")
        self.tail[start - sealed : start - sealed + delete] = lines
        if start < self.measured:
            self.digest, self.size, self.measured = type(self.digest).empty(), 0, 0


@dataclass(slots=True)
class ChunkContents:
    """The chunks of one lineage that were fetched so far; assemblies may share them."""

    fetch: Fetch
    content: dict[bytes, tuple[bytes, bool]] = field(default_factory=dict)
    values_checked: set[bytes] = field(default_factory=set)
    wide: bool = False  # whether an integer in any of them may not fit 64 bits

    def collect(self, lines: set[bytes]) -> None:
        """Fetch the chunks that these references name, and those that sealed stretches among them name in turn.

        Raises NotVerified, and ValueError for a malformed reference.
        """
        while lines:
            values = {measure_line(line)[0] for line in lines if line[:1] == b"@"}
            entries = [SealedStretch.of_line(line) for line in lines if line[:1] == b"#"]
            stretches = {entry.digest for entry in entries}
            wanted = (values | stretches) - self.content.keys()
            found = self.fetch(wanted) if wanted else {}
            self.content.update(found)
            # A value is checked by its own digest, also where it was fetched as something else before; a stretch of
            # items by its list's digest, one of stretches by its own, so that none can name itself.
            for digest in values - self.values_checked:
                if digests.of_canonical(self.content[digest][0]) != digest:
                    raise NotVerified(
                        f"chunk {digests.shorten_digest(digest)}", "the content does not match its digest"
                    )
            self.values_checked |= values
            for digest in stretches & found.keys():
                content = found[digest][0]
                if content[:1] == b"#" and digests.of_segment(content) != digest:
                    raise NotVerified(
                        f"chunk {digests.shorten_digest(digest)}", "the content does not match its digest"
                    )
            self.wide = self.wide or any(wide for _, wide in found.values())
            lines = {line for entry in entries for line in _named(entry, self.content[entry.digest][0])}

    def items(self, lines: Sequence[bytes], list_format: type[ListDigest]) -> ListItems:
        """Return the list that these lines describe, its sealed stretches checked. Raises ValueError."""
        entries = [SealedStretch.of_line(line) for line in lines if line[:1] == b"#"]
        tail = [line for line in lines if line[:1] != b"#"]
        none = list_format.empty()
        made = ListItems(entries, [self._blocks(entry) for entry in entries], tail, none, none)
        made.measure()
        return made

    def _blocks(self, entry: SealedStretch) -> list[tuple[SealedStretch, bytes]]:
        """Return the stretches of items that an entry seals, directly or through others. Raises ValueError."""
        content = self.content[entry.digest][0]
        if content[:1] != b"#":
            return [(entry, content)]
        return [block for line in content.split(b"\n") for block in self._blocks(SealedStretch.of_line(line))]

    def value(self, line: bytes, *, wide: bool) -> Any:
        """Return the value on a line."""
        return decode_canonical(self._text(line), wide=wide or self.wide)

    def values(self, portions: Iterable[bytes], *, wide: bool) -> list[Any]:
        """Return the values on item lines: single ones, or joined by newlines. Raises ValueError."""
        made: list[Any] = []
        for lines in portions:
            try:
                made += decode_canonical(b"[%b]" % lines.replace(b"\n", b","), wide=wide or self.wide)
            except ValueError:  # no JSON begins as a reference does
                texts = [self._text(line) for line in lines.split(b"\n")]
                made += decode_canonical(b"[%b]" % b",".join(texts), wide=wide or self.wide)
        return made

    def _text(self, line: bytes) -> bytes:
        return self.content[measure_line(line)[0]][0] if line[:1] == b"@" else line


def _named(entry: SealedStretch, content: bytes) -> list[bytes]:
    """Return the references on the lines of a sealed stretch, which are all sealed stretches or all items."""
    if content[:1] != b"#" and entry.is_plain(content):
        return []
    return [line for line in content.split(b"\n") if line[:1] in MARKS]


def make_fetcher(lineage: int) -> Fetch:
    """Return a function that reads chunks of one lineage from the database, each verified by its checksum."""

    def fetch(wanted: set[bytes]) -> dict[bytes, tuple[bytes, bool]]:
        found = {}
        for digest, codec, payload, checksum in run_sql(_CHUNKS, [lineage, list(wanted)]):
            found[digest] = read_chunk(lineage, digest, codec, payload, checksum)
        for digest in wanted - found.keys():
            raise NotVerified(f"chunk {digests.shorten_digest(digest)}", "is missing")
        return found

    return fetch


def read_chunk(lineage: int, digest: bytes, codec: int, payload: bytes, checksum: bytes) -> tuple[bytes, bool]:
    """Verify a chunk by its checksum; return its content and whether it holds wide integers. Raises NotVerified."""
    name = f"chunk {digests.shorten_digest(digest)}"
    if payloads.chunk_checksum(lineage, digest, codec, payload) != checksum:
        raise NotVerified(name, "the stored bytes do not match their checksum")
    try:
        content = payloads.unpack(codec, payload)
    except ValueError as error:
        raise NotVerified(name, f"cannot be read ({error})") from error
    return content, bool(codec & payloads.WIDE)
