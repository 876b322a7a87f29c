"""The codec: values come back equal, or are refused; nothing is confused with an envelope."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import math
import uuid
from collections import defaultdict
from typing import Any

import pytest
from holdpoint.langgraph import Unreadable, Unsaveable
from holdpoint.langgraph.checkpointer import (
    channel_of,
    field_of,
    from_fields,
    next_version,
    raise_versions,
    to_field,
    to_position,
)
from holdpoint.langgraph.memory import pack_list
from holdpoint.langgraph.values import decode_value, encode_value
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk, ChatMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Interrupt, Send
from pydantic import BaseModel

from checkpoints.values.canonical_json import encode_canonical, parse_json


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int


class Order(BaseModel):
    item: str
    points: list[Point] = []


SAVED = [
    1, 2**80, -(2**63), 1.5, True, None, "é\x00", {"a": [1, {"b": 2}]}, b"\x00x", bytearray(b"q"), "a\ud800b",
    {"$type": 1}, {"$type": "message"}, {1: "x", "1": "y"}, {"\ud800": 1}, {None: 1, True: 2}, float("inf"),
    HumanMessage("hi", id="1"), RemoveMessage(id="x"), ChatMessage(role="r", content="c"), AIMessageChunk(content="x"),
    AIMessage([{"type": "text", "text": "x"}], tool_calls=[{"name": "t", "args": {"$type": 1}, "id": "c"}]),
    AIMessage("", additional_kwargs={"tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]}),
    AIMessage("x", usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}, name="n"),
    ToolMessage("r", tool_call_id="c", artifact={"x": b"1"}, status="error"), HumanMessage("extra", kind="unusual"),
    uuid.UUID(int=7), datetime.datetime(2026, 3, 2, tzinfo=datetime.UTC), datetime.timedelta(1),
    decimal.Decimal("1.20"), {1, 2}, Send("n", {"m": [HumanMessage("x")]}), Interrupt(value={"a": 1}, id="i"),
    _DeltaSnapshot([HumanMessage("z")]),
]  # fmt: skip


@pytest.mark.parametrize("value", SAVED, ids=repr)
def test_a_value_comes_back_equal_and_of_its_type(value: Any) -> None:
    shown = parse_json(encode_canonical(encode_value(value)))
    found = decode_value(shown)
    assert found == value
    assert type(found) is type(value)


def test_json_is_itself_and_a_message_is_legible() -> None:
    plain = {"a": [1, 1.5, "x", None, True, {"b": []}], "$ref": "#/a"}
    assert encode_value(plain) == plain
    assert encode_value(defaultdict(int, x=1)) == {"x": 1}
    assert encode_value((1, (2,))) == [1, [2]]
    assert encode_value(HumanMessage("hi", id="1")) == {"$type": "message", "type": "human", "content": "hi", "id": "1"}
    assert encode_value(ValueError("bad")) == "ValueError('bad')"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5) | st.just("$type"), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(JSON)
def test_any_json_survives_the_store(value: Any) -> None:
    assert decode_value(parse_json(encode_canonical(encode_value(value)))) == value


@pytest.mark.parametrize(
    "value", [Point(1), Order(item="x", points=[Point(2)]), Colour.RED, [Order(item="y")]], ids=repr
)
def test_a_class_of_the_programs_own_has_to_be_allowed(value: Any) -> None:
    allow = frozenset((each.__module__, each.__name__) for each in (Point, Order, Colour))
    with pytest.raises(Unsaveable, match=r"HoldpointSaver\(allow=\["):
        encode_value(value)
    shown = json.loads(json.dumps(encode_value(value, allow=allow)))
    if isinstance(value, Order):
        assert decode_value(shown, allow=allow) == value
    with pytest.raises(Unreadable, match=r"HoldpointSaver\(allow=\["):
        decode_value(shown)


def test_what_has_no_form_is_refused_and_what_is_too_deep_is_packed() -> None:
    round: list[Any] = []
    round.append(round)
    for value in (object(), lambda: 1, {"a": [object()]}, (_ for _ in []), round):
        with pytest.raises(Unsaveable, match="cannot be saved"):
            encode_value(value)
    deep: Any = "bottom"
    for _ in range(300):
        deep = [deep]
    assert decode_value(parse_json(encode_canonical(encode_value(deep)))) == deep
    assert math.isnan(decode_value(encode_value(float("nan"))))
    assert math.copysign(1, decode_value(parse_json(encode_canonical(encode_value(-0.0))))) == -1


@pytest.mark.parametrize(
    "shown",
    [
        {"$type": "unheard"}, {"$type": 1}, {"$type": "message", "type": "nobody"}, {"$type": "message"},
        {"$type": "bytes", "base64": "?"}, {"$type": "msgpack", "base64": "wQ=="}, {"$type": "dict", "items": [1]},
        {"$type": "float", "text": "x"}, {"$type": "pickle", "base64": "gASVBQAAAAAAAACMAXiULg=="},
    ],
    ids=str,
)  # fmt: skip
def test_a_damaged_or_unknown_envelope_is_refused(shown: Any) -> None:
    with pytest.raises(Unreadable):
        decode_value({"inside": [shown]})


def test_msgpack_that_names_a_function_is_not_run() -> None:
    import base64

    import ormsgpack

    calls = ormsgpack.packb(ormsgpack.Ext(0, ormsgpack.packb(("os", "system", "false"))))
    with pytest.raises(Unreadable, match=r"os\.system"):
        decode_value({"$type": "msgpack", "of": "x", "base64": base64.b64encode(calls).decode()})


def test_channels_are_fields_under_their_names() -> None:
    values = {"messages": [HumanMessage("x")], "langgraph": 1, "langgraph_": 2, "__start__": None}
    checkpoint: Any = {"v": 4, "ts": "t", "id": "i", "channel_values": values, "channel_versions": {"messages": 2},
                       "versions_seen": {"n": {"messages": 1}}, "updated_channels": ["messages"]}  # fmt: skip
    fields = {field_of(name): to_field(name, each) for name, each in checkpoint["channel_values"].items()}
    fields["langgraph"] = to_position(checkpoint, {"source": "loop", "step": 1, "parents": {}})
    assert set(fields) == {"messages", "langgraph_", "langgraph__", "__start__", "langgraph"}
    assert all(channel_of(field_of(name)) == name for name in values)
    assert from_fields(fields, "i") == (checkpoint, {"source": "loop", "step": 1, "parents": {}})
    with pytest.raises(Unreadable, match="no usable field"):
        from_fields({"messages": []}, "i")


def packed(values: list[Any]) -> Any:
    found = pack_list(values)
    assert found is not None
    return found


def test_a_change_in_place_is_no_growth() -> None:
    first = [HumanMessage("one", id="1"), AIMessage("two", id="2")]
    before = packed(first)
    assert before.grown(packed([*first, AIMessage("three")]))
    assert before.grown(packed(first))
    first[0].additional_kwargs["seen"] = True
    for changed in (first, [*first, AIMessage("three")]):
        assert not before.grown(packed(changed))
    for one, other in ((1, 1.0), (1, True), (1, 12), ([1], [1, 2]), (math.nan, None), (0.0, -0.0)):
        assert not packed([one]).grown(packed([other, "more"]))
    for inexact in (uuid.uuid4(), Colour.RED, 2**64, {1: 2}, "\ud800"):
        assert pack_list([inexact]) is None
    for count in (0, 15, 16, 65535, 65536):
        a, b = packed([7] * count), packed([*[7] * count, 8])
        assert (a.grown(b), b.grown(a)) == (True, False)


@pytest.mark.parametrize(
    ("current", "after"),
    [(None, 1), (4, 5), (4.5, 5), ("08", "09"), ("09.0.25", "10.0.25"), (f"{9:032}.0.73", f"{10:032}.0.73")],
)
def test_the_version_after_another_has_its_form_and_comes_after_it(current: Any, after: Any) -> None:
    assert next_version(current) == after
    assert current is None or after > current


def test_a_raised_version_comes_after_all_others_and_one_that_is_none_is_refused() -> None:
    """As text 10 is less than 9, so that an edit was not seen; others raised a bare ValueError, or lost their sign."""
    a, b = f"{2:032}.9", f"{10:032}.1"
    assert raise_versions({"a": a, "b": b}, ["a", "c"]) == {"a": f"{11:032}.1", "b": b, "c": f"{11:032}.1"}
    with pytest.raises(Unreadable, match="'abc' is no version"):
        raise_versions({"a": "abc"}, ["a"])
    for current in ("9", "99.5", "abc", "-1.5", "", "٣.1"):
        with pytest.raises(Unreadable, match="is no version that a checkpointer of LangGraph's gives a channel"):
            next_version(current)
