"""Large binaries lie under their digest, whole or not at all; digests of lists are those of the two written formats."""

from __future__ import annotations

import contextvars
import hashlib
import io
import os
import secrets
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import pytest
from django.conf import settings
from django.core.files.storage import storages
from django.test import override_settings

from checkpoints.errors import NoSuchArtifact, NoTeam, NotVerified, ValueRefused
from checkpoints.layout.assembly import ChunkContents
from checkpoints.layout.parts import SealedStretch, size_of
from checkpoints.values import artifacts, digests
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
from tests.factories.stored_runs import FORMATS
from tests.harness.racing_threads import race

SMUGGLED: list[Any] = [
    "../../../etc/passwd", "/etc/passwd", "a" * 63, "a" * 65, "A" * 64, "a" * 62 + "/a", "a" * 64 + "\n",
    "..%2f" + "a" * 59, "\0" * 64, "\u0660" * 64, "", None, 7, ["a" * 64], {"$artifact": "a" * 64},
]  # fmt: skip
MIXED = [1, "two", {"three": [None, True]}]
LONG = ["x" * 3000]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    configured = cast(dict[str, Any], settings.STORAGES["artifacts"])
    options = configured["OPTIONS"] | {"location": str(tmp_path / "artifacts")}
    with override_settings(STORAGES=settings.STORAGES | {"artifacts": configured | {"OPTIONS": options}}):
        yield tmp_path / "artifacts"


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_a_stream_is_kept_from_where_it_stands_be_it_unseekable_or_empty() -> None:
    stream = io.BytesIO(b"header:body")
    stream.seek(7)
    assert artifacts.read(artifacts.keep(stream)) == b"body"
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as out:
        out.write(b"once")
    with os.fdopen(reading, "rb") as piped:
        assert artifacts.read(artifacts.keep(piped)) == b"once"
    empty = artifacts.keep(b"")
    assert artifacts.read(empty) == b""
    assert artifacts.missing(empty) == []


def test_what_is_kept_is_read_again_and_kept_once_however_many_keep_it(folder: Path) -> None:
    content = secrets.token_bytes(3_000_000)
    digest = hashlib.sha256(content).hexdigest()
    got = race([lambda: artifacts.keep(content, "image/png")] * 8)
    assert got == [{"$artifact": digest, "size": 3_000_000, "media_type": "image/png"}] * 8
    assert artifacts.read(got[0]) == content
    assert files(folder) == [folder / digest[:2] / digest]
    assert stat.S_IMODE(files(folder)[0].stat().st_mode) == 0o600


class Crash(BaseException):
    """What no handler takes for an expected error."""


def owners(folder: Path, reference: dict[str, Any]) -> list[int]:
    return [int(each.suffix[1:]) for each in folder.glob(f"??/{reference['$artifact']}.*")]


def test_a_thread_of_ones_own_keeps_for_the_only_team_at_work_or_takes_its_context_along(folder: Path) -> None:
    """A pool has no context of its caller's: what a step kept in one had no owner, and its save was refused."""
    with ThreadPoolExecutor(1) as pool, artifacts.kept_for(7):
        with artifacts.kept_for(7):
            pass
        assert owners(folder, pool.submit(artifacts.keep, b"in a pool").result()) == [7]
    assert owners(folder, artifacts.keep(b"by nobody")) == []
    with ThreadPoolExecutor(1) as pool, artifacts.kept_for(7), artifacts.kept_for(8):
        before = files(folder)
        with pytest.raises(NoTeam, match=r"contextvars\.copy_context\(\)\.run"):
            pool.submit(artifacts.keep, b"whose").result()
        assert files(folder) == before
        taken = pool.submit(contextvars.copy_context().run, artifacts.keep, b"of 8").result()
        assert owners(folder, taken) == [8]
    with artifacts.kept_for(7):
        assert owners(folder, artifacts.keep(b"of 7")) == [7]


def test_a_crash_in_the_middle_leaves_nothing_under_the_name(folder: Path) -> None:
    class Breaking(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell() > 1_000_000:
                raise Crash
            return super().read(size)

    content = b"x" * 2_500_000
    with pytest.raises(Crash):
        artifacts.keep(Breaking(content))
    with patch.object(Path, "replace", side_effect=Crash), pytest.raises(Crash):
        artifacts.keep(content)
    assert files(folder) == []
    assert artifacts.read(artifacts.keep(content)) == content


def test_what_is_half_written_altered_or_gone_is_named_and_kept_again(folder: Path) -> None:
    reference = artifacts.keep(b"whole")
    files(folder)[0].write_bytes(b"who")
    assert artifacts.missing({"a": reference}) == ["/a"]
    with pytest.raises(NotVerified):
        artifacts.read(reference)
    artifacts.keep(b"whole")
    assert artifacts.missing({"a": reference}) == []
    assert artifacts.read(reference) == b"whole"
    files(folder)[0].unlink()
    reference = artifacts.keep(b"content")
    files(folder)[0].write_bytes(b"cOntent")
    with pytest.raises(NotVerified, match="does not match"):
        artifacts.read(reference)
    files(folder)[0].unlink()
    with pytest.raises(NoSuchArtifact, match=str(reference["$artifact"])[:8]):
        artifacts.read(reference)
    assert artifacts.missing([reference]) == ["/0"]


def test_no_path_can_be_smuggled_in_a_digest_and_a_reference_has_a_size() -> None:
    kept = artifacts.keep(b"x")
    odd = [{**kept, "$artifact": digest} for digest in SMUGGLED]
    odd += [{**kept, "size": size} for size in (None, -1, True, 1.0, "1")]
    with patch.object(type(storages["artifacts"]), "path", side_effect=AssertionError("looked at the file system")):
        for reference in odd:
            with pytest.raises(ValueRefused):
                artifacts.read(reference)
            assert artifacts.missing({"it": reference}) == ["/it"], reference


def test_references_are_found_wherever_they_are() -> None:
    here, there = artifacts.keep(b"here"), {"$artifact": "0" * 64, "size": 5, "media_type": ""}
    state = {
        "b/c": [here, {"deep~": [there]}],
        "a": there,
        "plain": {"artifact": 1, "size": 2},
        "other": here | {"size": 5},
    }
    assert [at for at, _ in artifacts.references(state)] == ["/a", "/b~1c/0", "/b~1c/1/deep~0/0", "/other"]
    assert artifacts.missing(state) == ["/a", "/b~1c/1/deep~0/0", "/other"]
    assert artifacts.missing(7) == artifacts.missing([]) == []


# By the list, its digest in the first format and in the second: what is stored must be verified for ever.
KNOWN: list[tuple[list[Any], str, str]] = [
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
        list(range(65)),
        "76871e94617c7631089c32d6cdfeba37cbe9ed502b082793ecfaa349085e3086",
        "721488736bc46a5c1f8cc1601c35aeb0c2cda8431b96bcbff21b0ab2522b4c24",
    ),
]


@pytest.mark.parametrize(("value", "chain", "stretches"), KNOWN)
def test_a_list_has_the_digests_that_are_stored_for_it(value: list[Any], chain: str, stretches: str) -> None:
    assert of_field(value, ChainDigest).hex() == chain
    assert of_field(value, StretchDigest).hex() == stretches


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


def test_a_large_item_counts_by_its_size_and_a_stretch_that_names_itself_is_refused() -> None:
    data = encode_canonical(LONG[0])
    assert len(data) > LARGE
    line = make_reference(len(data), measure_line(data)[0])
    assert measure_line(line) == measure_line(data)
    for list_format in FORMATS:
        assert list_format.empty().extended(line, 1) == of_field(LONG, list_format)
    entry = SealedStretch(1, 1, 1, bytes(32), bytes(range(32)))
    with pytest.raises(NotVerified, match="does not match its digest"):
        contents(**{entry.digest.hex(): entry.line()}).collect({entry.line()})


def contents(**stored: bytes) -> ChunkContents:
    """The chunks of a lineage, by their digests in hex."""
    return ChunkContents(lambda wanted: {each: (stored[each.hex()], False) for each in wanted})


def sealed(lines: list[bytes], count: int | None = None) -> tuple[SealedStretch, bytes]:
    content = b"\n".join(lines)
    digest = digests.of_segment(content)
    return SealedStretch(0, count or len(lines), size_of(lines), bytes(32), digest), content


def test_a_value_that_was_fetched_as_a_stretch_before_is_still_checked_as_a_value() -> None:
    """A line of writes, which a load skips, named the chunk of a forged value as a stretch: nobody checked it then."""
    true, forged = b'"a large value"', b'"another value"'
    value = digests.of_canonical(true)
    stretch, content = sealed([make_reference(len(true), value)])
    decoy = SealedStretch(0, 1, 1, bytes(32), value)
    known = contents(**{value.hex(): forged, stretch.digest.hex(): content})
    with pytest.raises(NotVerified, match="does not match its digest"):
        known.collect({stretch.line(), decoy.line()})
    fine = contents(**{value.hex(): true, stretch.digest.hex(): content})
    fine.collect({stretch.line(), decoy.line()})


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
