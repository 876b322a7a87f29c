"""What a server behind the gateway asks and tells its client, for clients and servers of either age of the protocol."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.client.subscriptions import ResourceUpdated, ToolsListChanged

from agents.models import Effect
from tests.clients.mcp.gateway_files import Files
from tests.clients.mcp.mcp_client import Json, beside, said
from tests.clients.mcp.talking_server import NOTE
from tests.clients.world import World
from tests.conftest import Starter
from tests.harness.examples import first_alone
from tests.harness.services import WARM, free_port
from tests.harness.waiting import PATIENCE

NAMES = "tests.clients.mcp.talking_server"
ASK: Json = {"tools": {"touch": "pass"}}
PASS: Json = {"tools": {"*": "pass"}}
ANSWERS = ['{"action":"accept","content":{"colour":"blue"}}', '"hello"', "file:///src"]


@pytest.fixture(params=first_alone(["legacy", "auto"]))
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=first_alone(["handshake", "streams", "http"]))
def talk(request: pytest.FixtureRequest, world: World, tmp_path: Path, start_service: Starter) -> Files:
    """The gateway before the talking server, in processes of their own."""
    http = request.param == "http"
    behind = [listening(start_service)] if http else ["--", *WARM.standing("-m", NAMES, request.param)]
    return Files(world, tmp_path, PASS, in_processes=True, behind=behind)


def listening(start_service: Starter, **env: str) -> str:
    port = free_port()
    start_service("talking", [sys.executable, "-m", NAMES, str(port)], env).says("Uvicorn running")
    return f"http://127.0.0.1:{port}/mcp"


async def elicited(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    assert params.message == "Which colour?"
    return types.ElicitResult(action="accept", content={"colour": "blue"})


async def sampled(context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    return types.CreateMessageResult(role="assistant", content=types.TextContent(text="hello"), model="m")


async def roots(context: Any) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root(uri="file:///src")])  # type: ignore[arg-type]


CAN: dict[str, Callable[..., Any]] = {
    "elicitation_callback": elicited, "sampling_callback": sampled, "list_roots_callback": roots,
}  # fmt: skip


def test_what_the_server_asks_of_its_client_is_asked_and_answered(talk: Files, mode: str) -> None:
    talk.policy = ASK  # also in the middle of a call that people approved

    async def do() -> str:
        async with talk.client(mode=mode, **CAN) as client:
            return said(await client.call_tool("survey", {}))

    asked = beside(do)
    gate = talk.world.decides()
    text = asked.result(PATIENCE)
    assert all(each in text for each in ANSWERS), text
    assert Effect.objects.get(run=gate.run_id).attempts == 1


def test_what_the_client_cannot_do_is_refused_and_people_are_not_asked_to_guess(talk: Files, mode: str) -> None:
    async def do() -> str:
        async with talk.client(mode=mode) as client:
            with pytest.raises(MCPError) as told:
                await client.call_tool("colour", {})
            return told.value.message

    assert "not supported" in beside(do).result(PATIENCE)


def test_who_the_server_is_and_what_it_tells_reaches_its_client(talk: Files, mode: str) -> None:
    reported, heard = list[Any](), list[Any]()

    async def hear(message: Any) -> None:
        heard.append(message)

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        reported.append((progress, total, message))

    async def touch(client: Client) -> None:
        meta: Any = {types.LOG_LEVEL_META_KEY: "info"} if mode == "auto" else None
        assert said(await client.call_tool("touch", {}, progress_callback=progressed, meta=meta)) == "touched"

    async def do() -> set[Any]:
        async with talk.client(mode=mode, message_handler=hear, logging_callback=hear) as client:
            info: Any = client.server_info
            can = client.server_capabilities
            assert (info.name, info.version, info.title) == ("talking", "7", "Talks")
            assert can.tools is not None and can.tools.list_changed  # noqa: PT018
            completed = await client.complete(types.PromptReference(name="tidy"), {"name": "a", "value": "half"})
            assert completed.completion.values == ["half-whole"]
            if mode == "auto":
                async with client.listen(tools_list_changed=True, resource_subscriptions=[NOTE]) as events:
                    await touch(client)
                    return {await anext(events), await anext(events)}
            send = client.session.send_request
            await send(types.SetLevelRequest(params=types.SetLevelRequestParams(level="info")), types.EmptyResult)
            subscribed = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=NOTE))
            await send(subscribed, types.EmptyResult)
            await touch(client)
            while len(changes(heard)) < 2:  # the client's own limit ends it
                await anyio.sleep(0.01)
            return changes(heard)

    assert beside(do).result(PATIENCE) == {ToolsListChanged(), ResourceUpdated(NOTE)}
    assert reported == [(1, 2, "Half of it")]
    logged = [each for each in heard if isinstance(each, types.LoggingMessageNotificationParams)]
    assert [(each.level, each.logger) for each in logged] == [("info", "talking")]


def changes(heard: list[Any]) -> set[Any]:
    """The changes among what a client of the handshake era heard."""
    found: set[Any] = set()
    for each in heard:
        if isinstance(each, types.ToolListChangedNotification):
            found.add(ToolsListChanged())
        if isinstance(each, types.ResourceUpdatedNotification):
            found.add(ResourceUpdated(str(each.params.uri)))
    return found


def test_the_token_of_a_server_with_an_address_is_sent_to_it_and_not_holdpoints(
    web: str, tmp_path: Path, start_service: Starter
) -> None:
    address = listening(start_service, TALKING_TOKEN="of-the-server")
    behind = ["--token-env", "OTHER_TOKEN", "--", address]
    talk = Files(World(web), tmp_path, {}, in_processes=True, behind=behind, env={"OTHER_TOKEN": "of-the-server"})

    async def do() -> str:
        async with talk.client() as client:
            return said(await client.call_tool("touch", {}))

    asked = beside(do)
    talk.world.decides()
    assert asked.result(PATIENCE) == "touched"
