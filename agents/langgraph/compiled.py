"""The author's graph, compiled, with what Holdpoint needs to know of it: found once for each class.

The author's functions in it are its nodes, branches and tools: their source counts as the agent's code. Functions of
installed distributions are left out, since their versions say what they are.
"""

from __future__ import annotations

import inspect
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import FunctionType
from typing import Any

from holdpoint.langgraph.values import Allowed
from langchain_core.tools import BaseTool
from langgraph.pregel import Pregel
from pydantic import BaseModel

from agents.definition.inferred_writes import source_of
from agents.errors import AgentError

from . import channels
from .channels import Channels

INSTALLED = ("site-packages", "dist-packages")
HELD = ("func", "afunc", "coroutine", "bound", "steps", "mapper", "writers", "ends", "tools_by_name", "_tools_by_name")


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
        for name, tool in tools_of(self.graph).items():
            schema: Any = tool.tool_call_schema
            found[name] = schema if isinstance(schema, dict) else schema.model_json_schema()
        return found

    @property
    def functions(self) -> list[Callable[..., Any]]:
        """List the author's functions in it."""
        return functions_of(self.graph)

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


def compile_graph(given: Any, *, where: str, allow: Sequence[Any], is_async: bool | None) -> CompiledGraph:
    """Compile what an author gives as `graph`. Raises AgentError."""
    graph = given
    if isinstance(graph, (staticmethod, classmethod)):
        graph = graph.__func__
    if not isinstance(graph, Pregel) and hasattr(graph, "compile"):
        graph = graph.compile()
    if not isinstance(graph, Pregel) and callable(graph):
        return compile_graph(graph(), where=where, allow=allow, is_async=is_async)
    if not isinstance(graph, Pregel):
        raise AgentError(
            f"{where} has graph={type(given).__name__}; give it a compiled graph, a StateGraph, an @entrypoint, "
            "or a function that returns one."
        )
    classes = tuple(entry if isinstance(entry, tuple) else (entry.__module__, entry.__qualname__) for entry in allow)
    awaited = is_async_only(graph) if is_async is None else is_async
    return CompiledGraph(graph, channels.read_channels(graph), classes, awaited)


def functions_of(graph: Pregel[Any, Any, Any, Any]) -> list[Callable[..., Any]]:
    """List the author's functions whose source can be read, each once and in the graph's order."""
    found = dict.fromkeys(function for function in _functions(graph, set()) if _is_authors(function))
    return [function for function in found if _readable(function)]


def tools_of(graph: Pregel[Any, Any, Any, Any]) -> dict[str, BaseTool]:
    """Return the tools that the graph's nodes call, by name."""
    seen: set[int] = set()
    found = [part for part in _walk(graph, seen) if isinstance(part, BaseTool)]
    return {tool.name: tool for tool in reversed(found)}


def is_async_only(graph: Pregel[Any, Any, Any, Any]) -> bool:
    """Tell whether a node or tool of the graph can be awaited only."""
    for part in _walk(graph, set()):
        if isinstance(part, BaseTool):
            alone = getattr(part, "coroutine", None) is not None and getattr(part, "func", None) is None
        else:
            alone = getattr(part, "afunc", None) is not None and getattr(part, "func", part) is None
        if alone:
            return True
    return False


def _functions(graph: Any, seen: set[int]) -> Iterator[FunctionType]:
    for part in _walk(graph, seen):
        function = getattr(part, "__func__", part)
        if isinstance(function, FunctionType):
            yield function


def _walk(thing: Any, seen: set[int]) -> Iterator[Any]:
    """Yield what a runnable is made of, itself included."""
    if id(thing) in seen:
        return
    seen.add(id(thing))
    yield thing
    held: list[Any] = []
    if isinstance(thing, Pregel):
        held = [thing.nodes[name] for name in thing.nodes]
    elif isinstance(thing, Mapping):
        held = list(thing.values())
    elif isinstance(thing, (list, tuple)):
        held = list(thing)
    elif inspect.isroutine(thing) or isinstance(thing, (str, bytes, type)):
        held = [getattr(thing, "__self__", None)] if getattr(thing, "tools_by_name", None) else []
    elif hasattr(thing, "__dict__") or hasattr(type(thing), "__slots__"):
        held = [getattr(thing, name, None) for name in HELD]
        held += list(getattr(thing, "subgraphs", None) or [])
    for part in held:
        if part is not None:
            yield from _walk(part, seen)


def _is_authors(function: FunctionType) -> bool:
    file = inspect.getsourcefile(function) or ""
    return bool(file) and not file.startswith(sysconfig.get_path("stdlib")) and not {*INSTALLED} & {*Path(file).parts}


def _readable(function: Callable[..., Any]) -> bool:
    try:
        return bool(source_of(function))
    except (AgentError, SyntaxError):
        return False
