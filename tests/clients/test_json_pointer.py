"""Places in JSON values, as the server and RFC 6901 write them. Pure."""

from __future__ import annotations

from typing import Any

import pytest
from holdpoint import json_pointer
from holdpoint.json_pointer import MISSING
from holdpoint.tool_runs.plan import ToolCall, Words

VALUE: Any = {"a/b": [{"~1": "found"}], "": 0}


@pytest.mark.parametrize(
    ("pointer", "parts", "there"),
    [
        ("", [], VALUE), ("/", [""], 0), ("/a~1b/0/~01", ["a/b", "0", "~1"], "found"),
        ("/a~1b/1", ["a/b", "1"], MISSING), ("/a", ["a"], MISSING),
    ],
)  # fmt: skip
def test_a_pointer_is_read_and_written_alike(pointer: str, parts: list[str], there: Any) -> None:
    assert json_pointer.parts_of(pointer) == parts
    assert json_pointer.pointer_to(*parts) == pointer
    assert json_pointer.get(VALUE, pointer) == there


def test_what_is_no_pointer_leads_nowhere() -> None:
    """Its first part was dropped: a reference to `#anchor` was one to the whole schema."""
    with pytest.raises(ValueError, match="'anchor' is no JSON Pointer"):
        json_pointer.parts_of("anchor")
    assert json_pointer.get(VALUE, "anchor") is MISSING


def test_a_pinned_argument_with_a_slash_in_its_name_is_found() -> None:
    """The pointer to it was written without its escape, and named another place."""
    call = ToolCall(id="wire", tool="wire", call="call-1", arguments={"to/from": "ACME"})
    [action] = Words(pinned=["to/from"]).card("teller", [call]).actions
    assert action.pinned == ["/to~1from"]
