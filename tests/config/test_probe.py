"""The services' health checks: cheap, and true of the very process that is asked about."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from config.health import probe
from tests.agents.serving.test_deafness import IMPATIENT
from tests.harness.services import Service, free_port
from tests.harness.session import ROOT, Session
from tests.harness.waiting import until

LONG_AGO = 2 * probe.SILENT


def probed(*words: str, heartbeat: Path | str = "") -> subprocess.CompletedProcess[str]:
    """Ask as a container's health check does."""
    command = [sys.executable, "-IS", "config/health/probe.py", *words]
    return subprocess.run(
        command, cwd=ROOT, env={"HOLDPOINT_HEARTBEAT": str(heartbeat)}, capture_output=True, text=True
    )


def aged(path: Path) -> float:
    """Make a heartbeat one of long ago; when it was."""
    at = time.time() - LONG_AGO
    os.utime(path, (at, at))
    return path.stat().st_mtime


def beat(_: Session) -> list[str]:
    return [sys.executable, "-m", "celery", "-A", "config", "beat", "--pidfile="]


def worker(_: Session) -> list[str]:
    return [sys.executable, "manage.py", "worker", "-c", "1"]


def sweeper(_: Session) -> list[str]:
    return [sys.executable, "manage.py", "sweeper"]


@pytest.mark.parametrize("command", [worker, beat, sweeper])
def test_a_process_that_works_is_healthy_and_one_that_stands_still_is_not(
    servers: Session, start_service: Callable[..., Service], tmp_path: Path, command: Callable[[Session], list[str]]
) -> None:
    """A worker was healthy while any other took messages, and beat while any worker did."""
    name, path = command.__name__, tmp_path / "heartbeat"
    assert probed(name, heartbeat=path).returncode == 1
    service = start_service(name, command(servers), IMPATIENT | {"HOLDPOINT_HEARTBEAT": str(path)})
    until(lambda: probed(name, heartbeat=path).returncode == 0, what=f"{name} is healthy")
    service.pause()
    aged(path)
    asked = probed(name, heartbeat=path)
    assert asked.returncode == 1
    assert re.fullmatch(rf"{name}: silent for \d+ s\n", asked.stderr)
    service.resume()
    until(lambda: probed(name, heartbeat=path).returncode == 0, what=f"{name} is healthy again")


@pytest.mark.long
def test_a_worker_that_has_lost_redis_is_not_healthy_until_it_is_back(
    servers: Session, start_service: Callable[..., Service], tmp_path: Path
) -> None:
    path = tmp_path / "heartbeat"
    service = start_service("worker", worker(servers), IMPATIENT | {"HOLDPOINT_HEARTBEAT": str(path)})
    until(path.exists, what="the worker beats")
    servers.redis.stop()
    try:
        service.says("Trying again in 2.00 seconds")
        at = aged(path)
        service.says("Trying again in 4.00 seconds")  # two seconds later, in which it would beat four times
        assert path.stat().st_mtime == at
    finally:
        servers.redis.start(servers.log("redis"))
    until(lambda: probed("worker", heartbeat=path).returncode == 0, what="the worker is healthy again")


def test_a_web_server_is_asked_by_http(web: str) -> None:
    address = web.removeprefix("http://")
    assert probed("web", f"{address}/healthz").returncode == 0
    assert probed("web", f"{address}/nowhere").returncode == 1
    assert "refused" in probed("web", f"127.0.0.1:{free_port()}/healthz").stderr


@pytest.mark.parametrize("words", [[], ["nonsense"], ["worker", "127.0.0.1:1/"]])
def test_what_is_no_probe_is_told_how_to_ask(words: list[str]) -> None:
    asked = probed(*words)
    assert (asked.returncode, asked.stderr.startswith("Usage: ")) == (2, True)


def test_a_probe_reads_none_of_the_projects_modules() -> None:
    """Each probe started Django: more than a second of a processor, every few seconds, in each container."""
    done = subprocess.run(
        [sys.executable, "-IS", "-X", "importtime", "config/health/probe.py", "worker"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    read = set(re.findall(r"\|\s+([\w.]+)$", done.stderr, re.M))
    assert "socket" in read
    assert not {"config", "django", "celery", "redis", "urllib.request"} & read
