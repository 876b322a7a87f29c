"""The servers of one test session: a PostgreSQL for all of it, a database and a Redis for each xdist worker.

The URLs are known before any server runs, because every server listens on a unix socket in one temporary
folder; so Django can read its settings first. The pytest process that the user started owns PostgreSQL and
a migrated template database; each worker copies the template. Tests commit for real, as the application's
role, and make rows of their own; nothing rolls back between them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

import psycopg

from config import roles
from config.local.postgres import Postgres
from config.local.redis_server import Redis

ROOT = Path(__file__).resolve().parent.parent.parent
OWNER = "holdpoint_owner"
APPLICATION = "holdpoint_app"
TEMPLATE = "holdpoint_template"
# Durability off: a session's data does not outlive the session.
FAST = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", "autovacuum_naptime": "10s"}


class Session:
    """One pytest process's view of the session's servers."""

    def __init__(self) -> None:
        self.worker = os.environ.get("PYTEST_XDIST_WORKER", "")
        self.is_owner = not self.worker
        self.home = Path(tempfile.mkdtemp(prefix="hp-", dir="/tmp") if self.is_owner else os.environ["HPTEST_HOME"])
        self.postgres = Postgres(self.home / "data", self.home / "pg", FAST)
        self.name = self.worker or "main"
        self.folder = self.home / self.name
        self.redis = Redis(self.folder, self.folder / "redis.sock")
        self.database = f"holdpoint_{self.name}"
        self.logs: list[IO[bytes]] = []

    @property
    def environment(self) -> dict[str, str]:
        """Return what this process's Django and its children need."""
        return {
            "HPTEST_HOME": str(self.home),
            "DATABASE_URL": self.postgres.url(self.database, APPLICATION),
            "DATABASE_OWNER_URL": self.postgres.url(self.database, OWNER),
            "REDIS_URL": self.redis.url,
            "HOLDPOINT_HOME": str(self.folder / "home"),
            "HOLDPOINT_SECRET_KEY": "for tests, and longer than the fifty characters that Django asks for",
            "HOLDPOINT_SEAL_KEY": "seals of the tests",
            "HOLDPOINT_STATIC_ROOT": str(self.home / "static"),
            "HOLDPOINT_LOG_FORMAT": "text",
        }

    def start_shared(self) -> None:
        """Start PostgreSQL and make the migrated template, in the process that the user started."""
        if os.geteuid() == 0:
            self.home.chmod(0o711)  # the server's account must pass through, and lists nothing
        self.postgres.start(self.log("postgres"))
        with psycopg.connect(self.postgres.url("postgres"), autocommit=True) as connection:
            roles.create(connection, OWNER)
            roles.create(connection, APPLICATION)
            roles.create_database(connection, TEMPLATE, OWNER)
        urls = {
            "DATABASE_URL": self.postgres.url(TEMPLATE, APPLICATION),
            "DATABASE_OWNER_URL": self.postgres.url(TEMPLATE, OWNER),
        }
        self.manage("-m", "config.migrate", **urls)
        self.manage("manage.py", "collectstatic", "--noinput", "-v0")

    def manage(self, *arguments: str, **variables: str) -> None:
        """Run a command of the project before the tests begin; what it says is shown where it fails."""
        done = subprocess.run(
            [sys.executable, *arguments], cwd=ROOT, env=os.environ | variables, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")

    def start_own(self) -> None:
        """Copy the template into this process's database and start this process's Redis."""
        (self.folder / "home").mkdir(parents=True, exist_ok=True)
        with psycopg.connect(self.postgres.url("postgres"), autocommit=True) as connection:
            roles.create_database(connection, self.database, OWNER, TEMPLATE)
        self.redis.start(self.log("redis"))

    def log(self, name: str) -> IO[bytes]:
        """Open the log of one server."""
        path = self.home / f"{name}-{self.name}.log"
        self.logs.append(path.open("ab"))
        return self.logs[-1]

    def stop_own(self) -> None:
        """Stop this process's Redis."""
        self.redis.stop()
        self.close_logs()

    def stop_shared(self) -> None:
        """Stop PostgreSQL and remove everything."""
        self.postgres.stop()
        self.close_logs()
        shutil.rmtree(self.home, ignore_errors=True)

    def close_logs(self) -> None:
        """Close what `log` opened."""
        while self.logs:
            self.logs.pop().close()
