"""For tools and nodes inside a graph: calls made once, and keys for providers.

LangGraph runs an interrupted node again from its start, and a failed one too. `once` keeps the result of a call in the
run: across the interrupt, a crash, a retry, and until the superstep is over. `idempotency_key` is the same for the
same task in all of these, and another after a person's edit of the state. Where a task runs several tool calls, as a
ToolNode does, each call has its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from holdpoint.langgraph.values import decode_value, encode_value
from langgraph.config import get_config

from agents.errors import AgentError
from checkpoints.values import digests

from .bridge import Bridge

Result = TypeVar("Result")
_here: ContextVar[tuple[Bridge, int] | None] = ContextVar("holdpoint_superstep", default=None)
tool_call: ContextVar[str] = ContextVar("holdpoint_tool_call", default="")  # the id of the call at hand


@contextmanager
def inside(bridge: Bridge, run: int) -> Iterator[None]:
    """Let `once` and `idempotency_key` find the superstep inside the block."""
    token = _here.set((bridge, run))
    try:
        yield
    finally:
        _here.reset(token)


def once(name: str, fn: Callable[..., Result], *args: Any) -> Result:
    """Call fn(*args) once in this task or tool call and keep its result; a later call returns the kept result.

    Outside a run of Holdpoint it just calls, so that tools are tested as they are. A crash before the result is kept
    repeats the call: give the provider `idempotency_key()`. Raises Unsaveable for a result
    that cannot be kept.
    """
    here = _here.get()
    if here is None:
        return fn(*args)
    bridge, _ = here
    digest = digests.of_value([encode_value(argument, allow=bridge.allow) for argument in args]).hex()
    key = f"{_task()} {name} {digest}"
    if key in bridge.calls:
        kept: Result = decode_value(bridge.calls[key], allow=bridge.allow)
        return kept
    result = fn(*args)
    bridge.remember(key, result)
    return result


def idempotency_key(name: str = "") -> str:
    """Return this task's or tool call's key `name` for a provider: 32 hex digits. Raises AgentError outside a run."""
    here = _here.get()
    if here is None:
        raise AgentError("idempotency_key() was called outside a run of a GraphAgent.")
    return hashlib.sha256(f"R-{here[1]} {_task()} {name}".encode()).hexdigest()[:32]


def _task() -> str:
    """Return the namespace of the task at hand, which has the ids of all tasks above it, and the tool call's id."""
    return f"{get_config()['configurable'].get('checkpoint_ns', '')} {tool_call.get()}".strip()
