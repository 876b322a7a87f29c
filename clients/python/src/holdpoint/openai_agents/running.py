"""`run`, `defer` and `resume`: `Runner.run` of the SDK, with people in it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from agents import Agent, RunConfig, RunHooks, Session, StreamEvent, TResponseInputItem
from typing_extensions import Unpack

from ..approvals import Pending
from ..client import AsyncHoldpoint
from ..tool_runs.starting import Asked, Placed, Shown, find_tool_run, run_to_end, start_tool_run
from .framework import OpenAIAgent, Options, Result


class Resuming(Shown, total=False):
    """The texts of further gates, and the arguments of `Runner.run`: those that the run was started with.

    With `events` the run is streamed (`Runner.run_streamed`): it is awaited with each event.
    """

    context: Any
    run_config: RunConfig
    hooks: RunHooks[Any]
    session: Session
    max_turns: int
    events: Callable[[StreamEvent], Awaitable[None]]


class Asking(Resuming, Placed, total=False):
    """The texts of the gates, the arguments of `Runner.run`, and the run's place."""


async def run(
    agent: Agent[Any],
    input: str | list[TResponseInputItem],
    *,
    hp: AsyncHoldpoint,
    timeout: float | None = None,
    **asking: Unpack[Asking],
) -> Result:
    """Run the agent to its end; whenever calls need approval, wait for people.

    `key`: your own name for this run; after a crash, the same call goes on from where it was. `timeout`: seconds to
    wait for people at a gate.

    Raises StillOpen after the timeout, Rejected, Withdrawn and Stopped where people ended the run, AlreadyDone for a
    key whose run has ended (`result` is its output), CannotAsk, CannotResume, StateTooLarge and KeyReused.
    """
    asked = Asked.from_arguments(asking)
    return await run_to_end(await start_tool_run(hp, OpenAIAgent(agent, Options(**asked.own)), input, asked), timeout)


def run_sync(
    agent: Agent[Any],
    input: str | list[TResponseInputItem],
    *,
    url: str = "",
    token: str = "",
    timeout: float | None = None,
    **asking: Unpack[Asking],
) -> Result:
    """Do what `run` does in a program without an event loop, with a client of its own.

    Address and token are from HOLDPOINT_URL and HOLDPOINT_TOKEN unless given.
    """

    async def ran() -> Result:
        async with AsyncHoldpoint(url, token) as hp:
            return await run(agent, input, hp=hp, timeout=timeout, **asking)

    return asyncio.run(ran())


async def defer(
    agent: Agent[Any], input: str | list[TResponseInputItem], *, hp: AsyncHoldpoint, **asking: Unpack[Asking]
) -> Result | Pending:
    """Run the agent until calls need approval, and return the open gate without waiting; or its result, if none do."""
    asked = Asked.from_arguments(asking)
    begun = await start_tool_run(hp, OpenAIAgent(agent, Options(**asked.own)), input, asked)
    return await begun.to_the_end(timeout=None, defer=True)


async def resume(
    agent: Agent[Any], gate: int, *, hp: AsyncHoldpoint, timeout: float | None = None, **asking: Unpack[Resuming]
) -> Result:
    """Go on from a gate by its number, whichever process asked, to the agent's end. Raises what `run` does.

    Calls that ran are not run again: the agent gets their recorded results.
    """
    asked = Asked.from_arguments(asking)
    return await run_to_end(await find_tool_run(hp, OpenAIAgent(agent, Options(**asked.own)), gate, asked), timeout)
