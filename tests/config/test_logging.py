"""Whatever a process says is one JSON object or one line an event, from its start, whatever the values hold."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.harness import services
from tests.harness.services import Service, run

HOSTILE = "refund\r\n02:00:00 CRITICAL forged\x1b[2J\u202e"
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


def logged(style: str) -> list[str]:
    variables = {"HOLDPOINT_LOG_FORMAT": style, "DJANGO_SETTINGS_MODULE": "config.settings"}
    done = run(sys.executable, "-c", CODE, env=variables)
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()


def test_json_is_one_object_a_line_with_the_run_and_step_on_each() -> None:
    read, lost, failed = map(json.loads, logged("json"))
    assert read["event"] == "mail.read"
    assert read["subject"] == HOSTILE
    assert lost["event"] == f"lost {HOSTILE}"
    assert "ValueError" in failed["exception"]
    assert {(line["run"], line["step"]) for line in (read, lost, failed)} == {(7, "pay")}
    assert read["timestamp"].endswith("Z")


def test_text_lets_no_value_start_a_line_or_move_the_cursor() -> None:
    lines = logged("text")
    assert not any(line.startswith("02:00:00") for line in lines)
    assert not any("\x1b" in line or "\u202e" in line or "\r" in line for line in lines)
    assert "\\u000d\\u000a02:00:00 CRITICAL forged" in lines[0]
    assert "run=7 step=pay" in lines[0]


JSON = {"HOLDPOINT_LOG_FORMAT": "json"}
WARNS = {**JSON, "PYTHONWARNINGS": "default"}  # such a process starts from nothing
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


def test_the_web_server_says_json(start_web: Callable[..., tuple[Service, str]]) -> None:
    """Its own lines, of its start and its end among them, were text in uvicorn's colours."""
    service, base = start_web(WARNS)
    assert httpx.get(f"{base}/nowhere").status_code == 404
    assert service.stop()
    said = [line["event"] for line in lines(service)]
    assert any("Uvicorn running on" in each for each in said), said
    assert any("Finished server process" in each for each in said), said
    assert "Not Found: /nowhere" in said
    assert not any("color_message" in line or line["logger"] == "uvicorn.access" for line in lines(service))


@pytest.mark.parametrize("options", ["", ", log_config=None"])
def test_an_access_log_is_json_where_it_is_wanted(start_service: Callable[..., Service], options: str) -> None:
    port = services.free_port()
    start = f"import uvicorn; uvicorn.run('config.asgi:application', port={port}{options})"
    service = start_service("web", [sys.executable, "-c", start], JSON | {"DJANGO_SETTINGS_MODULE": "config.settings"})
    services.wait_for_http(service, f"http://127.0.0.1:{port}/healthz")
    assert service.stop()
    assert any(line["logger"] == "uvicorn.access" and "GET /healthz" in line["event"] for line in lines(service))


def test_a_worker_says_json_warnings_included(celery_worker: Callable[..., Service]) -> None:
    """The queues were told in a banner, and warnings as Python prints them."""
    service = celery_worker("-c", "1", env={**WARNS, "HOLDPOINT_AGENTS": "agents.examples.refunds,agents.no_module"})
    assert service.stop()
    said = lines(service, but=STOPPING)
    assert any(line["event"].endswith("ready.") for line in said)
    assert any("agents.no_module" in line["event"] and line["level"] == "warning" for line in said), service.log


def test_a_warning_and_what_ends_a_process_are_json() -> None:
    code = """
import django, warnings, threading
django.setup()
warnings.warn("this goes away", UserWarning)
thread = threading.Thread(target=lambda: 1 / 0, name="doomed")
thread.start(); thread.join()
raise ValueError("of ours")
"""
    done = services.run(sys.executable, "-c", code, env={**WARNS, "DJANGO_SETTINGS_MODULE": "config.settings"})
    warned, thread, ended = map(json.loads, done.stderr.splitlines())
    assert done.returncode == 1
    assert "this goes away" in warned["event"]
    assert (thread["event"], thread["level"]) == ("process.thread_crashed", "critical")
    assert "ZeroDivisionError" in thread["exception"]
    assert (ended["event"], ended["level"]) == ("process.crashed", "critical")
    assert "ValueError: of ours" in ended["exception"]
