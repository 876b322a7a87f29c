"""The author's graph, compiled, with what Holdpoint needs to know of it: found once for each class.

Its channels are the fields of its agent's state. What the author's own state has is a field each, under its name and
with its type where JSON can say it. LangGraph's own channels (its branches, joins and pushed tasks) stay in the field
`langgraph`. A graph whose state is one value, and a function under @entrypoint, have the fields `input` and `output`.

The author's functions in it are its nodes, branches and tools: their source counts as the agent's code. Functions of
installed distributions are left out, since their versions say what they are.
"""

from __future__ import annotations

import inspect
import re
import sysconfig
import warnings
from collections.abc import Callable, Iterator, Mapping, MutableSequence, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

from django.utils.functional import cached_property
from holdpoint.langgraph.interrupts import GraphQuestion
from holdpoint.langgraph.values import Allowed
from langchain_core.tools import BaseTool
from langgraph.channels import DeltaChannel
from langgraph.channels.base import BaseChannel
from langgraph.pregel import Pregel
from pydantic import BaseModel, ConfigDict, Field, create_model

from agents.definition.inferred_writes import source_of
from agents.errors import AgentError

END, ROOT = "__end__", "__root__"
PLAIN = (str, int, float, bool, NoneType)
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
INSTALLED = ("site-packages", "dist-packages")
HELD = ("func", "afunc", "coroutine", "bound", "steps", "mapper", "writers", "ends", "tools_by_name", "_tools_by_name")
INNER: Any = {"x-inner": True}  # pages fold it behind what the graph itself changed


class Feedback(BaseModel):
    """A reviewer's words. The runner fills it in."""

    text: str
    by: str = ""
    at: str = ""
    gate: int = 0
    action: str = ""
    pointer: str = ""


OWN: dict[str, Any] = {
    "langgraph": (dict[str, Any] | None, Field(default=None, title="LangGraph's position", json_schema_extra=INNER)),
    "questions": (
        list[GraphQuestion],
        Field(default_factory=list, title="What the graph asks", json_schema_extra=INNER),
    ),
    "answers": (
        dict[str, Any],
        Field(default_factory=dict, title="Answers that the graph gets", json_schema_extra=INNER),
    ),
    "decision": (dict[str, Any] | None, Field(default=None, title="The last decision")),
    "feedback": (list[Feedback], Field(default_factory=list, title="Feedback")),
    "heard": (int, Field(default=0, title="Feedback that the graph got", json_schema_extra=INNER)),
}


@dataclass(frozen=True)
class Channels:
    """The channels of one graph that are fields, by channel, and their classes.

    `keyed`: its state is a dict of them. `deltas`: those that store only what was added.
    """

    fields: Mapping[str, str]
    keyed: bool
    specs: Mapping[str, BaseChannel[Any, Any, Any]]

    @property
    def deltas(self) -> list[str]:
        return [name for name in self.fields if isinstance(self.specs[name], DeltaChannel)]

    def input_of(self, values: Mapping[str, Any]) -> Any:
        """Return what a run begins with as the graph's input: fields that are not given are left out."""
        if not self.keyed:
            return values["input"]
        return {name: values[field] for name, field in self.fields.items() if values.get(field) is not None}


def read_channels(graph: Pregel[Any, Any, Any, Any]) -> Channels:
    """Return the graph's channels that are fields of the state."""
    specs = {name: spec for name, spec in graph.channels.items() if isinstance(spec, BaseChannel)}
    whole = [name for name in (END, ROOT) if name in specs]
    known = getattr(getattr(graph, "builder", None), "channels", specs)
    named = [name for name in specs if NAME.fullmatch(name) and name in known]
    fields = dict.fromkeys(whole[:1], "output") if whole else {name: _field(name) for name in named}
    return Channels(fields, not whole, specs)


def state_of(channels: Channels, name: str) -> type[BaseModel]:
    """Return the class of the state: a field for each channel, and the agent's own."""
    made: dict[str, Any] = {} if channels.keyed else {"input": (Any, Field(default=None, title="Input"))}
    for channel, field in channels.fields.items():
        made[field] = (_type(channels.specs[channel]) | None, None)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Field name .* shadows an attribute")  # such as a channel `json`
        config = ConfigDict(protected_namespaces=())
        return create_model(f"{name}State", __config__=config, **made, **OWN)


def _field(channel: str) -> str:
    return channel + "_" if channel.rstrip("_") in OWN else channel


def _type(channel: BaseChannel[Any, Any, Any]) -> Any:
    """Return the channel's type where JSON says all of it, so that it gets a form; Any for everything else."""
    try:
        kind = channel.ValueType
    except (AttributeError, TypeError):
        return Any
    if _is_plain(kind):
        return kind
    origin = get_origin(_bare(kind)) or _bare(kind)
    return list[Any] if origin in (list, Sequence, MutableSequence) else Any


def _is_plain(kind: Any) -> bool:
    kind = _bare(kind)
    if kind in PLAIN or get_origin(kind) is Literal:
        return True
    parts = get_args(kind)
    return get_origin(kind) in (list, dict) and bool(parts) and all(map(_is_plain, parts))


def _bare(kind: Any) -> Any:
    while get_origin(kind) is Annotated or getattr(get_origin(kind), "_name", "") in ("NotRequired", "Required"):
        kind = get_args(kind)[0]
    return kind


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
        tools = [part for part in _walk(self.graph, set()) if isinstance(part, BaseTool)]
        schemas: dict[str, Any] = {tool.name: tool.tool_call_schema for tool in reversed(tools)}
        return {
            name: schema if isinstance(schema, dict) else schema.model_json_schema() for name, schema in schemas.items()
        }

    @property
    def functions(self) -> list[Callable[..., Any]]:
        """List the author's functions whose source can be read, each once and in the graph's order."""
        parts = (getattr(part, "__func__", part) for part in _walk(self.graph, set()))
        authors = (part for part in parts if isinstance(part, FunctionType) and _is_authors(part))
        return [function for function in dict.fromkeys(authors) if _readable(function)]

    def stops(self, *, after: Sequence[str], before: Sequence[str]) -> dict[str, Any] | None:
        """Return the breakpoint of the author's between these nodes, if there is one."""
        for where, nodes, stopping in (
            ("after", after, self.graph.interrupt_after_nodes),
            ("before", before, self.graph.interrupt_before_nodes),
        ):
            if met := [name for name in nodes if stopping == "*" or name in stopping]:
                return {"where": where, "nodes": met}
        return None


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
    awaited = _is_async_only(graph) if is_async is None else is_async
    return CompiledGraph(graph, read_channels(graph), classes, awaited)


def _is_async_only(graph: Pregel[Any, Any, Any, Any]) -> bool:
    """Tell whether a node or tool of the graph can be awaited only."""
    for part in _walk(graph, set()):
        awaited, called = ("coroutine", None) if isinstance(part, BaseTool) else ("afunc", part)
        if getattr(part, awaited, None) is not None and getattr(part, "func", called) is None:
            return True
    return False


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
