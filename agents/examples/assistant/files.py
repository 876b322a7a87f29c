"""Lists, reads, writes and restores files in the assistant's folder, and nothing outside it.

A path is walked from the folder's own descriptor, one name after the other, and no link is followed (O_NOFOLLOW): the
file that is opened is the one that was checked, even if somebody moves files meanwhile. Every refusal is a FileRefused
whose sentence the model is told.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from django.conf import settings

from checkpoints.values import artifacts

from .state import There, Written

LARGEST = 2_000_000  # bytes of a file that is read or written over
MOST = 500  # entries that are listed
NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


class FileRefused(Exception):
    """The path is none that may be used, or what is there is none to be used so; the sentence says which."""


def home() -> str:
    """Return the resolved path of HOLDPOINT_ASSISTANT_FOLDER; make the folder if it is missing."""
    path = Path(settings.HOLDPOINT_ASSISTANT_FOLDER)
    path.mkdir(parents=True, exist_ok=True)
    return str(path.resolve())


def check(folder: str, refusal: type[Exception]) -> None:
    """Raise `refusal` where a run's folder is not the setting's: somebody changed either of them."""
    if folder != home():
        raise refusal(f"This run works in {folder}, and HOLDPOINT_ASSISTANT_FOLDER is {home()} now; nothing was done.")


def list_folder(folder: str, path: str) -> str:
    """Return a line for each entry of a folder: folders have a / at their end, files have their size.

    Raises FileRefused and FileNotFoundError.
    """
    lines = []
    with _into(folder, _parts(path, or_itself=True)) as at:
        names = sorted(os.listdir(at))
        for name in names[:MOST]:
            about, shown = os.stat(name, dir_fd=at, follow_symlinks=False), os.fsencode(name).decode(errors="replace")
            size = f"  {about.st_size:,} bytes" if stat.S_ISREG(about.st_mode) else "  (no file)"
            lines.append(shown + ("/" if stat.S_ISDIR(about.st_mode) else size))
    lines += [f"… and {len(names) - MOST:,} more"] if len(names) > MOST else []
    return "\n".join(lines) or "(nothing is in it)"


def read(folder: str, path: str) -> str:
    """Return the text of a file. Raises FileRefused."""
    content, _ = _content(folder, path)
    if content is None:
        raise FileRefused(f"There is no file {path}.")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise FileRefused(f"{path} is no text in UTF-8 ({len(content):,} bytes).") from error


def look(folder: str, call: str, path: str, *, shown: int) -> There:
    """Return a file's digest and its first `shown` characters; both are empty for a new file. Raises FileRefused."""
    content, _ = _content(folder, path)
    text = (content or b"")[: shown * 4].decode(errors="ignore")[:shown]
    return There(call=call, path=path, digest=_digest(content), text="" if "\0" in text else text)


def keep(folder: str, path: str) -> dict[str, Any]:
    """Keep what stands where a file is to be written; return what `Written` says of it. Raises FileRefused."""
    (content, mode), parts = _content(folder, path), _parts(path)
    before = None if content is None else artifacts.keep(content, "text/plain")
    made = ["/".join(parts[:n]) for n in range(1, len(parts)) if not _is_folder(folder, parts[:n])]
    return {"before": before, "mode": mode, "made": made}


def write(folder: str, path: str, text: str, *, was: dict[str, Any], key: str) -> Written:
    """Put `text` in the place of what `was` kept there; as often as it is asked, with the same end.

    Raises FileRefused where something else stands there by now: nothing is written then.
    """
    content = text.encode()
    if _digest(_content(folder, path)[0]) not in (digest_of(was), _digest(content)):
        raise FileRefused(f"{path} was changed by somebody else while it was to be written.")
    _put(folder, path, content, mode=was["mode"], key=key)
    return Written(path=path, digest=_digest(content), **was)


def put_back(folder: str, written: Written, *, key: str) -> None:
    """Take a write back; as often as it is asked. Raises FileRefused where the file was changed since."""
    now = _digest(_content(folder, written.path)[0])
    if now == ("" if written.before is None else written.before[artifacts.MARK]):
        return
    if now != written.digest:
        raise FileRefused(f"{written.path} was changed since it was written, so what was there is not put back.")
    if written.before is not None:
        _put(folder, written.path, artifacts.read(written.before), mode=written.mode, key=key)
        return
    *above, name = _parts(written.path)
    with _into(folder, above) as at:
        os.unlink(name, dir_fd=at)
    for made in reversed(written.made):
        *above, name = _parts(made)
        with _into(folder, above) as at, suppress(OSError):  # somebody put something into it meanwhile
            os.rmdir(name, dir_fd=at)


def digest_of(was: dict[str, Any]) -> str:
    """Return the SHA-256 of what `keep` found, "" if nothing was there."""
    return str(was["before"][artifacts.MARK]) if was["before"] else ""


def _put(folder: str, path: str, content: bytes, *, mode: int, key: str) -> None:
    """Write beside it, flush, rename: a crash leaves what was there, or all of what is new.

    The name beside it is the key's, so that whoever comes again after a crash takes the same one.
    """
    *above, name = _parts(path)
    beside = f".{name[:100]}.{key[:12]}.part"
    with _into(folder, above, make=True) as at:
        with os.fdopen(os.open(beside, NEW, 0o600, dir_fd=at), "wb") as out:
            out.write(content)
            out.flush()
            os.fchmod(out.fileno(), mode)
            os.fsync(out.fileno())
        os.rename(beside, name, src_dir_fd=at, dst_dir_fd=at)
        os.fsync(at)


def _content(folder: str, path: str) -> tuple[bytes | None, int]:
    """(a file's bytes, its permissions); None if there is no such file. Raises FileRefused."""
    *above, name = _parts(path)
    # Not to wait for whoever writes into a pipe of that name.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with _into(folder, above) as at, _in_words(path):
            file = os.fdopen(os.open(name, flags, dir_fd=at), "rb")
    except FileNotFoundError:
        return None, 0o644
    except IsADirectoryError as error:
        raise FileRefused(f"{path} is no file.") from error
    with file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise FileRefused(f"{path} is no file.")
        if about.st_size > LARGEST:
            raise FileRefused(f"{path} has {about.st_size:,} bytes; the most is {LARGEST:,}.")
        return file.read(LARGEST), stat.S_IMODE(about.st_mode) & 0o777  # whose rights it runs with was for what it held


@contextmanager
def _into(folder: str, parts: list[str], *, make: bool = False) -> Iterator[int]:
    """Yield the descriptor of a folder within the folder; with `make`, make it first if it is missing.

    Raises FileRefused, and without `make` also FileNotFoundError.
    """
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for number, name in enumerate(parts):
            with _in_words("/".join(parts[: number + 1])):
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(name, 0o755, dir_fd=at)
                deeper = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            os.close(at)
            at = deeper
        yield at
    finally:
        os.close(at)


@contextmanager
def _in_words(path: str) -> Iterator[None]:
    """Raise FileRefused with what the operating system says, in words. The caller judges what is not there."""
    try:
        yield
    except (FileNotFoundError, IsADirectoryError):
        raise
    except OSError as error:
        why = f"cannot be used: {error.strerror}"
        if error.errno in (errno.ELOOP, errno.EMLINK):
            why = "is a link, and links are not followed"
        if error.errno == errno.ENOTDIR:
            why = "is no folder, or a link, and links are not followed"
        raise FileRefused(f"{path} {why}.") from error


def _parts(path: str, *, or_itself: bool = False) -> list[str]:
    """Split a path into its names. Raises FileRefused for a path that leads out of the folder or nowhere."""
    if path.startswith(("/", "~")) or "\0" in path:
        raise FileRefused(f"{path!r} is no path within the folder; write one like notes/today.md.")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise FileRefused(f"{path!r} leads out of the folder.")
    if not parts and not or_itself:
        raise FileRefused(f"{path!r} is the folder itself, not a file.")
    try:
        if any(len(os.fsencode(part)) > 255 for part in parts):
            raise FileRefused("A name on the way is longer than 255 bytes.")
    except UnicodeEncodeError as error:
        raise FileRefused("The path holds characters that no file name has.") from error
    return parts


def _is_folder(folder: str, parts: list[str]) -> bool:
    try:
        with _into(folder, parts):
            return True
    except FileNotFoundError:
        return False


def _digest(content: bytes | None) -> str:
    return "" if content is None else hashlib.sha256(content).hexdigest()
