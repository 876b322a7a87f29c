"""The catalogues that were let through, kept in a file, so that a server cannot change between two starts.

The first catalogue of a server is taken as it is: whoever configures the gateway starts it. After that only people's
approval moves the pin, from the one that they compared with.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...errors import NotConfigured
from .catalogue import Catalogue, Pin

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


class Pins:
    """The pin of one server. Without a file it is kept for the life of the process.

    `place`: a mark of that server, since a tool of another server is another tool. The file is read anew before it is
    asked and under a lock before it is written, since other gateways may have the same.
    """

    def __init__(self, file: Path | None, place: str) -> None:
        self.file, self.place = file, place
        self.places: dict[str, Any] = {}
        self.read: tuple[int, ...] = ()
        self._refresh()

    @property
    def known(self) -> Pin | None:
        """Return what is pinned; None before the first catalogue. A file of older gateways has fingerprints alone."""
        found = self.places.get(self.place)
        if found is None:
            return None
        return Pin(**found) if _is_pin(found) else Pin(id="", words={}, tools={}, marks=found)

    def pinned(self, live: Catalogue) -> Pin:
        """Return what is pinned; the first catalogue is."""
        self._refresh()
        known = self.known
        while known is None:  # until it is written, here or by another gateway
            self._write(live, instead_of=None)
            known = self.known
        return known

    def take(self, live: Catalogue, *, instead_of: Pin) -> bool:
        """Pin a catalogue in the place of the one that people compared it with.

        Returns False where another one is pinned by now, with which it has to be compared anew.
        """
        return self._write(live, instead_of=instead_of)

    def _write(self, live: Catalogue, *, instead_of: Pin | None) -> bool:
        if self.file is None:
            return self._taken(live, instead_of)
        self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with locked(self.file.with_suffix(".lock")):
            self._refresh()
            if not self._taken(live, instead_of):
                return False
            beside = self.file.with_suffix(f".{os.getpid()}")
            beside.write_text(json.dumps(self.places, indent=1, sort_keys=True))
            beside.replace(self.file)
        return True

    def _taken(self, live: Catalogue, instead_of: Pin | None) -> bool:
        if self.known != instead_of:
            return False
        tools = {**(instead_of.tools if instead_of else {}), **live.tools}  # one that is away may come back as it was
        self.places[self.place] = asdict(Pin(secrets.token_hex(8), live.words, tools))
        return True

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
        if not isinstance(found, dict) or not all(_is_pin(entry) or _are_marks(entry) for entry in found.values()):
            raise NotConfigured(f"The known tools {self.file} are no list of tools. Restore the file, or delete it.")
        self.places, self.read = found, read


def _is_pin(entry: Any) -> bool:
    kinds = {"id": str, "words": dict, "tools": dict, "marks": dict}
    return (
        isinstance(entry, dict)
        and entry.keys() == kinds.keys()
        and all(isinstance(entry[name], kind) for name, kind in kinds.items())
        and all(isinstance(tool, dict) and tool.get("name") == name for name, tool in entry["tools"].items())
    )


def _are_marks(entry: Any) -> bool:
    return isinstance(entry, dict) and all(isinstance(mark, str) for mark in entry.values())


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
    return Path(state) / "holdpoint" / "gateway" / f"{server_mark(*server)}.json"


def server_mark(*words: str) -> str:
    """Return a mark of a server, which tells nothing of its command."""
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]
