"""Claude Code asks by --permission-prompt-tool: what it gets is its contract, to the letter."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from datetime import datetime, timedelta
from typing import Any

import pytest
from holdpoint import sending
from holdpoint.endings import INSTEAD
from holdpoint.mcp import asking
from mcp import Client
from mcp_types import CallToolResult

from approvals.gates import closing
from approvals.models import Decision, Gate
from checkpoints.actors import SYSTEM
from checkpoints.models import Run
from tests.agents.remote.outside_program import decide
from tests.clients.mcp.mcp_client import beside, by_http, by_stdio, called, decided, kill, said, still_open, told
from tests.clients.world import World
from tests.factories import ann, make_user
from tests.harness import services
from tests.harness.examples import first_alone, trying_all
from tests.harness.waiting import PATIENCE, until

PROMPT = "permission_prompt"
EDIT = {"file_path": "/src/app.py", "old_string": "x = 1\n", "new_string": "x = 2\n"}
PAST = -2.0  # seconds: the server tells its time in whole ones
Way = Callable[[World, dict[str, Any]], Future[CallToolResult]]


def use(input: dict[str, Any], *, tool: str = "Edit", id: str = "") -> dict[str, Any]:
    """What Claude Code sends about the use of a tool."""
    return {"tool_name": tool, "input": input} | ({"tool_use_id": id} if id else {})


@pytest.fixture(params=first_alone(["legacy", "stdio", "auto"], 2))
def prompt(request: pytest.FixtureRequest) -> Way:
    """Prompts by each transport and each age of the protocol."""
    way = str(request.param)

    def ask(world: World, arguments: dict[str, Any]) -> Future[CallToolResult]:
        if way != "stdio":
            return called(world, PROMPT, arguments, mode=way)

        async def do() -> CallToolResult:
            async with by_stdio(world, "mcp") as client:
                return await client.call_tool(PROMPT, arguments)

        return beside(do)

    return ask


def test_what_is_approved_may_be_done_as_it_was_asked(world: World, prompt: Way) -> None:
    asked = prompt(world, use(EDIT, id="toolu_01"))
    gate = world.decides()
    assert told(asked.result(PATIENCE)) == {"behavior": "allow", "updatedInput": EDIT}
    assert gate.title == "Edit /src/app.py"


def test_what_people_change_is_what_may_be_done(world: World, prompt: Way) -> None:
    asked = prompt(world, use(EDIT))
    world.decides("edit", arguments={"Edit": {**EDIT, "new_string": "x = 3\n"}})
    assert told(asked.result(PATIENCE)) == {"behavior": "allow", "updatedInput": {**EDIT, "new_string": "x = 3\n"}}


def test_a_no_is_told_with_its_reason(world: World, prompt: Way) -> None:
    asked = prompt(world, use({"command": "rm -rf build"}, tool="Bash"))
    world.decides("reject", comment="Not while the release runs")
    answer = told(asked.result(PATIENCE))
    assert answer == {
        "behavior": "deny",
        "message": f"Ann Okafor said no to Bash: Not while the release runs. {INSTEAD}",
    }


def test_a_deadline_that_passed_is_told_as_such(world: World) -> None:
    asked = called(world, PROMPT, use(EDIT))
    gate = world.gate()
    closing.pass_deadline(gate)
    closing.expire(gate, by=SYSTEM)
    answer = told(asked.result(PATIENCE))
    assert answer["behavior"] == "deny"
    assert "Nobody answered gate" in answer["message"]


@pytest.mark.parametrize("id", ["toolu_01", ""])
def test_what_takes_longer_than_the_client_waits_is_not_lost(shared_web: Callable[..., str], id: str) -> None:
    world = World(shared_web({"HOLDPOINT_MCP_WAIT": "4"}))
    ask = lambda: called(world, PROMPT, use(EDIT, id=id))  # noqa: E731
    early = json.loads(still_open(ask))
    gate = world.gate()
    assert early["behavior"] == "deny"
    assert f"Nobody has decided yet at gate {gate.pk}, so nothing was done. Go on without it" in early["message"]
    assert json.loads(still_open(ask)) == early
    decide(gate, "approve")
    assert told(decided(ask)) == {"behavior": "allow", "updatedInput": EDIT}
    assert Gate.objects.filter(team=world.team).count() == 1


def test_a_decision_that_came_late_is_for_the_one_call_that_the_model_makes_anew(
    shared_web: Callable[..., str],
) -> None:
    """A call that a model makes anew has a new id: its decision was lost, and people were asked once more."""
    world = World(shared_web({"HOLDPOINT_MCP_WAIT": "1"}))
    still_open(lambda: called(world, PROMPT, use(EDIT, id="toolu_01")))
    decide(world.gate(), "approve")
    again = decided(lambda: called(world, PROMPT, use(EDIT, id="toolu_02")))
    assert told(again) == {"behavior": "allow", "updatedInput": EDIT}
    assert Gate.objects.filter(team=world.team).count() == 1
    third = json.loads(still_open(lambda: called(world, PROMPT, use(EDIT, id="toolu_03"))))
    assert third["behavior"] == "deny"
    assert Gate.objects.filter(team=world.team).count() == 2


def test_a_server_that_was_killed_while_it_waited_finds_its_gate(world: World) -> None:

    async def ask() -> CallToolResult:
        async with by_stdio(world, "mcp") as client:
            return await client.call_tool(PROMPT, use(EDIT, id="toolu_01"))

    first = beside(ask)
    gate = world.gate()
    kill("holdpoint.command", " mcp ")
    with pytest.raises(Exception):  # noqa: B017, PT011 - however the SDK says that the connection is closed
        first.result(PATIENCE)
    decide(gate, "approve")
    assert told(beside(ask).result(PATIENCE)) == {"behavior": "allow", "updatedInput": EDIT}
    assert Gate.objects.filter(team=world.team).count() == 1


def test_a_web_process_that_was_killed_while_it_waited_leaves_the_gate_to_the_next(
    start_web: Callable[..., tuple[services.Service, str]], web: str
) -> None:
    service, base = start_web()
    world = World(base)
    first = called(world, PROMPT, use(EDIT, id="toolu_01"))
    gate = world.gate()
    service.kill()
    with pytest.raises(Exception):  # noqa: B017, PT011
        first.result(PATIENCE)
    decide(gate, "approve")
    world.url = web
    assert told(called(world, PROMPT, use(EDIT, id="toolu_01")).result(PATIENCE))["behavior"] == "allow"
    assert Gate.objects.filter(team=world.team).count() == 1


def refusal(world: World) -> asking.Answer:
    """What the same use without an id is told, asked with hardly any time to wait."""
    posting = asking.keyed(asking.question("Edit", EDIT), "permission")
    return world.awaits(lambda hp: asking.ask(hp, posting, asking.Limits(0.02))).result(PATIENCE)


def test_a_refusal_of_a_use_without_an_id_is_told_again_for_a_while(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refusal(world).status == "open"
    gate = world.decides("reject", comment="Not now")
    assert [(refusal(world).status, refusal(world).gate) for _ in range(2)] == [("rejected", gate.pk)] * 2
    monkeypatch.setattr(asking, "LASTS", PAST)
    newer = refusal(world)
    assert newer.status == "open"
    assert newer.gate != gate.pk
    assert refusal(world).gate == newer.gate


@pytest.mark.parametrize("hours", [-3, 3])
def test_a_refusal_counts_by_the_servers_clock(world: World, monkeypatch: pytest.MonkeyPatch, hours: int) -> None:
    """On a client whose clock was ahead each decision was over at once, so that people were asked without end."""

    class Wrong(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) + timedelta(hours=hours)

    monkeypatch.setattr(sending, "datetime", Wrong)
    assert refusal(world).status == "open"
    gate = world.decides("reject", comment="Not now")
    assert (refusal(world).status, refusal(world).gate) == ("rejected", gate.pk)
    monkeypatch.setattr(asking, "LASTS", PAST)
    assert refusal(world).gate != gate.pk


def test_an_id_is_good_for_one_input_only(world: World) -> None:
    asked = called(world, PROMPT, use(EDIT, id="toolu_01"))
    world.decides()
    assert told(asked.result(PATIENCE))["behavior"] == "allow"
    other = called(world, PROMPT, use({**EDIT, "new_string": "import os\n"}, id="toolu_01"))
    answer = told(other.result(PATIENCE))
    assert answer["behavior"] == "deny"
    assert "used before for another call" in answer["message"]
    assert Gate.objects.filter(team=world.team).count() == 1


@pytest.mark.examples
def test_many_prompts_at_once_get_the_answers_of_two_people(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """The mark: none is misrouted, lost, asked or answered twice, and the run of each has ended."""
    caplog.set_level(logging.WARNING, logger="httpx2")
    number = 100 if trying_all() else 20

    async def one(client: Client, at: int) -> dict[str, Any]:
        """Ask as Claude Code does, and again where people took longer than a call waits."""
        while True:
            command = use({"command": f"echo {at}"}, tool="Bash", id=f"toolu_{at:03}")
            found = told(await client.call_tool(PROMPT, command))
            if "sk again" not in found.get("message", ""):
                return found

    async def ask_all() -> list[dict[str, Any]]:
        async with by_http(world, mode="auto") as client:
            return await asyncio.gather(*(one(client, at) for at in range(number)))

    asked = beside(ask_all)
    gates = until(lambda: opened(world, number), what=f"{number} gates", within=4 * PATIENCE)
    assert gates is not None
    people = [ann(world.team), make_user("Bob Lindqvist", world.team)]
    for at, gate in enumerate(gates):
        person = people[at // 2 % 2]
        if at % 2:
            decide(gate, "approve", by=person)
        else:
            decide(gate, "reject", by=person, comment=f"No {gate.pk}")
    answers = asked.result(8 * PATIENCE)
    assert Counter(each["behavior"] for each in answers) == {"allow": number // 2, "deny": number // 2}
    by_title = {gate.title.removeprefix("Run "): (at, gate) for at, gate in enumerate(gates)}
    for at, each in enumerate(answers):
        place, gate = by_title[f"echo {at}"]
        if place % 2:
            assert each == {"behavior": "allow", "updatedInput": {"command": f"echo {at}"}}
        else:
            who = people[place // 2 % 2].get_full_name()
            assert each["message"] == f"{who} said no to Bash: No {gate.pk}. {INSTEAD}"
    for at, (once, again) in enumerate(zip(answers, beside(ask_all).result(8 * PATIENCE), strict=True)):
        # whose first answer was lost asks again: it reads the same, or for that too late that it was told before
        assert again == once or (once["behavior"] == "allow" and "already. If you have done it" in again["message"]), at
    assert Gate.objects.filter(team=world.team).count() == number
    assert Decision.objects.filter(gate__team=world.team).count() == number
    assert not Run.objects.filter(team=world.team, status__in=Run.LIVE).exists()


def opened(world: World, number: int) -> list[Gate] | None:
    found = list(Gate.objects.open().filter(team=world.team).order_by("pk"))
    return found if len(found) == number else None


def test_what_it_cannot_take_is_an_error_of_the_tool_that_says_what_to_correct(world: World) -> None:
    wrong = called(world, PROMPT, {"tool_name": "Bash", "input": "ls"}).result(PATIENCE)
    assert wrong.is_error
    assert "input: Input should be a valid dictionary" in said(wrong)
    odd = told(called(world, PROMPT, use({}, tool="Ba sh")).result(PATIENCE))
    assert odd["behavior"] == "deny"
    assert "letters, digits" in odd["message"]
    assert not Gate.objects.filter(team=world.team).exists()
