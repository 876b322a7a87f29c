"""Starts a PostgreSQL and a Redis for one benchmark, as durable as in production, and Holdpoint's processes on them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg

from config.local.servers import roles
from config.local.servers.postgres import Postgres
from config.local.servers.redis_server import Redis
from tests.harness.services import Service, free_port, manage, wait_for_http, web_command

ROOT = Path(__file__).resolve().parents[2]
OWNER, APPLICATION, DATABASE = "holdpoint_owner", "holdpoint_app", "holdpoint_bench"
# Where the first section of a run keeps its migrated data folder and its static files for the others.
TEMPLATE = Path(os.environ["BENCH_TEMPLATE"]) if "BENCH_TEMPLATE" in os.environ else None


class Scratch:
    """The servers, in one temporary folder that is removed afterwards. Sets this process's environment for Django."""

    def __init__(self, agents: str = "benchmarks.parts.agents") -> None:
        self.home = Path(tempfile.mkdtemp(prefix="hpb-", dir="/tmp"))
        self.postgres = Postgres(self.home / "data", self.home / "pg")
        self.redis = Redis(self.home / "redis", self.home / "redis" / "redis.sock")
        self.services: list[Service] = []
        self.environment = {
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "MALLOC_ARENA_MAX": "2",  # as in the image
            "DATABASE_URL": self.postgres.url(DATABASE, APPLICATION),
            "DATABASE_OWNER_URL": self.postgres.url(DATABASE, OWNER),
            "REDIS_URL": self.redis.url,
            "HOLDPOINT_HOME": str(self.home / "home"),
            "HOLDPOINT_SECRET_KEY": "for benchmarks, and longer than the fifty characters asked for",
            "HOLDPOINT_SEAL_KEY": "for benchmarks, and longer than the thirty-two characters asked for",
            "HOLDPOINT_AGENTS": agents,
            "HOLDPOINT_STREAK_SECONDS": "0",  # switches the second look off
            "SANDBOX_URL": f"http://127.0.0.1:{free_port()}",
        }

    def __enter__(self) -> Scratch:
        if os.geteuid() == 0:
            self.home.chmod(0o711)
        os.environ.update(self.environment)
        made = copied(TEMPLATE and TEMPLATE / "data", self.postgres.data)
        self.postgres.start(self.log("postgres"))
        if not made:
            self._migrate()
        self.redis.start(self.log("redis"))
        import django

        django.setup()
        return self

    def _migrate(self) -> None:
        with psycopg.connect(self.postgres.url("postgres"), autocommit=True) as connection:
            roles.create(connection, OWNER)
            roles.create(connection, APPLICATION)
            roles.create_database(connection, DATABASE, OWNER)
        subprocess.run([sys.executable, "-m", "config.migrate"], cwd=ROOT, env=os.environ, check=True)
        if TEMPLATE:
            self.postgres.stop()
            copied(self.postgres.data, TEMPLATE / "data")
            self.postgres.start(self.log("postgres"))

    def __exit__(self, *_: object) -> None:
        for service in reversed(self.services):
            service.stop()
        self.redis.stop()
        self.postgres.stop()
        shutil.rmtree(self.home, ignore_errors=True)

    @property
    def admin_url(self) -> str:
        """Return the superuser's URL, for databases of a peer's own."""
        return self.postgres.url("postgres")

    def analyze(self) -> None:
        """Let the planner know the tables, as autovacuum does within a minute of their first fifty rows.

        Statements are planned when the tables are empty, and again only then.
        """
        with psycopg.connect(self.environment["DATABASE_OWNER_URL"], autocommit=True) as owner:
            owner.execute("ANALYZE")

    def worker(self, processes: int = 2) -> Service:
        """Start a worker as `manage.py worker` does, which also has the bare task, and wait until it is ready."""
        from agents.definition import registry

        registry.plans()
        command = [sys.executable, "-m", "celery", "-A", "config.celery", "worker", "--loglevel", "INFO"]
        command += ["-c", str(processes), "--without-gossip", "--without-mingle", "--without-heartbeat"]
        command += ["-Q", ",".join(registry.queues()), "-I", "benchmarks.parts.agents"]
        service = self.service("worker", command)
        service.says(r"(?m)\bready\b", within=60)
        return service

    def sweeper(self) -> Service:
        """Start the sweeper."""
        return self.service("sweeper", manage("sweeper"))

    def beat(self) -> Service:
        """Start beat, which sends the housekeeping tasks."""
        schedule = ["--schedule", str(self.home / "beat")]
        return self.service("beat", [sys.executable, "-m", "celery", "-A", "config", "beat", "--pidfile=", *schedule])

    def end(self, service: Service) -> None:
        """Stop a process that is not needed any more."""
        service.stop()
        self.services.remove(service)

    def sandbox(self) -> None:
        """Start the payment sandbox of the refunds agent."""
        command = [sys.executable, "-m", "agents.examples.sandbox", "--data", str(self.home / "sandbox")]
        command += ["--port", self.environment["SANDBOX_URL"].rpartition(":")[2]]
        self.service("sandbox", command)

    def web(self, port: int = 0) -> tuple[Service, str]:
        """Start the web process, with its static files collected; return it and its base URL."""
        static, kept = self.home / "home" / "static", TEMPLATE and TEMPLATE / "static"
        if not static.exists() and not copied(kept, static):
            collect = [sys.executable, "manage.py", "collectstatic", "--noinput", "-v0"]
            subprocess.run(collect, cwd=ROOT, env=os.environ, check=True)
            copied(static, kept)
        port = port or free_port()
        base = f"http://127.0.0.1:{port}"
        service = self.service("web", web_command(port), {"HOLDPOINT_ORIGINS": base})
        wait_for_http(service, f"{base}/healthz")
        return service, base

    def service(self, name: str, command: list[str], env: dict[str, str] | None = None) -> Service:
        """Start a process on these servers, as an installation starts it, which is stopped with them."""
        environment = self.environment | (env or {})
        self.services.append(Service(name, command, self.home / "logs", environment, warm=False))
        return self.services[-1]

    def log(self, name: str) -> int:
        """Open the log of that name for appending."""
        return os.open(self.home / f"{name}.log", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)


def copied(source: Path | None, target: Path | None) -> bool:
    """Copy a folder with its owners, if there is one and a place for it; return whether it was copied."""
    if source is None or target is None or not source.exists():
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["/bin/cp", "-a", str(source), str(target)], check=True)
    return True
