"""Starts a PostgreSQL and a Redis for one section, as durable as in production, and Holdpoint's processes on them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import psycopg

from config.local.servers.embedded import DATABASE, embedded_urls
from config.local.servers.postgres import Postgres
from config.local.servers.redis_server import Redis
from tests.harness.services import Service, free_port, manage, wait_for_http, web_command
from tests.harness.session import ROOT, Session, copied


class Scratch:
    """The servers, in one temporary folder that is removed afterwards. Sets this process's environment for Django."""

    def __init__(self, agents: str, settings: Mapping[str, str]) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="hpb-", dir="/tmp"))
        self.postgres = Postgres(self.home / "data", self.home / "pg")
        self.redis = Redis(self.home / "redis", self.home / "redis" / "redis.sock")
        self.services: list[Service] = []
        self.environment = {
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "MALLOC_ARENA_MAX": "2",  # as in the image
            **embedded_urls(self.postgres),
            "REDIS_URL": self.redis.url,
            "HOLDPOINT_HOME": str(self.home / "home"),
            "HOLDPOINT_SECRET_KEY": "for benchmarks, and longer than the fifty characters asked for",
            "HOLDPOINT_SEAL_KEY": "for benchmarks, and longer than the thirty-two characters asked for",
            "HOLDPOINT_STATIC_ROOT": str(Path(os.environ.get("BENCH_FOLDER", self.home)) / "static"),
            "HOLDPOINT_AGENTS": agents,
            "HOLDPOINT_STREAK_SECONDS": "0",  # switches the second look off
            "SANDBOX_URL": f"http://127.0.0.1:{free_port()}",
            **settings,
        }

    def __enter__(self) -> Scratch:
        os.environ.update(self.environment)
        session = Session()  # the tests keep a migrated data folder until the code changes
        for folder in (self.home, session.home) if os.geteuid() == 0 else ():
            folder.chmod(0o711)
        session.migrate()
        copied(session.migrated.data, self.postgres.data)
        session.stop_shared()
        self.postgres.start(self._open_log("postgres"))
        self.redis.start(self._open_log("redis"))
        import django

        django.setup()
        return self

    def __exit__(self, *_: object) -> None:
        for service in reversed(self.services):
            service.stop()
        self.redis.stop()
        self.postgres.stop()
        shutil.rmtree(self.home, ignore_errors=True)

    @property
    def admin_url(self) -> str:
        """Return the superuser's URL of the application's database."""
        return self.postgres.url(DATABASE)

    def analyze(self) -> None:
        """Let the planner know the tables, as autovacuum does within a minute of their first fifty rows.

        Statements are planned when the tables are empty, and again only then.
        """
        with psycopg.connect(self.admin_url, autocommit=True) as admin:
            admin.execute("ANALYZE")

    def start_worker(self, processes: int = 2) -> Service:
        """Start a worker as `manage.py worker` does, which also has the bare task, and wait until it is ready."""
        from agents.definition import registry

        registry.plans()
        command = [sys.executable, "-m", "celery", "-A", "config.celery", "worker", "--loglevel", "INFO"]
        command += ["-c", str(processes), "--without-gossip", "--without-mingle", "--without-heartbeat"]
        command += ["-Q", ",".join(registry.queues()), "-I", "benchmarks.agents"]
        service = self.start_service("worker", command)
        service.says(r"(?m)\bready\b", within=60)
        return service

    def start_sweeper(self) -> Service:
        """Start the sweeper and wait until it is ready."""
        service = self.start_service("sweeper", manage("sweeper"))
        service.says("sweeper.ready")
        return service

    def start_sandbox(self) -> None:
        """Start the payment sandbox of the refunds agent."""
        command = [sys.executable, "-m", "agents.examples.sandbox", "--data", str(self.home / "sandbox")]
        self.start_service("sandbox", [*command, "--port", self.environment["SANDBOX_URL"].rpartition(":")[2]])

    def start_web(self, port: int = 0) -> tuple[Service, str]:
        """Start the web process, with its static files collected; return it and its base URL."""
        if not Path(self.environment["HOLDPOINT_STATIC_ROOT"]).exists():
            subprocess.run(manage("collectstatic", "--noinput", "-v0"), cwd=ROOT, env=os.environ, check=True)
        port = port or free_port()
        base = f"http://127.0.0.1:{port}"
        service = self.start_service("web", web_command(port), {"HOLDPOINT_ORIGINS": base})
        wait_for_http(service, f"{base}/healthz")
        return service, base

    def start_service(self, name: str, command: list[str], env: Mapping[str, str] | None = None) -> Service:
        """Start a process on these servers, as an installation starts it, which is stopped with them."""
        environment = self.environment | dict(env or {})
        self.services.append(Service(name, command, self.home / "logs", environment, warm=False))
        return self.services[-1]

    def stop_service(self, service: Service) -> None:
        """Stop a process that is not needed any more."""
        service.stop()
        self.services.remove(service)

    def _open_log(self, name: str) -> int:
        return os.open(self.home / f"{name}.log", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
