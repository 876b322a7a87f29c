"""The tools as they were when people or the operator last let them through: one that changes is asked about anew.

They are kept in a file, so that a server cannot change them between two starts of the gateway.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

from ...errors import NotConfigured


class KnownTools:
    """The fingerprint of each tool, by name. Without a file they are kept for the life of the process."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.known: dict[str, str] = {}
        if file is None:
            return
        try:
            found = json.loads(file.read_bytes())
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            raise NotConfigured(f"The known tools {file} cannot be read ({error}). Restore it, or delete it.") from None
        if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
            raise NotConfigured(f"The known tools {file} are no list of tools. Restore the file, or delete it.")
        self.known = found

    def changed(self, name: str, fingerprint: str) -> bool:
        """Tell whether the tool is another one than before; one that is new is taken as it is."""
        if name not in self.known:
            self.take(name, fingerprint)
        return self.known[name] != fingerprint

    def take(self, name: str, fingerprint: str) -> None:
        """Take the tool as it is now."""
        if self.known.get(name) == fingerprint:
            return
        self.known[name] = fingerprint
        if self.file is not None:
            self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            beside = self.file.with_suffix(f".{os.getpid()}")
            beside.write_text(json.dumps(self.known, indent=1, sort_keys=True))
            beside.replace(self.file)


def usual_file(server: Sequence[str]) -> Path:
    """Return where the tools of a server are kept, by its command or address."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "holdpoint" / "gateway" / f"{marked(*server)}.json"


def marked(*words: str) -> str:
    """Return a mark of a server, which tells nothing of its command."""
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]
