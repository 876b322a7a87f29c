"""The MCP server: Holdpoint's tools, over whatever transport its caller runs it on, as `holdpoint mcp` on stdin.

`connect` gives the HTTP client for one request: its token is the caller's, so every rule of the API holds here too.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from holdpoint.sending import Request

from .. import exact_calls
from ..client import AsyncHoldpoint
from ..endings import not_done
from ..errors import HoldpointError
from ..posting import Risk, Step
from ..runs import LOG, AsyncRun
from . import asking
from .asking import REST, WAIT, Limits, describe_fault

LATE = not_done(
    f"{asking.LATE}, so nothing was done", "If people were asked, the same call gives their decision once there is one."
)
SAVES, VERSION = "save", "mcp-checkpoints-1"
TOKENS_OWN = "-"  # the agent that the token is for
OWN = ("posted-", "mcp-")  # the beginnings of versions that no program of the agent's own registered
LISTED = ("id", "url", "run", "agent", "title", "risk", "opened_at")  # of an open gate
Json = dict[str, Any]


class Call(BaseModel):
    """The arguments of a tool, and the call that they make."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    name: ClassVar[str]
    does: ClassVar[str]
    reads: ClassVar[bool] = False  # it changes nothing

    async def run(self, hp: AsyncHoldpoint, limits: Limits) -> Json:
        """Do it. Raises HoldpointError."""
        raise NotImplementedError

    def late(self) -> Json:
        """Return the answer where it took too long."""
        return self.denial(LATE) or {"status": "open", "message": LATE}

    def denial(self, why: str) -> Json | None:
        """Return the answer that nothing may be done; None where that is an error of the tool."""
        return None


class PermissionPrompt(Call):
    """Claude Code's --permission-prompt-tool."""

    model_config = ConfigDict(extra="ignore")  # a newer client may send more
    name = "permission_prompt"
    does = (
        "Asks people whether a tool may be used with this input: Claude Code's --permission-prompt-tool. Answers JSON: "
        'behavior "allow" with updatedInput, which is what may be done, or "deny" with a message.'
    )
    tool_name: str = Field(description="The tool.", min_length=1, max_length=200)
    input: Json = Field(description="Its input.")
    tool_use_id: str | None = Field(
        None, description="The client's id of this use: the same id is the same question.", max_length=200
    )

    async def run(self, hp: AsyncHoldpoint, limits: Limits) -> Json:
        """Ask, and answer as the contract says."""
        asked = asking.question(self.tool_name, self.input)
        if self.tool_use_id:
            found = await asking.ask_once(hp, asked, "permission", self.tool_use_id, limits)
        else:
            found = await asking.ask(hp, asking.keyed(asked, "permission"), limits)
        found = asking.for_once(hp, found)
        if found.status == "approved":
            return {"behavior": "allow", "updatedInput": found.arguments}
        return self.denial(found.message)

    def denial(self, why: str) -> Json:
        return {"behavior": "deny", "message": why}


class RequestApproval(Call):
    """Ask about anything."""

    name = "request_approval"
    does = (
        "Asks people to approve something before you do it, and waits a while for their decision. If `status` is "
        "approved, do it with the `arguments` of the answer, which people may have changed, and only so. If it is "
        "open, await_decision gives the decision by the gate's number. If it is rejected or expired, go on without it "
        "or ask the person: do not do it another way, and do not ask for it again unasked. An approval is for one "
        "call: the next one asks people again. `told_at` says that you were told it before."
    )
    action: str = Field(description="What you want to do: a short name, as send_mail.", min_length=1, max_length=100)
    arguments: Json = Field({}, description="With which values, exactly as you will use them.")
    title: str = Field(description="What you ask, in one line.", min_length=1, max_length=500)
    summary: str = Field("", description="Why, in your own words.", max_length=20_000)
    risk: Risk = Field("medium", description="How much harm it could do.")
    reasons: list[str] = Field([], description="The reasons for the risk.", max_length=50)
    pinned: list[str] = Field([], description="The names of the arguments that people have to check.", max_length=50)
    request_id: str = Field("", description="Your id of this request: the same id asks once.", max_length=200)

    @field_validator("pinned")
    @classmethod
    def check_pinned(cls, pinned: list[str], info: ValidationInfo) -> list[str]:
        """Refuse a name that is none of the arguments': people would not see what they have to check."""
        if absent := [name for name in pinned if name not in info.data.get("arguments", {})]:
            raise ValueError(f"there are no arguments {', '.join(absent)}")
        return pinned

    async def run(self, hp: AsyncHoldpoint, limits: Limits) -> Json:
        """Ask, and return the answer."""
        words = self.model_dump(include={"title", "summary", "risk", "reasons", "pinned"})
        posting = asking.keyed(asking.question(self.action, self.arguments, **words), "approval", id=self.request_id)
        return (await asking.ask(hp, posting, limits, to=posting.key if self.request_id else "")).as_json()


class AwaitDecision(Call):
    """Wait for a decision."""

    name = "await_decision"
    does = (
        "Waits a while for people's decision at a gate, and returns it; `status` is open if there is none yet, told if "
        "another call has the approval already."
    )
    gate: int = Field(description="The gate's number.", ge=1, le=2**62)

    async def run(self, hp: AsyncHoldpoint, limits: Limits) -> Json:
        """Wait, and return the answer."""
        return (await asking.read(hp, self.gate, limits)).as_json()


class SaveCheckpoint(Call):
    """Save the state of the work."""

    name = "save_checkpoint"
    does = (
        "Saves the state of your work as a checkpoint, which people can read, name and compare, and from which you can "
        "go on. The first call starts a run: give its number as `run` to add to it. The state of the newest checkpoint "
        "is not saved again, so a call whose answer was lost may be repeated."
    )
    state: Json = Field(description="The whole state, as JSON.")
    note: str = Field("", description="What you did since the last checkpoint.", max_length=2000)
    title: str = Field("", description="For a new run: its title.", max_length=200)
    run_id: int | None = Field(None, alias="run", description="The run to add to; none starts one.", ge=1, le=2**62)
    request_id: str = Field(
        "", description="For a new run: your id of this request; the same id starts one.", max_length=200
    )

    async def run(self, hp: AsyncHoldpoint, limits: Limits) -> Json:
        """Save it, and return the run and the checkpoint's number."""
        number = self.run_id or await self._started(hp)
        run = hp.run(number)
        if (await run.read()).agent_version != VERSION:
            raise HoldpointError(f"Run {number} was not started by save_checkpoint. Leave `run` out to start another.")
        turn = await run.claim(timeout=limits.patient / 2)
        extra: Json = {}
        try:
            if exact_calls.encode_canonical(run.state.get("state")) == exact_calls.encode_canonical(self.state):
                extra["message"] = f"Nothing new was saved: this is the state of checkpoint {turn.seq} already."
            else:
                notes = [self.note] if self.note else []
                turn = await run.save(SAVES, set={"state": self.state}, next_step=SAVES, notes=notes)
        finally:
            await _release_run(run)
        return {"run": number, "checkpoint": turn.seq, "url": f"{hp.url}/runs/{number}/"} | extra

    def late(self) -> Json:
        safe = "make the same call again, it saves once" if self.run_id or self.request_id else "look whether it did"
        return {"status": "unknown", "message": f"Holdpoint did not answer in time, and may have saved this: {safe}."}

    async def _started(self, hp: AsyncHoldpoint) -> int:
        """Start a run of the token's agent. Raises HoldpointError where the agent has a plan of its own."""
        agents = (await hp._io.run(hp._api.sent(Request("GET", "agents"))))["items"]
        if not all(version.startswith(OWN) for agent in agents for version in agent["versions"]):
            raise HoldpointError(
                "This token's agent has a plan of its own, whose program saves its checkpoints. Take a token of "
                "another agent."
            )
        plan = [Step(name=SAVES, title="Save a checkpoint", writes=["state"], jumps=[SAVES], ends=True)]
        schema = {"type": "object", "properties": {"state": {"type": "object"}}, "required": ["state"]}
        await hp.register(VERSION, plan, agent=TOKENS_OWN, state=schema, doc="Saves checkpoints by MCP.")
        title = self.title or "Checkpoints"
        key = f"checkpoints-{exact_calls.digest_values(self.request_id, title)}" if self.request_id else ""
        return int((await hp.start({"state": {}}, version=VERSION, title=title, key=key)).id)


class ListGates(Call):
    """List what is open."""

    name = "list_gates"
    does = "Lists the gates at which people have not decided yet, the longest open first."
    reads = True
    cursor: str = Field("", description="`next` of the page before.", max_length=200)

    async def run(self, hp: AsyncHoldpoint, limits: Limits) -> Json:
        """Return one page."""
        asked = Request("GET", "gates", {"cursor": self.cursor} if self.cursor else {})
        found = await hp._io.run(hp._api.sent(asked))
        return {"gates": [{name: gate[name] for name in LISTED} for gate in found["items"]], "next": found.get("next")}


TOOLS: Mapping[str, type[Call]] = {
    kind.name: kind for kind in (PermissionPrompt, RequestApproval, AwaitDecision, SaveCheckpoint, ListGates)
}


async def _release_run(run: AsyncRun) -> None:
    """Release a run after a failure too: its heartbeats would hold it for as long as this process lives."""
    try:
        with anyio.move_on_after(REST, shield=True):
            await run.release()
    except HoldpointError as error:
        LOG.info("%s was not released: %s", run, error)
    finally:
        if run._held is not None:
            run._held.let_go()


Context = ServerRequestContext[Any, Any]
Connect = Callable[[Context], AbstractAsyncContextManager[AsyncHoldpoint]]
SERVES = "`holdpoint mcp`: the MCP server over stdin and stdout, with the address and the token of the environment."
INSTRUCTIONS = (
    "Ask people before you do something that has effects. A rejection is final: do not do the same another way. "
    "People may change the arguments: use theirs."
)


def build_server(connect: Connect, limits: Limits) -> Server[Any]:
    """Return the server."""

    async def on_list_tools(context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[described(kind) for kind in TOOLS.values()])

    async def on_call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        kind = TOOLS.get(params.name)
        if kind is None:
            known = ", ".join(TOOLS)
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name[:100]!r}; there are {known}.")
        try:
            call = kind.model_validate(params.arguments or {})
        except ValidationError as error:
            faults = "; ".join(map(describe_fault, error.errors()[:20]))
            return tool_error(f"Nothing was asked: correct these arguments of {params.name}. {faults}")
        return await answered(call, connect(context), limits)

    return Server(
        "holdpoint", title="Holdpoint", version=release(), instructions=INSTRUCTIONS, on_list_tools=on_list_tools,
        on_call_tool=on_call_tool,
    )  # fmt: skip


def described(kind: type[Call]) -> types.Tool:
    """Return how clients see a tool."""
    hints = types.ToolAnnotations(read_only_hint=kind.reads, destructive_hint=False, open_world_hint=False)
    schema = kind.model_json_schema()
    schema.pop("title", None)
    schema.pop("description", None)
    return types.Tool(name=kind.name, description=kind.does, input_schema=schema, annotations=hints)


async def answered(
    call: Call, connection: AbstractAsyncContextManager[AsyncHoldpoint], limits: Limits
) -> types.CallToolResult:
    """Return the tool's answer; it comes within the limit, whatever the network does.

    Where it was not possible that is a denial, if the tool has one.
    """
    answer: Json | None = call.late()
    try:
        with limits.within():
            async with connection as hp:
                answer = await call.run(hp, limits)
    except HoldpointError as error:
        why = asking.in_trouble(error)
        answer = call.denial(why)
        if answer is None:
            return tool_error(why)
    return types.CallToolResult(content=[types.TextContent(text=json.dumps(answer, ensure_ascii=False))])


def tool_error(why: str) -> types.CallToolResult:
    """Return an error of the tool, which its caller's model reads."""
    return types.CallToolResult(content=[types.TextContent(text=why)], is_error=True)


def release() -> str:
    """Return the version of the package; "" where it is not installed, as beside the server."""
    try:
        return version("holdpoint")
    except PackageNotFoundError:
        return ""


def main(arguments: Sequence[str]) -> int:
    """Serve until stdin ends; return the exit code."""
    asked = parser().parse_args(arguments)
    try:
        AsyncHoldpoint(asked.url)  # says at once what is missing
        limits = Limits(asked.wait)
    except (HoldpointError, ValueError) as error:
        sys.stderr.write(f"holdpoint mcp: {error}\n")
        return 2
    anyio.run(serve, asked.url, limits)
    return 0


async def serve(url: str, limits: Limits) -> None:
    """Serve one client."""
    async with AsyncHoldpoint(url, patience=limits.patient) as hp:

        @asynccontextmanager
        async def connect(context: Context) -> AsyncIterator[AsyncHoldpoint]:
            yield hp

        served = build_server(connect, limits)
        async with stdio_server() as (reads, writes):
            await served.run(reads, writes, served.create_initialization_options())


def parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments."""
    made = argparse.ArgumentParser(prog="holdpoint mcp", description=SERVES)
    made.add_argument("--url", default="", help="the server's address; otherwise HOLDPOINT_URL")
    wait = "seconds that a call waits for people, below your client's own limit (%(default)g)"
    made.add_argument("--wait", type=float, default=WAIT, help=wait)
    return made
