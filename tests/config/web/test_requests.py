"""What goes along with a request: its id, what a proxy says, and pages for a wrong method and a full disk."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from agents.api.protocol import waiting
from agents.models import TokenScope
from agents.waits import signals
from approvals.live.consumer import LiveConsumer
from approvals.models import Gate
from checkpoints import request_ids
from checkpoints.models import Event, Run
from checkpoints.values.canonical_json import decode_canonical
from config.asgi import FORMS
from tests.agents.waits.conftest import own_agents
from tests.approvals.views.test_files import UPLOAD, edit, place, random, sha, with_file
from tests.conftest import SharedWeb
from tests.factories import ann, driven_runs, make_gate, make_team, make_user
from tests.factories.tokens import make_token
from tests.harness.services import Service
from tests.harness.session import ROOT
from tests.harness.signed_in_clients import signed_in
from tests.harness.waiting import until

AGENTS = {"HOLDPOINT_AGENTS": "tests.factories.sample_agents", "HOLDPOINT_LOG_FORMAT": "json"}
TOLD = {"X-Request-ID": "from-elsewhere.7", "X-Forwarded-For": "203.0.113.9"}


@pytest.fixture
def starter() -> User:
    """Somebody who may start runs."""
    return make_user("Ann Okafor", make_team(may=("checkpoints.view_run", "checkpoints.start_run")))


def of_request(service: Service, request_id: str) -> list[str]:
    """What a process said of this request."""
    said = [json.loads(line) for line in service.log.splitlines() if line.startswith("{")]
    return [line["event"] for line in said if line.get("request_id") == request_id]


def test_a_start_is_found_in_the_events_and_in_the_lines_of_the_worker(
    starter: User,
    start_web: Callable[..., tuple[Service, str]],
    celery_worker: Callable[..., Service],
) -> None:
    worker = celery_worker("-c", "1", env=AGENTS)
    web, base = start_web({**AGENTS, "FORWARDED_ALLOW_IPS": "127.0.0.1"})
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


@pytest.mark.parametrize("junk", ["", "a b", "a" * 65, "é", "x\r\ny", "<b>"])
def test_junk_is_replaced(junk: str) -> None:
    headers: dict[str, Any] = {"X-Request-ID": junk, "X-Forwarded-For": "203.0.113.9"}
    told = Client(REMOTE_PORT=0, headers=headers).get("/healthz")["X-Request-ID"]
    assert re.fullmatch("[0-9a-f]{32}", told)


def test_a_message_is_another_one_each_time_and_names_its_request() -> None:
    with request_ids.answering("a.b-c_9"):
        one, other = request_ids.message_id(), request_ids.message_id()
    assert one is not None
    assert other is not None
    assert one != other
    assert request_ids.of_message(one) == request_ids.of_message(other) == "a.b-c_9"
    assert request_ids.message_id() is None
    assert [request_ids.of_message(each) for each in ("", "3f1c", "\x1b[2J.0123456789ab", "a" * 99)] == [""] * 4


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
    for path in ("/", POLLS, "/ws/", "/static/", waiting.STREAM):
        assert "proxy_set_header" not in location(path), "one there would undo all those above"
    assert set(re.findall(r"proxy_next_upstream ([^;]+);", CONFIGURATION)) == {
        "error timeout",
        "error timeout http_404",
    }


HTML = {"Accept": "text/html,application/xhtml+xml"}


def test_a_decisions_address_that_is_opened_leads_to_its_gate() -> None:
    team = make_team()
    gate = make_gate(team=team)
    answer = signed_in(ann(team)).get(f"/gates/{gate.pk}/decisions/", headers=HTML)
    assert (answer.status_code, answer["Allow"]) == (405, "POST")
    assert f'href="/gates/{gate.pk}/"' in answer.content.decode()
    assert "only accepts form submissions. Nothing was changed." in answer.content.decode()


@pytest.mark.parametrize(
    ("address", "page"),
    [
        ("/runs/7/checkpoints/2/notes/5/removals/", "/runs/7/"),
        ("/agents/refunds/runs/", "/agents/refunds/"),
        ("/audit/verifications/", "/audit/"),
    ],
)
def test_each_order_leads_to_the_page_it_is_sent_from(address: str, page: str) -> None:
    answer = signed_in(ann(make_team())).get(address, headers=HTML)
    assert answer.status_code == 405
    assert f'href="{page}"' in answer.content.decode()


def test_scripts_and_the_api_get_no_page() -> None:
    client = signed_in(ann(make_team()))
    assert client.get("/audit/verifications/", headers={"Accept": "application/json"}).content == b""
    assert b"<html" not in Client().get("/api/gates/7/decisions/1/", headers=HTML).content


__all__ = ["own_agents"]


def failing(number: int) -> Any:
    """What fails with this error."""

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize("where", ["decisions", "forms", "impacts"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
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


@pytest.mark.parametrize(("number", "status"), [(errno.ENOSPC, 503), (errno.EDQUOT, 503), (errno.EIO, 500)])
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
