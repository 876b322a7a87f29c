"""`/healthz` says that the process answers, `/readyz` that its parts do their work, a probe that its service does; and
whatever a process says is one JSON object or one line an event, from its start.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis
from django.test import Client, override_settings

from agents.models import Worker
from agents.serving import announcing
from config import messages
from config.health import probe
from tests.agents.serving.test_deafness import IMPATIENT
from tests.factories import make_user
from tests.harness.examples import first_alone
from tests.harness.services import Service, free_port, run
from tests.harness.session import ROOT, Session
from tests.harness.signed_in_clients import signed_in
from tests.harness.waiting import until

FAR = "203.0.113.9"
JSON = {"HOLDPOINT_LOG_FORMAT": "json"}
HOSTILE = "refund\r\n02:00:00 CRITICAL forged\x1b[2J\u202e"
OF_UVICORN = ("Uvicorn running on", "Finished server process")


@override_settings(SECURE_SSL_REDIRECT=True, ALLOWED_HOSTS=[".holdpoint.example"])
def test_a_probe_may_ask_by_any_address_and_is_sent_nowhere() -> None:
    """A balancer that asked each process by its own address was always answered 400."""
    for path, host in product(("/healthz", "/readyz"), ("10.42.0.17:8000", "evil.example", "[")):
        answer = Client(HTTP_HOST=host, REMOTE_ADDR=FAR).get(path)
        assert answer.status_code in ((200,) if path == "/healthz" else (200, 503))
        assert list(answer.json()) == ["status"]
        assert Client().post(path).status_code == 405
        assert "evil" not in f"{answer.content!r}{answer.headers}"


def test_a_web_server_says_json_and_answers_healthz_without_a_database(
    start_web: Callable[..., tuple[Service, str]],
) -> None:
    """Its own lines were text in uvicorn's colours; a scanner's look at another host was a traceback of thirty."""
    service, base = start_web(JSON | {"DATABASE_URL": f"postgres://nobody@127.0.0.1:{free_port()}/nothing"})
    assert httpx.get(f"{base}/healthz").json() == {"status": "ok"}
    assert httpx.get(f"{base}/accounts/login/", headers={"Host": "evil.example"}).status_code == 400
    assert httpx.get(f"{base}/nowhere").status_code == 404
    assert service.stop()
    said = lines(service)
    events = [line["event"] for line in said]
    assert "Not Found: /nowhere" in events
    assert [any(words in each for each in events) for words in OF_UVICORN] == [True, True], events
    assert not any("color_message" in line or line["logger"] == "uvicorn.access" for line in said)
    [refused] = [line for line in said if "evil.example" in str(line)]
    assert "Traceback" not in str(refused)


def test_readiness_tells_staff_and_this_machine_the_parts() -> None:
    parts = {"postgresql", "redis", "sweeper", "worker", "readers", "restarts"}
    far = signed_in(make_user("Sam Staff", staff=True)).get("/readyz", REMOTE_ADDR=FAR)
    assert set(far.json()["parts"]) == set(Client().get("/readyz").json()["parts"]) == parts


def test_workers_that_are_busy_for_long_are_there_and_those_that_stopped_are_not(redis_url: str) -> None:
    """A fleet that was busy with long steps for a minute was told to be dead, since none took the canary."""
    Worker.objects.beat("busy@here:1", [])
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
        assert messages.canary_age(redis_url) == messages.CANARY_LIVES
        assert worker_part() == "ok"
        client.set(announcing.KEY, "deaf@here took nothing", ex=announcing.STAYS)
        assert worker_part() == "deaf@here took nothing"
        client.delete(announcing.KEY)
    for each in Worker.objects.there():
        Worker.objects.stop(each.name)
    assert worker_part() == "none was heard of for 20 s"


@pytest.mark.parametrize(
    ("asked", "tells"),
    [
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


def test_a_redis_that_is_gone_is_named_and_pages_stay_up(servers: Session) -> None:
    servers.redis.stop()
    try:
        answer, told = Client().get("/readyz"), Client().get("/metrics").content.decode().splitlines()
        assert (answer.status_code, answer.json()["parts"]["redis"]) == (503, "does not answer")
        assert {"holdpoint_redis_up 0.0", "holdpoint_database_up 1.0"} <= set(told)
        assert Client().get("/accounts/login/").status_code == 200
    finally:
        servers.redis.start(servers.log("redis"))


LONG_AGO = 2 * probe.SILENT


def probed(*words: str, heartbeat: Path | str = "") -> subprocess.CompletedProcess[str]:
    return asked_alone("config/health/probe.py", *words, env={"HOLDPOINT_HEARTBEAT": str(heartbeat)})


def asked_alone(*words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-IS", *words], cwd=ROOT, env=env, capture_output=True, text=True)


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


@pytest.mark.parametrize("name", first_alone(["worker", "beat", "sweeper"]))
def test_a_process_that_works_is_healthy_and_one_that_stands_still_is_not(
    servers: Session, start_service: Callable[..., Service], tmp_path: Path, name: str
) -> None:
    """A worker was healthy while any other took messages, and beat while any worker did."""
    path = tmp_path / "heartbeat"
    assert probed(name, heartbeat=path).returncode == 1
    agents = {"HOLDPOINT_AGENTS": f"{IMPATIENT['HOLDPOINT_AGENTS']},agents.no_module"}
    service = start_service(name, COMMANDS[name], JSON | agents | {"HOLDPOINT_HEARTBEAT": str(path)})
    until(lambda: probed(name, heartbeat=path).returncode == 0, what=f"{name} is healthy")
    service.pause()
    aged(path)
    asked = probed(name, heartbeat=path)
    assert asked.returncode == 1
    assert re.fullmatch(rf"{name}: silent for \d+ s\n", asked.stderr)
    service.resume()
    until(lambda: probed(name, heartbeat=path).returncode == 0, what=f"{name} is healthy again")
    assert service.stop()
    said = lines(service, but=STOPPING)
    assert said, "all of it is JSON, the banner included"
    warned = any("agents.no_module" in line["event"] and line["level"] == "warning" for line in said)
    assert warned or name != "worker", service.log


def test_a_web_server_is_asked_by_http(web: str) -> None:
    address = web.removeprefix("http://")
    assert probed("web", f"{address}/healthz").returncode == 0
    assert probed("web", f"{address}/nowhere").returncode == 1
    assert "refused" in probed("web", f"127.0.0.1:{free_port()}/healthz").stderr

    for words in ([], ["nonsense"], ["worker", "127.0.0.1:1/"]):
        asked = probed(*words)
        assert (asked.returncode, asked.stderr.startswith("Usage: ")) == (2, True)


def test_a_probe_reads_none_of_the_projects_modules() -> None:
    """Each probe started Django: more than a second of a processor, every few seconds, in each container."""
    done = asked_alone("-X", "importtime", "config/health/probe.py", "worker")
    read = set(re.findall(r"\|\s+([\w.]+)$", done.stderr, re.M))
    assert "socket" in read
    assert not {"config", "django", "celery", "redis", "urllib.request"} & read


CODE = f"""
import logging, django, structlog
django.setup()
structlog.contextvars.bind_contextvars(run=7, step="pay")
structlog.get_logger("agents").info("mail.read", subject={HOSTILE!r})
logging.getLogger("celery").warning("lost %s", {HOSTILE!r})
try:
    raise ValueError({HOSTILE!r})
except ValueError:
    structlog.get_logger("agents").exception("step.failed")
"""


ENDS = """
import warnings, threading
warnings.simplefilter("default")
warnings.warn("this goes away", UserWarning)
thread = threading.Thread(target=lambda: 1 / 0, name="doomed")
thread.start(); thread.join()
raise ValueError("of ours")
"""


def logged(style: str, code: str) -> tuple[int, list[str]]:
    variables = {"HOLDPOINT_LOG_FORMAT": style, "DJANGO_SETTINGS_MODULE": "config.settings"}
    done = run(sys.executable, "-c", code, env=variables)
    return done.returncode, done.stderr.splitlines()


def test_text_lets_no_value_start_a_line_or_move_the_cursor() -> None:
    code, lines = logged("text", CODE)
    assert code == 0, lines
    assert not any(line.startswith("02:00:00") for line in lines)
    assert not any("\x1b" in line or "\u202e" in line or "\r" in line for line in lines)
    assert "\\u000d\\u000a02:00:00 CRITICAL forged" in lines[0]
    assert "run=7 step=pay" in lines[0]


# Celery writes this past all logging, on standard output, while it handles the signal.
STOPPING = ("", "worker: Warm shutdown (MainProcess)")


def lines(service: Service, *, but: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """What it said on both streams, each line read as JSON."""
    said = []
    for line in (line for line in service.log.splitlines() if line not in but):
        try:
            said.append(json.loads(line))
        except ValueError:
            pytest.fail(f"{service.name} said what is no JSON: {line}\n{service.log}")
    assert said, f"{service.name} said nothing"
    assert all({"event", "level", "timestamp"} <= set(line) for line in said)
    return said


def test_json_is_one_object_a_line_with_the_run_and_step_on_each_and_so_is_what_ends_the_process() -> None:
    code, said = logged("json", CODE + ENDS)
    read, lost, failed, warned, thread, ended = map(json.loads, said)
    assert (read["event"], read["subject"], lost["event"]) == ("mail.read", HOSTILE, f"lost {HOSTILE}")
    assert "ValueError" in failed["exception"]
    assert {(line["run"], line["step"]) for line in (read, lost, failed)} == {(7, "pay")}
    assert read["timestamp"].endswith("Z")
    assert code == 1
    assert "this goes away" in warned["event"]
    assert (thread["event"], thread["level"]) == ("process.thread_crashed", "critical")
    assert "ZeroDivisionError" in thread["exception"]
    assert (ended["event"], ended["level"]) == ("process.crashed", "critical")
    assert "ValueError: of ours" in ended["exception"]
