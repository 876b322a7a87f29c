"""The author's functions in a graph: its nodes, branches and tools. Their source counts as the agent's code.

Functions of installed distributions are left out, since their versions say what they are.
"""

from __future__ import annotations

import inspect
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FunctionType
from typing import Any

from langchain_core.tools import BaseTool
from langgraph.pregel import Pregel

from agents.definition.inferred_writes import source_of
from agents.errors import AgentError

INSTALLED = ("site-packages", "dist-packages")
HELD = ("func", "afunc", "coroutine", "bound", "steps", "mapper", "writers", "ends", "tools_by_name", "_tools_by_name")


def functions_of(graph: Pregel[Any, Any, Any, Any]) -> list[Callable[..., Any]]:
    """List the author's functions whose source can be read, each once and in the graph's order."""
    found = dict.fromkeys(each for each in _functions(graph, set()) if _is_authors(each))
    return [each for each in found if _readable(each)]


def tools_of(graph: Pregel[Any, Any, Any, Any]) -> dict[str, BaseTool]:
    """Return the tools that the graph's nodes call, by name."""
    seen: set[int] = set()
    found = [each for each in _walk(graph, seen) if isinstance(each, BaseTool)]
    return {tool.name: tool for tool in reversed(found)}


def is_async_only(graph: Pregel[Any, Any, Any, Any]) -> bool:
    """Tell whether a node or tool of the graph can be awaited only."""
    for each in _walk(graph, set()):
        if isinstance(each, BaseTool):
            alone = getattr(each, "coroutine", None) is not None and getattr(each, "func", None) is None
        else:
            alone = getattr(each, "afunc", None) is not None and getattr(each, "func", each) is None
        if alone:
            return True
    return False


def _functions(graph: Any, seen: set[int]) -> Iterator[FunctionType]:
    for each in _walk(graph, seen):
        function = getattr(each, "__func__", each)
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
    for each in held:
        if each is not None:
            yield from _walk(each, seen)


def _is_authors(function: FunctionType) -> bool:
    file = inspect.getsourcefile(function) or ""
    return bool(file) and not file.startswith(sysconfig.get_path("stdlib")) and not {*INSTALLED} & {*Path(file).parts}


def _readable(function: Callable[..., Any]) -> bool:
    try:
        return bool(source_of(function))
    except (AgentError, SyntaxError):
        return False
