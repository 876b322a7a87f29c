"""Every address of the API, by its own description: who is let in, and how the others are turned away."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl

import pytest
from django.test import Client
from django.urls import URLResolver, get_resolver

from agents.api.protocol.problems import ANSWERED
from checkpoints.models import Run
from tests.factories import MEMBER, REVIEWER, ann, eve, make_gate, make_team, make_user
from tests.factories.people import EVERYTHING
from tests.harness.altered_rows import nobody_may
from tests.harness.signed_in_clients import signed_in

from .sent_requests import address, ask, document, example, gate, operations, paths, takes_a_body

# See tests/approvals/webhooks and tests/agents/device.
APART = [path for path in paths() if "/webhooks" in path or "/device/" in path]
ADDRESSES = [path for path, method, _ in operations() if method == "get" and path not in APART]
ORDERS = [path for path, method, _ in operations() if method == "post" and path not in APART]
# Of no team yet: there is nothing to be found.
STARTS = (
    "/api/runs", "/api/gates", "/api/gates/batches", "/api/gates/decisions", "/api/agents/{agent}/versions",
)  # fmt: skip
THREADS = [path for path in paths() if path.startswith("/api/threads/")]  # of the agent that is named with them
BOTH = {*ADDRESSES} & {*ORDERS}  # what is read there, and what is asked with a body
OF_A_TEAM = [path for path in ADDRESSES if "{" in path]
LISTS = [path for path in ADDRESSES if "{" not in path and path not in THREADS]


def refusal(answer: Any, status: int) -> dict[str, Any]:
    """The problem document of an answer, checked against what every one must have."""
    assert answer.status_code == status
    assert answer["Content-Type"] == "application/problem+json"
    assert answer["Cache-Control"] == "no-store"
    told: dict[str, Any] = answer.json()
    assert told.pop("request_id") == answer["X-Request-ID"]
    assert (told["status"], told["type"]) == (status, "about:blank")
    assert len(told["detail"].split()) > 5
    return told


def test_the_description_has_every_address() -> None:
    inside = next(each for each in get_resolver().url_patterns if str(each.pattern) == "api/")
    assert isinstance(inside, URLResolver)
    ninja = inside.url_patterns[0]
    assert isinstance(ninja, URLResolver)
    served = {"/api/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", str(each.pattern)) for each in ninja.url_patterns}
    assert served - {"/api/", "/api/openapi.json"} == set(paths())
    assert {method for _, method, _ in operations()} == {"get", "post"}


@pytest.mark.parametrize("path", ADDRESSES)
def test_a_reader_of_the_team_gets_it_and_no_cache_keeps_it(path: str) -> None:
    answer = signed_in(ann(gate().team)).get(address(path))
    assert answer.status_code == 200
    assert answer["Cache-Control"] == "no-store"


@pytest.mark.parametrize("path", ADDRESSES)
def test_nobody_gets_in_without_signing_in(path: str) -> None:
    answer = Client().get(address(path))
    assert "/accounts/login/" in refusal(answer, 401)["detail"]
    assert answer["WWW-Authenticate"].startswith("Session")


@pytest.mark.parametrize("path", ADDRESSES)
def test_an_account_that_was_switched_off_gets_nothing(path: str) -> None:
    member = ann(gate().team)
    client = signed_in(member)
    member.is_active = False
    member.save()
    refusal(client.get(address(path)), 401)


@pytest.mark.parametrize("path", OF_A_TEAM)
def test_an_outsider_is_told_that_nothing_is_there(path: str) -> None:
    assert "you may not see it" in refusal(signed_in(eve()).get(address(path)), 404)["detail"]


def test_each_asks_the_one_place_who_may() -> None:
    """Where that says nobody, whoever has every right in the tables gets nothing: no address has a rule of its own."""
    client = signed_in(make_user("Ann Okafor", gate().team, may=EVERYTHING))
    at = [(path, method, address(path)) for path, method, _ in operations() if "/device/" not in path]
    with nobody_may():
        for path, method, there in at:
            answer = client.get(there) if method == "get" else client.post(there, example(path), "application/json")
            if answer.status_code == 200:
                assert (path, answer.json()["items"]) == (path, [])
            else:
                status = 403 if path in (*STARTS, *THREADS, "/api/webhooks") else 404
                assert (path, answer.status_code) == (path, status)
                refusal(answer, status)


@pytest.mark.parametrize("path", OF_A_TEAM)
def test_a_member_of_another_team_is_told_the_same_as_of_what_is_not_there(path: str) -> None:
    foreigner = signed_in(make_user("Bob Lindqvist", make_team(may=MEMBER)))
    theirs = refusal(foreigner.get(address(path)), 404)
    missing = make_gate(team=gate().team)
    missing.pk, missing.run_id = 2**62, 2**62
    none = refusal(foreigner.get(address(path, missing)), 404)
    assert re.sub(r"\d+", "#", str(theirs)) == re.sub(r"\d+", "#", str(none))


@pytest.mark.parametrize("path", LISTS)
def test_a_list_holds_nothing_of_another_team(path: str) -> None:
    gate()
    assert ask(make_user("Bob Lindqvist", make_team(may=REVIEWER)), path)["items"] == []


@pytest.mark.parametrize("path", [*(path for path in ADDRESSES if path not in BOTH), "/api/openapi.json"])
@pytest.mark.parametrize("method", ["post", "put", "patch", "delete", "options"])
def test_it_refuses_the_wrong_method_and_says_which_is_right(path: str, method: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.cookies = signed_in(ann(gate().team)).cookies
    answer = getattr(client, method)(address(path))
    assert "GET" in refusal(answer, 405)["detail"]
    assert answer["Allow"] == "GET, HEAD"


@pytest.mark.parametrize("path", sorted(BOTH))
@pytest.mark.parametrize("method", ["put", "patch", "delete", "options"])
def test_where_there_are_two_methods_any_other_is_refused(path: str, method: str) -> None:
    answer = getattr(signed_in(ann(gate().team)), method)(address(path))
    refusal(answer, 405)
    assert answer["Allow"] == "GET, HEAD, POST"


@pytest.mark.parametrize("path", ADDRESSES)
def test_a_head_is_answered_without_a_body(path: str) -> None:
    answer = signed_in(ann(gate().team)).head(address(path))
    assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.parametrize(
    "path", ["/api/", "/api/nothing", "/api/runs/", "/api/runs/x", "/api/gates/-1", "/api/docs", "/api/runs/1/"]
)
def test_an_address_that_is_none_is_a_problem_too(path: str) -> None:
    told = refusal(signed_in(ann()).get(path), 404)
    assert "/api/openapi.json" in told["detail"]
    assert told["instance"] == path


def test_a_fault_of_the_servers_own_is_a_problem_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was a page."""

    def broken(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("a secret of the server's")

    monkeypatch.setattr("agents.api.runs.runs.summed_up", broken)
    reader = signed_in(ann(gate().team))
    reader.raise_request_exception = False
    answer = reader.get(f"/api/runs/{gate().run_id}")
    assert (answer.status_code, answer["Content-Type"]) == (500, "application/problem+json")
    assert "secret" not in str(answer.json())


def test_a_number_beyond_every_column_is_not_there() -> None:
    reader = signed_in(ann(gate().team))
    for number in (2**63, 10**40, "9" * 5000):
        refusal(reader.get(f"/api/runs/{number}"), 404)
        refusal(reader.get(f"/api/runs/{gate().run_id}/checkpoints/{number}"), 404)
        refusal(reader.get(f"/api/gates/{number}"), 404)


@pytest.mark.parametrize("path", [path for path in ADDRESSES if path not in THREADS])
def test_a_parameter_that_is_junk_is_named(path: str) -> None:
    """Any text may name a thread."""
    parameters = document()["paths"][path]["get"]["parameters"]
    reader = signed_in(ann(gate().team))
    for name in (each["name"] for each in parameters if each["in"] == "query" and each["name"] != "thread"):
        plain, _, query = address(path).partition("?")
        told = refusal(reader.get(plain, dict(parse_qsl(query)) | {name: "junk?"}), 422)
        assert [fault["parameter"] for fault in told["errors"]] == [name]
        assert all(fault["detail"] for fault in told["errors"])


def test_the_refusals_that_are_described_are_those_that_are_tested_here() -> None:
    # Of tokens in test_tokens.py; in tests/checkpoints/retention, where something is removed; in test_rates.py.
    elsewhere = {403, 410, 429}
    assert {401, 404, 405, 409, 422} | elsewhere == set(ANSWERED)


class TestOrders:
    """What is POSTed: the trio, and the session's token."""

    def post(self, client: Client, path: str) -> Any:
        return client.post(address(path), example(path), content_type="application/json")

    @pytest.mark.parametrize("path", ORDERS)
    def test_nobody_orders_without_signing_in(self, path: str) -> None:
        """A program without a token was told to send the one against forged forms, which no session would take."""
        for client in (Client(), Client(enforce_csrf_checks=True)):
            refusal(self.post(client, path), 401)

    @pytest.mark.parametrize("path", [path for path in ORDERS if path not in (*STARTS, *THREADS)])
    def test_an_outsider_is_told_that_nothing_is_there(self, path: str) -> None:
        assert "you may not see it" in refusal(self.post(signed_in(eve()), path), 404)["detail"]

    @pytest.mark.parametrize("path", [path for path in ORDERS if not path.endswith("/questions")])  # readers ask, too
    def test_a_reader_may_not_order(self, path: str) -> None:
        client = signed_in(make_user("Rita Reader", gate().team))
        told = refusal(self.post(client, path), 403)["detail"]
        assert "the permission “" in told or "ask one of its reviewers" in told or "no decision here" in told

    @pytest.mark.parametrize("path", STARTS)
    def test_an_outsider_starts_nothing(self, path: str) -> None:
        before = Run.objects.count()
        told = refusal(self.post(signed_in(eve()), path), 403)["detail"]
        assert "the permission “" in told or "ask one of its reviewers" in told
        assert Run.objects.count() == before

    @pytest.mark.parametrize("path", ORDERS)
    def test_an_order_without_the_sessions_token_is_refused(self, path: str) -> None:
        client = Client(enforce_csrf_checks=True)
        client.cookies = signed_in(ann(gate().team)).cookies
        assert "X-CSRFToken" in refusal(self.post(client, path), 403)["detail"]

    @pytest.mark.parametrize("path", [path for path in ORDERS if path not in BOTH])
    @pytest.mark.parametrize("method", ["get", "head", "put", "patch", "delete", "options"])
    def test_it_refuses_the_wrong_method_and_says_which_is_right(self, path: str, method: str) -> None:
        answer = getattr(signed_in(ann(gate().team)), method)(address(path))
        assert (answer.status_code, answer["Allow"]) == (405, "POST")

    @pytest.mark.parametrize("path", [path for path in ORDERS if takes_a_body(path)])
    @pytest.mark.parametrize("body", ["", "{", "[]", '{"at": 1, "at": 2}', '{"to": NaN}', "\x00"])
    def test_a_body_that_is_no_json_object_or_ambiguous_is_refused(self, path: str, body: str) -> None:
        answer = signed_in(ann(gate().team)).post(address(path), body, content_type="application/json")
        assert answer.status_code in (400, 422)
        refusal(answer, answer.status_code)
