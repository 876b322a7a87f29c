"""The format of payloads in the database: lines of canonical JSON, compressed.

A checkpoint's payload is one head line, the list of its ops, and then the lines that the ops take, in order:

    ["set", field]                      1 line: the value
    ["list", field, n]                  n lines: the whole list
    ["append", field, n]                n lines: items
    ["splice", field, start, delete, n] n lines: items
    ["drop", field]                     none
    ["wrote", ops, n]                   n lines, of these ops

The ops keep the form in which a step gave its writes, so that they can be replayed on another state. A mark before
the count adds to the verb: "=" means that an append or a splice came from a plain list, "append" or "splice" that a
whole list came from one of those, on a field that was no list yet.

An anchor holds "set" and "list" for every field of the state, and if an execution made it, a "wrote" with that
execution's writes, which a load skips. A line is canonical JSON or a reference, whose first character no JSON starts
with: `@size:digest` is a large value in a chunk of its own, `#level:count:size:head:digest` a sealed stretch of a
list. A sealed chunk's content is again such lines.

The codec's bits: 1 for zstd, 2 if an integer may be wider than 64 bits, 4 in a checkpoint if the digests of its lists
are over stretches (values.digests). The checksum covers the encoding: zstd alone would let some flipped bits pass.
"""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from typing import Any

import orjson
import zstandard

from checkpoints.values.digests import ChainDigest, ListDigest, StretchDigest

ZSTD = 1
WIDE = 2
SMALL = 16 * 1024  # bytes; below, level 3 takes a third longer than 1 and saves one part in a hundred
WORTH_COMPRESSING = 160  # bytes; below, a frame saves nothing

PLAIN = ("=",)  # the mark of an op that came from a plain list
Op = list[Any]
_own = threading.local()  # a compressor belongs to one thread at a time


@dataclass(frozen=True, slots=True)
class ChunkBlob:
    """A chunk that is not stored yet: its digest and its content."""

    digest: bytes
    content: bytes
    wide: bool


def pack(content: bytes, *, wide: bool) -> tuple[int, bytes]:
    """Return codec and stored bytes of `content`."""
    codec = WIDE if wide else 0
    if len(content) >= WORTH_COMPRESSING:
        made = _compressor("small" if len(content) < SMALL else "large").compress(content)
        if len(made) < len(content):
            return codec | ZSTD, made
    return codec, content


def list_format_of(codec: int) -> type[ListDigest]:
    """Return the format of a checkpoint's list digests."""
    return StretchDigest if codec & StretchDigest.CODEC else ChainDigest


def _compressor(size: str) -> zstandard.ZstdCompressor:
    found = getattr(_own, size, None)
    if found is None:
        found = zstandard.ZstdCompressor(level=1 if size == "small" else 3)
        setattr(_own, size, found)
    return found


def unpack(codec: int, data: bytes) -> bytes:
    """Return the content that `pack` stored. Raises ValueError for a codec or a frame that cannot be read."""
    if codec & ~(ZSTD | WIDE | StretchDigest.CODEC):
        raise ValueError(f"unknown codec {codec}")
    if not codec & ZSTD:
        return data
    try:
        try:
            made: bytes = _own.decompressor.decompress(data)
        except AttributeError:
            _own.decompressor = zstandard.ZstdDecompressor()
            made = _own.decompressor.decompress(data)
    except zstandard.ZstdError as error:
        raise ValueError(f"bad frame: {error}") from error
    return made


def join(ops: list[Op], lines: list[bytes]) -> bytes:
    """Return a payload's content."""
    return b"\n".join((orjson.dumps(ops), *lines))


def split(content: bytes) -> tuple[list[Op], list[bytes]]:
    """Reverse `join`."""
    head, *lines = content.split(b"\n")
    return orjson.loads(head), lines


def row_checksum(digest: bytes, anchor_seq: int, codec: int, payload: bytes) -> bytes:
    """Compute a checkpoint's `checksum`, 16 bytes."""
    made = hashlib.sha256(b"%b%d:%d:" % (digest, anchor_seq, codec))
    made.update(payload)
    return made.digest()[:16]


def chunk_checksum(lineage: int, digest: bytes, codec: int, payload: bytes) -> bytes:
    """Compute a chunk's `checksum`, 16 bytes."""
    made = hashlib.sha256(b"%d:%b%d:" % (lineage, digest, codec))
    made.update(payload)
    return made.digest()[:16]
