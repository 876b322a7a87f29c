"""HOLDPOINT_HOME: the one folder of the local stack's files.

A home is a folder that was new or empty when it was marked. Any other is refused before anything in it is touched: a
start takes the folder away from other accounts, and a reset deletes all of it.

The stack holds its lock as long as it runs; it is a kernel lock (flock), not the presence of a file, so a `kill -9`
leaves nothing to clean up by hand. Sockets are in `run/`; where the path is too long for a unix socket
(107 bytes) they are in a private folder of the temporary directory.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import secrets
import shlex
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO, cast

from config.local import StackRefused

LONGEST_SOCKET = 107  # bytes, without the closing NUL: sun_path of unix(7)
LONGEST_NAME = len("/postgres/.s.PGSQL.5432")
LOCK = "lock"
MARK = ".holdpoint-home"
MARKED = "`make run` keeps its data in this folder, and `make reset` deletes all that is in it.\n"
# All that was in a home before homes were marked, of which each start wrote the first two.
EVIDENCE = {LOCK: r"\d*", "secret-key": r"[0-9a-f]{48}"}
BEFORE_MARKS = re.compile(
    r"lock|(secret|seal|vapid)-key|(demo|database)-password|environment\.json|\.?restarts\.json|seeded|static(-stamp)?|"
    r"postgres|redis|run|sandbox|files|artifacts|mail|audit|shop-floor|assistant|beat-schedule.*"
)


@dataclass(frozen=True)
class Home:
    """The folder, with the paths of its contents."""

    path: Path
    root: Path  # the checkout

    @classmethod
    def chosen(cls, root: Path) -> Home:
        """Return the folder that HOLDPOINT_HOME names, else `.holdpoint` under `root`; a link is not followed."""
        named = Path(os.path.abspath(Path(os.environ.get("HOLDPOINT_HOME") or root / ".holdpoint").expanduser()))
        return cls(named.parent.resolve() / named.name, root)

    def claim(self, *, new: bool) -> None:
        """Create and mark the folder, for its owner alone; a server's own account may pass through, and list nothing.

        Raises StackRefused, and touches nothing, where it is somebody else's, or is not marked though it is not `new`.
        """
        if self.path.is_symlink():
            raise StackRefused(
                f"{self.path} is a link: set HOLDPOINT_HOME to the folder itself, {self.path.resolve()}."
            )
        for precious, what in ((self.root, "this checkout"), (Path(os.path.expanduser("~")), "your home folder")):
            if precious.resolve().is_relative_to(self.path):
                raise StackRefused(f"{self.path} is or holds {what}: set HOLDPOINT_HOME to a folder of its own.")
        try:
            names = sorted(os.listdir(self.path)) if self.path.exists() else []
            if MARK not in names and (names or not new):
                self.refuse_unless_before_marks(names)
            self.path.mkdir(parents=True, exist_ok=True)
            if self.path.lstat().st_uid != os.geteuid():
                raise StackRefused(f"{self.path} belongs to another account: set HOLDPOINT_HOME to a folder of yours.")
            self.path.chmod(0o711 if os.geteuid() == 0 else 0o700)
        except OSError as error:
            raise StackRefused(f"HOLDPOINT_HOME cannot be used: {self.path}: {error.strerror}.") from None
        with open_own(self.path / MARK, "w") as file:
            file.write(MARKED)

    def refuse_unless_before_marks(self, names: Sequence[str]) -> None:
        """Raise StackRefused unless a version that marked no homes made this one, and nobody put anything else here."""
        evident = all(is_own_file(self.path / name, pattern) for name, pattern in EVIDENCE.items())
        strange = [name for name in names if not (evident and BEFORE_MARKS.fullmatch(name))]
        if evident and not strange:
            return
        holds = f" and holds {', '.join(strange[:3])}{' …' if strange[3:] else ''}" if strange else ""
        refusal = f"{self.path} is not marked as a home of Holdpoint's{holds}: nothing in it was touched."
        if strange:
            refusal += (
                " Set HOLDPOINT_HOME to a new or an empty folder. If `make reset` may delete all that is in this one, "
                f"mark it: touch {shlex.quote(str(self.path / MARK))}"
            )
        raise StackRefused(refusal)

    def delete(self) -> None:
        """Delete everything; the caller holds the lock. What says that it may be deleted goes last."""
        for path in sorted(self.path.iterdir(), key=lambda path: (path.name == MARK, path.name == LOCK)):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        self.path.rmdir()

    @contextlib.contextmanager
    def locked(self, *, new: bool = True) -> Iterator[None]:
        """Hold the folder's lock in the block, which claims it. Raises StackRefused, with the process that holds it."""
        self.claim(new=new)
        with open_own(self.path / LOCK, "a+") as file:
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


def open_own(path: Path, mode: str) -> TextIO:
    """Open a file of the home for writing. Raises StackRefused, also for a link, which may be somebody else's."""
    try:
        return cast(TextIO, open(path, mode, opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, 0o600)))
    except OSError as error:
        why = "is a link: remove it" if error.errno == errno.ELOOP else f"cannot be written: {error.strerror}"
        raise StackRefused(f"{path} {why}.") from None


def is_own_file(path: Path, pattern: str) -> bool:
    """Tell whether `path` is this account's file, no link, and reads as `pattern`; a secret is its owner's alone."""
    try:
        status = path.lstat()
        own = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
        private = path.name == LOCK or not status.st_mode & 0o077
        return own and private and bool(re.fullmatch(pattern, path.read_text().strip()))
    except (OSError, ValueError):
        return False
