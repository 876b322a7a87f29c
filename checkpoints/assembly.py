"""Putting a state together again from rows and chunks, and checking every digest on the way.

An Assembly is fed an anchor and the rows after it, in order, and then finished at any point. Nothing that it
returns is unverified: rows and chunks by their checksums, chunks by their digests, lists by their chains, and
the state by the digest in the row that was fed last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from . import digests, payloads, rows
from .errors import NotVerified
from .parts import Entry, Leaf, Part, Series, Tail, chain, measure
from .rows import Row
from .values import decode

Fetch = Callable[[set[bytes]], dict[bytes, tuple[bytes, bool]]]  # digests -> content and wide, verified
_MARKS = (b"@", b"#")  # what a line that is a reference begins with


@dataclass(slots=True)
class _Items:
    """A list field at work: `entries` seal the first items of `lines`; references among the lines stay as they are.

    `head` and `size` are those of the first `measured` lines, so that what only grows is hashed once.
    """

    entries: list[Entry]
    lines: list[bytes]
    head: bytes = digests.EMPTY_LIST
    size: int = 0
    measured: int = 0

    def measure(self, upto: int | None = None) -> None:
        """Bring `head` and `size` up to the last line, or to one before."""
        stretch = self.lines[self.measured : upto]
        self.head, size = chain(self.head, stretch)
        self.size += size
        self.measured += len(stretch)

    def check_entries(self) -> None:
        """Compare the chain with what each sealed stretch says of it. Raises ValueError."""
        for entry in self.entries:
            self.measure(self.measured + entry.count)
            if self.head != entry.head:
                raise ValueError("a sealed stretch does not match its chain")

    def splice(self, start: int, delete: int, lines: list[bytes]) -> None:
        if start < 0 or delete < 0 or start + delete > len(self.lines):
            raise ValueError("a splice outside its list")
        self.lines[start : start + delete] = lines
        sealed = sum(entry.count for entry in self.entries)
        while self.entries and sealed > start:
            sealed -= self.entries.pop().count
        if start < self.measured:
            self.head, self.size, self.measured = digests.EMPTY_LIST, 0, 0


class Assembly:
    """Rows in, a verified state out."""

    def __init__(self, fetch: Fetch, content: dict[bytes, tuple[bytes, bool]] | None = None) -> None:
        """`content` is what was fetched already, to be shared between assemblies of one lineage."""
        self.fetch = fetch
        self.fields: dict[str, bytes | _Items] = {}
        self.content: dict[bytes, tuple[bytes, bool]] = {} if content is None else content
        self.stretches: dict[bytes, list[bytes]] = {}
        self.wide = False
        self.last: Row | None = None

    def feed(self, row: Row) -> None:
        """Apply one row. Raises NotVerified where it does not fit what was fed before, or its own checksum."""
        self.feed_all([row])

    def feed_all(self, trail: Iterable[Row]) -> None:
        """Apply rows in order, with one look for all the chunks that they name."""
        unpacked = [(row, *self._unpack(row)) for row in trail]
        self._collect({line for _, _, lines in unpacked for line in lines if line[:1] in _MARKS})
        for row, ops, lines in unpacked:
            if row.anchor_seq == row.seq:
                self.fields = {}
            try:
                self._apply(ops, lines)
            except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
                raise NotVerified(_name(row), f"its ops do not fit ({error})") from error
            self.last = row

    def _unpack(self, row: Row) -> tuple[list[payloads.Op], list[bytes]]:
        before, self.last = self.last, row
        if row.expected_checksum() != row.checksum:
            raise NotVerified(_name(row), "the stored bytes do not match their checksum")
        builds_on = (row.parent, row.parent_digest, row.anchor_seq)
        if row.anchor_seq != row.seq and (before is None or (before.id, before.digest, before.anchor_seq) != builds_on):
            raise NotVerified(_name(row), "the row before it is not the one it builds on")
        self.wide = self.wide or bool(row.codec & payloads.WIDE)
        try:
            return payloads.split(payloads.unpack(row.codec, row.payload))
        except ValueError as error:
            raise NotVerified(_name(row), f"the payload cannot be read ({error})") from error

    def _collect(self, lines: set[bytes]) -> None:
        """Fetch what these references name, and what the sealed stretches among that name in turn."""
        while lines:
            values = {measure(line)[0] for line in lines if line[:1] == b"@"}
            stretches = {Entry.of_line(line).digest for line in lines if line[:1] == b"#"}
            wanted = (values | stretches) - self.content.keys()
            found = self.fetch(wanted) if wanted else {}
            for digest in values & found.keys():
                # A stretch is checked by its items' chain; a value stands for itself.
                if digests.of_canonical(found[digest][0]) != digest:
                    raise NotVerified(f"chunk {digests.brief(digest)}", "the content does not match its digest")
            self.content.update(found)
            self.wide = self.wide or any(wide for _, wide in found.values())
            for digest in stretches - self.stretches.keys():
                self.stretches[digest] = self.content[digest][0].split(b"\n")
            named = [line for digest in stretches for line in self.stretches[digest] if line[:1] in _MARKS]
            lines = set(named)

    def _expand(self, line: bytes) -> list[bytes]:
        """The item lines that a line stands for."""
        if line[:1] != b"#":
            return [line]
        lines = self.stretches[Entry.of_line(line).digest]
        if lines[0][:1] == b"#":
            return [item for inner in lines for item in self._expand(inner)]
        return lines

    def _apply(self, ops: list[payloads.Op], lines: list[bytes]) -> None:
        at = 0
        for op in ops:
            verb, name = op[0], op[1]
            count = 1 if verb == "set" else 0 if verb == "drop" else op[-1]
            taken = lines[at : at + count]
            if len(taken) != count:
                raise ValueError("lines are missing")
            at += count
            if verb == "set":
                self.fields[name] = taken[0]
            elif verb == "drop":
                del self.fields[name]
            elif verb == "list":
                entries = [Entry.of_line(line) for line in taken if line[:1] == b"#"]
                items = _Items(entries, [item for line in taken for item in self._expand(line)])
                items.check_entries()
                self.fields[name] = items
            else:
                grown = self.fields[name]
                if not isinstance(grown, _Items):
                    raise ValueError(f"{name} is no list")
                start, delete = (len(grown.lines), 0) if verb == "append" else (op[2], op[3])
                grown.splice(start, delete, taken)
        if at != len(lines):
            raise ValueError("lines are left over")

    def check(self) -> dict[str, Part]:
        """The parts after the last row. Raises NotVerified where they or the row do not match its digests."""
        row = self.last
        if row is None:
            raise NotVerified("checkpoint", "is not there")
        if row.header_digest() != row.digest:
            raise NotVerified(_name(row), "its columns do not match its digest")
        try:
            parts = {name: self._part(field) for name, field in self.fields.items()}
        except ValueError as error:
            raise NotVerified(_name(row), f"the state cannot be put together ({error})") from error
        if digests.of_state({name: part.digest for name, part in parts.items()}) != row.state_digest:
            raise NotVerified(_name(row), "the state does not match its digest")
        return parts

    def finish(self) -> tuple[dict[str, Part], dict[str, Any]]:
        """Parts and plain values after the last row. Raises NotVerified as `check` does."""
        parts = self.check()
        return parts, {name: self._value(field) for name, field in self.fields.items()}

    def _part(self, field: bytes | _Items) -> Part:
        if isinstance(field, bytes):
            digest, size = measure(field)
            return Leaf(digest, size, field, self.wide)
        field.measure()
        rest = tuple(field.lines[sum(entry.count for entry in field.entries) :])
        tail = Tail(None, rest, sum(map(len, rest)), self.wide) if rest else None
        return Series(field.head, len(field.lines), field.size, tuple(field.entries), tail)

    def _value(self, field: bytes | _Items) -> Any:
        if isinstance(field, bytes):
            return decode(self._text(field), wide=self.wide)
        # One comprehension for the common case: a call of ours for each line would take longer than the parsing.
        texts = [self._text(line) if line[:1] == b"@" else line for line in field.lines]
        return decode(b"[" + b",".join(texts) + b"]", wide=self.wide)

    def _text(self, line: bytes) -> bytes:
        return self.content[measure(line)[0]][0] if line[:1] == b"@" else line


def fetcher(lineage: int) -> Fetch:
    """Reads chunks of one lineage from the database, each verified by its checksum."""

    def fetch(wanted: set[bytes]) -> dict[bytes, tuple[bytes, bool]]:
        found = {}
        for digest, codec, payload, checksum in rows.chunks(lineage, list(wanted)):
            found[digest] = read_chunk(lineage, digest, codec, payload, checksum)
        for digest in wanted - found.keys():
            raise NotVerified(f"chunk {digests.brief(digest)}", "is missing")
        return found

    return fetch


def read_chunk(lineage: int, digest: bytes, codec: int, payload: bytes, checksum: bytes) -> tuple[bytes, bool]:
    """A chunk's content and whether it holds wide integers, by its checksum. Raises NotVerified."""
    name = f"chunk {digests.brief(digest)}"
    if payloads.chunk_checksum(lineage, digest, codec, payload) != checksum:
        raise NotVerified(name, "the stored bytes do not match their checksum")
    try:
        content = payloads.unpack(codec, payload)
    except ValueError as error:
        raise NotVerified(name, f"cannot be read ({error})") from error
    return content, bool(codec & payloads.WIDE)


def _name(row: Row) -> str:
    return f"checkpoint {row.id} (run {row.run_id}, number {row.seq})"
