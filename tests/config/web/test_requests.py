"""What goes along with a request: its id, what a proxy says, pages for a wrong method, a full disk or no connection."""

from __future__ import annotations

import errno
import io
import json
import os
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import Client

from agents.api.protocol import waiting
from agents.models import TokenScope
from agents.waits import signals
from approvals.live.consumer import LiveConsumer
from approvals.models import Gate
from checkpoints.models import Event, Run
from checkpoints.values.canonical_json import decode_canonical
from config.asgi import FORMS
from config.environment import EnvironmentReader
from config.local.__main__ import vapid_key
from tests.agents.waits.conftest import own_agents
from tests.approvals.views.test_files import UPLOAD, edit, place, random, sha, with_file
from tests.conftest import SharedWeb
from tests.factories import ann, driven_runs, make_team, make_user
from tests.factories.tokens import make_token
from tests.harness.services import Service
from tests.harness.session import ROOT
from tests.harness.signed_in_clients import signed_in
from tests.harness.waiting import until

AGENTS = {"HOLDPOINT_AGENTS": "tests.factories.sample_agents", "HOLDPOINT_LOG_FORMAT": "json"}
TOLD = {"X-Request-ID": "from-elsewhere.7", "X-Forwarded-For": "203.0.113.9"}


def of_request(service: Service, request_id: str) -> list[str]:
    said = [json.loads(line) for line in service.log.splitlines() if line.startswith("{")]
    return [line["event"] for line in said if line.get("request_id") == request_id]


def test_a_start_is_found_in_the_events_and_in_the_lines_of_the_worker(
    start_web: Callable[..., tuple[Service, str]],
    celery_worker: Callable[..., Service],
) -> None:
    worker = celery_worker("-c", "1", env=AGENTS)
    web, base = start_web({**AGENTS, "FORWARDED_ALLOW_IPS": "127.0.0.1"})
    starter = make_user("Ann Okafor", make_team(may=("checkpoints.view_run", "checkpoints.start_run")))
    _, token = make_token(starter, TokenScope.START, TokenScope.READ)
    asked = {"agent": "hopper", "input": {}}
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "one", **TOLD}
    answer = httpx.post(f"{base}/api/runs", json=asked, headers=headers, timeout=60)
    assert (answer.status_code, answer.headers["X-Request-ID"]) == (201, "from-elsewhere.7"), answer.text
    run = Run.objects.get(pk=answer.json()["id"])
    (begun,) = Event.objects.filter(run_id=run.pk, kind="run.started")
    assert decode_canonical(bytes(begun.data))["request_id"] == "from-elsewhere.7"
    until(lambda: "step.started" in of_request(worker, "from-elsewhere.7"), what=f"the worker's lines:\n{worker.log}")
    refused = httpx.get(f"{base}/api/runs/999999999", headers=headers, timeout=60)
    assert refused.json()["request_id"] == refused.headers["X-Request-ID"] == "from-elsewhere.7"
    until(lambda: "Not Found: /api/runs/999999999" in of_request(web, "from-elsewhere.7"), what=web.log)


def test_an_id_that_no_believed_proxy_tells_is_not_taken(shared_web: SharedWeb) -> None:
    base = shared_web()
    made = [httpx.get(f"{base}/healthz", headers=TOLD).headers["X-Request-ID"] for _ in range(2)]
    assert all(re.fullmatch("[0-9a-f]{32}", each) for each in made)
    assert made[0] != made[1]


def test_junk_is_replaced() -> None:
    for junk in ("", "a b", "a" * 65, "é", "x\r\ny", "<b>"):
        headers: dict[str, Any] = {"X-Request-ID": junk, "X-Forwarded-For": "203.0.113.9"}
        told = Client(REMOTE_PORT=0, headers=headers).get("/healthz")["X-Request-ID"]
        assert re.fullmatch("[0-9a-f]{32}", told), junk


CONFIGURATION = (ROOT / "docs" / "deploy" / "nginx.conf").read_text()
POLLS = "^/api/(events|gates/[0-9]+/outcome)$"


def location(path: str) -> str:
    [found] = re.findall(rf"location (?:[=~] )?{re.escape(path)} \{{\n(.*?)\n    \}}", CONFIGURATION, re.DOTALL)
    return str(found)


def seconds(text: str) -> int:
    [found] = re.findall(r"proxy_read_timeout (\d+)s;", text)
    return int(found)


def test_the_proxy_takes_what_a_form_may_bring_and_waits_as_long_as_is_meant() -> None:
    """Every second request waited for 75 s while one of two processes hung."""
    [megabytes] = re.findall(r"client_max_body_size (\d+)m;", CONFIGURATION)
    assert FORMS <= int(megabytes) * 1024 * 1024 < FORMS + 10 * 1024 * 1024
    for poll in ("/api/events", "/api/gates/4711/outcome"):
        assert waiting.PATIENT.fullmatch(poll)
        assert re.fullmatch(POLLS, poll)
    assert seconds(location(POLLS)) > waiting.LONGEST
    assert seconds(location("/ws/")) > 2 * LiveConsumer.heartbeat
    assert seconds(location(waiting.STREAM)) > 2 * waiting.CHECKED
    assert "proxy_buffering off;" in location(waiting.STREAM)
    longest = settings.POOL["timeout"] + settings.STATEMENT_TIMEOUT
    others = seconds("\n".join(re.findall(r"(?m)^    proxy_.*$", CONFIGURATION)))
    assert longest < others < longest + 10
    waits = [int(wait) for wait in re.findall(r"proxy_read_timeout (\d+)s;", CONFIGURATION)]
    [until] = re.findall(r"proxy_next_upstream_timeout (\d+)s;", CONFIGURATION)
    assert max(waits) + 2 < int(until) < 2 * min(waits), "a second process is asked, and no third"


def test_the_proxy_passes_on_nothing_that_a_client_says_of_where_it_is() -> None:
    given = dict(re.findall(r"(?m)^    proxy_set_header (\S+) ([^;]+);", CONFIGURATION))
    assert (given["X-Forwarded-For"], given["X-Forwarded-Proto"]) == ("$remote_addr", "$scheme")
    for path in ("/", POLLS, "/ws/", "/static/", waiting.STREAM):
        assert "proxy_set_header" not in location(path), "one there would undo all those above"


def test_an_orders_address_that_is_opened_leads_to_the_page_it_is_sent_from() -> None:
    client, html = signed_in(ann(make_team())), {"Accept": "text/html,application/xhtml+xml"}
    for address, page in (
        ("/gates/7/decisions/", "/gates/7/"), ("/runs/7/checkpoints/2/notes/5/removals/", "/runs/7/"),
        ("/agents/refunds/runs/", "/agents/refunds/"), ("/audit/verifications/", "/audit/"),
    ):  # fmt: skip
        answer = client.get(address, headers=html)
        assert (answer.status_code, answer["Allow"]) == (405, "POST")
        assert f'href="{page}"' in answer.content.decode()
        assert "only accepts form submissions. Nothing was changed." in answer.content.decode()
    assert client.get("/audit/verifications/", headers={"Accept": "application/json"}).content == b""
    assert b"<html" not in Client().get("/api/gates/7/decisions/1/", headers=html).content


__all__ = ["own_agents"]


def failing(number: int) -> Any:

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize(("where", "number"), [("decisions", errno.ENOSPC), ("impacts", errno.EDQUOT)])
def test_a_file_without_room_is_a_503_and_decides_nothing(
    where: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, content = with_file(random(), team=(team := make_team())), random()
    client, form = signed_in(ann(team)), edit(gate, content)
    client.raise_request_exception = False
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", failing(number))
        answer = client.post(f"/gates/{gate.pk}/{where}/", edit(gate, content, change=UPLOAD))
    assert (answer.status_code, answer.headers.get("Retry-After")) == (503, "5")
    assert "disk is full</h1>" in answer.content.decode()
    assert not place(sha(content)).exists()
    assert Gate.objects.get(pk=gate.pk).status == "open"
    assert client.post(f"/gates/{gate.pk}/decisions/", form).status_code == 303


@pytest.mark.parametrize(("number", "status"), [(errno.ENOSPC, 503), (errno.EIO, 500)])
def test_a_program_is_told_so_too(number: int, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run = driven_runs.make_run("listener")
    client = signed_in(ann(run.team))
    client.raise_request_exception = False
    monkeypatch.setattr(signals, "send", failing(number))
    body = {"value": None, "key": "k"}
    answer = client.post(f"/api/runs/{run.pk}/signals/go", body, content_type="application/json")
    assert (answer.status_code, answer.headers.get("Retry-After")) == (status, "5" if status == 503 else None)
    assert answer["Content-Type"] == "application/problem+json"
    assert ("The server's disk is full." in answer.json()["detail"]) == (status == 503)


@pytest.mark.parametrize("path", ["/manifest.webmanifest", "/service-worker.js", "/offline/"])
def test_each_is_the_same_for_everybody_and_takes_nothing(path: str) -> None:
    user = ann(make_team())
    own, others = signed_in(user).get(path), Client().get(path)
    assert own.content == others.content
    assert user.username not in own.content.decode()
    assert Client().post(path).status_code == 405
    assert "worker-src 'self'" in others["Content-Security-Policy"]


def test_the_worker_rules_the_whole_site_and_is_asked_for_anew() -> None:
    answer = Client().get("/service-worker.js")
    assert answer["Content-Type"] == "text/javascript; charset=utf-8"
    assert answer["Cache-Control"] == "no-cache"
    source = answer.content.decode()
    release = json.loads(source.removeprefix("self.release = ").partition(";\n")[0])
    assert release["page"] == "/offline/"
    named = [*release["files"], release["icon"], release["badge"], *re.findall(r'importScripts\("([^"]+)"\)', source)]
    assert len(named) == 7
    assert all(re.search(r"^/static/.+\.[0-9a-f]{12}\.\w+$", each) for each in named), named
    page = Client().get("/offline/").content.decode()
    needed = re.findall(r'(?:src|href)="(/static/[^"]+)"', page)
    assert len(needed) == 4
    assert all(each in source for each in needed), "the page for no connection needs only what is kept"
    assert "<form" not in page


def test_a_key_that_the_command_makes_is_taken_and_junk_is_not() -> None:
    said = io.StringIO()
    call_command("vapid", stdout=said)
    name, _, key = said.getvalue().strip().partition("=")
    for good in (key, vapid_key("ab" * 32)):
        env = EnvironmentReader({name: good})
        assert env.vapid_key(name) == good
        assert env.complaints == []
    for junk in ("x", "A" * 43, "_" * 43, "é" * 43, "-----BEGIN EC PRIVATE KEY-----"):
        env = EnvironmentReader({name: junk})
        assert env.vapid_key(name) == ""
        assert "manage.py vapid" in env.complaints[0]
        assert len(junk) == 1 or junk not in env.complaints[0]
