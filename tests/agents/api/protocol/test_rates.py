"""How often one may come: each person and each token by itself, and an address whose tokens open nothing."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import redis
from django.conf import settings as configured
from django.contrib.auth.models import User
from django.test import Client, RequestFactory
from limits.storage import memory

from agents.api.protocol import limits
from agents.api.protocol.waiting import AGAIN, TOLD
from tests.agents.api.sent_requests import address
from tests.agents.api.test_doors import refusal
from tests.factories import ann, bob, make_team, make_user
from tests.factories.tokens import bearing, make_token
from tests.harness.signed_in_clients import signed_in

TIMEOUT = limits.TIMEOUT


@pytest.fixture(autouse=True)
def _afresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What one test has counted with is not what the next counts with; a busy machine makes no Redis a deaf one."""
    monkeypatch.setattr(limits, "_apart_until", 0.0)
    monkeypatch.setattr(limits, "TIMEOUT", 10.0)
    limits._together.cache_clear()
    monkeypatch.setattr(limits, "_taken", {})
    # What a process counts by itself, it counts by the clock's minutes: a test that ran into the next found times left.
    minute = time.time() // 60 * 60
    monkeypatch.setattr(memory, "time", SimpleNamespace(time=lambda: minute + 30))
    yield
    limits._together.cache_clear()


def of_a_test(*, most: int, settings: Any) -> User:
    settings.HOLDPOINT_API_RATE = most
    return make_user("Ann Okafor", make_team())


def test_one_request_too_many_in_a_minute_is_refused_and_says_when_to_come_again(settings: Any) -> None:
    client = signed_in(of_a_test(most=3, settings=settings))
    answers = [client.get("/api/runs") for _ in range(3)]
    assert [each.status_code for each in answers] == [200] * 3
    assert [each["RateLimit"].split(";")[:2] for each in answers] == [['"requests"', f"r={n}"] for n in (2, 1, 0)]
    refused = client.get("/api/runs")
    assert "3 requests a minute with this account" in refusal(refused, 429)["detail"]
    assert 1 <= int(refused["Retry-After"]) <= 60
    assert refused["RateLimit-Policy"] == '"requests";q=3;w=60'
    assert refused["RateLimit"] == f'"requests";r=0;t={refused["Retry-After"]}'


def test_each_person_and_each_token_is_counted_by_itself_and_what_is_refused_is_not_done(settings: Any) -> None:
    owner = of_a_test(most=1, settings=settings)
    clients = [signed_in(owner), *(bearing(make_token(owner)[1]) for _ in range(2)), signed_in(bob(make_team()))]
    assert [client.get("/api/runs").status_code for client in clients] == [200] * 4
    told = [refusal(client.get("/api/runs"), 429)["detail"] for client in clients]
    assert ["this token" in each for each in told] == [False, True, True, False]
    body = {"seen": "0" * 64, "verdict": "approve"}
    refusal(clients[1].post(address("/api/gates/{gate_id}/decisions"), body, content_type="application/json"), 429)
    unscoped = bearing(make_token(owner, "gates:read")[1])
    answers = [unscoped.get("/api/runs") for _ in range(2)]
    assert [each.status_code for each in answers] == [403, 429], "one without the scope too"
    assert answers[0]["RateLimit"].startswith('"requests";r=0;')


def test_whoever_comes_all_the_time_is_counted_in_parts_that_add_up(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, asked = signed_in(of_a_test(most=4000, settings=settings)), []
    counted = limits._count

    def counting(name: str, who: str, most: int, times: int) -> limits.Rate:
        asked.append(times)
        return counted(name, who, most, times)

    monkeypatch.setattr(limits, "_count", counting)
    monkeypatch.setattr(limits, "LASTS", 3600.0)
    left = [int(client.get("/api/runs")["RateLimit"].split(";")[1].removeprefix("r=")) for _ in range(12)]
    assert left == list(range(3999, 3987, -1))
    assert asked == [1, 2, 4, 4, 4]
    monkeypatch.setattr(limits, "LASTS", -1.0)
    limits._taken.clear()
    assert [client.get("/api/runs")["RateLimit"].split(";")[1] for _ in range(2)] == ["r=3984", "r=3983"]
    assert asked[5:] == [1, 1]


def test_the_last_times_are_given_out_though_they_are_fewer_than_are_taken_at_once(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = signed_in(of_a_test(most=7, settings=settings))
    monkeypatch.setattr(limits, "SHARE", 1)
    monkeypatch.setattr(limits, "LASTS", 3600.0)
    assert [client.get("/api/runs").status_code for _ in range(8)] == [200] * 7 + [429]


def test_all_processes_count_together(settings: Any) -> None:
    client = signed_in(of_a_test(most=2, settings=settings))
    assert client.get("/api/runs").status_code == 200
    limits._together.cache_clear()  # as another process begins
    assert client.get("/api/runs").status_code == 200
    assert client.get("/api/runs").status_code == 429
    assert redis.Redis.from_url(configured.REDIS_URL).keys("holdpoint.rates:*requests*")


def test_while_redis_is_away_each_process_counts_by_itself(settings: Any) -> None:
    client = signed_in(of_a_test(most=3, settings=settings))
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    assert [client.get("/api/runs").status_code for _ in range(4)] == [200, 200, 200, 429]


def test_a_redis_that_does_not_answer_is_asked_once_and_then_left_alone(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = signed_in(of_a_test(most=9, settings=settings))
    monkeypatch.setattr(limits, "TIMEOUT", TIMEOUT)
    monkeypatch.setattr(limits, "PAUSE_AFTER_FAILURE", 600.0)
    with socket.create_server(("127.0.0.1", 0)) as deaf:  # it takes connections and says nothing
        settings.REDIS_URL = f"redis://127.0.0.1:{deaf.getsockname()[1]}/0"
        assert [client.get("/api/runs").status_code for _ in range(10)] == [200] * 9 + [429]
        deaf.setblocking(False)
        deaf.accept()[0].close()
        with pytest.raises(BlockingIOError):
            deaf.accept()
    assert 3 * TIMEOUT < 0.05, "connecting, greeting and counting"


def ask(sent: str, of: str) -> Any:
    return bearing(sent).get("/api/runs", REMOTE_ADDR=of)


def test_an_address_whose_tokens_open_nothing_is_shut_to_unknown_ones_alone(
    settings: Any, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    settings.HOLDPOINT_API_FAILURES = 3
    owner, here = ann(make_team()), "192.0.2.1"
    known, unknown = make_token(owner)[1], make_token(owner)[1]
    assert ask(known, here).status_code == 200
    for n in range(3):
        refusal(ask(f"hp_nothing{n}", here), 401)
    refused = ask("hp_nothing3", here)
    assert "3 invalid tokens in a minute" in refusal(refused, 429)["detail"]
    assert 1 <= int(refused["Retry-After"]) <= 60
    with django_assert_num_queries(0):
        refusal(ask("hp_nothing4", here), 429)
        refusal(ask(unknown, here), 429)
    assert ask(known, here).status_code == 200
    assert ask(unknown, "192.0.2.2").status_code == 200
    assert signed_in(owner).get("/api/runs", REMOTE_ADDR=here).status_code == 200
    refusal(Client().get("/api/runs", REMOTE_ADDR=here), 401)
    monkeypatch.setattr(limits, "_shut", {})  # when its time is over
    assert ask(unknown, here).status_code == 200


def test_a_token_that_was_known_and_is_revoked_is_known_no_more(settings: Any) -> None:
    settings.HOLDPOINT_API_FAILURES = 1
    token, sent = make_token(ann(make_team()))
    assert ask(sent, "192.0.2.3").status_code == 200
    type(token).objects.filter(pk=token.pk).update(revoked_at=token.created_at)
    refusal(ask(sent, "192.0.2.3"), 401)
    refusal(ask(sent, "192.0.2.3"), 429)


def test_what_is_remembered_of_strangers_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REMEMBERED", 3)
    kept: dict[str, float] = {}
    for n in range(10):
        limits._keep(kept, str(n), 0.0)
        assert len(kept) <= 3


def test_a_request_that_waits_counts_once_however_often_it_looks(settings: Any) -> None:
    request: Any = RequestFactory().get("/api/events")
    request.user, throttle = of_a_test(most=1, settings=settings), limits.Throttle()
    assert throttle.allow_request(request)
    request.scope = {AGAIN: TOLD}  # as Waiting has its view asked again
    assert throttle.allow_request(request)
    request.scope = {}
    assert not throttle.allow_request(request)
