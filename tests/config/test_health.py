"""`/healthz` says that the process answers, `/readyz` that its parts do their work, a probe that its service does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis
from django.contrib.auth.models import User
from django.test import Client, override_settings

from agents.models import Worker
from agents.serving import deaf_workers
from config import messages
from config.celery import app
from config.health import probe
from config.local import restarts
from config.local.restarts import Revival
from tests.agents.serving.test_deafness import IMPATIENT
from tests.config.test_logging import JSON, STOPPING, lines
from tests.harness.services import Service, free_port
from tests.harness.session import ROOT, Session
from tests.harness.waiting import until

FAR = "203.0.113.9"


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_only_reading_is_allowed(path: str) -> None:
    assert Client().post(path).status_code == 405


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
@pytest.mark.parametrize("host", ["10.42.0.17:8000", "evil.example", "a b", "[", ""])
@override_settings(SECURE_SSL_REDIRECT=True, ALLOWED_HOSTS=[".holdpoint.example"])
def test_a_probe_may_ask_by_any_address_and_is_sent_nowhere(path: str, host: str) -> None:
    """A balancer that asked each process by its own address was always answered 400."""
    answer = Client(HTTP_HOST=host, REMOTE_ADDR=FAR).get(path)
    assert answer.status_code in ((200,) if path == "/healthz" else (200, 503))
    assert list(answer.json()) == ["status"]
    assert "evil" not in f"{answer.content!r}{answer.headers}"


def test_another_page_at_another_host_is_refused_in_one_line(start_web: Callable[..., tuple[Service, str]]) -> None:
    """Each look of a scanner at this address was a traceback of thirty lines."""
    service, base = start_web()
    before = service.log
    assert httpx.get(f"{base}/accounts/login/", headers={"Host": "evil.example"}).status_code == 400
    said = service.says(r"(?s)evil\.example.*\n")
    assert "Traceback" not in service.log
    assert len(service.log.removeprefix(before).splitlines()) == 1, said


def test_health_touches_neither_database_nor_redis(start_web: Callable[..., tuple[Service, str]]) -> None:
    _, base = start_web({"DATABASE_URL": f"postgres://nobody@127.0.0.1:{free_port()}/nothing"})
    assert httpx.get(f"{base}/healthz").json() == {"status": "ok"}


def test_readiness_tells_staff_and_this_machine_the_parts() -> None:
    staff = User.objects.create_user("readiness-staff", is_staff=True)
    client = Client(REMOTE_ADDR=FAR)
    client.force_login(staff)
    parts = {"postgresql", "redis", "sweeper", "worker", "readers", "restarts"}
    assert set(client.get("/readyz").json()["parts"]) == parts
    assert set(Client().get("/readyz").json()["parts"]) == parts


@pytest.mark.parametrize(
    ("asked", "tells"),
    [
        ({"HTTP_HOST": "evil.example"}, False),
        ({"HTTP_HOST": "evil.example:8000"}, False),
        ({"HTTP_HOST": "evil."}, False),
        ({"HTTP_HOST": "["}, False),
        ({"HTTP_HOST": "127.0.0.1:8000"}, True),
        ({"HTTP_HOST": "[::1]:8000"}, True),
        ({"HTTP_HOST": "web-1:8000"}, True),
        ({"HTTP_HOST": "ops.holdpoint.example"}, True),
        ({"HTTP_X_FORWARDED_FOR": FAR}, False),
        ({"HTTP_X_FORWARDED_FOR": "127.0.0.1"}, False),
        ({"HTTP_X_FORWARDED_FOR": "127.0.0.1", "REMOTE_PORT": 0}, True),
    ],
)
@override_settings(ALLOWED_HOSTS=["*", ".holdpoint.example"])
def test_what_this_machine_is_told_no_page_of_a_stranger_and_nobody_behind_a_proxy_reads(
    asked: dict[str, Any], tells: bool
) -> None:
    """A name that was made to lead to 127.0.0.1 read all of it in the browser of somebody on this machine."""
    client = Client(REMOTE_ADDR="127.0.0.1", **asked)
    assert ("parts" in client.get("/readyz").json()) is tells
    assert (b"holdpoint_" in client.get("/metrics").content) is tells


def worker_part() -> str:
    return str(Client().get("/readyz").json()["parts"]["worker"])


def test_workers_that_are_busy_for_long_are_there_and_those_that_stopped_are_not(redis_url: str) -> None:
    """A fleet that was busy with long steps for a minute was told to be dead, since none took the canary."""
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
    assert messages.canary_age(redis_url) == messages.CANARY_LIVES
    Worker.objects.beat("busy@here:1", [])
    assert worker_part() == "ok"
    for each in Worker.objects.there():
        Worker.objects.stop(each.name)
    assert worker_part() == "none was heard of for 20 s"


def test_a_worker_that_was_ended_as_deaf_is_named_while_others_are_there(redis_url: str) -> None:
    Worker.objects.beat("busy@here:1", [])
    with redis.Redis.from_url(redis_url) as client:
        client.set(deaf_workers.KEY, "deaf@here took nothing", ex=deaf_workers.STAYS)
        assert worker_part() == "deaf@here took nothing"
        client.delete(deaf_workers.KEY)
    assert worker_part() == "ok"


def test_a_redis_that_is_gone_is_named_and_pages_stay_up(servers: Session) -> None:
    servers.redis.stop()
    try:
        answer = Client().get("/readyz")
        assert answer.status_code == 503
        assert answer.json()["parts"]["redis"] == "does not answer"
        assert Client().get("/accounts/login/").status_code == 200
    finally:
        servers.redis.start(servers.log("redis"))


def test_a_worker_whose_clock_is_far_ahead_still_takes_what_beat_sends(
    celery_worker: Callable[..., Service], redis_url: str
) -> None:
    """One whose clock was 40 s ahead dropped each canary as too old, and /readyz said that no worker was there."""
    behind = datetime.now(UTC) - timedelta(minutes=2)  # beat's clock, as such a worker sees it
    options = app.conf.beat_schedule["canary"]["options"]
    with redis.Redis.from_url(redis_url) as client:
        client.delete(messages.CANARY)
    app.send_task("config.housekeeping.sing", expires=behind + timedelta(seconds=options["expires"]))
    worker = celery_worker("-c", "1")
    until(
        lambda: messages.canary_age(redis_url) < messages.CANARY_LIVES,
        what=f"the canary sings; the worker said:\n{worker.log}",
    )


def test_a_part_that_is_started_again_is_named_and_takes_no_process_out_of_the_balancer(
    settings: Any, tmp_path: Path
) -> None:
    settings.HOME = tmp_path
    began = Revival(began=time.monotonic())
    began.ended(time.monotonic())
    restarts.keep(tmp_path, {"beat": began})
    answer = Client().get("/readyz").json()
    assert answer["status"] != "ready"
    assert answer["parts"]["restarts"].startswith("beat has ended, restart 1 in ")


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


COMMANDS = {
    "beat": [sys.executable, "-m", "celery", "-q", "-A", "config", "beat", "--pidfile="],
    "worker": [sys.executable, "manage.py", "worker", "-c", "1"],
    "sweeper": [sys.executable, "manage.py", "sweeper"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_process_that_works_is_healthy_and_one_that_stands_still_is_not(
    servers: Session, start_service: Callable[..., Service], tmp_path: Path, name: str
) -> None:
    """A worker was healthy while any other took messages, and beat while any worker did."""
    path = tmp_path / "heartbeat"
    assert probed(name, heartbeat=path).returncode == 1
    service = start_service(name, COMMANDS[name], IMPATIENT | JSON | {"HOLDPOINT_HEARTBEAT": str(path)})
    until(lambda: probed(name, heartbeat=path).returncode == 0, what=f"{name} is healthy")
    service.pause()
    aged(path)
    asked = probed(name, heartbeat=path)
    assert asked.returncode == 1
    assert re.fullmatch(rf"{name}: silent for \d+ s\n", asked.stderr)
    service.resume()
    until(lambda: probed(name, heartbeat=path).returncode == 0, what=f"{name} is healthy again")
    assert service.stop()
    assert lines(service, but=STOPPING), "all of it is JSON"


@pytest.mark.long
def test_a_worker_that_has_lost_redis_is_not_healthy_until_it_is_back(
    servers: Session, start_service: Callable[..., Service], tmp_path: Path
) -> None:
    path = tmp_path / "heartbeat"
    service = start_service("worker", COMMANDS["worker"], IMPATIENT | {"HOLDPOINT_HEARTBEAT": str(path)})
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
