"""Bodies: one JSON document, as large as the largest state and no larger, and not nested without an end."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from agents.definition import registry
from checkpoints.values.canonical_json import MOST_VALUES
from tests.agents.api.sent_requests import address, document, gate, operations
from tests.agents.api.test_doors import ORDERS, refusal
from tests.agents.remote.outside_program import WIRE, Program
from tests.factories import ann, make_gate, make_team
from tests.harness.examples import first_alone
from tests.harness.signed_in_clients import signed_in

WITH_A_BODY = [path for path in ORDERS if "requestBody" in document()["paths"][path]["post"]]


def post(path: str, body: bytes | str, kind: str = "application/json") -> Any:
    return signed_in(ann(gate().team)).post(address(path), body, content_type=kind)


@pytest.mark.parametrize("path", WITH_A_BODY)
@pytest.mark.parametrize(
    "kind",
    first_alone(
        ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b", "application/jsonx"]
    ),
)
def test_a_body_of_another_media_type_is_refused(path: str, kind: str) -> None:
    answer = post(path, "{}", kind)
    assert "Content-Type: application/json" in refusal(answer, 415)["detail"]
    assert answer["Accept"] == "application/json"


def test_json_with_its_charset_said_is_json() -> None:
    answer = post("/api/runs/{run_id}/impacts", '{"kind": "rewind", "at": 1}', "Application/JSON; charset=utf-8")
    assert answer.status_code != 415


@pytest.mark.parametrize("path", ORDERS)
def test_a_body_that_is_too_large_is_refused_by_the_limit_in_bytes(path: str, settings: Any) -> None:
    settings.HOLDPOINT_API_BODY_LIMIT = 2_000
    told = refusal(post(path, b" " * 2_001), 413)["detail"]
    assert "at most 2,000 bytes" in told
    assert "HOLDPOINT_API_BODY_LIMIT" in told
    assert post(path, b" " * 1_999 + b"1").status_code != 413


def test_what_is_larger_than_a_form_may_be_is_read() -> None:
    """Django refused more than two and a half megabytes, with a page."""
    asked = make_gate(team=make_team())
    body = b'{"kind": "rewind", "at": 1, "feedback": "' + b"x" * 4_000_000 + b'"}'
    answer = signed_in(ann(asked.team)).post(f"/api/runs/{asked.run_id}/impacts", body, content_type="application/json")
    told = refusal(answer, 422)
    assert [each["parameter"] for each in told["errors"]] == ["/feedback"]


def test_the_largest_state_fits() -> None:
    assert settings.HOLDPOINT_API_BODY_LIMIT > settings.HOLDPOINT_STATE_LIMIT


@pytest.mark.parametrize("depth", [140, 100_000, 1_000_000])
@pytest.mark.parametrize(("opened", "closed"), [("[", "]"), ('{"a":', "}")])
def test_what_is_nested_too_deep_is_refused(depth: int, opened: str, closed: str) -> None:
    answer = post("/api/runs/{run_id}/impacts", opened * depth + "1" + closed * depth)
    detail = "nested deeper than 128 levels" if depth < MOST_VALUES else f"more than {MOST_VALUES:,} values"
    assert detail in refusal(answer, 400)["detail"]


def test_a_configuration_that_does_not_fit_is_named_by_its_place_in_the_body(settings: Any) -> None:
    """It was named by its place in the configuration, where a field of the state may have the same name."""
    settings.HOLDPOINT_AGENTS = ["tests.agents.testing.trial_agents"]
    registry.forget()
    try:
        body = {"agent": "trial-letters", "input": {"to": "Bob"}, "config": {"greeting": 7, "to": "Eve"}}
        answer = signed_in(ann(make_team())).post("/api/runs", body, content_type="application/json")
    finally:
        registry.forget()
    assert {each["parameter"] for each in refusal(answer, 422)["errors"]} == {"/config/greeting", "/config/to"}


@pytest.mark.parametrize(
    ("body", "place", "detail"),
    [
        ('{"kind": "edit", "patch": [{"op": "add", "value": NaN}]}', "/patch/0/value", "is NaN, which is no JSON"),
        ('{"patch": [{"op": "add", "op": "test"}]}', "/patch/0", "has the key 'op' twice"),
        ('{"feedback": "\\ud800"}', "/feedback", "has a lone surrogate, which is no text"),
        ('{"a/b": {"~": 1e999}}', "/a~1b/~0", "is too large for a double"),
        ('{"kind": 1, "kind": 2}', "/", "has the key 'kind' twice"),
    ],
)
def test_a_body_that_is_refused_as_it_is_read_names_the_place(body: str, place: str, detail: str) -> None:
    assert refusal(post("/api/runs/{run_id}/impacts", body), 400)["errors"] == [{"parameter": place, "detail": detail}]


@pytest.mark.parametrize("member", ["patch", "unknown"])
@pytest.mark.parametrize("number", [900, 30_000])
def test_a_body_of_a_thousand_faults_is_told_of_the_first(member: str, number: int) -> None:
    """The body was read again for each of its faults, which for a few thousand took longer than anybody waits."""
    faults = [None] * number if member == "patch" else []
    body = {"at": 1, "patch": faults, **{f"unknown{n}": 1 for n in range(number if member == "unknown" else 0)}}
    told = refusal(post("/api/runs/{run_id}/edits", json.dumps(body)), 422)
    assert len(told["errors"]) == (100 if number < 1000 else 1)
    assert told["errors"][0]["parameter"] in ("/patch/0", "/patch", "/unknown0", "/")


@pytest.mark.parametrize("path", ["runs", "gates"])
def test_a_body_of_as_many_names_as_are_taken_is_told_of_the_first(path: str) -> None:
    """Each name was looked for among all others, which took minutes."""
    program = Program()
    program.start()
    names = dict.fromkeys((f"no field {n}" for n in range(MOST_VALUES - 100)), 1)
    bodies: dict[str, dict[str, Any]] = {
        "runs": {"agent": program.agent, "input": names},
        "gates": {"title": "Wire", "actions": [{"id": "wire", "arguments": WIRE}], "state": names},
    }
    told = refusal(program.post(path, bodies[path]), 422)
    assert len(told["errors"]) == 100
    assert len(json.dumps(told)) < 100_000


def test_a_body_of_more_values_than_are_taken_is_refused() -> None:
    told = refusal(post("/api/runs/{run_id}/impacts", "[" + "[]," * MOST_VALUES + "[]]"), 400)
    assert "more than 250,000 values; send fewer, or a file" in told["detail"]


def test_nobody_is_told_of_the_media_type_before_they_are_known() -> None:
    refusal(Client().post(address("/api/runs/{run_id}/rewinds"), "x", content_type="text/plain"), 401)


def test_the_description_tells_of_both() -> None:
    for _, method, told in operations():
        assert {"413", "415"} <= set(told["responses"]) or method != "post"
