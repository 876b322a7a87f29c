"""Digests of lists are those of the two written formats; malformed lines and forged chunks are refused."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoints.errors import NotVerified, ValueRefused
from checkpoints.layout.assembly import ChunkContents
from checkpoints.layout.parts import SealedStretch, size_of
from checkpoints.values import digests
from checkpoints.values.canonical_json import encode_canonical
from checkpoints.values.digests import (
    LARGE,
    ChainDigest,
    ListDigest,
    StretchDigest,
    make_reference,
    measure_line,
    of_field,
)
from tests.factories.arbitrary_states import lists
from tests.factories.stored_runs import FORMATS

MIXED = [1, "two", {"three": [None, True]}]
LONG = ["x" * 3000]
# By the list, its digest in the first format and in the second: what is stored must be verified for ever.
KNOWN: list[tuple[list[Any], str, str]] = [
    (
        [],
        "3ae916d09856a872241d7a89b6686dfc8e7e2ac2b7c08c226e22ad2252ce4fbc",
        "493df6dc0dd40a44bf6f7611c30dd234eea0a998d438e43a5e9c52ef5eac35a8",
    ),
    (
        MIXED,
        "6b4e45cbbc2856dbcd05b978be31440c5bce895da1e0a6a0b3bac1d89ada5821",
        "27cd3a5981f66a7fbfc4b77a5547bb6512ce6112d0663f995c03ffcf5850db6a",
    ),
    (
        LONG,
        "424887c57e0301f1b9e8815056f49ad492596a76dca083baf7216c271321349a",
        "6c6be327333c32613ebfefb1807d93dbe1e254befe14700348030378ce1bb74b",
    ),
    (
        list(range(63)),
        "8a4fd25e10102f7756ca96cfcfe8062406385c3ec542dc0c4fb85d4a5fea1f45",
        "0ecc1f32b85ad45270ec6fee6b3170788bd30a54df7612c180c7e963a478825a",
    ),
    (
        list(range(64)),
        "5e3fa80a663780d73f1a25b5e06c914816f6d7f1b89274db7b99e01bf23c0328",
        "340c5334334b5c4bbef40daafc4fbd2046037bb3de3c263f95fef5bbb7445971",
    ),
    (
        list(range(65)),
        "76871e94617c7631089c32d6cdfeba37cbe9ed502b082793ecfaa349085e3086",
        "721488736bc46a5c1f8cc1601c35aeb0c2cda8431b96bcbff21b0ab2522b4c24",
    ),
]


@pytest.mark.parametrize(("value", "chain", "stretches"), KNOWN)
def test_a_list_has_the_digests_that_are_stored_for_it(value: list[Any], chain: str, stretches: str) -> None:
    assert of_field(value, ChainDigest).hex() == chain
    assert of_field(value, StretchDigest).hex() == stretches


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 127, 128, 129])
def test_the_second_format_hashes_stretches_of_64_lines_and_the_lines_since(count: int) -> None:
    lines, full = [b"%d" % number for number in range(count)], count - count % 64
    head = hashlib.sha256(b"holdpoint stretches\n").digest()
    for at in range(0, full, 64):
        head = hashlib.sha256(head + stretch(lines[at : at + 64])).digest()
    whole = b"holdpoint list of stretches\n%d:%b%b" % (count, head, stretch(lines[full:]))
    digest = StretchDigest.empty().appended(range(count))
    assert digest == hashlib.sha256(whole).digest()
    assert digest.head == head


def stretch(lines: list[bytes]) -> bytes:
    return hashlib.sha256(b"".join([b"holdpoint stretch\n", *(line + b"\n" for line in lines)])).digest()


@given(st.lists(lists, max_size=6), st.sampled_from(FORMATS), st.integers(0, 70))
def test_equal_lists_have_equal_digests_however_they_were_appended(
    parts: list[list[Any]], list_format: type[ListDigest], before: int
) -> None:
    digest, value = list_format.empty().appended(range(before)), list[Any](range(before))
    for items in parts:
        digest, value = digest.appended(items), value + items
    assert digest == of_field(value, list_format) == of_field(tuple(value), list_format)
    assert digest.head == list_format.empty().appended(value).head


@pytest.mark.parametrize("list_format", FORMATS)
@pytest.mark.parametrize("more", [0, 1, 63, 64, 65])
def test_a_digest_is_resumed_from_its_head_without_the_items_before(list_format: type[ListDigest], more: int) -> None:
    covered = 2 * list_format.STRETCH
    before, items = list_format.empty().appended(range(covered)), range(covered, covered + more)
    resumed = list_format.resume(before.head, covered)
    assert resumed == before
    assert resumed.appended(items) == of_field(list(range(covered + more)), list_format)


@pytest.mark.parametrize("list_format", FORMATS)
def test_an_append_leaves_the_digest_before_it_as_it_was(list_format: type[ListDigest]) -> None:
    before = list_format.empty().appended(range(70))
    one, other = before.appended(["a"]), before.appended(["b"])
    assert one == of_field([*range(70), "a"], list_format)
    assert other == of_field([*range(70), "b"], list_format)


@pytest.mark.parametrize("list_format", FORMATS)
@pytest.mark.parametrize(("lines", "count"), [(b"", 2), (b"1\n2", 1), (b"1\n2", 3), (b"1", 0), (b"1", -1)])
def test_lines_that_are_not_so_many_get_the_digest_of_no_list(
    list_format: type[ListDigest], lines: bytes, count: int
) -> None:
    try:
        digest = list_format.empty().extended(lines, count)
    except ValueError:
        return
    assert digest not in {of_field(value, list_format) for value in ([], [1], [2], [1, 2], [12])}


@pytest.mark.parametrize("line", [b"@", b"@12", b"@x:00", b"@1:zz", b"@1:00:00", "@1:ü".encode()])
def test_a_malformed_reference_to_a_large_item_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        measure_line(line)
    with pytest.raises(ValueError, match=r"."):
        ChainDigest.empty().extended(line, 1)


def test_a_large_item_counts_by_its_size_and_digest() -> None:
    data = encode_canonical(LONG[0])
    assert len(data) > LARGE
    line = make_reference(len(data), measure_line(data)[0])
    assert measure_line(line) == measure_line(data)
    for list_format in FORMATS:
        assert list_format.empty().extended(line, 1) == of_field(LONG, list_format)


@pytest.mark.parametrize("list_format", FORMATS)
def test_an_item_that_no_state_may_hold_is_refused(list_format: type[ListDigest]) -> None:
    with pytest.raises(ValueRefused):
        list_format.empty().appended([1, float("nan")])


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
