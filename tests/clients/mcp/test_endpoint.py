"""The endpoint /mcp: who is let in, what is refused, and that a wait takes nothing from others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from mcp_types import CallToolResult

from agents.models import Token
from approvals.models import Gate
from checkpoints.models import Checkpoint, Run
from tests.agents.remote.outside_program import decide
from tests.clients.mcp.mcp_client import Tools, beside, by_http, by_stdio, called, decided, said, still_open, told
from tests.clients.mcp.test_permission_prompt import opened
from tests.clients.world import POOL, WIRE, World
from tests.factories import ann
from tests.harness import services
from tests.harness.signed_in_clients import session_of
from tests.harness.waiting import PATIENCE, until

LIST: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
WAITING = 7  # calls: more than twice as many as the process has connections
TOOLS = ["permission_prompt", "request_approval", "await_decision", "save_checkpoint", "list_gates"]


def post(world: World, body: object = LIST, **headers: str) -> httpx.Response:
    """Send something to the endpoint; headers with a _ for each -."""
    given = HEADERS | {"Authorization": f"Bearer {world.token}"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    content = body if isinstance(body, bytes) else httpx.Request("POST", "http://x", json=body).content
    return httpx.post(f"{world.url}/mcp", headers=given, content=content, timeout=PATIENCE)


def test_without_a_valid_token_it_answers_401_with_a_challenge(world: World) -> None:
    session = f"sessionid={session_of(ann(world.team))}"
    for sent in ("", "Basic YTpi", "Bearer", "Bearer hp_nothing"):
        found = post(world, Authorization=sent, Cookie=session)
        assert found.status_code == 401
        assert found.headers["www-authenticate"].startswith('Bearer realm="Holdpoint", error="invalid_')
        assert found.json()["error"] in ("invalid_token", "invalid_request")
    Token.objects.filter(user=world.owner).update(revoked_at="2026-01-01T00:00:00Z")
    assert post(world).status_code == 401


def test_only_its_own_pages_and_only_posts_are_taken(world: World) -> None:
    for origin in ("https://evil.example", "null", "http://127.0.0.1:1"):
        assert post(world, Origin=origin).status_code == 403
    assert post(world, Origin=world.url).status_code == 200
    for method in ("GET", "DELETE", "PUT"):
        found = httpx.request(method, f"{world.url}/mcp", headers={"Authorization": f"Bearer {world.token}"})
        assert (found.status_code, found.headers["allow"]) == (405, "POST")


def test_what_is_ambiguous_is_a_parse_error(world: World) -> None:
    for body, why in (
        (b"{", "cannot be read"),
        (b'{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "tools/list"}', "id"),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"x": NaN}}', "cannot be read"),
    ):
        found = post(world, body)
        assert found.status_code == 400
        assert found.json()["error"]["code"] == -32700
        assert why in found.json()["error"]["message"]


def test_it_lists_its_tools_and_another_is_an_error_of_the_protocol(world: World) -> None:
    assert [tool["name"] for tool in post(world).json()["result"]["tools"]] == TOOLS
    call = {**LIST, "method": "tools/call", "params": {"name": "delete_everything", "arguments": {}}}
    error = post(world, call).json()["error"]
    assert error["code"] == -32602
    assert "There is no tool 'delete_everything'; there are permission_prompt" in error["message"]


def test_a_token_reaches_no_further_here_than_in_the_api(web: str) -> None:
    mine, other = World(web), World(web)
    asked = called(other, "request_approval", {"action": "wire", "title": "Wire it"})
    gate = other.gate()
    hidden = called(mine, "await_decision", {"gate": gate.pk}).result(PATIENCE)
    assert hidden.is_error
    assert "404" in said(hidden)
    assert told(called(mine, "list_gates", {}).result(PATIENCE))["gates"] == []
    assert [each["id"] for each in told(called(other, "list_gates", {}).result(PATIENCE))["gates"]] == [gate.pk]
    decide(gate, "approve")
    assert told(asked.result(PATIENCE))["status"] == "approved"


def test_an_approval_is_asked_for_and_awaited_later(world: World) -> None:
    wire, call = {"to": "ACME", "amount": "120.00"}, Tools(world)
    asking = {"action": "wire", "title": "Pay invoice 7", "arguments": wire, "risk": "high", "pinned": ["amount"]}
    first = json.loads(still_open(lambda: call("request_approval", asking)))
    assert first["status"] == "open"
    worded = {**asking, "title": "Pay ACME", "summary": "It is due.", "risk": "low", "pinned": []}
    assert json.loads(still_open(lambda: call("request_approval", worded))) == first
    gate = world.decides("edit", arguments={"wire": {**wire, "amount": "100.00"}}, comment="A tenth less.")
    assert first["gate"] == gate.pk
    later = told(decided(lambda: call("await_decision", {"gate": gate.pk})))
    assert later["arguments"] == {**wire, "amount": "100.00"}
    assert (later["changes"], later["by"], later["comment"]) == (
        ["amount is now '100.00'"], "Ann Okafor", "A tenth less.",
    )  # fmt: skip
    assert "told_at" in told(decided(lambda: call("await_decision", {"gate": gate.pk})))
    newer = json.loads(still_open(lambda: call("request_approval", asking)))
    assert newer["gate"] != gate.pk, "what was read by the gate's number is not for the next call"


def test_checkpoints_are_saved_one_after_the_other_and_once_each(world: World) -> None:
    def save(**arguments: Any) -> dict[str, Any]:
        return told(called(world, "save_checkpoint", arguments).result(PATIENCE))

    start: dict[str, Any] = {"state": {"plan": [1]}, "title": "Refactor", "request_id": "1"}
    first, again = save(**start), save(**start)  # the answer was lost
    assert (again["run"], again["checkpoint"]) == (first["run"], first["checkpoint"])
    assert "Nothing new was saved" in again["message"]
    for plan in ([1, 2], [1, 2], [1]):  # going back to an earlier state is new
        last = save(run=first["run"], state={"plan": plan}, note="Split the module.")
    assert last["checkpoint"] == first["checkpoint"] + 2
    run = Run.objects.get(team=world.team)
    assert (run.title, Checkpoint.objects.filter(run=run).count()) == ("Refactor", 4)  # with the one it started from
    with world.client() as hp:
        assert hp.run(run.pk).checkpoint(last["checkpoint"]).state == {"state": {"plan": [1]}}
    assert save(**start | {"title": "Another"})["run"] != first["run"]


def test_a_gate_or_a_run_of_something_else_is_no_place_for_it(world: World) -> None:
    asked = {"action": "wire", "title": "Pay", "arguments": WIRE, "pinned": ["amout"]}
    found = called(world, "request_approval", asked).result(PATIENCE)
    assert (found.is_error, "there are no arguments amout" in said(found)) == (True, True)
    assert not Gate.objects.filter(team=world.team).exists()
    with world.client() as hp, hp.resume(world.allowed(hp)) as call:
        run = Run.objects.get(pk=call.run)
        found = called(world, "save_checkpoint", {"run": call.run, "state": {}}).result(PATIENCE)
        assert (found.is_error, f"Run {call.run} was not started by save_checkpoint" in said(found)) == (True, True)
        assert Run.objects.get(pk=run.pk).token == run.token
        call.unknown("The bank did not answer.")
    gate = world.gate("recovery")  # it asks how to go on
    found = called(world, "await_decision", {"gate": gate.pk}).result(PATIENCE)
    assert found.is_error
    assert f"Gate {gate.pk} does not ask whether one thing may be done" in said(found)


def test_a_checkpoint_that_is_refused_leaves_the_run_to_the_next(world: World) -> None:
    deep: dict[str, Any] = {}
    for _ in range(150):
        deep = {"in": deep}

    async def do() -> list[CallToolResult]:
        async with by_stdio(world, "mcp") as client:
            first = await client.call_tool("save_checkpoint", {"state": {}})
            run = told(first)["run"]
            states = [deep, {"plan": [1]}]
            return [first, *[await client.call_tool("save_checkpoint", {"run": run, "state": each}) for each in states]]

    first, bad, good = beside(do).result(PATIENCE)
    assert bad.is_error
    assert told(good)["checkpoint"] == told(first)["checkpoint"] + 1


@pytest.mark.long
def test_a_process_that_ends_answers_those_who_wait(start_web: Callable[..., tuple[services.Service, str]]) -> None:
    service, base = start_web()
    world = World(base)
    params = {"name": "permission_prompt", "arguments": {"tool_name": "Bash", "input": {"command": "ls"}}}
    asked = POOL.submit(lambda: post(world, {**LIST, "method": "tools/call", "params": params}).json())
    world.gate()
    service.process.terminate()
    answer = asked.result(PATIENCE)["result"]["content"][0]["text"]
    assert json.loads(answer)["behavior"] == "deny"
    assert "go on without it, or tell the person" in answer
    assert Gate.objects.open().filter(team=world.team).count() == 1


def test_many_waits_leave_room_for_others(shared_web: Callable[..., str]) -> None:
    """A wait holds neither a thread nor a connection: more wait than the process has; what is too large is refused."""
    limits = {"HOLDPOINT_API_BODY_LIMIT": "20000", "HOLDPOINT_UPLOAD_LIMIT": "1000"}
    world = World(shared_web({"HOLDPOINT_MCP_WAIT": "50", "HOLDPOINT_POOL_SIZE": "3", **limits}))
    assert post(world, b" " * 20_001).status_code == 413

    async def wait_all() -> list[CallToolResult]:
        async with by_http(world) as client:
            calls = [
                client.call_tool("request_approval", {"action": "note", "title": f"Note {at}", "request_id": str(at)})
                for at in range(WAITING)
            ]
            return await asyncio.gather(*calls)

    asked = beside(wait_all)
    gates = until(lambda: opened(world, WAITING), what="the gates", within=2 * PATIENCE)
    assert gates is not None
    assert post(world).status_code == 200
    for gate in gates:
        decide(gate, "approve")
    assert {told(each)["status"] for each in asked.result(2 * PATIENCE)} == {"approved"}
