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
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

import psycopg

from config.local.servers import DATABASE, OWNER, Postgres, Redis, create_database, embedded_urls, make_database
from tests.rolling_updates.released import RELEASED

ROOT = Path(__file__).resolve().parent.parent.parent
BYTECODE = ROOT / ".pytest_cache" / "bytecode"
KEPT = ROOT / ".pytest_cache" / "kept"  # what a session made first, under the digest of what made it
PLENTY = 8 << 30  # bytes
# Beside it in that folder, to be copied: a database with the tables of the running release alone, and one with all.
RUNNING_RELEASE, NEWEST = "running_release", "newest"
TO_THE_RELEASE = f"""
import django
from django.core.management import call_command
django.setup()
for app, name in {RELEASED}.items():
    call_command("migrate", app, name, verbosity=0)
"""
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


def digest_of(*folders: str, suffixes: Collection[str] = ()) -> str:
    """Return a digest of all that may change what a session makes first: these files, and the versions of libraries."""
    texts = [ROOT / "requirements-dev.txt", ROOT / "tests" / "rolling_updates" / "released.py", Path(__file__)]
    for folder in folders:
        texts += sorted(path for path in (ROOT / folder).rglob("*") if path.is_file() and path.suffix in suffixes)
    made = hashlib.sha256(sys.version.encode())
    for path in texts:
        made.update(f"{path}\0".encode() + path.read_bytes() + b"\0")
    return made.hexdigest()[:32]


def migrated_digest() -> str:
    return digest_of("agents", "approvals", "checkpoints", "config", suffixes=(".py", ".sql"))


class Session:
    """One pytest process's view of the session's servers; `apart`: of servers of its own, in whatever process."""

    def __init__(self, *, apart: bool = False) -> None:
        self.worker = "" if apart else os.environ.get("PYTEST_XDIST_WORKER", "")
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
        static = digest_of("static", "config", suffixes=(".css", ".js", ".svg", ".png", ".woff2", ".py"))
        with ThreadPoolExecutor(1) as beside:
            collected = beside.submit(self.make_once, "static", static, self.home / "static", self.collect)
            self.make_once("migrated", migrated_digest(), self.migrated.data, self.migrate)
            collected.result()

    def make_once(self, name: str, digest: str, made: Path, make: Callable[[], None]) -> None:
        """Make the folder `made`, or take what an earlier session made of the same files."""
        shelf = KEPT / name
        shelf.mkdir(parents=True, exist_ok=True)
        with (shelf / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # sessions may begin at once
            kept = shelf / digest
            if kept.exists():
                copied(kept, made)
                return
            make()
            for other in shelf.glob("*/"):
                shutil.rmtree(other)
            copied(made, shelf / "half").rename(kept)  # whole, or not there

    def collect(self) -> None:
        self.manage("manage.py", "collectstatic", "--noinput", "-v0")

    def migrate(self) -> None:
        """Make the data folder of which each worker's server gets a copy."""
        self.migrated.start(self.log("migrated"))
        make_database(self.migrated)
        owner = {"DATABASE_URL": self.migrated.url(DATABASE, OWNER), "DJANGO_SETTINGS_MODULE": "config.settings"}
        self.manage("-c", TO_THE_RELEASE, **embedded_urls(self.migrated) | owner)
        with psycopg.connect(self.migrated.url("postgres"), autocommit=True) as admin:
            create_database(admin, RUNNING_RELEASE, OWNER, template=DATABASE)
            self.manage("-m", "config.migrate", **embedded_urls(self.migrated))
            create_database(admin, NEWEST, OWNER, template=DATABASE)
        self.migrated.stop()

    def manage(self, *arguments: str, **variables: str) -> None:
        """Run a command of the project before the tests begin; what it says is shown where it fails."""
        done = subprocess.run(
            [sys.executable, *arguments], cwd=ROOT, env=os.environ | variables, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")

    def start_own(self) -> None:
        (self.folder / "home").mkdir(parents=True, exist_ok=True)
        copied(self.migrated.data, self.postgres.data)
        self.postgres.start(self.log("postgres"))
        self.redis.start(self.log("redis"))

    def log(self, name: str) -> IO[bytes]:
        path = self.home / f"{name}-{self.name}.log"
        self.logs.append(path.open("ab"))
        return self.logs[-1]

    def stop_own(self) -> None:
        self.redis.stop()
        self.postgres.stop()
        self.close_logs()

    def stop_shared(self) -> None:
        self.close_logs()
        shutil.rmtree(self.home, ignore_errors=True)

    def close_logs(self) -> None:
        while self.logs:
            self.logs.pop().close()
