"""Hooks that report an approved call as soon as it has run, before the model is called again.

`RunHooks` see the calls of the run itself. An agent that is a tool of another has a run of its own, whose calls only
its own `AgentHooks` see: those are wrapped once, and do nothing outside of a run of this adapter.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from agents import Agent, AgentHooks, RunHooks

from ..calls import refuse_unfinished


class Watched:
    """The approved call that runs now. `done` reports its output."""

    def __init__(self, tool: str, call: str, done: Callable[[str], Awaitable[None]]) -> None:
        self.tool, self.call, self.done = tool, call, done

    async def ended(self, context: Any, tool: Any, result: Any) -> None:
        """Report the call, if it is this one."""
        call = getattr(context, "tool_call_id", None)
        if call == self.call or (call is None and getattr(tool, "name", "") == self.tool):
            refuse_unfinished(self.tool, result)
            await self.done(str(result))

    def hooks(self, own: RunHooks[Any] | None) -> RunHooks[Any]:
        """Return hooks that do what the program's own do, and report."""
        return _RunWatch(own)


WATCHED: ContextVar[Watched | None] = ContextVar("holdpoint_watched", default=None)


@contextmanager
def watched_by(watched: Watched) -> Iterator[None]:
    """Report the call in this block."""
    before = WATCHED.set(watched)
    try:
        yield
    finally:
        WATCHED.reset(before)


class _Passing:
    """Passes every hook on to the program's own, except the end of a tool, which is reported first."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattribute__(self, name: str) -> Any:
        inner = object.__getattribute__(self, "inner")
        if name.startswith("on_") and name != "on_tool_end" and inner is not None:
            return getattr(inner, name)
        return object.__getattribute__(self, name)

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        """Report the call that ended."""
        watched = WATCHED.get()
        if watched is not None:
            await watched.ended(context, tool, result)
        if self.inner is not None:
            await self.inner.on_tool_end(context, agent, tool, result)


class _RunWatch(_Passing, RunHooks[Any]):
    """Reports the calls of a run."""


class _AgentWatch(_Passing, AgentHooks[Any]):
    """Reports the calls of an agent that is a tool of another."""


def watching_nested(agent: Agent[Any]) -> None:
    """Wrap the hooks of all agents that are tools of this one, or of one that it reaches."""
    seen: set[int] = set()
    waiting: list[tuple[Agent[Any], bool]] = [(agent, False)]
    while waiting:
        current, nested = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if nested and not isinstance(current.hooks, _AgentWatch):
            current.hooks = _AgentWatch(current.hooks)
        waiting += [(other, nested) for other in current.handoffs if isinstance(other, Agent)]
        inside = [getattr(tool, "_agent_instance", None) for tool in current.tools]
        waiting += [(other, True) for other in inside if isinstance(other, Agent)]
