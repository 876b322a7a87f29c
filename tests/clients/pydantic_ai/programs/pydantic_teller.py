"""A program with Pydantic AI: `pydantic_teller.py AGENT run KEY | defer [KEY] | resume GATE`. It says what ran."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from types import SimpleNamespace
from typing import Any

from holdpoint import AsyncHoldpoint, HoldpointError
from holdpoint import pydantic_ai as holdpoint_ai
from holdpoint.pydantic_ai import running
from pydantic_ai import Agent, ApprovalRequired, CallDeferred, ModelRetry, RunContext
from pydantic_ai.messages import ToolCallPart

MODEL = "openai-responses:gpt-5.2"


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


plain = Agent(MODEL, name="Teller", deps_type=str)


@plain.tool_plain(requires_approval=True)
def refund(order: str, amount: str = "5.00") -> dict[str, Any]:
    """Pay money back."""
    say("ran refund", order, amount)
    return {"paid": amount}


@plain.tool
def mail(ctx: RunContext[str], to: str) -> str:
    """Send a mail."""
    if not ctx.tool_call_approved:
        raise ApprovalRequired(metadata={"why": "it leaves the house"})
    say("ran mail", to, ctx.deps)
    return f"sent to {to}"


@plain.tool_plain(requires_approval=True)
def die(order: str) -> str:
    """End the program in the middle of its work."""
    say("ran die", order)
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


@plain.tool_plain(requires_approval=True)
def again(order: str) -> str:
    """Ask the model to do it again."""
    say("ran again", order)
    raise ModelRetry("Take order 8.")


@plain.tool_plain
def look(order: str, amount: str = "5.00") -> str:
    """Look something up."""
    say("ran look", order)
    return f"order {order} is known"


@plain.tool_plain
def elsewhere(order: str) -> str:
    """Have it done elsewhere."""
    raise CallDeferred


async def external(call: ToolCallPart) -> str:
    """Do it elsewhere."""
    say("external", call.tool_name, call.args_as_dict())
    return "done elsewhere"


clerk = Agent(MODEL, name="Clerk", deps_type=str)


@clerk.tool_plain(requires_approval=True, name="refund")
def refund_as_clerk(order: str, amount: str = "5.00") -> str:
    """Pay money back from another account."""
    say("ran refund as clerk", order, amount)
    return "paid"


less = Agent(MODEL, name="Teller", deps_type=str)  # the tools were removed since it asked


@plain.tool_plain(requires_approval=True)
def archive(order: str) -> str:
    """Return more than is kept."""
    say("ran archive", order)
    return "x" * 200_000


AGENTS: dict[str, Any] = {"plain": plain, "elsewhere": plain, "clerk": clerk, "less": less}


async def main(name: str, how: str, *more: str) -> None:
    agent = AGENTS[name]
    if os.environ.get("SAVED_BY"):
        newer: Any = SimpleNamespace(dump_python=lambda *_, **__: [{"kind": os.environ["SAVED_BY"]}])
        vars(running)["ModelMessagesTypeAdapter"] = newer
    given: dict[str, Any] = {"options": {"deps": "Olga"}} | ({"external": external} if name == "elsewhere" else {})
    async with AsyncHoldpoint(lease=1.0, patience=float(os.environ.get("PATIENCE", "60"))) as hp:
        try:
            if how == "defer":
                pending = await holdpoint_ai.defer(agent, "Do it.", hp=hp, title="Do it", key="".join(more), **given)
                say("pending", getattr(pending, "id", pending))
            elif how == "resume":
                timeout = float(more[1]) if more[1:] else None
                say("final", (await holdpoint_ai.resume(agent, int(more[0]), hp=hp, timeout=timeout, **given)).output)
            else:
                asked = " ".join(more[1:]) or "Do it."
                result = await holdpoint_ai.run(agent, asked, hp=hp, title="Do it", key=more[0], **given)
                say("final", result.output)
        except HoldpointError as error:
            say(type(error).__name__, "|", error, "|", getattr(error, "result", ""))
        except Exception as error:  # noqa: BLE001 - the test reads it
            say("raised", type(error).__name__, error)


if __name__ == "__main__":
    if sys.argv[2] == "sync":
        options = {"deps": "Olga"}
        say("final", holdpoint_ai.run_sync(AGENTS[sys.argv[1]], "Do it.", key=sys.argv[3], options=options).output)
    else:
        asyncio.run(main(*sys.argv[1:]))
