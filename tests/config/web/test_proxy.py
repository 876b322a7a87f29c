"""The configuration of nginx in the docs agrees with what the web process does."""

from __future__ import annotations

import re

from django.conf import settings

from agents.api.protocol import waiting
from approvals.live.consumer import LiveConsumer
from config.asgi import FORMS
from tests.harness.session import ROOT

CONFIGURATION = (ROOT / "docs" / "deploy" / "nginx.conf").read_text()
POLLS = "^/api/(events|gates/[0-9]+/outcome)$"


def location(path: str) -> str:
    """What is set for one location."""
    [found] = re.findall(rf"location (?:[=~] )?{re.escape(path)} \{{\n(.*?)\n    \}}", CONFIGURATION, re.DOTALL)
    return str(found)


def server() -> str:
    """What is set for all locations that say nothing else."""
    return "\n".join(re.findall(r"(?m)^    proxy_.*$", CONFIGURATION))


def seconds(text: str) -> int:
    [found] = re.findall(r"proxy_read_timeout (\d+)s;", text)
    return int(found)


def test_it_takes_what_a_form_may_bring() -> None:
    [megabytes] = re.findall(r"client_max_body_size (\d+)m;", CONFIGURATION)
    assert FORMS <= int(megabytes) * 1024 * 1024 < FORMS + 10 * 1024 * 1024
    assert settings.HOLDPOINT_API_BODY_LIMIT <= FORMS


def test_it_waits_for_longer_than_a_silence_that_is_meant() -> None:
    for poll in ("/api/events", "/api/gates/4711/outcome"):
        assert waiting.PATIENT.fullmatch(poll)
        assert re.fullmatch(POLLS, poll)
    assert seconds(location(POLLS)) > waiting.LONGEST
    assert seconds(location("/ws/")) > 2 * LiveConsumer.heartbeat
    assert seconds(location(waiting.STREAM)) > 2 * waiting.CHECKED
    assert "proxy_buffering off;" in location(waiting.STREAM)


def test_it_waits_for_what_hangs_no_longer_than_a_request_may_take() -> None:
    """Every second request waited for 75 s while one of two processes hung."""
    longest = settings.POOL["timeout"] + settings.STATEMENT_TIMEOUT
    assert longest < seconds(server()) < longest + 10
    assert "proxy_read_timeout" not in location("/") + location("/static/")
    waits = [int(wait) for wait in re.findall(r"proxy_read_timeout (\d+)s;", CONFIGURATION)]
    [until] = re.findall(r"proxy_next_upstream_timeout (\d+)s;", CONFIGURATION)
    assert max(waits) + 2 < int(until) < 2 * min(waits), "a second process is asked, and no third"
    servers = re.findall(r"(?m)^    server ([0-9.:]+) (.+);$", CONFIGURATION)
    assert [told for _, told in servers] == ["max_fails=3 fail_timeout=10s"] * 2 + ["max_fails=0 backup"] * 2
    assert servers[0][0] == servers[2][0] != servers[1][0] == servers[3][0]


def test_it_passes_on_nothing_that_a_client_says_of_where_it_is() -> None:
    given = dict(re.findall(r"(?m)^    proxy_set_header (\S+) ([^;]+);", CONFIGURATION))
    assert given["X-Forwarded-For"] == "$remote_addr"
    assert given["X-Forwarded-Proto"] == "$scheme"
    for place in ("/", POLLS, "/ws/", "/static/", waiting.STREAM):
        assert "proxy_set_header" not in location(place), "one there would undo all those above"
    assert set(re.findall(r"proxy_next_upstream ([^;]+);", CONFIGURATION)) == {
        "error timeout",
        "error timeout http_404",
    }
