"""Holds back what a server says of itself since it was last let through, and asks people about all of it at one gate.

The question goes on beside the calls, for as long as the gateway runs. Another gateway with the same pin, or this one
after a restart, finds the same gate: its key is made from that pin and the difference. An approval is for this pin
alone, so it lets nothing through a second time.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

import anyio
import mcp_types as types
from mcp import Client, MCPError

from ... import exact_calls
from ...client import AsyncHoldpoint
from ...errors import HoldpointError
from ...posting import Posting
from .. import asking
from ..asking import REST
from ..claude_tools import cut_title
from .client_side import ClientSide
from .pins import Catalogue, Json, Pin, Pins, catalogue_of, describe_tool, same_tool
from .policy import Policy

PAGES = 100  # of a list of tools
ASKS_AS = "mcp_catalogue"
HELD = (
    "Until this is approved, the agent is given what was let through before: changed tools are shown as they were and "
    "are not called, new ones are not offered."
)
OLDER = (
    "The gateway's file was written by an earlier version, which compared one tool at a time. So all that the server "
    "says is asked about, once. Tools that are as they were go on meanwhile; the server's own words are held back."
)


class HeldBack(HoldpointError):
    """The server describes a tool otherwise than it was let through, or the tool is new. It was not called."""


@dataclass(eq=False)
class Question:
    """A question about a difference. `words`: what is known of it; `known`: that something is."""

    words: str = ""
    known: anyio.Event = field(default_factory=anyio.Event)
    over: anyio.Event = field(default_factory=anyio.Event)


class Letting:
    """The words and tools of one server, as far as people let them through."""

    def __init__(self, front: ClientSide, behind: Client, hp: AsyncHoldpoint, policy: Policy, pins: Pins) -> None:
        self.front, self.behind, self.hp, self.policy, self.pins = front, behind, hp, policy, pins
        self.questions: dict[str, Question] = {}

    async def words(self) -> Mapping[str, str]:
        """Return the server's name and its words, as they were let through."""
        with suppress(MCPError, HoldpointError):  # it cannot be looked at now; each call looks again
            await self._look()
        known = self.pins.known
        return known.words if known else {}

    async def offered(self) -> list[types.Tool]:
        """Return the tools that an agent may see. Raises HoldpointError and MCPError."""
        live, pin, _ = await self._look()
        return [types.Tool.model_validate(tool) for tool in pin.offered(live)]

    async def tool(self, name: str, *, patience: float) -> types.Tool | None:
        """Return a tool that may be called; None where there is none. Waits where it is held back.

        Raises HeldBack and other HoldpointErrors, and MCPError.
        """
        live, pin, question = await self._look()
        if name in live.doubled:
            why = f"The server lists several different tools of the name {name[:100]!r}, so none of them is called."
            raise MCPError(types.INVALID_PARAMS, why)
        if question is not None and name in live.tools and not pin.lets(live.tools[name]):
            with anyio.move_on_after(patience):
                await question.over.wait()
            live, pin, _ = await self._look()
            if name in live.tools and not pin.lets(live.tools[name]):
                raise HeldBack(f"{HeldBack.__doc__} {question.words or 'People are asked. Make the same call again.'}")
        return types.Tool.model_validate(live.tools[name]) if name in live.tools else None

    async def is_still(self, tool: types.Tool) -> bool:
        """Tell whether the server describes the tool as it did."""
        now = (await self._read()).tools.get(tool.name)
        return now is not None and same_tool(now, describe_tool(tool))

    async def _look(self) -> tuple[Catalogue, Pin, Question | None]:
        """Return what the server says, what was let through, and the question where these differ."""
        live = await self._read()
        pin = self.pins.pinned(live)
        difference = pin.difference(live)
        if not difference:
            return live, pin, None
        key = exact_calls.digest_values(self.pins.place, pin.id, pin.marks, difference)
        if key not in self.questions:
            posting = replace(_question(live, pin, difference, self.policy), key=f"gateway-{ASKS_AS}-{key}")
            self.questions[key] = Question()
            self.front.tasks.start_soon(self._ask, key, posting, live, pin)
        question = self.questions[key]
        with anyio.move_on_after(REST):  # people may have decided while no gateway ran
            await question.known.wait()
        return live, self.pins.pinned(live), question

    async def _read(self) -> Catalogue:
        """Return what the server says now, without the tools that the policy refuses. Raises NotJson and MCPError."""
        tools: list[types.Tool] = []
        cursor: str | None = None
        for _ in range(PAGES if self.behind.server_capabilities.tools else 0):
            page = await self.behind.list_tools(cursor=cursor, cache_mode="refresh")
            tools += [tool for tool in page.tools if self.policy.rule(tool).do != "refuse"]
            cursor = page.next_cursor
            if cursor is None:
                break
        if cursor is not None:
            raise MCPError(types.INTERNAL_ERROR, f"The server lists its tools on more than {PAGES} pages.")
        return catalogue_of(tools, self.behind.server_info, self.behind.instructions)

    async def _ask(self, key: str, posting: Posting, live: Catalogue, pin: Pin) -> None:
        """Ask people, and pin the catalogue once they approve. What they refuse is not asked about again here."""
        question, refused = self.questions[key], False
        try:
            answer = await asking.decision(self.hp, posting, until=self.hp._api.habits.clock())
            question.words = answer.message
            if answer.status == "open":
                question.known.set()
                answer = await asking.decision(self.hp, posting, until=float("inf"))
            question.words, refused = answer.message, answer.status in ("rejected", "answered")
            if answer.status == "approved" and not answer.changes and self.pins.take(live, instead_of=pin):
                with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                    await self.front.pass_on_change(types.ToolListChangedNotification())
        except HoldpointError as error:
            question.words = asking.in_trouble(error)
        except OSError as error:
            question.words = f"People approved it, but that could not be written down: {error}."
        finally:
            if not refused:
                del self.questions[key]
            question.known.set()
            question.over.set()


def _question(live: Catalogue, pin: Pin, difference: Json, policy: Policy) -> Posting:
    """Return the question about a difference: it is approved whole or not at all."""
    asked = asking.question(
        ASKS_AS, difference, title=_title(live, pin, difference), summary=OLDER if pin.marks else HELD, risk="high",
        policy=policy.policy, thread=policy.thread,
    )  # fmt: skip
    [action] = asked.body["actions"]
    whole = action | {"verdicts": ["approve", "reject"], "draws": pin.drawings(difference)}
    return replace(asked, body=asked.body | {"actions": [whole]})


def _title(live: Catalogue, pin: Pin, difference: Json) -> str:
    counts = [(len(difference[kind]), kind) for kind in ("new", "changed") if kind in difference]
    parts = [f"{count} {kind} tool{'s' * (count > 1)}" for count, kind in counts]
    parts += ["its own words"] if "server" in difference else []
    name = (pin.words or live.words).get("name", "")
    return f"Let through what the MCP server {cut_title(name)} says now: {', '.join(parts)}"
