"""HOLDPOINT_HOME: the one folder of the local stack's files.

The stack holds its lock as long as it runs; it is a kernel lock (flock), not the presence of a file, so a `kill -9`
leaves nothing to clean up by hand. Sockets are in `run/`; where the path is too long for a unix socket
(107 bytes) they are in a private folder of the temporary directory.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from config.local.errors import StackRefused

LONGEST_SOCKET = 107  # bytes, without the closing NUL: sun_path of unix(7)
LONGEST_NAME = len("/postgres/.s.PGSQL.5432")


@dataclass(frozen=True)
class Home:
    """The folder, with the paths of its contents."""

    path: Path

    @classmethod
    def chosen(cls, root: Path) -> Home:
        """Return the folder that HOLDPOINT_HOME names, else `.holdpoint` under `root`."""
        return cls(Path(os.environ.get("HOLDPOINT_HOME") or root / ".holdpoint").expanduser().resolve())

    def make(self) -> None:
        """Create the folder, for its owner alone; a server's own account may pass through, and list nothing."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.path.chmod(0o711 if os.geteuid() == 0 else 0o700)
        except OSError as error:
            raise StackRefused(f"HOLDPOINT_HOME cannot be made: {self.path}: {error.strerror}.") from None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder's lock in the block. Raises StackRefused, with the process, where another stack holds it."""
        self.make()
        with (self.path / "lock").open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                holder = file.read().strip()
                raise StackRefused(f"Holdpoint is already running on {self.path} (process {holder}).") from None
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield

    def sockets(self) -> Path:
        """Return the folder for sockets, made for its owner alone."""
        folder = self.path / "run"
        if len(os.fsencode(folder)) + LONGEST_NAME > LONGEST_SOCKET:
            digest = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:12]
            folder = Path(tempfile.gettempdir()) / f"holdpoint-{os.geteuid()}-{digest}"
        folder.mkdir(exist_ok=True, mode=0o700)
        status = folder.lstat()
        if status.st_uid != os.geteuid() or not folder.is_dir() or folder.is_symlink():
            raise StackRefused(f"{folder} belongs to somebody else; remove it, or choose a shorter HOLDPOINT_HOME.")
        folder.chmod(0o711 if os.geteuid() == 0 else 0o700)
        return folder

    def secret(self, name: str, length: int = 24) -> str:
        """Return a secret of `length` random bytes, in hexadecimal, made once and kept for its owner's eyes."""
        path = self.path / name
        if not path.exists():
            draft = path.with_suffix(".new")
            draft.unlink(missing_ok=True)
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_hex(length))
            draft.rename(path)
        return path.read_text().strip()
