"""Large binaries lie outside the database under their digest, whole or not at all, and nothing leads elsewhere."""

from __future__ import annotations

import contextvars
import hashlib
import io
import os
import re
import secrets
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import pytest
from django.conf import settings
from django.core.files.storage import storages
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

from checkpoints import store
from checkpoints.errors import NoSuchArtifact, NoTeam, NotVerified, ValueRefused
from checkpoints.values import artifacts
from tests.checkpoints.store.test_claims import at_once
from tests.factories.stored_runs import STEP, begin


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    """The storage, in a folder of the test's own."""
    configured = cast(dict[str, Any], settings.STORAGES["artifacts"])
    options = configured["OPTIONS"] | {"location": str(tmp_path / "artifacts")}
    with override_settings(STORAGES=settings.STORAGES | {"artifacts": configured | {"OPTIONS": options}}):
        yield tmp_path / "artifacts"


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_the_storage_is_under_home() -> None:
    from config.settings import STORAGES

    configured = cast(dict[str, Any], STORAGES["artifacts"])
    assert Path(configured["OPTIONS"]["location"]) == settings.HOME / "artifacts"


def test_what_is_kept_is_read_again(folder: Path) -> None:
    content = secrets.token_bytes(3_000_000)
    digest = hashlib.sha256(content).hexdigest()
    reference = artifacts.keep(content, "image/png")
    assert reference == {"$artifact": digest, "size": 3_000_000, "media_type": "image/png"}
    assert artifacts.read(reference) == content
    assert files(folder) == [folder / digest[:2] / digest]
    assert stat.S_IMODE(files(folder)[0].stat().st_mode) == 0o600


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


def test_the_same_content_is_kept_once(folder: Path) -> None:
    first = artifacts.keep(b"same", "text/plain")
    inode = files(folder)[0].stat().st_ino
    assert artifacts.keep(io.BytesIO(b"same"), "text/plain") == first
    assert [path.stat().st_ino for path in files(folder)] == [inode]


def test_many_who_keep_one_content_at_once_keep_it_once(folder: Path) -> None:
    content = secrets.token_bytes(200_000)
    got = at_once(8, lambda n: artifacts.keep(content))
    assert all(each == got[0] for each in got), got
    assert len(files(folder)) == 1
    assert artifacts.read(got[0]) == content


class Crash(BaseException):
    """What no handler takes for an expected error."""


def owners(folder: Path, reference: dict[str, Any]) -> list[int]:
    return [int(each.suffix[1:]) for each in folder.glob(f"??/{reference['$artifact']}.*")]


def test_a_thread_of_ones_own_keeps_for_the_only_team_at_work(folder: Path) -> None:
    """A pool has no context of its caller's: what a step kept in one had no owner, and its save was refused."""
    with ThreadPoolExecutor(1) as pool, artifacts.kept_for(7):
        with artifacts.kept_for(7):
            pass
        assert owners(folder, pool.submit(artifacts.keep, b"in a pool").result()) == [7]
    assert owners(folder, artifacts.keep(b"by nobody")) == []


def test_a_thread_that_could_keep_for_two_teams_is_told_to_take_the_context_along(folder: Path) -> None:
    with ThreadPoolExecutor(1) as pool, artifacts.kept_for(7), artifacts.kept_for(8):
        with pytest.raises(NoTeam, match=r"contextvars\.copy_context\(\)\.run"):
            pool.submit(artifacts.keep, b"whose").result()
        assert files(folder) == []
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


def test_a_half_written_artifact_is_missing_and_kept_again(folder: Path) -> None:
    reference = artifacts.keep(b"whole")
    files(folder)[0].write_bytes(b"who")
    assert artifacts.missing({"a": reference}) == ["/a"]
    with pytest.raises(NotVerified):
        artifacts.read(reference)
    artifacts.keep(b"whole")
    assert artifacts.missing({"a": reference}) == []
    assert artifacts.read(reference) == b"whole"


def test_a_flipped_bit_is_found_and_a_file_that_is_gone_is_named(folder: Path) -> None:
    reference = artifacts.keep(b"content")
    files(folder)[0].write_bytes(b"cOntent")
    with pytest.raises(NotVerified, match="does not match"):
        artifacts.read(reference)
    files(folder)[0].unlink()
    with pytest.raises(NoSuchArtifact, match=str(reference["$artifact"])[:8]):
        artifacts.read(reference)
    assert artifacts.missing([reference]) == ["/0"]


SMUGGLED: list[Any] = [
    "../../../etc/passwd", "/etc/passwd", "a" * 63, "a" * 65, "A" * 64, "a" * 62 + "/a", "a" * 64 + "\n",
    "..%2f" + "a" * 59, "\0" * 64, "\u0660" * 64, "", None, 7, ["a" * 64], {"$artifact": "a" * 64},
]  # fmt: skip


@pytest.mark.parametrize("digest", SMUGGLED)
def test_no_path_can_be_smuggled_in_a_digest(digest: Any) -> None:
    reference = {"$artifact": digest, "size": 1, "media_type": ""}
    with patch.object(type(storages["artifacts"]), "path", side_effect=AssertionError("looked at the file system")):
        with pytest.raises(ValueRefused):
            artifacts.read(reference)
        assert artifacts.missing({"it": reference}) == ["/it"]


@pytest.mark.parametrize("size", [None, -1, True, 1.0, "1"])
def test_a_reference_without_a_size_is_none(size: Any) -> None:
    reference = artifacts.keep(b"x") | {"size": size}
    with pytest.raises(ValueRefused):
        artifacts.read(reference)
    assert artifacts.missing(reference) == [""]


def test_a_media_type_that_cannot_be_saved_keeps_nothing(folder: Path) -> None:
    with pytest.raises(ValueRefused):
        artifacts.keep(b"x", "\ud800")
    assert files(folder) == []


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


leaves = st.sampled_from([None, 1, "x", "REF"])
names = st.text().filter(lambda name: name != "$artifact")  # a malformed reference is missing too


@given(st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(names, inner)))
def test_as_many_are_missing_as_are_named(value: Any) -> None:
    def named(node: Any) -> Any:
        if node == "REF":
            return {"$artifact": "0" * 64, "size": 5, "media_type": ""}
        if isinstance(node, dict):
            return {key: named(child) for key, child in node.items()}
        return [named(child) for child in node] if isinstance(node, list) else node

    assert len(artifacts.missing(named(value))) == len(re.findall("'REF'", repr(value).replace("'REF':", "")))


def test_a_reference_lives_in_a_state() -> None:
    run, claim, head = begin(n=0)
    with artifacts.kept_for(run.team_id):
        reference = artifacts.keep(b"chart", "image/svg+xml")
    store.save(head, {"chart": reference, "charts": [reference]}, claim=claim, header=STEP)
    state = store.load(run).state
    assert artifacts.missing(state) == []
    assert artifacts.read(state["charts"][0]) == b"chart"
