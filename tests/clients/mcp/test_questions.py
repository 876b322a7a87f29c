"""What is asked about a tool's call: names that cannot be taken for another, and no drawing of a part. Pure."""

from __future__ import annotations

from typing import Any

import pytest
from holdpoint.mcp import asking, claude_tools


@pytest.mark.parametrize(
    ("tool", "name", "field"),
    [
        ("Bash", "Bash", "Bash"), ("mcp__fs__write-file", "mcp__fs__write-file", "mcp__fs__write_file"),
        ("files/write", "files:write", "files_write"), ("ask", "ask", "tool_ask"), ("9p", "9p", "tool_9p"),
        ("get_result", "get_result", "tool_get_result"),
    ],
)  # fmt: skip
def test_a_tools_name_stays_what_it_is(tool: str, name: str, field: str) -> None:
    [action] = asking.question(tool, {}).body["actions"]
    assert (action["tool"], action["id"]) == (name, field)


@pytest.mark.parametrize("tool", ["", "a b", "a\u202eb", "p\u0430y", "x" * 101, "a:b/c"])
def test_a_name_that_could_be_taken_for_another_is_refused(tool: str) -> None:
    with pytest.raises(asking.NoSuchName):
        asking.question(tool, {})


EDIT = {"old_string": "a", "new_string": "b"}


@pytest.mark.parametrize(
    ("tool", "input"),
    [
        ("MultiEdit", {"file_path": "a", "edits": [EDIT] * 51}),
        ("MultiEdit", {"file_path": "a", "edits": [EDIT, {"old_string": "c", "new_string": 1}]}),
        ("MultiEdit", {"file_path": "a", "edits": [EDIT, "c"]}),
        ("NotebookEdit", {"notebook_path": "a", "new_source": "b", "edit_mode": "delete"}),
    ],
)  # fmt: skip
def test_nothing_is_drawn_where_it_would_show_a_part_or_something_else(tool: str, input: dict[str, Any]) -> None:
    assert list(claude_tools.draw_call(tool, input)) == []
