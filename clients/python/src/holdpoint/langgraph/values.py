"""Encodes what a graph's channels hold as JSON that a reviewer can read, and decodes it.

A value that JSON can say is itself: text, whole numbers of any size, finite floats, booleans, None, lists and
dicts with text keys. Everything else is an envelope, an object whose `$type` names what it is:

    {"$type": "message", "type": "human", "content": "Hello", "id": "m1"}     a message, without its defaults
    {"$type": "float", "text": "nan"}
    {"$type": "text", "escaped": "\\\\ud800"}                                 text with a lone surrogate
    {"$type": "bytes", "base64": "AAE="}
    {"$type": "dict", "items": [[1, "one"]]}                                  other keys than text, or `$type` itself
    {"$type": "snapshot", "value": ["…"]}                                     what a DeltaChannel keeps
    {"$type": "msgpack", "of": "uuid.UUID", "base64": "x1Q…"}                 anything else

The last one is LangGraph's own strict msgpack. Pickle is never written or read. A class that neither LangGraph nor
`allow` names is refused on both sides: LangGraph's serializer would return its bare data instead, and the graph
would go on with another type than it saved. As with LangGraph's savers a tuple returns as a list and an exception
as its text. An object of JSON has no order, so a dict returns with its keys sorted.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable, Collection
from enum import Enum
from typing import Any, TypeAlias

import ormsgpack
from langchain_core import messages
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde import jsonplus
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_METHODS, SAFE_MSGPACK_TYPES
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from .saver_errors import Unreadable, Unsaveable

# What JSON can say.
JSON: TypeAlias = Any
# The classes beside LangGraph's own that an envelope may hold, as (module, name).
Allowed: TypeAlias = Collection[tuple[str, ...]]

TYPE = "$type"
# The store takes 128 levels; a channel's value stands a few below the top of its state.
_DEEPEST = 100
_BUILT = frozenset({
    jsonplus.EXT_CONSTRUCTOR_SINGLE_ARG, jsonplus.EXT_CONSTRUCTOR_POS_ARGS, jsonplus.EXT_CONSTRUCTOR_KW_ARGS,
    jsonplus.EXT_PYDANTIC_V1, jsonplus.EXT_PYDANTIC_V2,
})  # fmt: skip

_MESSAGES: tuple[type[BaseMessage], ...] = (
    messages.AIMessage, messages.AIMessageChunk, messages.ChatMessage, messages.ChatMessageChunk,
    messages.FunctionMessage, messages.FunctionMessageChunk, messages.HumanMessage, messages.HumanMessageChunk,
    messages.RemoveMessage, messages.SystemMessage, messages.SystemMessageChunk, messages.ToolMessage,
    messages.ToolMessageChunk,
)  # fmt: skip
_MESSAGE_OF: dict[str, type[BaseMessage]] = {kind.model_fields["type"].default: kind for kind in _MESSAGES}
# The types of a key that an envelope returns as they are: a tuple would return as a list, which cannot be a key.
_KEYS = frozenset({str, int, float, bool, bytes, type(None)})
# The fields of a message that it has anyway, and their values; "content" is always shown.
_DEFAULTS: dict[type, dict[str, Any]] = {
    kind: {
        name: field.get_default(call_default_factory=True)
        for name, field in kind.model_fields.items()
        if name not in ("type", "content") and not field.is_required()
    }
    for kind in _MESSAGES
}


def encode_value(value: Any, *, allow: Allowed = ()) -> JSON:
    """Return `value` as JSON. Raises Unsaveable for what could not be restored as it is."""
    return _encode(value, allow, 0)


def decode_value(shown: JSON, *, allow: Allowed = ()) -> Any:
    """Return the value that `encode_value` was given. Raises Unreadable for a damaged envelope or one not allowed."""
    kind = type(shown)
    if kind is dict:
        if TYPE in shown:
            return _open(shown, allow)
        return {key: decode_value(value, allow=allow) for key, value in shown.items()}
    return [decode_value(item, allow=allow) for item in shown] if kind is list else shown


def _encode(value: Any, allow: Allowed, depth: int) -> JSON:
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _text(value)
    if value is None or kind is bool or kind is int:
        return value
    if depth >= _DEEPEST:
        return _pack(value, allow)
    if kind is list or kind is tuple:
        return [_encode(item, allow, depth + 1) for item in value]
    if kind is dict:
        return _dict(value, allow, depth)
    if kind is float:
        return value if math.isfinite(value) else {TYPE: "float", "text": repr(value)}
    if kind in _DEFAULTS:
        return _message(value, allow, depth)
    if kind is _DeltaSnapshot:
        return {TYPE: "snapshot", "value": _encode(value.value, allow, depth + 1)}
    if kind is bytes or kind is bytearray:
        return {TYPE: kind.__name__, "base64": base64.b64encode(value).decode()}
    if isinstance(value, BaseException):
        return _text(repr(value))
    if (plain := _without_subclass(value)) is not None:
        return _encode(plain, allow, depth)
    return _pack(value, allow)


def _without_subclass(value: Any) -> Any:
    """Return a value of a subclass of JSON's own types as one of those, as LangGraph saves it; None for any other."""
    if isinstance(value, str) and not isinstance(value, Enum):
        return str.__str__(value)
    plain = next((kind for kind in (int, float, dict, list) if isinstance(value, kind)), None)
    return None if plain is None or isinstance(value, Enum) else plain(value)


def _text(value: str) -> JSON:
    try:
        value.encode()
    except UnicodeEncodeError:
        return {TYPE: "text", "escaped": json.dumps(value)[1:-1]}
    return value


def _is_plain_key(key: Any) -> bool:
    return type(key) is str and key != TYPE and (key.isascii() or type(_text(key)) is str)


def _dict(value: dict[Any, Any], allow: Allowed, depth: int) -> JSON:
    if all(map(_is_plain_key, value)):
        return {key: _encode(item, allow, depth + 1) for key, item in value.items()}
    if not all(type(key) in _KEYS for key in value):
        return _pack(value, allow)
    return {
        TYPE: "dict",
        "items": [[_encode(key, allow, depth + 3), _encode(item, allow, depth + 3)] for key, item in value.items()],
    }


def _message(value: BaseMessage, allow: Allowed, depth: int) -> JSON:
    """Return a message's fields that differ from its class's defaults."""
    defaults = _DEFAULTS[type(value)]
    fields = {**vars(value), **(value.__pydantic_extra__ or {})}
    if not all(map(_is_plain_key, fields)):
        return _pack(value, allow)
    # LangChain would fill an empty list from them; said here, it stays empty.
    kept = ("tool_calls", "invalid_tool_calls") if "tool_calls" in value.additional_kwargs else ()
    shown = {
        name: _encode(field, allow, depth + 1)
        for name, field in fields.items()
        if name in kept or name not in defaults or not _is_default(field, defaults[name])
    }
    return {TYPE: "message", **shown}


def _is_default(value: Any, default: Any) -> bool:
    return value is None if default is None else bool(value == default)


def _open(shown: dict[str, Any], allow: Allowed) -> Any:
    opener = _OPENERS.get(shown[TYPE]) if isinstance(shown[TYPE], str) else None
    if opener is None:
        raise Unreadable(
            f"The saved value has the {TYPE} {shown[TYPE]!r}, which this version of holdpoint does not know. "
            f"Install the version that saved it, or a newer one."
        )
    try:
        return opener(shown, allow)
    except Unreadable:
        raise
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError, binascii.Error) as error:
        raise Unreadable(
            f"A saved value of {TYPE} {shown[TYPE]!r} is damaged ({type(error).__name__}: {error}). "
            "If somebody edited it on the run's page, edit it again or rewind the run to before the edit."
        ) from error


def _open_message(shown: dict[str, Any], allow: Allowed) -> BaseMessage:
    fields = {name: decode_value(value, allow=allow) for name, value in shown.items() if name != TYPE}
    message = _MESSAGE_OF[fields["type"]](**fields)
    for name in ("tool_calls", "invalid_tool_calls"):
        if name in fields and not fields[name]:
            setattr(message, name, fields[name])
    return message


def _open_msgpack(shown: dict[str, Any], allow: Allowed) -> Any:
    data = base64.b64decode(shown["base64"], validate=True)
    if foreign := _foreign(data, allow):
        raise Unreadable(_explain_foreign(foreign, "The saved value holds"))
    return _serializer(allow).loads_typed(("msgpack", data))


_OPENERS: dict[str, Callable[[dict[str, Any], Allowed], Any]] = {
    "message": _open_message,
    "float": lambda shown, _: float(shown["text"]),
    "text": lambda shown, _: json.loads(f'"{shown["escaped"]}"'),
    "bytes": lambda shown, _: base64.b64decode(shown["base64"], validate=True),
    "bytearray": lambda shown, _: bytearray(base64.b64decode(shown["base64"], validate=True)),
    "dict": lambda shown, allow: {
        decode_value(k, allow=allow): decode_value(v, allow=allow) for k, v in shown["items"]
    },
    "snapshot": lambda shown, allow: _DeltaSnapshot(decode_value(shown["value"], allow=allow)),
    "msgpack": _open_msgpack,
}


def _serializer(allow: Allowed) -> JsonPlusSerializer:
    return JsonPlusSerializer(pickle_fallback=False, allowed_msgpack_modules=tuple(allow) or None)


def _pack(value: Any, allow: Allowed) -> JSON:
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    try:
        _, data = _serializer(allow).dumps_typed(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise Unsaveable(
            f"A {name} cannot be saved ({error}). Keep text, numbers, lists, dicts, messages, dataclasses or "
            "pydantic models in the graph's state."
        ) from error
    if foreign := _foreign(data, allow):
        raise Unsaveable(_explain_foreign(foreign, f"A {name} holds"))
    return {TYPE: "msgpack", "of": name, "base64": base64.b64encode(data).decode()}


def _foreign(data: bytes, allow: Allowed) -> list[tuple[str, ...]]:
    """Return the classes in LangGraph's msgpack that may not be built, without building any."""
    found: list[tuple[str, ...]] = []

    def look(code: int, payload: bytes) -> None:
        if code == jsonplus.EXT_NUMPY_ARRAY:
            return
        parts = ormsgpack.unpackb(payload, ext_hook=look, option=ormsgpack.OPT_NON_STR_KEYS)
        if code == jsonplus.EXT_METHOD_SINGLE_ARG:
            if (called := (parts[0], parts[1], parts[3])) not in SAFE_MSGPACK_METHODS:
                found.append(called)
        elif code in _BUILT:
            if (named := (parts[0], parts[1])) not in SAFE_MSGPACK_TYPES and named not in allow:
                found.append(named)
        elif code != jsonplus.EXT_DELTA_SNAPSHOT:
            found.append(("msgpack", f"extension {code}"))

    ormsgpack.unpackb(data, ext_hook=look, option=ormsgpack.OPT_NON_STR_KEYS)
    return found


def _explain_foreign(foreign: list[tuple[str, ...]], holds: str) -> str:
    names = ", ".join(sorted({".".join(parts) for parts in foreign}))
    return (
        f"{holds} {names}, which LangGraph does not save by itself. Allow the class: "
        f"HoldpointSaver(allow=[{foreign[0][1]}]), in every program that reads the thread."
    )
