"""A LangGraph checkpoint as the fields of a run's state, and back.

Each channel is a field under its own name, so that the run's page shows, compares and edits it. What LangGraph
needs beside the values (versions, metadata) is the one field `langgraph`: the checkpoint's digest covers it too.
A channel that would take that name gets an underscore more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata

from .errors import Unreadable, Unsaveable
from .values import JSON, Allowed, decode_value, encode_value

POSITION = "langgraph"


def from_fields(
    fields: Mapping[str, JSON], checkpoint_id: str, *, allow: Allowed = ()
) -> tuple[Checkpoint, CheckpointMetadata]:
    """Return the checkpoint and its metadata. Raises Unreadable."""
    position = fields.get(POSITION)
    if not isinstance(position, dict) or "metadata" not in position or "channel_versions" not in position:
        raise Unreadable(
            f"The state of checkpoint {checkpoint_id} has no usable field `{POSITION}`, so it is no LangGraph "
            "checkpoint. Rewind the run to one that has it."
        )
    values = {channel_of(name): decode_value(shown, allow=allow) for name, shown in fields.items() if name != POSITION}
    rest = decode_value(position, allow=allow)
    metadata = rest.pop("metadata")
    return cast(Checkpoint, {**rest, "id": checkpoint_id, "channel_values": values}), metadata


def to_field(channel: str, value: Any, *, allow: Allowed = ()) -> JSON:
    """Return the field of one channel's value. Raises Unsaveable with the channel's name."""
    try:
        return encode_value(value, allow=allow)
    except Unsaveable as error:
        raise Unsaveable(f"The channel {channel!r}: {error}") from error


def to_position(checkpoint: Checkpoint, metadata: CheckpointMetadata, *, allow: Allowed = ()) -> JSON:
    """Return the field `langgraph`: everything of a checkpoint but its id and its values."""
    rest: dict[str, Any] = {k: v for k, v in checkpoint.items() if k not in ("id", "channel_values")}
    return encode_value({**rest, "metadata": dict(metadata)}, allow=allow)


def field_of(channel: str) -> str:
    """Return the field's name of a channel."""
    return channel + "_" if channel.rstrip("_") == POSITION else channel


def channel_of(field: str) -> str:
    """Return the channel's name of a field other than `langgraph`."""
    return field[:-1] if field.rstrip("_") == POSITION else field


def next_version(current: Any) -> Any:
    """Return a channel's version after `current`, in its form: LangGraph compares it with those of other savers.

    Texts are compared as such, so the number keeps its width. Raises Unreadable where none of that form comes after it.
    """
    number = _number(current)
    if not isinstance(current, str):
        return number + 1
    digits, dot, rest = current.partition(".")
    if set(digits) == {"9"}:
        raise _no_version(current)
    return f"{number + 1:0{len(digits)}}{dot}{rest}"


def raise_versions(versions: Mapping[str, Any], channels: Iterable[str]) -> dict[str, Any]:
    """Return the versions with these channels' raised above all: their values were changed. Raises Unreadable."""
    newest = max(versions.values(), key=_number, default=None)
    return {**versions, **{channel: next_version(newest) for channel in channels}}


def _number(version: Any) -> int:
    if not isinstance(version, str):
        return 0 if version is None else int(version)
    digits = version.partition(".")[0]
    if not (digits.isascii() and digits.isdigit()):
        raise _no_version(version)
    return int(digits)


def _no_version(version: str) -> Unreadable:
    return Unreadable(
        f"{version!r} is no version that a checkpointer of LangGraph's gives a channel: a whole number, or a text that "
        "begins with one, filled with zeros. Give the checkpoint's channels such versions."
    )
