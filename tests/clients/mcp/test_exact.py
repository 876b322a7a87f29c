"""A call is made with what people approved or not at all: the comparison, and JSON Patch. Pure."""

from __future__ import annotations

from typing import Any

import pytest
from holdpoint.mcp import exact, questions
from holdpoint.mcp.exact import NotExact

ASKED: dict[str, Any] = {"path": "a", "lines": [1, 2], "deep": {"a/b": 1, "~": None}}


@pytest.mark.parametrize(
    "got",
    [
        {**ASKED, "path": "b"}, {**ASKED, "more": 1}, {"path": "a"}, {**ASKED, "lines": [1, 2.0]},
        {**ASKED, "lines": [True, 2]}, {**ASKED, "path": "a\u200b"},
    ],
)  # fmt: skip
def test_arguments_that_nobody_approved_are_refused(got: dict[str, Any]) -> None:
    with pytest.raises(NotExact, match="What was approved is not what was asked"):
        exact.checked(ASKED, [], got)


def test_the_order_of_names_says_nothing() -> None:
    assert exact.checked(ASKED, [], dict(reversed(ASKED.items()))) == ASKED


@pytest.mark.parametrize(
    ("edits", "got"),
    [
        ([{"op": "replace", "path": "/path", "value": "b"}], {**ASKED, "path": "b"}),
        ([{"op": "add", "path": "/lines/0", "value": 0}], {**ASKED, "lines": [0, 1, 2]}),
        ([{"op": "add", "path": "/lines/-", "value": 3}], {**ASKED, "lines": [1, 2, 3]}),
        ([{"op": "remove", "path": "/lines/1"}], {**ASKED, "lines": [1]}),
        ([{"op": "replace", "path": "/deep/a~1b", "value": 2}], {**ASKED, "deep": {"a/b": 2, "~": None}}),
        ([{"op": "remove", "path": "/deep/~0"}], {**ASKED, "deep": {"a/b": 1}}),
        ([{"op": "replace", "path": "", "value": {"path": "c"}}], {"path": "c"}),
    ],
)
def test_peoples_edits_are_what_is_sent(edits: list[dict[str, Any]], got: dict[str, Any]) -> None:
    assert exact.checked(ASKED, edits, got) == got
    with pytest.raises(NotExact):
        exact.checked(ASKED, edits, {**got, "smuggled": True})


@pytest.mark.parametrize(
    "edit",
    [
        {"op": "move", "path": "/path", "from": "/lines"}, {"op": "remove", "path": "/nothing"},
        {"op": "add", "path": "/lines/9", "value": 1}, {"op": "replace", "path": "/path/x", "value": 1},
    ],
)  # fmt: skip
def test_an_edit_that_does_not_fit_is_refused(edit: dict[str, Any]) -> None:
    with pytest.raises(NotExact, match="does not fit"):
        exact.edited(ASKED, [edit])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object()])
def test_what_json_cannot_hold_has_no_digest(value: object) -> None:
    with pytest.raises(NotExact):
        exact.digest({"a": value})


@pytest.mark.parametrize(
    ("tool", "name", "field"),
    [
        ("Bash", "Bash", "Bash"), ("mcp__fs__write-file", "mcp__fs__write-file", "mcp__fs__write_file"),
        ("files/write", "files:write", "files_write"), ("ask", "ask", "tool_ask"), ("9p", "9p", "tool_9p"),
        ("get_result", "get_result", "tool_get_result"),
    ],
)  # fmt: skip
def test_a_tools_name_stays_what_it_is(tool: str, name: str, field: str) -> None:
    assert (questions.named(tool), questions.field(name)) == (name, field)


@pytest.mark.parametrize("tool", ["", "a b", "a\u202eb", "p\u0430y", "x" * 101, "a:b/c"])
def test_a_name_that_could_be_taken_for_another_is_refused(tool: str) -> None:
    with pytest.raises(questions.NoSuchName):
        questions.named(tool)


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
    assert list(questions.drawings(tool, input)) == []
