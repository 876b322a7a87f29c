"""Every address of the API, by its own description: who is let in, and how the others are turned away."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl

import pytest
from django.test import Client
from django.urls import URLResolver, get_resolver

from approvals.models import Gate
from checkpoints.models import Run
from tests.agents.api.sent_requests import address, ask, document, example, gate, operations, paths, takes_a_body
from tests.factories import MEMBER, REVIEWER, ann, eve, make_gate, make_team, make_user
from tests.factories.people import EVERYTHING
from tests.harness.altered_rows import nobody_may
from tests.harness.signed_in_clients import signed_in

# See tests/approvals/webhooks and tests/agents/device.
ALL = [(path, method) for path, method, _ in operations() if "/webhooks" not in path and "/device/" not in path]
ADDRESSES = [path for path, method in ALL if method == "get"]
ORDERS = [path for path, method in ALL if method == "post"]
# Of no team yet: there is nothing to be found.
STARTS = (
    "/api/runs", "/api/gates", "/api/gates/batches", "/api/gates/decisions", "/api/agents/{agent}/versions",
)  # fmt: skip
THREADS = [path for path in paths() if path.startswith("/api/threads/")]  # of the agent that is named with them


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


def send(client: Client, path: str, method: str = "post", of: Gate | None = None) -> Any:
    if method == "get":
        return client.get(address(path, of))
    return client.post(address(path, of), example(path), content_type="application/json")


def test_the_description_has_every_address() -> None:
    inside = next(each for each in get_resolver().url_patterns if str(each.pattern) == "api/")
    assert isinstance(inside, URLResolver)
    ninja = inside.url_patterns[0]
    assert isinstance(ninja, URLResolver)
    served = {"/api/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", str(each.pattern)) for each in ninja.url_patterns}
    assert served - {"/api/", "/api/openapi.json"} == set(paths())
    assert {method for _, method, _ in operations()} == {"get", "post"}


def test_a_reader_of_the_team_gets_it_and_no_cache_keeps_it() -> None:
    client = signed_in(ann(gate().team))
    for path in ADDRESSES:
        answer, head = client.get(address(path)), client.head(address(path))
        assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store"), path
        assert (head.status_code, head.content) == (200, b""), path


def test_nobody_gets_in_without_signing_in_and_no_account_that_was_switched_off() -> None:
    """A program without a token was told to send the one against forged forms, which no session would take."""
    member = ann(gate().team)
    off = signed_in(member)
    member.is_active = False
    member.save()
    for number, (path, method) in enumerate(ALL):
        for client in (Client(), (Client(enforce_csrf_checks=True), off)[number % 2]):
            answer = send(client, path, method)
            assert "/accounts/login/" in refusal(answer, 401)["detail"]
            assert answer["WWW-Authenticate"].startswith("Session")


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


def test_a_member_of_another_team_is_told_the_same_as_of_what_is_not_there() -> None:
    foreigner = signed_in(make_user("Bob Lindqvist", make_team(may=MEMBER)))
    missing = make_gate(team=gate().team)
    missing.pk, missing.run_id = 2**62, 2**62
    for path, method in ALL:
        if path not in (*STARTS, *THREADS) and "{" in path:
            theirs, none = (refusal(send(foreigner, path, method, of), 404) for of in (None, missing))
            assert re.sub(r"\d+", "#", str(theirs)) == re.sub(r"\d+", "#", str(none))
            assert "you may not see it" in theirs["detail"]


def test_a_list_holds_nothing_of_another_team_and_an_outsider_starts_nothing() -> None:
    gate()
    foreigner, before = make_user("Bob Lindqvist", make_team(may=REVIEWER)), Run.objects.count()
    for path in ADDRESSES:
        if "{" not in path and path not in THREADS:
            assert ask(foreigner, path)["items"] == []
    for path in STARTS:
        told = refusal(send(signed_in(eve()), path), 403)["detail"]
        assert "the permission “" in told or "ask one of its reviewers" in told
    assert Run.objects.count() == before


def test_it_refuses_the_wrong_method_and_says_which_is_right() -> None:
    client = Client(enforce_csrf_checks=True)
    client.cookies = signed_in(ann(gate().team)).cookies
    for path in {*(path for path, _ in ALL), "/api/openapi.json"}:
        right = ["GET", "HEAD"] * (path not in ORDERS or path in ADDRESSES) + ["POST"] * (path in ORDERS)
        for method in {"GET", "HEAD", "POST", "PUT"} - set(right):
            answer = client.generic(method, address(path))
            assert (path, answer.status_code, answer["Allow"]) == (path, 405, ", ".join(right))
            assert method == "HEAD" or ", ".join(right) in refusal(answer, 405)["detail"]


def test_an_address_that_is_none_is_a_problem_too() -> None:
    reader = signed_in(ann(gate().team))
    for path in ("/api/", "/api/nothing", "/api/runs/", "/api/runs/x", "/api/gates/-1", "/api/docs", "/api/runs/1/"):
        told = refusal(reader.get(path), 404)
        assert ("/api/openapi.json" in told["detail"], told["instance"]) == (True, path)
    for number in (2**63, 10**40, "9" * 5000):  # beyond every column
        for there in (f"runs/{number}", f"runs/{gate().run_id}/checkpoints/{number}", f"gates/{number}"):
            refusal(reader.get(f"/api/{there}"), 404)


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


def test_a_parameter_that_is_junk_is_named() -> None:
    reader = signed_in(ann(gate().team))
    for path in ADDRESSES:
        plain, _, query = address(path).partition("?")
        for told in document()["paths"][path]["get"]["parameters"] if path not in THREADS else ():  # any text names one
            if told["in"] == "query" and (name := told["name"]) != "thread":
                refused = refusal(reader.get(plain, dict(parse_qsl(query)) | {name: "junk?"}), 422)
                assert [fault["parameter"] for fault in refused["errors"]] == [name]
                assert all(fault["detail"] for fault in refused["errors"])


def test_a_reader_may_not_order() -> None:
    client = signed_in(make_user("Rita Reader", gate().team))
    for path in ORDERS:
        if not path.endswith("/questions"):  # readers ask, too
            told = refusal(send(client, path), 403)["detail"]
            assert any(words in told for words in ("the permission “", "ask one of its reviewers", "no decision here"))


def test_an_order_without_the_sessions_token_is_refused() -> None:
    client = Client(enforce_csrf_checks=True)
    client.cookies = signed_in(ann(gate().team)).cookies
    for path in ORDERS:
        assert "X-CSRFToken" in refusal(send(client, path), 403)["detail"]


def test_a_body_that_is_no_json_object_or_ambiguous_is_refused() -> None:
    client = signed_in(ann(gate().team))
    bodies = ['{"at": 1, "at": 2}', "", "{", "[]", '{"to": NaN}', "\x00"]
    for number, path in enumerate(path for path in ORDERS if takes_a_body(path)):
        for body in bodies if number % 10 == 0 else bodies[:1]:  # one parser reads them all
            answer = client.post(address(path), body, content_type="application/json")
            assert answer.status_code in (400, 422)
            refusal(answer, answer.status_code)
