"""A graph's channels as the fields of its agent's state.

What the author's own state has is a field each, under its name and with its type where JSON can say it. LangGraph's
own channels (its branches, joins and pushed tasks) stay in the field `langgraph`. A graph whose state is one value, and
a function under @entrypoint, have the fields `input` and `output`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, MutableSequence, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

from holdpoint.langgraph.interrupts import GraphQuestion
from langgraph.channels import DeltaChannel
from langgraph.channels.base import BaseChannel
from langgraph.pregel import Pregel
from pydantic import BaseModel, ConfigDict, Field, create_model

END, ROOT = "__end__", "__root__"
PLAIN = (str, int, float, bool, NoneType)
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class Feedback(BaseModel):
    """A reviewer's words. The runner fills it in."""

    text: str
    by: str = ""
    at: str = ""
    gate: int = 0
    action: str = ""
    pointer: str = ""


INNER: Any = {"x-inner": True}  # pages fold it behind what the graph itself changed
OWN: dict[str, Any] = {
    "langgraph": (
        dict[str, Any] | None,
        Field(default=None, title="LangGraph's position", json_schema_extra=INNER),
    ),
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
