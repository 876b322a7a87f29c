"""Starts a PostgreSQL and a Redis for one section, as durable as in production, and Holdpoint's processes on them.

A peer's own benchmark runs in the peers' environment, on a database of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import psycopg

from config.local.servers import DATABASE, Postgres, Redis
from tests.harness.services import Service, free_port, manage, wait_for_http, web_command
from tests.harness.session import ROOT, Session

PEERS = ROOT / ".venv-bench"


class Scratch(Session):
    """The servers on a disk that is flushed, unlike those of the tests. Sets this process's environment for Django."""

    def __init__(self, agents: str, settings: Mapping[str, str]) -> None:
        super().__init__(apart=True)
        self.disk = Path(tempfile.mkdtemp(prefix="hpb-", dir="/tmp"))
        self.postgres = Postgres(self.disk / "data", self.disk / "pg")
        self.redis = Redis(self.disk / "redis", self.disk / "redis.sock")
        self.services: list[Service] = []
        own = {"DJANGO_SETTINGS_MODULE": "config.settings", "HOLDPOINT_AGENTS": agents, "HOLDPOINT_LOG_FORMAT": "json"}
        own |= {"SANDBOX_URL": f"http://127.0.0.1:{free_port()}", "MALLOC_ARENA_MAX": "2"}  # as in the image
        os.environ |= self.environment | own | dict(settings)

    def __enter__(self) -> Scratch:
        if os.geteuid() == 0:
            self.disk.chmod(0o711)  # the server's account must pass through
        self.start_shared()
        self.start_own()
        import django

        django.setup()
        return self

    def __exit__(self, *_: object) -> None:
        for service in reversed(self.services):
            service.stop()
        self.stop_own()
        self.stop_shared()
        shutil.rmtree(self.disk, ignore_errors=True)

    @property
    def admin_url(self) -> str:
        """Return the superuser's URL of the application's database."""
        return self.postgres.url(DATABASE)

    def analyze(self) -> None:
        """Let the planner know the tables, as autovacuum does in a minute: it knew them when they were empty."""
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
        service.says(r"(?m)\bready\b")
        return service

    def start_sweeper(self) -> Service:
        service = self.start_service("sweeper", manage("sweeper"))
        service.says(r"\bready\b")
        return service

    def start_web(self, port: int = 0) -> tuple[Service, str]:
        """Start the web process; return it and its base URL."""
        port = port or free_port()
        base = f"http://127.0.0.1:{port}"
        service = self.start_service("web", web_command(port), {"HOLDPOINT_ORIGINS": base})
        wait_for_http(service, f"{base}/healthz")
        return service, base

    def start_service(self, name: str, command: list[str], env: Mapping[str, str] | None = None) -> Service:
        """Start a process on these servers, as an installation starts it, which is stopped with them."""
        self.services.append(Service(name, command, self.disk / "logs", dict(env or {}), warm=False))
        return self.services[-1]


@cache
def has_peers() -> bool:
    """Make the peers' environment if it is missing; tell whether it is there."""
    wanted = Path(__file__).with_name("peers") / "requirements-peers.txt"
    done = subprocess.run([sys.executable, str(ROOT / "config/local/install.py"), str(PEERS), str(wanted)])
    if done.returncode:
        print("The peers cannot be installed: their figures are left out.", flush=True)
    return not done.returncode


def measure_peer(scratch: Scratch, module: str, mode: str, *numbers: int) -> Any:
    """Run a peer's module and return the object on its last line."""
    with psycopg.connect(scratch.admin_url, autocommit=True) as admin:
        admin.execute("DROP DATABASE IF EXISTS peer WITH (FORCE)")
        admin.execute("CREATE DATABASE peer")
    command = [str(PEERS / "bin" / "python"), "-m", f"benchmarks.peers.{module}", mode, scratch.postgres.url("peer")]
    done = subprocess.run([*command, *map(str, numbers)], check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    return json.loads(done.stdout.splitlines()[-1])
