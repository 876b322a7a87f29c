"""A program with OpenAI's SDK: `openai_teller.py AGENT run KEY | defer [KEY] | resume GATE`. It says what ran."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

from holdpoint import AsyncHoldpoint, HoldpointError, openai_agents

from agents import (
    Agent,
    HostedMCPTool,
    RunContextWrapper,
    RunHooks,
    ShellCommandRequest,
    ShellTool,
    StreamEvent,
    function_tool,
    run_state,
)


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


@function_tool(needs_approval=True)
def refund(order: str, amount: str) -> str:
    """Pay money back."""
    say("ran refund", order, amount)
    return f"paid {amount}"


@function_tool(needs_approval=True)
def mail(to: str) -> str:
    """Send a mail."""
    say("ran mail", to)
    return f"sent to {to}"


@function_tool(needs_approval=True)
def die(order: str) -> str:
    """End the program in the middle of its work."""
    say("ran die", order)
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


@function_tool(needs_approval=True, failure_error_function=None)
def fail(order: str) -> str:
    """Fail in the middle of its work."""
    say("ran fail", order)
    raise OSError("no bank")


@function_tool(needs_approval=True)
def archive(order: str) -> str:
    """Return more than is kept."""
    say("ran archive", order)
    return "x" * 200_000


@function_tool
def look(order: str) -> str:
    """Look something up."""
    say("ran look", order)
    return f"order {order} is known"


def shell(asked: ShellCommandRequest) -> str:
    """Say the commands."""
    say("ran shell", *asked.data.action.commands)
    return "ran"


async def heard(event: StreamEvent) -> None:
    say("event", event.type, getattr(event, "name", ""))


class Said(RunHooks[Any]):
    async def on_tool_start(self, context: RunContextWrapper[Any], agent: Any, tool: Any) -> None:
        say("hook start", tool.name)

    async def on_tool_end(self, context: RunContextWrapper[Any], agent: Any, tool: Any, result: object) -> None:
        say("hook end", tool.name)


TOOLS: list[Any] = [refund, mail, die, fail, archive, look]
plain = Agent[Any](name="Teller", tools=TOOLS)
clerk = Agent[Any](name="Clerk", instructions="clerk", tools=TOOLS)
desk = Agent[Any](name="Desk", instructions="desk", handoffs=[clerk])
chief = Agent[Any](
    name="Chief", instructions="chief", tools=[clerk.as_tool("ask_clerk", "Ask the clerk."), mail, refund]
)
less = Agent[Any](name="Teller", tools=[look])  # the tools were removed since it asked
renamed = Agent[Any](name="Other", tools=TOOLS)
bank: Any = {"type": "mcp", "server_label": "bank", "server_url": "http://127.0.0.1:9", "require_approval": "always"}
operator = Agent[Any](
    name="Operator", tools=[ShellTool(executor=shell, needs_approval=True), HostedMCPTool(tool_config=bank)]
)
AGENTS = {"plain": plain, "desk": desk, "chief": chief, "renamed": renamed, "less": less, "operator": operator}


async def main(name: str, how: str, *more: str) -> None:
    agent, hooks = AGENTS[name], Said()
    if os.environ.get("SAVED_BY"):
        run_state.CURRENT_SCHEMA_VERSION = os.environ["SAVED_BY"]
    given: dict[str, Any] = {"hooks": hooks}
    if os.environ.get("STREAMED"):
        given["events"] = heard
    async with AsyncHoldpoint(lease=1.0, patience=float(os.environ.get("PATIENCE", "60"))) as hp:
        try:
            if how == "defer":
                pending = await openai_agents.defer(agent, "Do it.", hp=hp, title="Do it", key="".join(more))
                say("pending", getattr(pending, "id", pending))
            elif how == "resume":
                timeout = float(more[1]) if more[1:] else None
                result = await openai_agents.resume(agent, int(more[0]), hp=hp, hooks=hooks, timeout=timeout)
                say("final", result.final_output)
            else:
                asked = " ".join(more[1:]) or "Do it."
                result = await openai_agents.run(agent, asked, hp=hp, title="Do it", key=more[0], **given)
                say("final", result.final_output)
        except HoldpointError as error:
            say(type(error).__name__, "|", error, "|", getattr(error, "result", ""))
        except OSError as error:
            say("OSError", error)
        except Exception as error:  # noqa: BLE001 - the test reads it
            say("raised", type(error).__name__, error)


if __name__ == "__main__":
    if sys.argv[2] == "sync":
        say("final", openai_agents.run_sync(AGENTS[sys.argv[1]], "Do it.", key=sys.argv[3]).final_output)
    else:
        asyncio.run(main(*sys.argv[1:]))
