"""The installation under test: real servers with fsync on, and the application's processes, each by its name.

The application reaches PostgreSQL and Redis through the proxies; the harness itself goes past them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from signal import SIGQUIT
from typing import Any

import httpx
import psycopg
import redis

from config.local.servers import APPLICATION, DATABASE, OWNER, SOCKET_NAME, Postgres, Redis, make_database
from tests.harness.services import Service, free_port, manage, wait_for_http, web_command
from tests.harness.session import ROOT
from tests.harness.waiting import until

from ..shared_files import SENDS
from .customers import write_orders
from .disks import Disks
from .tcp_proxy import TcpProxy

AGENTS = "agents.examples.refunds,tests.chaos.agents.errand_agent,tests.chaos.agents.trip_agent"
LEASE = 3.0  # seconds
PATIENCE = 120.0  # seconds until all parts are up
LOOK_FOR_MESSAGES = 5.0  # seconds


class Stack:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.disks = Disks(folder, self.home / "artifacts")
        self.postgres = Postgres(self.disks.of_database / "data", folder / "pg", {"max_wal_size": "192MB"})
        self.redis = Redis(folder / "redis", folder / "redis.sock")
        self.port, self.sandbox_port = free_port(), free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        self.sandbox = f"http://127.0.0.1:{self.sandbox_port}"
        self.running: dict[str, Service] = {}
        # A server that is tied to its parent ends with the thread that started it.
        self.starter = ThreadPoolExecutor(1, thread_name_prefix="starter of servers")
        self.copies: list[tuple[str, bytes]] = []  # messages of the broker
        self.hoard: list[psycopg.Connection[Any]] = []
        self.logs: list[int] = []
        self.extra: dict[str, dict[str, str]] = {}  # variables of single parts
        self.commands = {
            "sandbox": [
                sys.executable, "-m", "agents.examples.sandbox", "--port", str(self.sandbox_port), "--data",
                str(self.home / "sandbox"),
            ],
            "web": web_command(self.port),
            "worker-1": manage("worker", "--name", "one"),
            "worker-2": manage("worker", "--name", "two"),
            "sweeper": manage("sweeper"),
            "spare": manage("sweeper"),
            "beat": [sys.executable, "-m", "celery", "-q", "-A", "config", "beat", "--pidfile="],
            "program": [sys.executable, "-m", "tests.chaos.people.outside_program"],
        }  # fmt: skip

    @property
    def environment(self) -> dict[str, str]:
        return {
            "DATABASE_URL": f"postgres://{APPLICATION}@127.0.0.1:{self.to_postgres.port}/{DATABASE}",
            "DATABASE_OWNER_URL": self.postgres.url(DATABASE, OWNER),
            "REDIS_URL": f"redis://127.0.0.1:{self.to_redis.port}/0",
            "HOLDPOINT_HOME": str(self.home),
            "HOLDPOINT_SECRET_KEY": "for chaos, and longer than the fifty characters that are asked for",
            "HOLDPOINT_SEAL_KEY": "seals under fire: 0123456789-abcdef-0123456789",
            "HOLDPOINT_AGENTS": AGENTS,
            "HOLDPOINT_LEASE": str(LEASE),
            "HOLDPOINT_STREAK_SECONDS": "0",  # these people decide faster than anybody reads
            "HOLDPOINT_LOG_FORMAT": "text",
            "HOLDPOINT_ORIGINS": self.base,
            "HOLDPOINT_REFUNDS_ORDERS": str(self.folder / "orders.csv"),
            "SANDBOX_URL": self.sandbox,
            SENDS: str(self.folder / "sends.jsonl"),
        }

    def start(self) -> dict[str, Any]:
        """Start everything; return the people and tokens, as .seeding prints them."""
        self.folder.chmod(0o711)  # the database's account must pass through, and lists nothing
        self.home.mkdir(parents=True, exist_ok=True)
        write_orders(self.folder / "orders.csv")
        self.disks.mount()
        self.start_postgres()
        self.start_redis()
        self.to_postgres = TcpProxy(self.postgres.sockets / SOCKET_NAME)
        self.to_redis = TcpProxy(self.redis.socket)
        make_database(self.postgres)
        self.command("-m", "config.migrate", "--finish")
        people: dict[str, Any] = json.loads(self.command("-m", "tests.chaos.installation.seeding"))
        for name in ("sandbox", "web", "worker-1", "worker-2", "sweeper", "beat"):
            self.run(name)
        wait_for_http(self.running["sandbox"], f"{self.sandbox}/ledger", within=PATIENCE)
        wait_for_http(self.running["web"], f"{self.base}/healthz", within=PATIENCE)

        def ready() -> bool:
            try:
                return httpx.get(f"{self.base}/readyz", timeout=5).status_code == 200
            except httpx.TransportError:
                return False

        until(ready, within=PATIENCE, what="/readyz is 200")
        return people

    def run(self, name: str, **env: str) -> Service:
        """Start a part, or start it again. `env`: variables of its own."""
        if name in self.running:
            self.running[name].kill()
        environment = self.environment | self.extra.get(name, {}) | env
        warm = "LD_PRELOAD" not in env  # a library is loaded when a process begins, not when it is forked
        self.running[name] = Service(name, self.commands[name], self.folder / "logs", environment, warm=warm)
        return self.running[name]

    def dead(self) -> list[str]:
        return [name for name, service in self.running.items() if not service.alive]

    def drop(self, name: str) -> None:
        self.running.pop(name).kill()

    def start_postgres(self) -> None:
        self.starter.submit(self.postgres.start, self._log("postgres")).result()

    def stop_postgres(self) -> None:
        """Stop PostgreSQL at once: sessions are cut, and the next start recovers."""
        self.postgres.stop(by=SIGQUIT)

    def start_redis(self) -> None:
        self.starter.submit(self.redis.start, self._log("redis")).result()

    def kill_redis(self) -> None:
        if self.redis.process is not None:
            self.redis.process.kill()
            self.redis.process.wait()
        self.redis.stop()

    def flush_redis(self) -> None:
        with redis.Redis.from_url(self.redis.url, socket_timeout=5) as client:
            client.flushall()

    def take_connections(self) -> int:
        """Take all connections that PostgreSQL has left for the application; return how many."""
        try:
            while True:
                self.hoard.append(psycopg.connect(self.postgres.url(DATABASE, APPLICATION)))
        except psycopg.OperationalError:
            return len(self.hoard)

    def lock_runs(self) -> None:
        """Hold a lock that lets nobody write to runs, as a forgotten console does."""
        self.hoard.append(psycopg.connect(self.postgres.url(DATABASE)))
        self.hoard[-1].execute("SET lock_timeout = '5s'")
        self.hoard[-1].execute("LOCK TABLE checkpoints_run IN SHARE ROW EXCLUSIVE MODE")

    def give_back(self) -> None:
        while self.hoard:
            self.hoard.pop().close()

    def free_database_disk(self) -> None:
        """Make room for PostgreSQL again, and start it if it ended meanwhile."""
        self.disks.free_database()
        if self.postgres.process is None or self.postgres.process.poll() is not None:
            self.start_postgres()

    def copy_messages(self) -> int:
        """Put each message that waits at the broker in its queue twice more; return how many there were."""
        until, seen = time.monotonic() + LOOK_FOR_MESSAGES, 0
        with redis.Redis.from_url(self.redis.url, socket_timeout=5) as client:
            while not seen and time.monotonic() < until:
                for queue, message in waiting(client):
                    client.rpush(queue, message, message)
                    self.copies.append((queue, message))
                    seen += 1
        return seen

    def copy_again(self) -> None:
        """Deliver what was copied once more, when it has long been done."""
        with redis.Redis.from_url(self.redis.url, socket_timeout=5) as client:
            while self.copies:
                queue, message = self.copies.pop()
                client.rpush(queue, message)

    def command(self, *words: str) -> str:
        """Run a command of the project to its end and return what it printed. Raises RuntimeError where it fails."""
        env = os.environ | self.environment
        done = subprocess.run([sys.executable, *words], cwd=ROOT, env=env, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def connect(self) -> psycopg.Connection[dict[str, Any]]:
        """Connect past the proxy, as the server's superuser."""
        return psycopg.connect(self.postgres.url(DATABASE), autocommit=True, row_factory=psycopg.rows.dict_row)

    def stop(self) -> None:
        self.give_back()
        for service in self.running.values():
            service.kill()
        for proxy in (getattr(self, "to_postgres", None), getattr(self, "to_redis", None)):
            if proxy is not None:
                proxy.close()
        self.redis.stop()
        self.postgres.stop()
        self.starter.shutdown()
        while self.logs:
            os.close(self.logs.pop())
        self.disks.unmount()

    def _log(self, name: str) -> int:
        self.logs.append(os.open(self.folder / f"{name}.log", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600))
        return self.logs[-1]


def waiting(client: redis.Redis) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for key in client.scan_iter(count=1000, _type="list"):
        messages: list[Any] = client.lrange(key, 0, -1)
        found += [(key.decode(), each) for each in messages if "task" in json.loads(each).get("headers", {})]
    return found
