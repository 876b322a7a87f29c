"""Digests of values, never of history or of encoding.

A value's digest is SHA-256 over its canonical JSON; of a list field see list_digests. A state's covers names and
field digests; a checkpoint's covers its header, its parent's digest and its state's. Each kind starts with its own
tag, so that no two kinds can share a digest.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from .canonical_json import encode_canonical

VALUE = hashlib.sha256(b"holdpoint value\n")
_SEGMENT = hashlib.sha256(b"holdpoint segment\n")
_STATE = hashlib.sha256(b"holdpoint state\n")
_HEADER = hashlib.sha256(b"holdpoint checkpoint\n")
_LENGTHS = struct.Struct("!17i").pack


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
