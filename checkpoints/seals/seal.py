"""A seal as plain data: computes its digest, and reads and writes its form in files."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from checkpoints.errors import ValueRefused
from checkpoints.values.canonical_json import decode_canonical, encode_canonical

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Made = Literal["key", "plain", "other"]


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
