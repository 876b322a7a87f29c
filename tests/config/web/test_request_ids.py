"""A request has one id: in its answer, problems and events, and on the lines of the worker that it woke."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.models import TokenScope
from checkpoints import request_ids
from checkpoints.models import Event, Run
from checkpoints.values.canonical_json import decode_canonical
from tests.conftest import SharedWeb
from tests.factories import make_team, make_user
from tests.factories.tokens import make_token
from tests.harness.services import Service
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
