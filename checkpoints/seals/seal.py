"""Seals as plain data: their digests, their form in files, their chain, and the file of exported seals.

That file reveals removed or remade seals, even if made by somebody with the key. It has one line of JSON for each
seal, appended after its commit; see SealFact.to_json. Keep copies out of reach of those who can write the database;
the log contains the same lines.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Literal

from checkpoints.errors import ValueRefused
from checkpoints.values.canonical_json import decode_canonical, encode_canonical

from .leaves import IntegrityProblem

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Made = Literal["key", "plain", "other"]
WITHOUT = "made without the key: whoever can write the database can have written {them}"
OTHERWISE = "made with another key, or {their} columns do not match {their} digest"
UNKNOWN = "made with a key that is not set here, or {their} columns do not match {their} digest"
BATCH = 1_000
Stored = Callable[[list[int]], Mapping[int, bytes]]


@dataclass(frozen=True)
class SealFact:
    """One seal. `at` is in microseconds since 1970.

    It covers its heads and its marks by their digests, so that an export need not carry them.
    """

    id: int
    at: int
    first: tuple[int, int]
    last: tuple[int, int]
    count: int
    root: bytes
    heads: bytes | None
    heads_digest: bytes
    previous: bytes | None
    marks: bytes | None
    marks_digest: bytes
    digest: bytes

    def expected(self, key: bytes) -> bytes:
        """Compute the expected digest: HMAC-SHA-256 under a key, plain SHA-256 without one."""
        columns: list[object] = [
            self.at, *self.first, *self.last, self.count, self.root.hex(),
            self.heads_digest.hex(), self.previous.hex() if self.previous else None, self.marks_digest.hex(),
        ]  # fmt: skip
        data = b"holdpoint seal\n" + encode_canonical(columns)
        return hmac.digest(key, data, "sha256") if key else hashlib.sha256(data).digest()

    def digest_kind(self, key: bytes) -> Made:
        """Tell how the digest was made: with the `key`, "plain" without one, or "other".

        It is also "other" if the seal's columns were altered.
        """
        if key and hmac.compare_digest(self.expected(key), self.digest):
            return "key"
        return "plain" if self.expected(b"") == self.digest else "other"

    def to_json(self, *, heads: bool = True) -> dict[str, Any]:
        """Return the form in files, with the `heads` themselves or only their digest."""
        values = {
            "seal": self.id,
            "at": format_instant(self.at),
            "first": f"{self.first[0]}.{self.first[1]}",
            "last": f"{self.last[0]}.{self.last[1]}",
            "count": self.count,
            "root": self.root.hex(),
            "heads_digest": self.heads_digest.hex(),
            "previous": self.previous.hex() if self.previous else None,
            "marks": self.marks_digest.hex(),
            "digest": self.digest.hex(),
        }
        if self.heads is not None and heads:
            values["heads"] = readable_value(self.heads)
        return values

    @classmethod
    def from_json(cls, line: Any) -> SealFact:
        """Read that form. Raises ValueError, KeyError or TypeError for anything else."""
        heads = exact_bytes(line["heads"]) if "heads" in line else None
        return cls(
            id=_whole(line["seal"]),
            at=parse_instant(line["at"]),
            first=_place(line["first"]),
            last=_place(line["last"]),
            count=_whole(line["count"]),
            root=bytes.fromhex(line["root"]),
            heads=heads,
            heads_digest=bytes.fromhex(line["heads_digest"]) if heads is None else hashlib.sha256(heads).digest(),
            previous=bytes.fromhex(line["previous"]) if line["previous"] else None,
            marks=None,
            marks_digest=bytes.fromhex(line["marks"]),
            digest=bytes.fromhex(line["digest"]),
        )


def readable_value(data: bytes) -> Any:
    """Show canonical JSON as its value, anything else as {"hex": …}.

    `exact_bytes` turns either into the same bytes again.
    """
    try:
        value = decode_canonical(data)
        if encode_canonical(value) == data and not (isinstance(value, dict) and set(value) == {"hex"}):
            return value
    except (ValueError, RecursionError, ValueRefused):
        pass
    return {"hex": data.hex()}


def exact_bytes(value: Any) -> bytes:
    """Return the bytes that `readable_value` showed. Raises ValueError for what it cannot have shown."""
    if isinstance(value, dict) and set(value) == {"hex"}:
        return bytes.fromhex(value["hex"])
    return encode_canonical(value)


def format_instant(at: int) -> str:
    """Write microseconds since 1970 as ISO 8601 in UTC."""
    return (_EPOCH + timedelta(microseconds=at)).isoformat(timespec="microseconds")


def parse_instant(text: str) -> int:
    """Read ISO 8601 with its zone as microseconds since 1970. Raises ValueError for anything else."""
    read = datetime.fromisoformat(text)
    if read.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return (read - _EPOCH) // timedelta(microseconds=1)


def _place(text: str) -> tuple[int, int]:
    xid, _, id = text.partition(".")
    return int(xid), int(id)


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{value!r} is no whole number")
    return value


@dataclass
class SealChain:
    """The state of following the chain. Without the key, a digest made with a key looks like a wrong one."""

    key: bytes
    before: SealFact | None = None
    begins: bytes | None = None  # the digest that the first seal has to name as the previous one
    wrong: list[tuple[int, int, str]] = field(default_factory=list)  # consecutive seals with wrong digests

    def follow(self, seal: SealFact) -> Iterator[IntegrityProblem]:
        """Check the next seal. Wrong digests are collected, and reported together by `digests`."""
        before = self.before.digest if self.before else self.begins
        if seal.previous != before:
            words = f"seal {self.before.id}" if self.before else "what it began with"
            yield IntegrityProblem(
                f"seal {seal.id}", f"does not follow {words}: what stood between was removed or rewritten"
            )
        if self.before and seal.first <= self.before.last:
            yield IntegrityProblem(f"seal {seal.id}", f"begins before seal {self.before.id} ends")
        self._judge(seal)
        self.before = seal

    def _judge(self, seal: SealFact) -> None:
        made = seal.digest_kind(self.key)
        if made == ("key" if self.key else "plain"):
            return
        proof = WITHOUT if made == "plain" else OTHERWISE if self.key else UNKNOWN
        last = self.wrong[-1] if self.wrong else None
        if last and self.before and last[1:] == (self.before.id, proof):
            self.wrong[-1] = (last[0], seal.id, proof)
        else:
            self.wrong.append((seal.id, seal.id, proof))

    def digests(self) -> list[IntegrityProblem]:
        """Return what is wrong with the digests of the seals followed."""
        return [_fault(*row) for row in self.wrong]


def _fault(first: int, last: int, template: str) -> IntegrityProblem:
    if first == last:
        return IntegrityProblem(f"seal {first}", f"was {template.format(them='it', their='its')}")
    return IntegrityProblem(f"seals {first} to {last}", f"were {template.format(them='them', their='their')}")


def check_exported(
    lines: Iterable[str], stored: Stored, *, key: bytes, name: str, since: int = 0
) -> Iterator[IntegrityProblem]:
    """Report exported seals that are missing from the database or differ there, and lines that are not seals.

    `stored` returns the digests of the stored seals among these ids, by id; seals up to `since` are skipped.
    """
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    while batch := list(islice(numbered, BATCH)):
        seals: list[tuple[str, SealFact]] = []
        for number, text in batch:
            line, seal = f"line {number} of {name}", read_line(text)
            if seal is None:
                yield IntegrityProblem(line, "cannot be read")
            elif seal.id > since:
                seals.append((line, seal))
        found = stored([seal.id for _, seal in seals])
        for line, seal in seals:
            yield from _judge_line(line, seal, found.get(seal.id), key)


def read_line(line: str) -> SealFact | None:
    """Parse one line; None if it is not a seal."""
    try:
        return SealFact.from_json(json.loads(line))
    except (ValueError, KeyError, TypeError, AttributeError, ValueRefused, OverflowError):
        return None


def _judge_line(line: str, seal: SealFact, stored: bytes | None, key: bytes) -> Iterator[IntegrityProblem]:
    if stored == seal.digest:
        return
    if seal.digest_kind(key) == "other":
        yield IntegrityProblem(line, f"what it says of seal {seal.id} was altered, or made with another key")
    elif stored is None:
        yield IntegrityProblem(f"seal {seal.id}", f"was exported ({line}) and is gone")
    else:
        yield IntegrityProblem(f"seal {seal.id}", f"is not the one that was exported ({line}): it was made again")
