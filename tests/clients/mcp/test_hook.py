"""The PreToolUse hook of Claude Code, as a process: what it reads, what it answers, and that it fails closed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from holdpoint.endings import INSTEAD
from playwright.sync_api import Page, expect

from approvals.models import Gate
from tests.agents.remote.outside_program import decide
from tests.clients.mcp.mcp_client import SOURCE, Json, decided, still_open
from tests.clients.world import POOL, World
from tests.factories import ann
from tests.harness.examples import first_alone
from tests.harness.services import WARM
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
    """The hook's process."""
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
    """The answer of a hook beside the test."""
    return POOL.submit(lambda: heard(started(world, settings, **env), sent))


def settings(folder: Path, **told: Any) -> Path:
    """A file of settings."""
    file = folder / "hook.json"
    file.write_text(json.dumps(told))
    return file


def test_an_approval_allows_the_exact_input(web: str) -> None:
    world = World(web)
    answer = asked(world, event())
    world.decides(comment="After the freeze.")
    assert answer.result(PATIENCE) == {
        "permissionDecision": "allow",
        "permissionDecisionReason": "Ann Okafor approved Bash. After the freeze.",
        "updatedInput": BASH,
    }


def test_an_edit_is_the_input_and_the_model_is_told(web: str) -> None:
    world = World(web)
    answer = asked(world, event())
    world.decides("edit", arguments={"Bash": {**BASH, "command": "git push"}})
    found = answer.result(PATIENCE)
    assert found is not None
    assert found["updatedInput"] == {**BASH, "command": "git push"}
    assert found["additionalContext"] == (
        "People changed this call before it was made: command is now 'git push'. Go on with what was done, and do not "
        "repeat your own call."
    )


def test_a_rejection_denies_with_its_reason(web: str) -> None:
    world = World(web)
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
    web: str, tmp_path: Path, new_page: Callable[..., Page]
) -> None:
    world = World(web)
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
    found = answer.result(PATIENCE)
    assert found is not None
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
def test_what_cannot_be_compared_is_said(web: str, tmp_path: Path, there: bytes | None, said: str) -> None:
    world = World(web)
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


@pytest.mark.parametrize("tool", ["Read", "Grep", "Glob", "AskUserQuestion", "ExitPlanMode"])
def test_reads_and_questions_are_left_to_claude_code(web: str, tool: str) -> None:
    world = World(web)
    assert asked(world, event(tool, {"file_path": "a"})).result(PATIENCE) is None
    assert not Gate.objects.filter(team=world.team).exists()


def test_settings_name_what_is_asked_about(web: str, tmp_path: Path) -> None:
    world = World(web)
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


def test_the_same_use_again_is_asked_about_again(web: str) -> None:
    """One approval let each use that was alike pass for ten minutes, unasked."""
    world = World(web)
    for number in (1, 2):
        answer = asked(world, event(id=f"toolu_{number}"))
        world.decides()
        found = answer.result(PATIENCE)
        assert found is not None
        assert found["permissionDecision"] == "allow"
        assert Gate.objects.filter(team=world.team).count() == number


def test_what_takes_longer_is_deferred_and_resumed_with_the_same_id(web: str, tmp_path: Path) -> None:
    world = World(web)
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


def test_a_hook_that_was_killed_while_it_waited_finds_its_gate(web: str) -> None:
    world = World(web)
    first = started(world)
    assert first.stdin is not None
    first.stdin.write(json.dumps(event()).encode())
    first.stdin.close()
    gate = world.gate()
    first.send_signal(signal.SIGKILL)
    with first:
        first.wait(PATIENCE)
    decide(gate, "approve")
    found = asked(world, event()).result(PATIENCE)
    assert found is not None
    assert found["permissionDecision"] == "allow"
    assert Gate.objects.filter(team=world.team).count() == 1


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
def test_it_fails_closed_on_what_it_cannot_take(web: str, sent: object, why: str) -> None:
    found = asked(World(web), sent).result(PATIENCE)
    assert found is not None
    assert found["permissionDecision"] == "deny"
    assert why in found["permissionDecisionReason"]


@pytest.mark.parametrize(
    ("env", "why"),
    [
        ({"HOLDPOINT_TOKEN": ""}, "Give a token, or set HOLDPOINT_TOKEN"),
        ({"HOLDPOINT_TOKEN": "hp_nothing"}, "401"),
        ({"HOLDPOINT_URL": ""}, "HOLDPOINT_URL"),
        ({"HOLDPOINT_HOOK_SETTINGS": "/nowhere.json"}, "cannot be read"),
    ],
)
def test_it_fails_closed_where_it_is_not_set_up(web: str, env: dict[str, str], why: str) -> None:
    found = asked(World(web), event(), None, **env).result(PATIENCE)
    assert found is not None
    assert found["permissionDecision"] == "deny"
    assert why in found["permissionDecisionReason"]


def test_it_fails_closed_and_in_time_while_the_server_is_away(tmp_path: Path, web: str) -> None:
    from tests.harness.services import free_port

    world = World(f"http://127.0.0.1:{free_port()}")
    found = asked(world, event(), settings(tmp_path, wait=1)).result(PATIENCE)
    assert found is not None
    assert found["permissionDecision"] == "deny"
    assert "did not answer in time" in found["permissionDecisionReason"]


def test_settings_that_are_wrong_are_told(web: str, tmp_path: Path) -> None:
    found = asked(World(web), event(), settings(tmp_path, asks=["Bash"])).result(PATIENCE)
    assert found is not None
    assert found["permissionDecision"] == "deny"
    assert "asks: Extra inputs are not permitted" in found["permissionDecisionReason"]
