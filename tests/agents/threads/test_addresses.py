"""The addresses of threads: who may use them, what they refuse, and that a key does an order once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from langgraph.checkpoint.base.id import uuid6

from agents.models import GraphThread
from agents.threads import orders, reading
from checkpoints.models import Run
from checkpoints.values import artifacts
from tests.clients.world import World
from tests.factories import ann, make_team, make_user, unique
from tests.factories.tokens import make_token
from tests.harness.signed_in_clients import signed_in

POSITION = {"v": 4, "ts": "t", "channel_versions": {}, "versions_seen": {}, "metadata": {"step": 1}}


def post(token: str, path: str, body: Any, **headers: str) -> Any:
    return Client().post(
        f"/api/threads/{path}", json.dumps(body), content_type="application/json",
        headers={"Authorization": f"Bearer {token}", **headers},
    )  # fmt: skip


def get(token: str, path: str, **query: str) -> Any:
    return Client().get(f"/api/threads/{path}", query, headers={"Authorization": f"Bearer {token}"})


def checkpoint(thread: str, **more: Any) -> dict[str, Any]:
    return {"thread": thread, "id": str(uuid6()), "set": {"langgraph": POSITION, "a": 1}, "whole": True, **more}


def test_an_agent_reads_its_own_threads_alone() -> None:
    world, other, thread = World(""), World(""), unique("chat")
    made = post(world.token, "checkpoints", checkpoint(thread))
    assert made.status_code == 201
    found = get(world.token, "checkpoint", thread=thread).json()
    assert found["found"]["fields"]["a"] == 1
    assert found["seen"] == made.json()["seen"]
    _, sibling = make_token(world.owner, team=world.team, agent=unique("other"))
    for token in (other.token, sibling):
        assert get(token, "checkpoint", thread=thread).json()["found"] is None
        assert get(token, "checkpoints").json() == {"items": [], "next": None}


def test_a_thread_takes_no_file_of_another_team() -> None:
    """Whoever knew a digest put it into a thread of their own, which had no check."""
    world, thread = World(""), unique("chat")
    first = checkpoint(thread)
    assert post(world.token, "checkpoints", first).status_code == 201
    with artifacts.kept_for(make_team().pk):
        theirs = artifacts.keep(b"theirs", "text/plain")
    writes = [{"number": 0, "channel": "a", "value": {"scan": theirs}}]
    pending = {"thread": thread, "id": first["id"], "task": "t", "path": "", "writes": writes}
    assert post(world.token, "writes", pending).status_code == 201  # which no gate shows, and no state holds
    for fields in ({"a": {"scan": theirs}}, {"a": {"scan": theirs}, "langgraph": POSITION}):
        answer = post(world.token, "checkpoints", checkpoint(thread, parent=first["id"], set=fields, whole=False))
        assert answer.status_code == 422
        assert [each["parameter"] for each in answer.json()["errors"]] == ["/set/a/scan"]
    grown = checkpoint(thread, parent=first["id"], set={}, append={"b": [theirs]}, whole=False)
    assert post(world.token, "checkpoints", grown).status_code == 422
    assert Run.objects.get(thread=thread).seq == 2


def test_whoever_may_only_read_runs_reads_threads_and_writes_none() -> None:
    world, thread = World(""), unique("chat")
    post(world.token, "checkpoints", checkpoint(thread))
    team = Run.objects.get(thread=thread).team
    reader = make_user("Rita Reader", team, may=())
    team.permissions.set([each for each in team.permissions.all() if each.codename == "view_run"])
    person = signed_in(reader)
    asked = {"thread": thread, "agent": world.agent}
    assert person.get("/api/threads/checkpoint", asked).json()["found"]["fields"]["a"] == 1
    refused = person.post("/api/threads/prunes", json.dumps(asked), content_type="application/json")
    assert refused.status_code == 403
    outsider = signed_in(ann(make_team()))
    assert outsider.get("/api/threads/checkpoint", asked).status_code in (200, 403)
    assert "Paid" not in outsider.get("/api/threads/checkpoint", asked).content.decode()


def test_a_token_without_the_scope_and_a_wrong_method_are_refused() -> None:
    world = World("")
    _, reads = make_token(world.owner, "runs:read", team=world.team, agent=world.agent)
    assert get(reads, "checkpoint", thread="t").status_code == 403
    assert get(world.token, "writes").status_code == 405
    assert Client().get("/api/threads/checkpoint").status_code == 401


def test_what_does_not_fit_is_refused_with_its_place() -> None:
    world, thread = World(""), unique("chat")
    wrong: list[tuple[str, Any, str]] = [
        ("checkpoints", checkpoint(thread, id="7"), "thread_refused"),
        ("checkpoints", checkpoint(thread, seen=[1, "x"]), "invalid"),
        ("checkpoints", checkpoint(thread, append={"a": [1]}), "thread_refused"),
        ("checkpoints", checkpoint("t" * 201), "invalid"),
        ("checkpoints", checkpoint("\x00"), "thread_refused"),
        ("checkpoints", checkpoint(thread, unknown=1), "invalid"),
        ("deletions", {"thread": thread, "invocations": ["a"]}, "invalid"),
        ("writes", {"thread": thread, "id": "x", "task": "t", "writes": [{"number": 0, "channel": "a"}]},
         "thread_refused"),
        ("copies", {"thread": thread, "to": thread}, "thread_refused"),
    ]  # fmt: skip
    for path, body, code in wrong:
        answer = post(world.token, path, body)
        assert (answer.status_code, answer.json()["code"]) == (422, code), answer.content
        assert answer["Content-Type"] == "application/problem+json"
    assert not GraphThread.objects.filter(run__thread=thread, run__seq__gt=1).exists()
    far = f"2026-11-27T00:00:00+00:00~{2**63}~1"
    for name, value in (("cursor", "x"), ("cursor", far), ("only", "[1]"), ("only", "{")):
        assert get(world.token, "checkpoints", **{name: value}).status_code == 422
    many = json.dumps({f"c{number}": "a" for number in range(201)})
    asked = get(world.token, "histories", thread=thread, id=str(uuid6()), channels=many)
    assert (asked.status_code, "at most 200 channels" in asked.content.decode()) == (422, True)


def test_a_list_goes_on_by_its_cursor_and_a_page_looks_at_so_many_checkpoints_however_few_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, thread, seen, parent = World(""), unique("chat"), None, None
    for number in range(5):
        step = {**POSITION, "metadata": {"step": number}}
        body = checkpoint(thread, parent=parent, seen=seen, set={"langgraph": step, "a": number})
        seen, parent = post(world.token, "checkpoints", body).json()["seen"], body["id"]

    def pages(**asked: str) -> list[list[int]]:
        found: list[list[int]] = []
        cursor: str | None = ""
        while cursor is not None:
            page = get(world.token, "checkpoints", thread=thread, cursor=cursor, **asked).json()
            found.append([each["fields"]["a"] for each in page["items"]])
            cursor = page["next"]
        return found

    assert pages(limit="2") == [[4, 3], [2, 1], [0]]
    monkeypatch.setattr(reading, "LOOKED", 2)
    assert pages(only='{"step":1}') == [[], [1], []]


@pytest.mark.parametrize("junk", [7, {"metadata": 7}, {"metadata": {"run_id": [], "parents": 1,
                                                                   "counters_since_delta_snapshot": "x"}}])  # fmt: skip
def test_a_position_that_is_none_stops_nothing_but_its_own_checkpoint(junk: Any) -> None:
    """A person may have edited it."""
    world, thread = World(""), unique("chat")
    first = checkpoint(thread)
    seen = post(world.token, "checkpoints", first).json()["seen"]
    edited = checkpoint(thread, parent=first["id"], set={"langgraph": junk}, seen=seen)
    assert post(world.token, "checkpoints", edited).status_code == 201
    assert len(get(world.token, "checkpoints", thread=thread).json()["items"]) == 2
    fits = get(world.token, "checkpoints", thread=thread, only='{"step":1}').json()["items"]
    assert [each["id"] for each in fits] == [first["id"]]
    run = Run.objects.get(thread=thread)
    assert orders.rebuilt_from(run.pk) == {run.head}
    for path, body in (("copies", {"thread": thread, "to": unique("copy")}), ("prunes", {"thread": thread}),
                       ("deletions", {"invocations": ["r"]}), ("deletions", {"thread": thread})):  # fmt: skip
        assert post(world.token, path, body).status_code == 201, path


def test_an_order_with_its_key_is_done_once() -> None:
    world, thread, to = World(""), unique("chat"), unique("copy")
    post(world.token, "checkpoints", checkpoint(thread))
    for again in (False, True):
        answer = post(world.token, "copies", {"thread": thread, "to": to}, **{"Idempotency-Key": "copy-1"})
        assert answer.status_code == 201
        assert ("Idempotency-Replayed" in answer) is again
    assert post(world.token, "copies", {"thread": thread, "to": to}).json()["code"] == "thread_taken"
