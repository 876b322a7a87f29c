"""The hook's default list: what passes without a person is what somebody looked at, in the versions that are named.

It knew tools that Claude Code no longer sends (TodoWrite, BashOutput) and not their successors, so that every entry of
a to-do list waited for a person.
"""

from __future__ import annotations

import asyncio
import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from holdpoint.mcp import asking, claude_tools
from holdpoint.mcp.claude_tools import LOOKED_AT, OLDER, PASSES, TOOLS
from holdpoint.mcp.hook import Settings, answered

from tests.clients.mcp import claude_code

# What each version sent on the day that it was looked at, without a terminal and with all tools at once.
SENT = {
    "2.1.197": (
        "Agent Bash CronCreate CronDelete CronList Edit EnterWorktree ExitWorktree NotebookEdit Read ReportFindings "
        "ScheduleWakeup SendMessage Skill TaskCreate TaskGet TaskList TaskOutput TaskStop TaskUpdate WebFetch "
        "WebSearch Workflow Write"
    ),
    "2.1.332": (
        "Agent Bash CronCreate CronDelete CronList Edit EnterWorktree ExitWorktree ListAgents Monitor NotebookEdit "
        "Read ReportFindings ScheduleWakeup SendMessage Skill TaskStop WebFetch WebSearch Workflow Write"
    ),
}  # fmt: skip
PASSING = """
AgentOutputTool AskUserQuestion BashOutput CronList EnterPlanMode ExitPlanMode Glob Grep LS ListAgents NotebookRead Read
TaskCreate TaskGet TaskList TaskOutput TaskUpdate TodoRead TodoWrite ToolSearch WaitForMcpServers
"""


def test_every_tool_that_was_sent_is_in_the_table_and_those_that_pass_are_these() -> None:
    assert SENT.keys() == LOOKED_AT.keys()
    assert {name for sent in SENT.values() for name in sent.split()} - TOOLS.keys() == set()
    assert sorted(PASSES) == sorted(PASSING.split())


def test_the_table_is_dated_and_names_versions_that_were_looked_at() -> None:
    assert [date.fromisoformat(day) for day in LOOKED_AT.values()]
    assert {tool.until for tool in TOOLS.values()} <= {"", OLDER, *LOOKED_AT}
    assert [name for name, tool in TOOLS.items() if not tool.why] == []


@pytest.mark.parametrize("tool", sorted({name for sent in SENT.values() for name in sent.split()}))
def test_the_hook_asks_about_what_runs_writes_or_sends(tool: str) -> None:
    assert Settings().asks(tool) == (tool not in PASSING.split())


def test_what_is_unknown_is_asked_about_and_said_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nobody answers here, so the call is denied; the notice is for the person at the terminal."""
    settings = tmp_path / "hook.json"
    settings.write_text('{"wait": 0.1, "ask": ["*", "Named"]}')
    for name, value in {"HOLDPOINT_URL": "http://127.0.0.1:9", "HOLDPOINT_TOKEN": "hp_a"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def use(tool: str) -> tuple[str, Any]:
        sent = json.dumps({"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": {}}).encode()
        told = asyncio.run(answered(sent, str(settings)))
        assert told is not None
        return told["hookSpecificOutput"]["permissionDecision"], told.get("systemMessage", "")

    decision, said = use("Teleport")
    assert decision == "deny"
    assert "does not know the tool Teleport" in said
    assert "set `pass` in the hook's settings" in said
    assert [use(tool) for tool in ("Teleport", "Bash", "mcp__github__merge", "Named")] == [("deny", "")] * 4
    assert "Teleport2" in use("Teleport2")[1]


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


@pytest.mark.long
@pytest.mark.parametrize("version", LOOKED_AT)
def test_the_binary_sends_what_the_table_knows(version: str, tmp_path: Path) -> None:
    """Claude Code from npm, of the versions that the table names; what a newer one adds is asked about."""
    binary = claude_code.install(version, tmp_path)
    home = tmp_path / "home"
    home.mkdir()
    assert claude_code.tools_sent(binary, home) == set(SENT[version].split())
    code = binary.read_bytes()
    newest = version == list(LOOKED_AT)[-1]
    here = [name for name, tool in TOOLS.items() if tool.until == version or (newest and not tool.until)]
    assert [name for name in here if f'"{name}"'.encode() not in code] == []
