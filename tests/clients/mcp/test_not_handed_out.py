"""An approval that the server does not hand out allows nothing, and whoever runs the program reads why.

A server older than its clients answers 404 to `handouts`, and 403 to a token without the scope runs:work. No client let
the call pass, but an operator read "There is no such address. GET /api/openapi.json describes all addresses."
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from holdpoint import NotHandedOut
from holdpoint.mcp import server, tools
from holdpoint.mcp.asking import Limits

from approvals.models import Gate
from checkpoints.models import Event, Run
from tests.agents.remote.outside_program import decide
from tests.clients.losing_proxy import Fate, Proxy, Sent
from tests.clients.mcp import test_hook
from tests.clients.mcp.mcp_client import Json, said, told
from tests.clients.world import POOL, WIRE, World
from tests.factories.tokens import make_token
from tests.harness.waiting import PATIENCE

OLDER = (
    "The Holdpoint server is older than this client and cannot hand out the answer at gate {gate} once, so the call "
    "was not made. Update the server, then ask again."
)
NO_SCOPE = (
    "This token may not work on runs, so the answer at gate {gate} was not handed out to it and the call was not made. "
    "Use a token with the scope runs:work."
)
OTHERS = (
    "The server did not hand out the answer at gate {gate}, so the call was not made: No such gate, or you may not see "
    "it. GET /api/gates lists those that you may see."
)
Asks = Callable[[World], str]


def lacking(sent: Sent) -> str:
    """What an older server makes of it: it does not know the address."""
    return "/api/nowhere" if sent.path.endswith("/handouts") else ""


def hiding(sent: Sent) -> str:
    """What the server makes of it where the gate is another team's, or gone."""
    return "/api/gates/987654321/handouts" if sent.path.endswith("/handouts") else ""


@pytest.fixture
def behind(web: str) -> Iterator[Callable[[Fate], World]]:
    """Return behind(fate) -> World, whose program reaches the server through a proxy."""
    made: list[Proxy] = []

    def start(fate: Fate) -> World:
        made.append(Proxy(web, fate))
        return World(made[-1].url)

    yield start
    for each in made:
        each.close()


def by_client(world: World) -> str:
    with world.client() as hp, pytest.raises(NotHandedOut) as refused:
        hp.ask("wire", WIRE)
    assert refused.value.gate == Gate.objects.get(team=world.team).pk
    return str(refused.value)


def by_awaited_client(world: World) -> str:
    async def ask(hp: Any) -> str:
        with pytest.raises(NotHandedOut) as refused:
            await hp.ask("wire", WIRE)
        return str(refused.value)

    return world.awaits(ask).result(PATIENCE)


def by_tool(world: World, call: tools.Call) -> Any:
    """What a tool of the MCP server answers, as `/mcp` and `holdpoint mcp` run it."""
    return asyncio.run(server.answered(call, world.awaited(), Limits(PATIENCE)))


def by_prompt(world: World) -> str:
    answer = told(by_tool(world, tools.PermissionPrompt(tool_name="wire", input=WIRE)))
    assert answer.pop("behavior") == "deny"
    return str(answer.pop("message"))


def by_request(world: World) -> str:
    answer = by_tool(world, tools.RequestApproval(action="wire", title="Pay invoice 7", arguments=WIRE))
    assert answer.is_error
    return said(answer)


def by_hook(world: World) -> str:
    answer: Json = test_hook.asked(world, test_hook.event()).result(PATIENCE) or {}
    assert answer.pop("permissionDecision") == "deny"
    return str(answer.pop("permissionDecisionReason"))


WAYS = [by_client, by_awaited_client, by_prompt, by_request, by_hook]


@pytest.mark.parametrize("ask", WAYS)
@pytest.mark.parametrize(("fate", "words"), [(lacking, OLDER), (hiding, OTHERS)])
def test_a_server_that_is_older_and_a_gate_that_is_hidden_are_told_apart(
    behind: Callable[[Fate], World], fate: Fate, words: str, ask: Asks
) -> None:
    world = behind(fate)
    asked = POOL.submit(ask, world)
    gate = world.decides()
    assert asked.result(PATIENCE).removeprefix("Nothing was done: ") == words.format(gate=gate.pk)
    assert not Event.objects.filter(kind="gate.handed_out", subject=gate.subject).exists()


@pytest.mark.parametrize("ask", WAYS)
def test_a_token_that_may_not_work_on_runs_is_named_with_the_scope_that_it_lacks(world: World, ask: Asks) -> None:
    _, world.token = make_token(
        world.owner, "runs:start", "runs:read", "gates:read", team=world.team, agent=world.agent
    )
    asked = POOL.submit(ask, world)
    gate = world.decides()
    assert asked.result(PATIENCE).removeprefix("Nothing was done: ") == NO_SCOPE.format(gate=gate.pk)
    assert not Event.objects.filter(kind="gate.handed_out", subject=gate.subject).exists()


def test_by_a_gates_number_an_older_server_hands_out_nothing_either(behind: Callable[[Fate], World]) -> None:
    world = behind(lacking)
    with world.client() as hp:
        pending = hp.ask.defer("wire", WIRE)
        world.decides()
        with pytest.raises(NotHandedOut, match="older than this client"):
            hp.said(pending.id)
    answer = by_tool(world, tools.AwaitDecision(gate=pending.id))
    assert answer.is_error
    assert said(answer) == f"Nothing was done: {OLDER.format(gate=pending.id)}"


def test_what_a_run_performs_is_not_told_as_an_answer_beside_it(world: World) -> None:
    """`said` of a gate that was posted by `approve` returned its approval each time, and `resume` performed it too."""
    with world.client() as hp:
        pending = hp.approve.defer("wire", WIRE)
        world.decides()
        with pytest.raises(NotHandedOut, match=rf"gate {pending.id}, so the call was not made: .* done by its run"):
            hp.said(pending.id)
        with hp.resume(pending.id) as call:
            call.done({"id": "tx_1"})
    assert Run.objects.get(pk=pending.run).status == "completed"


def test_an_answer_that_was_kept_back_is_had_once_the_server_is_new(behind: Callable[[Fate], World]) -> None:
    is_older = True
    world = behind(lambda sent: lacking(sent) if is_older else "")
    with world.client() as hp:
        pending = hp.ask.defer("wire", WIRE)
        decide(Gate.objects.get(pk=pending.id))
        with pytest.raises(NotHandedOut):
            hp.said(pending.id)
        is_older = False
        assert hp.said(pending.id).told_at is None
        assert hp.said(pending.id).told_at is not None
