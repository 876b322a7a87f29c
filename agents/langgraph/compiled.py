"""The author's graph, compiled, with what Holdpoint needs to know of it: found once for each class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from holdpoint.langgraph.values import Allowed
from langgraph.pregel import Pregel
from pydantic import BaseModel

from agents.errors import AgentError

from . import channels, sources
from .channels import Channels


@dataclass(frozen=True)
class CompiledGraph:
    """A compiled graph. `allow`: classes beside LangGraph's own that its state may hold, as (module, name)."""

    graph: Pregel[Any, Any, Any, Any]
    channels: Channels
    allow: Allowed
    is_async: bool

    @cached_property
    def schemas(self) -> dict[str, Any]:
        """Return the JSON Schema of each tool's arguments, as the model sees them."""
        found: dict[str, Any] = {}
        for name, tool in sources.tools_of(self.graph).items():
            schema: Any = tool.tool_call_schema
            found[name] = schema if isinstance(schema, dict) else schema.model_json_schema()
        return found

    @property
    def functions(self) -> list[Callable[..., Any]]:
        """List the author's functions in it."""
        return sources.functions_of(self.graph)

    def stops(self, *, after: Sequence[str], before: Sequence[str]) -> dict[str, Any] | None:
        """Return the breakpoint of the author's between these nodes, if there is one."""
        for where, nodes, stopping in (
            ("after", after, self.graph.interrupt_after_nodes),
            ("before", before, self.graph.interrupt_before_nodes),
        ):
            if met := [name for name in nodes if stopping == "*" or name in stopping]:
                return {"where": where, "nodes": met}
        return None

    def context_of(self, config: BaseModel) -> Any:
        """Return the run's configuration as the graph's context."""
        return config.model_dump() if self.graph.context_schema is not None else None


def compiled(given: Any, *, where: str, allow: Sequence[Any], is_async: bool | None) -> CompiledGraph:
    """Compile what an author gives as `graph`. Raises AgentError."""
    graph = given
    if isinstance(graph, (staticmethod, classmethod)):
        graph = graph.__func__
    if not isinstance(graph, Pregel) and hasattr(graph, "compile"):
        graph = graph.compile()
    if not isinstance(graph, Pregel) and callable(graph):
        return compiled(graph(), where=where, allow=allow, is_async=is_async)
    if not isinstance(graph, Pregel):
        raise AgentError(
            f"{where} has graph={type(given).__name__}; give it a compiled graph, a StateGraph, an @entrypoint, "
            "or a function that returns one."
        )
    classes = tuple(each if isinstance(each, tuple) else (each.__module__, each.__qualname__) for each in allow)
    awaited = sources.is_async_only(graph) if is_async is None else is_async
    return CompiledGraph(graph, channels.of(graph), classes, awaited)
