"""The tools as they were when people or the operator last let them through: one that changes is asked about anew.

They are kept in a file, so that a server cannot change them between two starts of the gateway.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ...errors import NotConfigured

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


class KnownTools:
    """The fingerprint of each tool of one server, by name. Without a file they are kept for the life of the process.

    `place`: a mark of that server, since a tool of another server is another tool. The file is read anew before it is
    asked and under a lock before it is written, since other gateways may have the same.
    """

    def __init__(self, file: Path | None, place: str) -> None:
        self.file, self.place = file, place
        self.places: dict[str, dict[str, str]] = {}
        self.read: tuple[int, ...] = ()
        self._refresh()

    def changed(self, name: str, fingerprint: str) -> bool:
        """Tell whether the tool is another one than before; one that is new is taken as it is."""
        self._refresh()
        if name not in self._mine:
            self._write(name, fingerprint, anew=True)
        return self._mine[name] != fingerprint

    def take(self, name: str, fingerprint: str) -> None:
        """Take the tool as it is now."""
        self._refresh()
        if self._mine.get(name) != fingerprint:
            self._write(name, fingerprint, anew=False)

    @property
    def _mine(self) -> dict[str, str]:
        return self.places.setdefault(self.place, {})

    def _write(self, name: str, fingerprint: str, *, anew: bool) -> None:
        """Keep a tool. `anew`: unless another gateway was faster."""
        if self.file is None:
            self._mine[name] = fingerprint
            return
        self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with locked(self.file.with_suffix(".lock")):
            self._refresh()
            if anew and name in self._mine:
                return
            self._mine[name] = fingerprint
            beside = self.file.with_suffix(f".{os.getpid()}")
            beside.write_text(json.dumps(self.places, indent=1, sort_keys=True))
            beside.replace(self.file)

    def _refresh(self) -> None:
        """Read the file, if it is another one than the last that was read. Raises NotConfigured."""
        if self.file is None:
            return
        try:
            about = self.file.stat()
            read = (about.st_ino, about.st_mtime_ns, about.st_size)
            if read == self.read:
                return
            found = json.loads(self.file.read_bytes())
        except FileNotFoundError:
            self.places, self.read = {}, ()
            return
        except (OSError, ValueError) as error:
            raise NotConfigured(
                f"The known tools {self.file} cannot be read ({error}). Restore it, or delete it."
            ) from None
        if not isinstance(found, dict) or not all(_is_list_of_tools(each) for each in found.values()):
            raise NotConfigured(f"The known tools {self.file} are no list of tools. Restore the file, or delete it.")
        self.places, self.read = found, read


def _is_list_of_tools(found: object) -> bool:
    return isinstance(found, dict) and all(isinstance(each, str) for each in found.values())


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold the lock of a file, which ends with the process that has it."""
    with file.open("a") as lock:
        if sys.platform == "win32":
            msvcrt.locking(lock.fileno(), msvcrt.LK_LOCK, 1)
        else:
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def usual_file(server: Sequence[str]) -> Path:
    """Return where the tools of a server are kept, by its command or address."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "holdpoint" / "gateway" / f"{marked(*server)}.json"


def marked(*words: str) -> str:
    """Return a mark of a server, which tells nothing of its command."""
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]
