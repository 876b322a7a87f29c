"""Reassembles a state from rows and chunks, and checks every digest on the way.

An Assembly is fed an anchor and the rows after it, in order, and then finished at any point. Everything that it
returns is verified: rows and chunks by their checksums, chunks by their digests, lists and the state
by the digest in the row that was fed last.

A payload's line may name a chunk, and a chunk's content is again lines. A reader of payloads first collects all the
chunks that their lines name, once and level by level, and then expands the lines without a query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from checkpoints.errors import NotVerified
from checkpoints.layout import payloads
from checkpoints.layout.payloads import Op
from checkpoints.postgresql.sql import run_sql
from checkpoints.values import digests
from checkpoints.values.canonical_json import decode_canonical
from checkpoints.values.digests import ListDigest, measure_line

from .parts import ListField, ListTail, Part, SealedStretch, WholeField, size_of
from .rows import CheckpointRow

Fetch = Callable[[set[bytes]], dict[bytes, tuple[bytes, bool]]]  # digests -> content and wide, verified
MARKS = (b"@", b"#")  # the first byte of a line that is a reference
_CHUNKS = "SELECT digest, codec, payload, checksum FROM checkpoints_chunk WHERE lineage = $1 AND digest = ANY($2)"
Portion = tuple[Op, list[bytes]]  # one op of a row and its lines


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
            unread = values - self.values_checked
            wrong = [digest for digest in unread if digests.of_canonical(self.content[digest][0]) != digest]
            sealing = [digest for digest in stretches & found.keys() if found[digest][0][:1] == b"#"]
            wrong += [digest for digest in sealing if digests.of_segment(found[digest][0]) != digest]
            for digest in wrong:
                raise NotVerified(f"chunk {digests.shorten_digest(digest)}", "the content does not match its digest")
            self.values_checked |= values
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


class Assembly:
    """Takes rows, returns a verified state. `contents` may be shared with other assemblies of one lineage."""

    def __init__(self, contents: ChunkContents) -> None:
        self.contents = contents
        self.fields: dict[str, bytes | ListItems] = {}
        self.wide = False
        self.last: CheckpointRow | None = None
        self.list_format: type[ListDigest]  # the last row's; there is none before the first

    def feed(self, row: CheckpointRow) -> None:
        """Apply one row. Raises NotVerified if it does not fit the rows fed before, or its own checksum."""
        self.feed_all([row])

    def feed_all(self, trail: Iterable[CheckpointRow]) -> None:
        """Apply rows in order, fetching all the chunks that they name at once."""
        unpacked = [(row, *self._unpack(row)) for row in trail]
        try:
            self.contents.collect(chunk_references(line for _, _, lines in unpacked for line in lines))
        except ValueError as error:
            raise NotVerified(name_of(self._row()), f"what it names cannot be read ({error})") from error
        for row, ops, lines in unpacked:
            if row.anchor_seq == row.seq:
                self.fields = {}
            try:
                self._apply(ops, lines)
            except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
                raise NotVerified(name_of(row), f"its ops do not fit ({error})") from error
            self.last = row

    def _unpack(self, row: CheckpointRow) -> tuple[list[Op], list[bytes]]:
        before, self.last = self.last, row
        made = unpack_row(row)
        # Pruning may have turned a later row than the named anchor into an anchor, which this row then builds on.
        builds_on = before is not None and row.anchor_seq <= before.seq
        if row.anchor_seq != row.seq and not (
            builds_on and before is not None and (before.id, before.digest) == (row.parent, row.parent_digest)
        ):
            raise NotVerified(name_of(row), "the row before it is not the one it builds on")
        list_format = payloads.list_format_of(row.codec)
        if row.anchor_seq != row.seq and list_format is not self.list_format:
            raise NotVerified(name_of(row), "its digests are of another format than those before it")
        self.list_format = list_format
        self.wide = self.wide or bool(row.codec & payloads.WIDE)
        return made

    def _apply(self, ops: list[Op], lines: list[bytes]) -> None:
        for op, taken in split_portions(ops, lines):
            verb, name = op[0], op[1]
            if verb == "set":
                self.fields[name] = taken[0]
            elif verb == "drop":
                self.fields.pop(name, None)
            elif verb == "list":
                self.fields[name] = self.contents.items(taken, self.list_format)
            elif verb != "wrote":
                grown = self.fields[name]
                if not isinstance(grown, ListItems):
                    raise ValueError(f"{name} is no list")
                if verb == "append":
                    grown.tail += taken
                else:
                    grown.splice(op[2], op[3], taken)

    def check(self) -> dict[str, Part]:
        """Return the parts after the last row. Raises NotVerified if they or the row do not match its digests."""
        row = self._row()
        check_header(row)
        try:
            parts = {name: self._part(field) for name, field in self.fields.items()}
        except ValueError as error:
            raise NotVerified(name_of(row), f"the state cannot be put together ({error})") from error
        if digests.of_state({name: part.digest for name, part in parts.items()}) != row.state_digest:
            raise NotVerified(name_of(row), "the state does not match its digest")
        return parts

    def finish(self) -> tuple[dict[str, Part], dict[str, Any]]:
        """Return parts and plain values after the last row. Raises NotVerified as `check` does."""
        parts = self.check()
        try:
            return parts, {name: self.value(name) for name in self.fields}
        except (ValueError, KeyError) as error:
            raise NotVerified(name_of(self._row()), f"the state cannot be put together ({error})") from error

    def _row(self) -> CheckpointRow:
        if self.last is None:
            raise NotVerified("checkpoint", "is not there")
        return self.last

    def _part(self, field: bytes | ListItems) -> Part:
        wide = self.wide or self.contents.wide
        if isinstance(field, bytes):
            digest, size = measure_line(field)
            return WholeField(digest, size, field, wide)
        field.measure()
        rest = tuple(field.tail)
        tail = ListTail(None, rest, sum(map(len, rest)), wide) if rest else None
        return ListField(field.digest, field.sealed, len(field), field.size, tuple(field.entries), tail)

    def value(self, name: str) -> Any:
        """Return one field's plain value; call `check` first. Raises KeyError."""
        field = self.fields[name]
        if isinstance(field, bytes):
            return self.contents.value(field, wide=self.wide)
        return self.contents.values(field.portions(), wide=self.wide)


def unpack_row(row: CheckpointRow) -> tuple[list[Op], list[bytes]]:
    """Verify a row by its checksum and return its ops and lines. Raises NotVerified."""
    if payloads.row_checksum(row.digest, row.anchor_seq, row.codec, row.payload) != row.checksum:
        raise NotVerified(name_of(row), "the stored bytes do not match their checksum")
    try:
        return payloads.split(payloads.unpack(row.codec, row.payload))
    except ValueError as error:
        raise NotVerified(name_of(row), f"the payload cannot be read ({error})") from error


def check_header(row: CheckpointRow) -> None:
    """Raise NotVerified if the row's columns do not match its digest."""
    if row.header_digest() != row.digest:
        raise NotVerified(name_of(row), "its columns do not match its digest")


def split_portions(ops: list[Op], lines: list[bytes]) -> Iterator[Portion]:
    """Yield each op with the lines that it takes. Raises ValueError if lines are missing or left over."""
    at = 0
    for op in ops:
        count = 1 if op[0] == "set" else 0 if op[0] == "drop" else op[-1]
        taken = lines[at : at + count]
        if len(taken) != count:
            raise ValueError("lines are missing")
        at += count
        yield op, taken
    if at != len(lines):
        raise ValueError("lines are left over")


def chunk_references(lines: Iterable[bytes]) -> set[bytes]:
    """Return the lines that name a chunk."""
    return {line for line in lines if line[:1] in MARKS}


def name_of(row: CheckpointRow) -> str:
    """Name a row as messages do."""
    return name_of_checkpoint(row.id, row.run_id, row.seq)


def name_of_checkpoint(id: UUID, run: int, seq: int) -> str:
    """Name a checkpoint as messages do."""
    return f"checkpoint {id} (run {run}, number {seq})"
