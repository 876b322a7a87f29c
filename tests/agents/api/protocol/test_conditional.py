"""ETags: an answer that is the same is not sent again."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from tests.agents.api.sent_requests import address, document, gate, looked_at, reader_of
from tests.agents.api.test_doors import refusal
from tests.factories import ann, decide, make_gate, make_team
from tests.harness.signed_in_clients import signed_in

STRONG = re.compile(r'"[0-9a-f]{32}"')


@pytest.mark.parametrize("path", looked_at())
def test_whoever_has_the_answer_is_told_that_it_is_the_same(path: str) -> None:
    reader = signed_in(reader_of(path))
    first = reader.get(address(path))
    assert STRONG.fullmatch(first["ETag"])
    again = reader.get(address(path), headers={"If-None-Match": f'"other", {first["ETag"]}'})
    assert (again.status_code, again.content) == (304, b"")
    assert again["ETag"] == first["ETag"]
    assert again["Cache-Control"] == "no-store"
    assert "Content-Type" not in again


@pytest.mark.parametrize("path", looked_at())
def test_the_description_tells_of_it(path: str) -> None:
    told = document()["paths"][path]["get"]
    streams = "text/event-stream" in told["responses"]["200"]["content"]
    named = {status for status, answer in told["responses"].items() if "ETag" in answer.get("headers", {})}
    assert named == (set() if streams else {"200", "304"})
    assert ("If-None-Match" in {each["name"] for each in told["parameters"]}) is not streams


def test_another_answer_has_another_name_and_is_sent() -> None:
    asked = make_gate(team=make_team())
    member = ann(asked.team)
    reader, path = signed_in(member), f"/api/gates/{asked.pk}"
    first = reader.get(path)["ETag"]
    decide(asked, member)
    again = reader.get(path, headers={"If-None-Match": first})
    assert again.status_code == 200
    assert again.json()["status"] == "decided"
    assert again["ETag"] != first


def test_a_name_that_compression_weakened_still_counts() -> None:
    reader = Client()
    zipped = reader.get("/api/openapi.json", headers={"Accept-Encoding": "gzip"})
    assert (zipped["Content-Encoding"], zipped["ETag"][:3]) == ("gzip", 'W/"')
    again = reader.get("/api/openapi.json", headers={"Accept-Encoding": "gzip", "If-None-Match": zipped["ETag"]})
    assert (again.status_code, again["ETag"]) == (304, zipped["ETag"])
    assert reader.get("/api/openapi.json", headers={"If-None-Match": "*"}).status_code == 304
    for junk in ('"0"', "0", '"', ",", zipped["ETag"][:-2] + '"'):
        assert reader.get("/api/openapi.json", headers={"If-None-Match": junk}).status_code == 200


def test_a_head_has_the_name_that_a_get_has() -> None:
    reader = signed_in(ann(gate().team))
    head, got = reader.head("/api/runs"), reader.get("/api/runs")
    assert head["ETag"] == got["ETag"]
    assert reader.head("/api/runs", headers={"If-None-Match": got["ETag"]}).status_code == 304


def test_a_refusal_has_no_name_and_none_opens_what_one_may_not_see() -> None:
    path = address("/api/runs/{run_id}")
    name = signed_in(ann(gate().team)).get(path)["ETag"]
    told = Client().get(path, headers={"If-None-Match": name})
    refusal(told, 401)
    assert "ETag" not in told
