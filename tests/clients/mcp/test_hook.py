"""The PreToolUse hook of Claude Code: what it reads, what it answers, that it fails closed; and the pages' examples."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from holdpoint.endings import INSTEAD
from holdpoint.mcp import hook
from playwright.sync_api import Page, expect

from approvals.models import Gate
from tests.agents.remote.outside_program import decide
from tests.clients.mcp.mcp_client import SOURCE, Json, decided, still_open
from tests.clients.world import POOL, World
from tests.conftest import Starter
from tests.factories import ann
from tests.harness.examples import first_alone
from tests.harness.services import WARM, free_port
from tests.harness.session import ROOT
from tests.harness.waiting import PATIENCE

BASH = {"command": "git push --force", "description": "Publish the branch"}


def event(tool: str = "Bash", input: Json | None = None, *, id: str | None = "toolu_01") -> Json:
    """What Claude Code writes to the hook's stdin."""
    told = {
        "session_id": "abc", "transcript_path": "/src/t.jsonl", "cwd": "/src", "permission_mode": "default",
        "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": BASH if input is None else input,
    }  # fmt: skip
    return told | ({"tool_use_id": id} if id else {})


def started(world: World, settings: Path | None = None, **env: str) -> subprocess.Popen[bytes]:
    words = WARM.standing("-m", "holdpoint.command", "hook", *(["--settings", str(settings)] if settings else []))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HOLDPOINT")}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(words, env={**kept, **world.env, "PYTHONPATH": SOURCE, **env}, cwd=ROOT, **pipes)


def heard(process: subprocess.Popen[bytes], sent: object) -> Json | None:
    """The hook's answer; None where it has no opinion."""
    body = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
    out, err = process.communicate(body, timeout=PATIENCE)
    assert process.returncode == 0, err.decode()
    if not out:
        return None
    found: Json = json.loads(out)["hookSpecificOutput"]
    assert found.pop("hookEventName") == "PreToolUse"
    return found


def asked(world: World, sent: object, settings: Path | None = None, **env: str) -> Future[Json | None]:
    return POOL.submit(lambda: heard(started(world, settings, **env), sent))


def settings(folder: Path, **told: Any) -> Path:
    file = folder / "hook.json"
    file.write_text(json.dumps(told))
    return file


def test_an_approval_allows_the_exact_input(world: World) -> None:
    answer = asked(world, event())
    world.decides(comment="After the freeze.")
    assert answer.result(PATIENCE) == {
        "permissionDecision": "allow",
        "permissionDecisionReason": "Ann Okafor approved Bash. After the freeze.",
        "updatedInput": BASH,
    }


def test_an_edit_is_the_input_and_the_model_is_told(world: World) -> None:
    answer = asked(world, event())
    world.decides("edit", arguments={"Bash": {**BASH, "command": "git push"}})
    found = answer.result(PATIENCE) or {}
    assert found["updatedInput"] == {**BASH, "command": "git push"}
    assert found["additionalContext"] == (
        "People changed this call before it was made: command is now 'git push'. Go on with what was done, and do not "
        "repeat your own call."
    )


def test_a_rejection_denies_with_its_reason(world: World) -> None:
    answer = asked(world, event())
    world.decides("reject", comment="Never by force")
    found = answer.result(PATIENCE)
    assert found == {
        "permissionDecision": "deny",
        "permissionDecisionReason": f"Ann Okafor said no to Bash: Never by force. {INSTEAD}",
    }


def writes(path: str, folder: Path, id: str = "toolu_01") -> Json:
    """The event of a write of a whole file, of Claude Code in this folder."""
    input = {"file_path": path, "content": "a = 1\nb = 3\n"}
    return event("Write", input, id=id) | {"cwd": str(folder)}


def test_a_file_that_would_be_replaced_is_compared_as_it_was(
    world: World, tmp_path: Path, new_page: Callable[..., Page]
) -> None:
    (tmp_path / "app.py").write_text("a = 1\nb = 2\n")
    answer = asked(world, writes("app.py", tmp_path))
    gate = world.gate()
    page = new_page(ann(world.team))
    page.goto(f"/gates/{gate.pk}/")
    figure = page.locator("figure.drawn")
    expect(figure).to_contain_text("1 line added, 1 removed")
    expect(figure).to_contain_text("Compared with what teller-")
    expect(figure).to_contain_text("says was there")
    expect(figure.locator("tr[data-kind=gone] .text")).to_have_text("b = 2")
    expect(page.locator("body")).to_contain_text("The difference is from the file as it was when this was asked.")
    decide(gate, "approve")
    found = answer.result(PATIENCE) or {}
    assert found["updatedInput"] == {"file_path": "app.py", "content": "a = 1\nb = 3\n"}


@pytest.mark.parametrize(
    ("there", "said"),
    [
        pytest.param(None, "There was no such file when this was asked: it would be new.", marks=pytest.mark.long),
        pytest.param(b"", "There was an empty file when this was asked.", marks=pytest.mark.long),
        (b"\x00\xff", "There is a file that is no text: all of it would be replaced."),
        pytest.param(
            b"x" * 100_001,
            "There is a file of more than 100,000 bytes, too large for a comparison.",
            marks=pytest.mark.long,
        ),
    ],
)
def test_what_cannot_be_compared_is_said(world: World, tmp_path: Path, there: bytes | None, said: str) -> None:
    if there is not None:
        (tmp_path / "app.py").write_bytes(there)
    answer = asked(world, writes(str(tmp_path / "app.py"), tmp_path))
    gate = world.decides()
    assert gate.standing().card.summary == said
    assert "was" not in gate.standing().card.actions[0].to_json()["draws"][0]
    assert answer.result(PATIENCE) is not None


def test_a_file_that_changed_while_people_decided_is_asked_about_anew(web: str, tmp_path: Path) -> None:
    world, file = World(web), settings(tmp_path, wait=1, late="defer")
    (tmp_path / "app.py").write_text("b = 2\n")
    still_open(lambda: asked(world, writes("app.py", tmp_path), file))
    decide(world.gate(), "approve")
    (tmp_path / "app.py").write_text("b = 4\n")
    found = json.loads(still_open(lambda: asked(world, writes("app.py", tmp_path), file)))
    assert found["permissionDecision"] == "defer"
    assert Gate.objects.filter(team=world.team).count() == 2
    unread = settings(tmp_path, wait=1, compare=False)
    still_open(lambda: asked(world, writes("app.py", tmp_path, "toolu_02"), unread))
    assert world.gate().standing().card.summary == ""


def test_reads_and_questions_are_left_to_claude_code(world: World) -> None:
    assert asked(world, event("Read", {"file_path": "a"})).result(PATIENCE) is None
    assert not Gate.objects.filter(team=world.team).exists()


def test_settings_name_what_is_asked_about(world: World, tmp_path: Path) -> None:
    file = settings(tmp_path, ask=["Bash", "mcp__github__*"], **{"pass": ["mcp__github__get_*"]}, wait=1, late="defer")
    assert asked(world, event("Write", {"file_path": "a", "content": ""}), file).result(PATIENCE) is None
    assert asked(world, event("mcp__github__get_issue", {}), file).result(PATIENCE) is None
    found = still_open(lambda: asked(world, event("mcp__github__merge", {"number": 7}), file))
    assert json.loads(found)["permissionDecision"] == "defer"


def test_what_takes_longer_is_denied_and_found_by_the_call_that_the_model_makes_anew(web: str, tmp_path: Path) -> None:
    """Claude Code defers in -p only, and no call beside others: what it does not defer, it might let pass."""
    world, file = World(web), settings(tmp_path, wait=4)
    found = json.loads(still_open(lambda: asked(world, event(), file)))
    assert found["permissionDecision"] == "deny"
    assert "Once people have decided, the same call" in found["permissionDecisionReason"]
    decide(world.gate(), "approve")
    again = decided(lambda: asked(world, event(id="toolu_02"), file))
    assert (again["permissionDecision"], again["updatedInput"]) == ("allow", BASH)
    assert Gate.objects.filter(team=world.team).count() == 1


def test_the_same_use_again_is_asked_about_again(world: World) -> None:
    """One approval let each use that was alike pass for ten minutes, unasked."""
    for number in (1, 2):
        answer = asked(world, event(id=f"toolu_{number}"))
        world.decides()
        found = answer.result(PATIENCE) or {}
        assert found["permissionDecision"] == "allow"
        assert Gate.objects.filter(team=world.team).count() == number


def test_what_takes_longer_is_deferred_and_resumed_with_the_same_id(world: World, tmp_path: Path) -> None:
    file = settings(tmp_path, wait=4, late="defer")
    found = json.loads(still_open(lambda: asked(world, event(), file)))
    gate = world.gate()
    assert found["permissionDecision"] == "defer"
    assert f"gate {gate.pk}" in found["permissionDecisionReason"]
    decide(gate, "approve")
    resumed = decided(lambda: asked(world, event() | {"session_id": "another", "cwd": "/elsewhere"}, file))
    assert (resumed["permissionDecision"], resumed["updatedInput"]) == ("allow", BASH)
    assert Gate.objects.filter(team=world.team).count() == 1


@pytest.mark.parametrize(("late", "id"), first_alone([("deny", "toolu_01"), ("ask", "toolu_01"), ("defer", None)]))
def test_settings_say_what_is_answered_when_people_take_longer(
    web: str, tmp_path: Path, late: str, id: str | None
) -> None:
    world, file = World(web), settings(tmp_path, wait=1, late=late)
    found = json.loads(still_open(lambda: asked(world, event(id=id), file)))
    assert found["permissionDecision"] == (late if id else "deny")  # nothing would find a use without an id again


def test_a_hook_that_was_killed_while_it_waited_finds_its_gate(world: World) -> None:
    first = started(world)
    assert first.stdin is not None
    first.stdin.write(json.dumps(event()).encode())
    first.stdin.close()
    gate = world.gate()
    first.send_signal(signal.SIGKILL)
    with first:
        first.wait(PATIENCE)
    decide(gate, "approve")
    found = asked(world, event()).result(PATIENCE) or {}
    assert found["permissionDecision"] == "allow"
    assert Gate.objects.filter(team=world.team).count() == 1


class Denies:
    """The hook in this process, which may allow nothing."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys
        for name, value in world.env.items():
            monkeypatch.setenv(name, value)

    def why(self, sent: object, settings: Path | None = None) -> str:
        """The reason for which it denies what was sent."""
        body = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
        self.monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=BytesIO(body)))
        words = ["--settings", str(settings)] if settings else []
        assert POOL.submit(hook.main, words).result(PATIENCE) == 0
        found: Json = json.loads(self.capsys.readouterr().out)["hookSpecificOutput"]
        assert found["permissionDecision"] == "deny"
        return str(found["permissionDecisionReason"])


@pytest.fixture
def denies(world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Denies:
    return Denies(world, monkeypatch, capsys)


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (b"", "is not the input of a PreToolUse hook"),
        (b"{", "is not the input of a PreToolUse hook"),
        (b'{"tool_name": "Bash", "tool_input": "ls"}', "tool_input: Input should be an object"),
        ({**event(), "hook_event_name": "Stop"}, "this hook is for PreToolUse, not for Stop"),
        (event(tool="Ba sh"), "letters, digits"),
    ],
)
def test_it_fails_closed_on_what_it_cannot_take(denies: Denies, sent: object, why: str) -> None:
    assert why in denies.why(sent)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("HOLDPOINT_TOKEN", "", "Give a token, or set HOLDPOINT_TOKEN"), ("HOLDPOINT_TOKEN", "hp_nothing", "401"),
        ("HOLDPOINT_URL", "", "HOLDPOINT_URL"), ("HOLDPOINT_HOOK_SETTINGS", "/nowhere.json", "cannot be read"),
    ],
)  # fmt: skip
def test_it_fails_closed_where_it_is_not_set_up(denies: Denies, name: str, value: str, why: str) -> None:
    denies.monkeypatch.setenv(name, value)
    assert why in denies.why(event())


def test_it_fails_closed_and_in_time_while_the_server_is_away(denies: Denies, tmp_path: Path) -> None:
    denies.monkeypatch.setenv("HOLDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    assert "did not answer in time" in denies.why(event(), settings(tmp_path, wait=1))


def test_settings_that_are_wrong_are_told(denies: Denies, tmp_path: Path) -> None:
    assert "asks: Extra inputs are not permitted" in denies.why(event(), settings(tmp_path, asks=["Bash"]))


PAGES = ROOT / "docs" / "frameworks"


def first(page: str, language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", (PAGES / page).read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def test_the_program_of_the_mcp_page_asks_and_goes_on(web: str, start_service: Starter, tmp_path: Path) -> None:
    world, program = World(web), tmp_path / "program.py"
    program.write_text(first("mcp.md", "python"))
    running = start_service("program", [sys.executable, str(program)], world.env)
    world.decides("edit", arguments={"wire": {"to": "ACME Ltd", "amount": "100.00"}})
    running.says(r"Wiring \{'amount': '100\.00', 'to': 'ACME Ltd'\}")
    assert "Ann Okafor approved wire, with changes: amount is now '100.00'." in running.log


def test_the_hook_of_the_claude_code_page_works_as_its_settings_say(world: World, tmp_path: Path) -> None:
    [matcher] = json.loads(first("claude-code.md", "json"))["hooks"]["PreToolUse"]
    [entry] = matcher["hooks"]
    script = tmp_path / "holdpoint"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m holdpoint.command "$@"\n')
    script.chmod(0o755)
    env = {**os.environ, **world.env, "PYTHONPATH": SOURCE, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(["/bin/sh", "-c", entry["command"]], env=env, cwd=ROOT, **pipes)  # type: ignore[call-overload]
    answer = POOL.submit(lambda: heard(process, event()))
    world.decides()
    found = answer.result(PATIENCE) or {}
    assert (found["permissionDecision"], found["updatedInput"]) == ("allow", BASH)


def test_the_hook_blocks_where_it_cannot_be_started(tmp_path: Path) -> None:
    [matcher] = json.loads(first("claude-code.md", "json"))["hooks"]["PreToolUse"]
    missing = subprocess.run(
        ["/bin/sh", "-c", matcher["hooks"][0]["command"]], env={"PATH": str(tmp_path)}, check=False
    )
    assert missing.returncode == 2
