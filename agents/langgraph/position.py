"""Maps the fields of the state to the checkpoint that LangGraph goes on from, and back.

The field `langgraph` holds:

    root      {head, metadata, values: of LangGraph's own channels, writes: of finished and interrupted tasks}
    under     the subgraphs' checkpoints, by namespace
    calls     results of calls made once in the superstep at hand
    digests   of each channel's value as the graph left it: another value is a person's edit
    asks      the pending interrupts: [{id, value, schema, node, graph, calls}]
    stops     a breakpoint at which the graph waits: {where, nodes}, or null
    mark      of the execution that led here
    ran       the names of the tools that started in it
    told      what the model has to be told by a message: [{text, unless, mark}]
    decided   what was decided about tool calls, by graph and call: {verdict, name, since, digest, arguments}
    since     people's newest move of the run before the answers were given
    seal      on all of this, and on the answers: nobody but the agent's steps makes one
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from holdpoint.langgraph.checkpointer import config_of, raise_versions
from holdpoint.langgraph.values import TYPE, encode_value
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base.id import uuid6

from checkpoints.values import digests
from checkpoints.values.ops import Append
from checkpoints.values.patch import are_same

from .bridge import Bridge, callers_of
from .compiled import Channels

SNAPSHOT = {TYPE: "snapshot"}
SHORT = 16  # hex digits of a digest: it tells an edit, nobody gains by a collision


def load(bridge: Bridge, channels: Channels, values: Mapping[str, Any], position: Mapping[str, Any]) -> None:
    """Let the bridge begin where the state is."""
    own = dict(position["root"]["values"])
    for name, field in channels.fields.items():
        if name in position["digests"]:
            value = values[field]
            own[name] = {**SNAPSHOT, "value": value} if name in channels.deltas else value
    bridge.begin({**position["root"], "parent": None, "values": own}, position["under"], position["calls"])


def edited(channels: Channels, values: Mapping[str, Any], position: Mapping[str, Any]) -> list[str]:
    """List the channels whose values a person changed since the graph left them."""
    known = position["digests"]
    return [
        name
        for name, field in channels.fields.items()
        if known.get(name) != (None if name not in known and values[field] is None else _digest(values[field]))
    ]


def moved(position: Mapping[str, Any], names: Sequence[str], *, values: Mapping[str, Any], channels: Channels) -> Any:
    """Return the position after an edit, as `update_state` leaves it.

    It is a new checkpoint with higher versions of these channels, so that tasks which were interrupted start anew and
    see the edit; a subgraph with a memory of its own goes back to before it was called.
    """
    root = position["root"]
    head = root["head"]
    digests_now = {**position["digests"], **{name: _digest(values[channels.fields[name]]) for name in names}}
    made = {
        **head, "id": str(uuid6()), "ts": datetime.now(UTC).isoformat(),
        "channel_versions": raise_versions(head["channel_versions"], names), "updated_channels": None,
    }  # fmt: skip
    step = root["metadata"].get("step", -1) + 1
    metadata = {**root["metadata"], "source": "update", "step": step}
    root = {**root, "head": made, "metadata": metadata, "writes": []}
    lasting = {
        name: before
        for name, checkpoints in position["under"].items()
        if ":" not in name
        and (before := {id: at for id, at in checkpoints.items() if callers_of(at).get("") != head["id"]})
    }
    return {**position, "root": root, "under": lasting, "calls": {}, "digests": digests_now, "asks": [], "stops": None}


def saved(bridge: Bridge, channels: Channels, before: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the bridge holds as (the writes of the fields, the position without what it asks)."""
    root = cast(dict[str, Any], bridge.newest())
    over = root["head"]["id"] != bridge.began
    values = {**root["values"], **_added(bridge, channels, root)}
    writes: dict[str, Any] = {}
    known: dict[str, str] = {}
    for name, field in channels.fields.items():
        was: Any = before.get(field)
        value: Any = values.get(name)
        if isinstance(value, dict) and value.get(TYPE) == SNAPSHOT[TYPE]:
            value = value["value"]
        if name in values:
            known[name] = _digest(value)
        if not are_same(was, value):  # a list that only grew is appended to
            grew = isinstance(was, list) and isinstance(value, list) and len(value) > len(was) > 0
            writes[field] = Append(value[len(was) :]) if grew and are_same(was, value[: len(was)]) else value
    own = {name: value for name, value in root["values"].items() if name not in channels.fields}
    under = {name: checkpoints for name, checkpoints in bridge.under().items() if not over or ":" not in name}
    position = {
        "root": {"head": root["head"], "metadata": root["metadata"], "values": own, "writes": root["writes"]},
        "under": under,
        "calls": {} if over else bridge.calls,
        "digests": known,
    }
    return writes, position


def _added(bridge: Bridge, channels: Channels, root: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the channels that stored only what was added, put together as LangGraph does."""
    versions = root["head"]["channel_versions"]
    names = [name for name in channels.deltas if name in versions and name not in root["values"]]
    if not names:
        return {}
    config = config_of(bridge.thread, "", root["head"]["id"])
    found: dict[str, Any] = {}
    for name, history in bridge.get_delta_channel_history(config=config, channels=names).items():
        made = cast("DeltaChannel[Any]", channels.specs[name]).from_checkpoint(history.get("seed"))
        made.replay_writes(history["writes"])
        found[name] = encode_value(made.get(), allow=bridge.allow)
    return found


def _digest(value: Any) -> str:
    return digests.of_value(value).hex()[:SHORT]


def raised(position: Mapping[str, Any], name: str, value: Any) -> dict[str, Any]:
    """Return the position after a value was set beside the graph, as by `Command(update=…)`: its tasks stay."""
    root, head = position["root"], position["root"]["head"]
    head = {**head, "channel_versions": raise_versions(head["channel_versions"], [name])}
    digests_now = {**position["digests"], name: _digest(value)}
    return {**position, "root": {**root, "head": head}, "digests": digests_now}
