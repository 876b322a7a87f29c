"""Chunks are believed only as what they were checked to be, whatever names them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checkpoints.errors import NotVerified
from checkpoints.layout.assembly import ChunkContents
from checkpoints.layout.parts import SealedStretch, size_of
from checkpoints.values import digests
from checkpoints.values.digests import StretchDigest, make_reference

NONE = bytes(32)


def contents(**stored: bytes) -> ChunkContents:
    """The chunks of a lineage, by their digests in hex."""
    return ChunkContents(lambda wanted: {each: (stored[each.hex()], False) for each in wanted})


def sealed(lines: list[bytes], count: int | None = None) -> tuple[SealedStretch, bytes]:
    content = b"\n".join(lines)
    digest = digests.of_segment(content)
    return SealedStretch(0, count or len(lines), size_of(lines), NONE, digest), content


def test_a_value_that_was_fetched_as_a_stretch_before_is_still_checked_as_a_value() -> None:
    """A line of writes, which a load skips, named the chunk of a forged value as a stretch: nobody checked it then."""
    true, forged = b'"a large value"', b'"another value"'
    value = digests.of_canonical(true)
    stretch, content = sealed([make_reference(len(true), value)])
    decoy = SealedStretch(0, 1, 1, NONE, value)
    known = contents(**{value.hex(): forged, stretch.digest.hex(): content})
    with pytest.raises(NotVerified, match="does not match its digest"):
        known.collect({stretch.line(), decoy.line()})
    fine = contents(**{value.hex(): true, stretch.digest.hex(): content})
    fine.collect({stretch.line(), decoy.line()})


def test_a_stretch_that_names_itself_is_refused_and_not_followed_for_ever() -> None:
    entry = SealedStretch(1, 1, 1, NONE, bytes(range(32)))
    with pytest.raises(NotVerified, match="does not match its digest"):
        contents(**{entry.digest.hex(): entry.line()}).collect({entry.line()})


def test_a_stretch_that_counts_other_lines_than_it_has_is_refused() -> None:
    """Two counts that are wrong by as much added up, and the next save wrote what did not verify."""
    first, second = sealed([b"1", b"2", b"3"]), sealed([b"4", b"5", b"6"])
    stored = {entry.digest.hex(): content for entry, content in (first, second)}
    digest = StretchDigest.empty().appended([1, 2, 3, 4, 5, 6])
    lines = [replace(first[0], head=digest.head), replace(second[0], head=digest.head)]
    known = contents(**stored)
    known.collect({each.line() for each in lines})
    assert known.items([each.line() for each in lines], StretchDigest).digest == digest
    wrong = [replace(lines[0], count=2), replace(lines[1], count=4)]
    with pytest.raises(ValueError, match="has not the lines"):
        known.items([each.line() for each in wrong], StretchDigest)
