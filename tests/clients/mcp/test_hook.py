"""The PreToolUse hook of Claude Code: what it reads, what it answers, that it fails closed; and its default list.

What passes without a person is what somebody looked at, in the versions that are named: the list knew tools that Claude
Code no longer sends, and not their successors, so that every entry of a to-do list waited for a person.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
from concurrent.futures import Future
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from holdpoint.endings import INSTEAD
from holdpoint.mcp import asking, claude_tools, hook
from holdpoint.mcp.claude_tools import LOOKED_AT, OLDER, PASSES, TOOLS, read_replaced
from holdpoint.mcp.hook import Settings, answered

from approvals.models import Gate
from tests.agents.remote.outside_program import decide
from tests.clients.mcp.mcp_client import Json, beside, decided, still_open
from tests.clients.world import POOL, World
from tests.factories import ann
from tests.harness.services import WARM, free_port
from tests.harness.session import ROOT
from tests.harness.signed_in_clients import signed_in
from tests.harness.waiting import PATIENCE

BASH = {"command": "git push --force", "description": "Publish the branch"}


def event(tool: str = "Bash", input: Json | None = None, *, id: str | None = "toolu_01") -> Json:
    told = {
        "session_id": "abc", "transcript_path": "/src/t.jsonl", "cwd": "/src", "permission_mode": "default",
        "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": BASH if input is None else input,
    }  # fmt: skip
    return told | ({"tool_use_id": id} if id else {})


def started(world: World, words: list[str], **env: str) -> subprocess.Popen[bytes]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HOLDPOINT")}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(words, env={**kept, **world.python_env, **env}, cwd=ROOT, **pipes)


class Hook:
    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.world, self.file = world, folder / "hook.json"
        self.monkeypatch = monkeypatch
        for name, value in world.env.items():
            monkeypatch.setenv(name, value)

    def __call__(self, sent: Json, **settings: Any) -> Future[Json]:
        """The answer to a use of a tool; empty where it has no opinion."""
        self.file.write_text(json.dumps(settings))

        async def answer() -> Json:
            found = await hook.answered(json.dumps(sent).encode(), str(self.file)) or {}
            inside: Json = found.get("hookSpecificOutput", {})
            assert inside.pop("hookEventName", "PreToolUse") == "PreToolUse"
            return inside

        return beside(answer)

    def denies(self, sent: object, capsys: pytest.CaptureFixture[str], **settings: Any) -> str:
        self.file.write_text(json.dumps(settings))
        body = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
        self.monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=BytesIO(body)))
        words = ["--settings", str(self.file)] if settings else []
        assert POOL.submit(hook.main, words).result(PATIENCE) == 0
        found: Json = json.loads(capsys.readouterr().out)["hookSpecificOutput"]
        assert found["permissionDecision"] == "deny"
        return str(found["permissionDecisionReason"])


@pytest.fixture
def hooked(world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Hook:
    return Hook(world, monkeypatch, tmp_path)


def test_people_allow_change_and_refuse_the_exact_input(world: World, hooked: Hook) -> None:
    answer = hooked(event())
    world.decides(comment="After the freeze.")
    assert answer.result(PATIENCE) == {
        "permissionDecision": "allow",
        "permissionDecisionReason": "Ann Okafor approved Bash. After the freeze.",
        "updatedInput": BASH,
    }
    answer = hooked(event())
    world.decides("edit", arguments={"Bash": {**BASH, "command": "git push"}})
    found = answer.result(PATIENCE)
    assert found["updatedInput"] == {**BASH, "command": "git push"}
    assert found["additionalContext"] == (
        "People changed this call before it was made: command is now 'git push'. Go on with what was done, and do not "
        "repeat your own call."
    )
    answer = hooked(event())
    world.decides("reject", comment="Never by force")
    assert answer.result(PATIENCE) == {
        "permissionDecision": "deny",
        "permissionDecisionReason": f"Ann Okafor said no to Bash: Never by force. {INSTEAD}",
    }


def writes(path: str, folder: Path, id: str = "toolu_01") -> Json:
    input = {"file_path": path, "content": "a = 1\nb = 3\n"}
    return event("Write", input, id=id) | {"cwd": str(folder)}


def test_a_file_that_would_be_replaced_is_compared_as_it_was(world: World, hooked: Hook, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("a = 1\nb = 2\n")
    answer = hooked(writes("app.py", tmp_path))
    gate = world.gate()
    page = " ".join(signed_in(ann(world.team)).get(f"/gates/{gate.pk}/").content.decode().split())
    for words in ("1 line added, 1 removed", f"Compared with what {world.agent}", "says was there", "b = 2", "b = 3"):
        assert words in page
    assert "The difference is from the file as it was when this was asked." in page
    decide(gate, "approve")
    assert answer.result(PATIENCE)["updatedInput"] == {"file_path": "app.py", "content": "a = 1\nb = 3\n"}


@pytest.mark.parametrize(
    ("there", "said"),
    [
        (None, "There was no such file when this was asked: it would be new."),
        (b"", "There was an empty file when this was asked."),
        (b"\x00\xff", "There is a file that is no text: all of it would be replaced."),
        (b"x" * 100_001, "There is a file of more than 100,000 bytes, too large for a comparison."),
    ],
)
def test_what_cannot_be_compared_is_said(tmp_path: Path, there: bytes | None, said: str) -> None:
    if there is not None:
        (tmp_path / "app.py").write_bytes(there)
    assert read_replaced(writes("app.py", tmp_path)["tool_input"], str(tmp_path)) == ("", said)


def test_a_file_that_changed_while_people_decided_is_asked_about_anew(
    world: World, hooked: Hook, tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text("b = 2\n")
    still_open(lambda: hooked(writes("app.py", tmp_path), wait=1, late="defer"))
    decide(world.gate(), "approve")
    (tmp_path / "app.py").write_text("b = 4\n")
    found = json.loads(still_open(lambda: hooked(writes("app.py", tmp_path), wait=1, late="defer")))
    assert found["permissionDecision"] == "defer"
    assert Gate.objects.filter(team=world.team).count() == 2
    still_open(lambda: hooked(writes("app.py", tmp_path, "toolu_02"), wait=1, compare=False))
    assert world.gate().standing().card.summary == ""


def test_settings_name_what_is_asked_about_and_what_is_answered_late(hooked: Hook) -> None:
    rules: Json = {"ask": ["Bash", "mcp__github__*"], "pass": ["mcp__github__get_*"], "wait": 1, "late": "ask"}
    assert hooked(event("Write", {"file_path": "a", "content": ""}), **rules).result(PATIENCE) == {}
    assert hooked(event("mcp__github__get_issue", {}), **rules).result(PATIENCE) == {}
    found = still_open(lambda: hooked(event("mcp__github__merge", {"number": 7}), **rules))
    assert json.loads(found)["permissionDecision"] == "ask"
    found = still_open(lambda: hooked(event(id=None), wait=1, late="defer"))
    assert json.loads(found)["permissionDecision"] == "deny"  # nothing would find a use without an id again


@pytest.mark.parametrize(("late", "words"), [("deny", "Once people have decided, the same call"), ("defer", "gate ")])
def test_what_takes_longer_is_found_by_the_call_that_is_made_anew_or_deferred(
    world: World, hooked: Hook, late: str, words: str
) -> None:
    """Claude Code defers in -p only, and no call beside others: what it does not defer, it might let pass."""
    found = json.loads(still_open(lambda: hooked(event(), wait=1, late=late)))
    assert (found["permissionDecision"], words in found["permissionDecisionReason"]) == (late, True)
    decide(world.gate(), "approve")
    again = event() | {"session_id": "another", "cwd": "/elsewhere"} if late == "defer" else event(id="toolu_02")
    resumed = decided(lambda: hooked(again, wait=1, late=late))
    assert (resumed["permissionDecision"], resumed["updatedInput"]) == ("allow", BASH)
    assert Gate.objects.filter(team=world.team).count() == 1


def test_it_fails_closed_on_what_it_cannot_take(hooked: Hook, capsys: pytest.CaptureFixture[str]) -> None:
    for sent, why in (
        (b"", "is not the input of a PreToolUse hook"),
        (b"{", "is not the input of a PreToolUse hook"),
        (b'{"tool_name": "Bash", "tool_input": "ls"}', "tool_input: Input should be an object"),
        ({**event(), "hook_event_name": "Stop"}, "this hook is for PreToolUse, not for Stop"),
        (event(tool="Ba sh"), "letters, digits"),
    ):
        assert why in hooked.denies(sent, capsys)
    assert "asks: Extra inputs are not permitted" in hooked.denies(event(), capsys, asks=["Bash"])


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("HOLDPOINT_TOKEN", "", "Give a token, or set HOLDPOINT_TOKEN"), ("HOLDPOINT_TOKEN", "hp_nothing", "401"),
        ("HOLDPOINT_URL", "", "HOLDPOINT_URL"), ("HOLDPOINT_HOOK_SETTINGS", "/nowhere.json", "cannot be read"),
    ],
)  # fmt: skip
def test_it_fails_closed_where_it_is_not_set_up(
    hooked: Hook, capsys: pytest.CaptureFixture[str], name: str, value: str, why: str
) -> None:
    hooked.monkeypatch.setenv(name, value)
    assert why in hooked.denies(event(), capsys)


def test_it_fails_closed_and_in_time_while_the_server_is_away(hooked: Hook, capsys: pytest.CaptureFixture[str]) -> None:
    hooked.monkeypatch.setenv("HOLDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    assert "did not answer in time" in hooked.denies(event(), capsys, wait=1)


def test_the_hook_of_the_claude_code_page_is_killed_while_it_waits_and_finds_its_gate(
    world: World, tmp_path: Path
) -> None:
    page = (ROOT / "docs" / "frameworks" / "claude-code.md").read_text()
    [matcher] = json.loads(page.partition("```json\n")[2].partition("```")[0])["hooks"]["PreToolUse"]
    [entry] = matcher["hooks"]
    command = ["/bin/sh", "-c", entry["command"]]
    missing = subprocess.run(command, env={"PATH": str(tmp_path)}, check=False)
    assert missing.returncode == 2, "where it cannot be started it blocks"
    script = tmp_path / "holdpoint"
    script.write_text(f'#!/bin/sh\nexec {shlex.join(WARM.standing("-m", "holdpoint.command"))} "$@"\n')
    script.chmod(0o755)
    path, sent = f"{tmp_path}:{os.environ['PATH']}", json.dumps(event()).encode()
    first = started(world, WARM.standing("-m", "holdpoint.command", "hook"))
    assert first.stdin is not None
    first.stdin.write(sent)
    first.stdin.close()
    gate = world.gate()
    first.send_signal(signal.SIGKILL)
    with first:
        first.wait(PATIENCE)
    decide(gate, "approve")
    second = started(world, command, PATH=path)
    out, err = second.communicate(sent, timeout=PATIENCE)
    assert second.returncode == 0, err.decode()
    found = json.loads(out)["hookSpecificOutput"]
    assert (found["permissionDecision"], found["updatedInput"]) == ("allow", BASH)
    assert Gate.objects.filter(team=world.team).count() == 1


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
    sent = {name for each in SENT.values() for name in each.split()}
    assert SENT.keys() == LOOKED_AT.keys()
    assert sent - TOOLS.keys() == set()
    assert {tool.until for tool in TOOLS.values()} <= {"", OLDER, *LOOKED_AT}
    assert sorted(PASSES) == sorted(PASSING.split())
    assert {tool for tool in sent if not Settings().asks(tool)} == sent & set(PASSING.split())


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
