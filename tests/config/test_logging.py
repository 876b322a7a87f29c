"""One event is one line, whatever the values hold."""

from __future__ import annotations

import json
import sys

from tests.harness.services import run

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
