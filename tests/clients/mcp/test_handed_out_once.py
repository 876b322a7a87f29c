"""An approval is handed out to one call, by the server's record, also where the program only asked.

`request_approval` without an id, `permission_prompt` and the hook were answered "approved" for ten minutes from one
gate: the same call ran again nine minutes later, and nobody had been asked. Under its id it ran again without end: the
hook and `permission_prompt` took no notice of when it was told first.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from holdpoint.mcp import asking, hook, tools
from holdpoint.mcp.asking import Limits

from approvals.models import Gate
from checkpoints.models import Event
from tests.agents.remote.outside_program import decide
from tests.clients.mcp.mcp_client import Json, called, decided, said, still_open, told
from tests.clients.world import POOL, World
from tests.harness.waiting import PATIENCE, until

WIRE: Json = {"action": "wire", "title": "Pay invoice 7", "arguments": {"to": "ACME", "amount": "120.00"}}
USE: Json = {"tool_name": "Bash", "input": {"command": "make deploy"}}


PAST = -2.0  # seconds: the server tells its time in whole ones


def by_hook(world: World) -> tuple[str, str]:
    """What a deferred use of a tool is answered: the decision and the reason."""
    use = hook.Use(tool_name="Bash", tool_input=USE["input"], tool_use_id="toolu_01")
    settings, limits = hook.Settings(late="defer"), Limits(PATIENCE)

    async def run(hp: Any) -> asking.Answer:
        return await hook.asked_of_people(hp, use, settings, limits)

    inside = hook.in_terms(world.awaits(run).result(PATIENCE), use, settings)["hookSpecificOutput"]
    return inside["permissionDecision"], inside["permissionDecisionReason"]


def by_prompt(world: World) -> tuple[str, str]:
    """What a use of a tool with an id is answered: the behavior and the message."""
    call, limits = tools.PermissionPrompt(**USE, tool_use_id="toolu_01"), Limits(PATIENCE)
    found = world.awaits(lambda hp: call.run(hp, limits)).result(PATIENCE)
    return found["behavior"], found.get("message", "")


@pytest.mark.parametrize("ask", [by_hook, by_prompt])
def test_a_use_that_was_allowed_is_allowed_again_only_while_its_answer_may_be_lost(
    world: World, monkeypatch: pytest.MonkeyPatch, ask: Callable[[World], tuple[str, str]]
) -> None:
    monkeypatch.setattr(asking, "LOST", 10 * PATIENCE)
    asked = POOL.submit(ask, world)
    gate = world.decides()
    assert asked.result(PATIENCE)[0] == "allow"
    assert ask(world)[0] == "allow"
    monkeypatch.setattr(asking, "LOST", PAST)
    at = Event.objects.get(kind="gate.handed_out", subject=gate.subject).at
    assert ask(world) == (
        "deny",
        f"You were told this at {at:%H:%M} UTC on {at:%-d %B} already. If you have done it, do not do it again. "
        "An approval is for one call, so this one is not allowed: make it anew, and people are asked again.",
    )
    assert gates(world) == 1


def gates(world: World) -> int:
    return Gate.objects.filter(team=world.team).count()


@pytest.mark.parametrize(("name", "call"), [("request_approval", WIRE), ("permission_prompt", USE)])
def test_the_same_call_without_an_id_is_asked_about_again(world: World, name: str, call: Json) -> None:
    for number in (1, 2, 3):
        asked = called(world, name, call)
        world.decides()
        answer = told(asked.result(PATIENCE))
        assert answer.get("status", answer.get("behavior")) in ("approved", "allow")
        assert gates(world) == number


def test_of_two_calls_that_wait_at_one_gate_one_has_its_approval(world: World) -> None:
    both = [called(world, "request_approval", WIRE) for _ in range(2)]
    first = world.gate()
    until(lambda: Event.objects.filter(run_id=first.run_id).exists(), what="both wait")
    decide(first, "approve")
    second = world.gate()
    assert second.pk != first.pk
    assert [each.done() for each in both].count(True) <= 1
    decide(second, "approve")
    answers = [told(each.result(PATIENCE)) for each in both]
    assert {each["gate"] for each in answers} == {first.pk, second.pk}
    assert all("told_at" not in each for each in answers)


def test_under_its_id_the_same_answer_is_read_again_and_says_when_it_was_told(world: World) -> None:
    call = {**WIRE, "request_id": "7"}
    asked = called(world, "request_approval", call)
    gate = world.decides()
    first = told(asked.result(PATIENCE))
    again = told(called(world, "request_approval", call).result(PATIENCE))
    at = Event.objects.get(kind="gate.handed_out", subject=gate.subject).at
    assert again["message"] == (
        f"You were told this at {at:%H:%M} UTC on {at:%-d %B} already. If you have done it, do not do it again. "
        f"{first['message']}"
    )
    assert again["told_at"] == at.isoformat()
    assert again["arguments"] == first["arguments"]
    assert gates(world) == 1


def test_what_was_read_by_the_gates_number_is_not_for_the_next_call(shared_web: Callable[..., str]) -> None:
    world = World(shared_web({"HOLDPOINT_MCP_WAIT": "4"}))
    gate = json.loads(still_open(lambda: called(world, "request_approval", WIRE)))["gate"]
    decide(world.gate(), "approve")
    read = lambda: called(world, "await_decision", {"gate": gate})  # noqa: E731
    assert "told_at" not in told(decided(read))
    assert "told_at" in told(decided(read))
    newer = json.loads(still_open(lambda: called(world, "request_approval", WIRE)))
    assert newer["gate"] != gate
    assert told(decided(read))["status"] == "approved"


def handed(world: World, gate: Gate, to: str, **more: str) -> Any:
    import httpx

    from tests.clients.mcp.test_endpoint import HEADERS

    return httpx.post(
        f"{world.url}/api/gates/{gate.pk}/handouts", json={"to": to, **more},
        headers=HEADERS | {"Authorization": f"Bearer {world.token}"}, timeout=PATIENCE,
    )  # fmt: skip


def test_a_call_that_was_killed_after_the_record_leaves_nothing_for_the_next(shared_web: Callable[..., str]) -> None:
    """At most once: the record is written before the answer is sent, so what is lost in between is asked again."""
    world = World(shared_web({"HOLDPOINT_MCP_WAIT": "4"}))
    still_open(lambda: called(world, "request_approval", WIRE))
    gate = world.decides()
    assert handed(world, gate, "killed").json()["first"] is True
    newer = json.loads(still_open(lambda: called(world, "request_approval", WIRE)))
    assert newer["gate"] != gate.pk
    read = told(called(world, "await_decision", {"gate": gate.pk}).result(PATIENCE))
    assert (read["status"], "arguments" in read) == ("told", False)
    assert "to another call" in read["message"]


def test_two_ids_never_have_the_same_approval(shared_web: Callable[..., str]) -> None:
    """The second id takes a late decision along; then the first one asks again, since its answer was lost."""
    world = World(shared_web({"HOLDPOINT_MCP_WAIT": "4"}))
    still_open(lambda: called(world, "permission_prompt", {**USE, "tool_use_id": "toolu_01"}))
    decide(world.gate(), "approve")
    second = told(decided(lambda: called(world, "permission_prompt", {**USE, "tool_use_id": "toolu_02"})))
    assert second["behavior"] == "allow"
    first = told(called(world, "permission_prompt", {**USE, "tool_use_id": "toolu_01"}).result(PATIENCE))
    assert (first["behavior"], "to another call" in first["message"]) == ("deny", True)
    assert said(called(world, "list_gates", {}).result(PATIENCE)) == '{"gates": [], "next": null}'
