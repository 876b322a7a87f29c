"""The servers of one test session: a PostgreSQL and a Redis for each xdist worker.

The URLs are known before any server runs, because every server listens on a unix socket in one temporary
folder; so Django can read its settings first. The pytest process that the user started makes and migrates one
data folder; each worker's server runs on a copy. They share no server, because a transaction that one worker's test
has open anywhere in a server holds back the horizon of events for all others, in whatever database. Tests commit
for real, as the application's role, and make rows of their own; nothing rolls back between them.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

from config.local.servers import Postgres, Redis, embedded_urls, make_database

ROOT = Path(__file__).resolve().parent.parent.parent
BYTECODE = ROOT / ".pytest_cache" / "bytecode"
KEPT = ROOT / ".pytest_cache" / "migrated"  # the data folder that a session migrated, under the key of what made it
PLENTY = 8 << 30  # bytes
# Durability off: a session's data does not outlive the session. Prepared statements are planned once: PostgreSQL would
# plan the first five executions on each connection anew, which took a twelfth of the whole suite.
FAST = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "autovacuum_naptime": "10s",
    "plan_cache_mode": "force_generic_plan",
}


def copied(data: Path, to: Path) -> Path:
    """Copy a data folder whose server is stopped, as a snapshot of its disk would."""
    subprocess.run(["/bin/cp", "-a", data, to], check=True)  # with its owner
    return to


def quick_folder() -> Path:
    """Return where servers and tests keep their files: in memory where the system has plenty, since they write many."""
    memory = Path("/dev/shm")  # noqa: S108 - each session makes a folder of its own there
    roomy = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > PLENTY
    return memory if roomy else Path("/tmp")  # noqa: S108 - likewise


def key() -> str:
    """Return a digest of all that may change what migrating makes: the code and the versions of what it needs."""
    texts = [ROOT / "requirements-dev.txt", Path(__file__)]
    for folder in ("agents", "approvals", "checkpoints", "config"):
        texts += sorted(path for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".sql"))
    made = hashlib.sha256(sys.version.encode())
    for path in texts:
        made.update(f"{path}\0".encode() + path.read_bytes() + b"\0")
    return made.hexdigest()[:32]


class Session:
    """One pytest process's view of the session's servers."""

    def __init__(self) -> None:
        self.worker = os.environ.get("PYTEST_XDIST_WORKER", "")
        self.is_owner = not self.worker
        own = tempfile.mkdtemp(prefix="hp-", dir=quick_folder()) if self.is_owner else ""
        self.home = Path(own or os.environ["HPTEST_HOME"])
        self.migrated = Postgres(self.home / "migrated", self.home / "pg", FAST)
        self.name = self.worker or "main"
        self.folder = self.home / self.name
        self.postgres = Postgres(self.folder / "postgres", self.folder / "pg", FAST)
        self.redis = Redis(self.folder, self.folder / "redis.sock")
        self.logs: list[IO[bytes]] = []

    @property
    def environment(self) -> dict[str, str]:
        """Return what this process's Django and its children need."""
        return {
            "HPTEST_HOME": str(self.home),
            **embedded_urls(self.postgres),
            "REDIS_URL": self.redis.url,
            "HOLDPOINT_HOME": str(self.folder / "home"),
            "HOLDPOINT_SECRET_KEY": "for tests, and longer than the fifty characters that Django asks for",
            "HOLDPOINT_SEAL_KEY": "seals of the tests: 0123456789-abcdef",
            "HOLDPOINT_STATIC_ROOT": str(self.home / "static"),
            "HOLDPOINT_LOG_FORMAT": "text",
            "FORWARDED_ALLOW_IPS": "",
            # The tests start hundreds of processes: compiling every module anew would take each half a second.
            "PYTHONPYCACHEPREFIX": str(BYTECODE),
            "PYTHONDONTWRITEBYTECODE": "",
            "HOLDPOINT_API_FAILURES": "1000000",  # all tests come from one address
            "HOLDPOINT_STREAK_SECONDS": "0",  # tests decide faster than anybody reads
        }

    def start_shared(self) -> None:
        """Make the migrated data folder and the static files, in the process that the user started."""
        if os.geteuid() == 0:
            self.home.chmod(0o711)  # the server's account must pass through, and lists nothing
        with ThreadPoolExecutor(1) as beside:
            collected = beside.submit(self.manage, "manage.py", "collectstatic", "--noinput", "-v0")
            self.migrate()
            collected.result()

    def migrate(self) -> None:
        """Make the data folder of which each worker's server gets a copy, or take what an earlier session made."""
        KEPT.mkdir(parents=True, exist_ok=True)
        with (KEPT / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # sessions may begin at once
            kept = KEPT / key()
            if kept.exists():
                copied(kept, self.migrated.data)
                return
            self.migrated.start(self.log("migrated"))
            make_database(self.migrated)
            self.manage("-m", "config.migrate", **embedded_urls(self.migrated))
            self.migrated.stop()
            for other in KEPT.glob("*/"):
                shutil.rmtree(other)
            copied(self.migrated.data, KEPT / "half").rename(kept)  # whole, or not there

    def manage(self, *arguments: str, **variables: str) -> None:
        """Run a command of the project before the tests begin; what it says is shown where it fails."""
        done = subprocess.run(
            [sys.executable, *arguments], cwd=ROOT, env=os.environ | variables, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")

    def start_own(self) -> None:
        """Start this process's PostgreSQL, on a copy of the migrated folder, and its Redis."""
        (self.folder / "home").mkdir(parents=True, exist_ok=True)
        copied(self.migrated.data, self.postgres.data)
        self.postgres.start(self.log("postgres"))
        self.redis.start(self.log("redis"))

    def log(self, name: str) -> IO[bytes]:
        """Open the log of one server."""
        path = self.home / f"{name}-{self.name}.log"
        self.logs.append(path.open("ab"))
        return self.logs[-1]

    def stop_own(self) -> None:
        """Stop this process's servers."""
        self.redis.stop()
        self.postgres.stop()
        self.close_logs()

    def stop_shared(self) -> None:
        """Remove everything."""
        self.close_logs()
        shutil.rmtree(self.home, ignore_errors=True)

    def close_logs(self) -> None:
        """Close what `log` opened."""
        while self.logs:
            self.logs.pop().close()
