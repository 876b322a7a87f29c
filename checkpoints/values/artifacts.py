"""Artifacts: large binaries stored by their SHA-256 outside the database, and referenced in the state.

A step stores the content and puts the reference that it gets into the state:

    {"$artifact": "<SHA-256, hex>", "size": 1048576, "media_type": "image/png"}

They are files in the folder of Django's storage "artifacts". A file's path depends only on its digest, so nothing in a
state can lead elsewhere, and storing a content twice keeps one file. A file is written under `new/`, flushed and then
renamed: a crash leaves a stray file there, never half an artifact under its name. Whose it is says an empty file beside
it, `<SHA-256>.<team>`, since a digest alone gives nobody a file: see `checkpoints.store.named_files`.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO, Final

from django.core.files import File
from django.core.files.storage import storages

from checkpoints.errors import NoSuchArtifact, NoTeam, NotVerified, ValueRefused

from .canonical_json import encode_canonical
from .json_pointer import make_pointer

MARK: Final = "$artifact"  # what makes an object in a state a reference
_DIGEST = re.compile(r"[0-9a-f]{64}")
_BLOCK = 1024 * 1024
_team: ContextVar[int | None] = ContextVar("kept_for", default=None)
_at_work: Counter[int] = Counter()  # the teams of all contexts in which something is kept now, in this process
_guard = threading.Lock()

Reference = dict[str, Any]


@contextmanager
def kept_for(team: int) -> Iterator[None]:
    """Give this team what is kept in here, also in the tasks and threads that are handed this context.

    And in other threads, as those of a step's own pool are, while this process works for no other team.
    """
    token = _team.set(team)
    with _guard:
        _at_work[team] += 1
    try:
        yield
    finally:
        with _guard:
            _at_work[team] -= 1
            if not _at_work[team]:
                del _at_work[team]
        _team.reset(token)


def _owner() -> int | None:
    """Return the team that what is kept here is for; None outside of any. Raises NoTeam."""
    if (team := _team.get()) is not None:
        return team
    with _guard:
        teams = list(_at_work)
    if len(teams) > 1:
        raise NoTeam
    return teams[0] if teams else None


def kept_by(team: int, digests: Iterable[str]) -> set[str]:
    """Return those of the digests whose content was kept for this team."""
    return {digest for digest in digests if _DIGEST.fullmatch(digest) and _mark(_path(digest), team).exists()}


def mark_for(digest: str, team: int) -> bool:
    """Mark a stored binary as kept for a team; return whether it is there and was not marked."""
    path = _path(digest)
    new = path.exists() and not _mark(path, team).exists()
    if new:
        _mark(path, team).touch()
    return new


def keep(content: bytes | BinaryIO | File[bytes], media_type: str = "") -> Reference:
    """Store a binary, read from the file's current position, and return its reference. Raises ValueRefused, NoTeam."""
    encode_canonical(media_type)
    team = _owner()
    source = io.BytesIO(content) if isinstance(content, (bytes, bytearray, memoryview)) else content
    with _spooled(source) as (spooled, digest, size):
        path = _path(digest)
        if not _renewed(path, size):
            path.parent.mkdir(mode=0o700, exist_ok=True)
            spooled.replace(path)
        if team is not None:
            _mark(path, team).touch()
        _flush_folders(path)
    return {MARK: digest, "size": size, "media_type": media_type}


def read(reference: Reference) -> bytes:
    """Return the content. Raises NoSuchArtifact, NotVerified, and ValueRefused for what is no reference."""
    digest, size = _parsed(reference)
    try:
        content = _path(digest).read_bytes()
    except FileNotFoundError as error:
        raise NoSuchArtifact(digest) from error
    if len(content) != size or hashlib.sha256(content).hexdigest() != digest:
        raise NotVerified(f"artifact {digest[:8]}", "the content does not match its reference")
    return content


@contextmanager
def opened(reference: Reference) -> Iterator[BinaryIO]:
    """Open the content as a file at its beginning, after checking its digest. Raises what `read` raises."""
    digest, size = _parsed(reference)
    try:
        file = _path(digest).open("rb")
    except FileNotFoundError as error:
        raise NoSuchArtifact(digest) from error
    with file:
        if os.fstat(file.fileno()).st_size != size or digest_of(file) != digest:
            raise NotVerified(f"artifact {digest[:8]}", "the content does not match its reference")
        yield file


def digest_of(file: Any) -> str:
    """Return the SHA-256 of a seekable file in hex, and rewind the file to its beginning."""
    file.seek(0)
    made = hashlib.file_digest(file, "sha256").hexdigest()
    file.seek(0)
    return made


def is_reference(value: Any) -> bool:
    """Tell whether a value is a well-formed reference; other members are allowed."""
    try:
        _parsed(value)
    except ValueRefused:
        return False
    return True


def references(state: Any) -> Iterator[tuple[str, Any]]:
    """Yield each object in a JSON value that claims to be a reference, with its JSON Pointer, in order.

    An object inside a reference counts too.
    """
    left: list[tuple[tuple[str | int, ...], Any]] = [((), state)]
    while left:
        path, node = left.pop()
        if isinstance(node, dict):
            if MARK in node:
                yield make_pointer(*path), node
            left.extend(((*path, key), node[key]) for key in sorted(node, reverse=True) if key != MARK)
        elif isinstance(node, (list, tuple)):
            left.extend(((*path, index), node[index]) for index in range(len(node) - 1, -1, -1))


def missing(state: Any) -> list[str]:
    """Return the JSON Pointers of references that are malformed, or whose artifact is missing or has another size.

    Compares sizes, and reads no content.
    """
    sizes: dict[str, int | None] = {}
    found = []
    for at, reference in references(state):
        try:
            digest, size = _parsed(reference)
        except ValueRefused:
            found.append(at)
            continue
        if digest not in sizes:
            sizes[digest] = _size(_path(digest))
        if sizes[digest] != size:
            found.append(at)
    return found


def _path(digest: str) -> Path:
    return Path(storages["artifacts"].path(f"{digest[:2]}/{digest}"))


def _mark(path: Path, team: int) -> Path:
    return path.with_name(f"{path.name}.{team}")


def _parsed(reference: Any) -> tuple[str, int]:
    """Parse a reference into digest and size. Raises ValueRefused, so that only a digest ever becomes a path."""
    if isinstance(reference, dict):
        digest, size = reference.get(MARK), reference.get("size")
        if isinstance(digest, str) and _DIGEST.fullmatch(digest) and type(size) is int and size >= 0:
            return digest, size
    raise ValueRefused("", "is no reference to an artifact: it takes a SHA-256 in hex and a size")


def _size(path: Path) -> int | None:
    """Return the size of a file; None if it does not exist."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def _renewed(path: Path, size: int) -> bool:
    """Set an artifact's time to now, so that no prune removes it; False if it does not exist."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    return _size(path) == size


@contextmanager
def _spooled(source: BinaryIO | File[bytes]) -> Iterator[tuple[Path, str, int]]:
    """Copy the content to a file that can be renamed, with its digest and size; remove the file afterwards."""
    folder = Path(storages["artifacts"].path("new"))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    made, size = hashlib.sha256(), 0
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
        try:
            while block := source.read(_BLOCK):
                made.update(block)
                size += len(block)
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
            yield Path(file.name), made.hexdigest(), size
        finally:
            Path(file.name).unlink(missing_ok=True)


def _flush_folders(path: Path) -> None:
    """Make a rename survive a power failure: a checkpoint that names the artifact may be committed next."""
    for folder in (path.parent, path.parent.parent):
        entry = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(entry)
        finally:
            os.close(entry)
