"""Reassembles a state from rows and chunks, and checks every digest on the way.

An Assembly is fed an anchor and the rows after it, in order, and then finished at any point. Everything that it
returns is verified: rows and chunks by their checksums, chunks by their digests, lists and the state
by the digest in the row that was fed last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from uuid import UUID

from checkpoints.errors import NotVerified
from checkpoints.layout import payloads
from checkpoints.layout.payloads import Op
from checkpoints.values import digests
from checkpoints.values.list_digests import ListDigest, measure_line

from .chunks import MARKS, ChunkContents, ListItems
from .parts import ListField, ListTail, Part, WholeField
from .rows import CheckpointRow

Portion = tuple[Op, list[bytes]]  # one op of a row and its lines


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
    if row.expected_checksum() != row.checksum:
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
