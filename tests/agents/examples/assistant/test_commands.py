"""A command of the assistant: no shell, no secrets, bounded in time and words, and nothing of it stays."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from agents.examples.assistant import tools
from agents.examples.assistant.calls import Call, assess_calls
from tests.factories.driven_runs import advance_to_rest, decide
from tests.harness.waiting import until

from .assistant_runs import DONE, begun, calling
from .endpoint import Endpoint


def run(folder: Path, *argv: str, seconds: float = 20) -> str:
    return tools.run_command(list(argv), folder=str(folder), seconds=seconds)


def test_it_gets_no_secret_of_the_worker(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "DATABASE_URL", "HOLDPOINT_SECRET_KEY", "REDIS_URL", "DJANGO_SETTINGS_MODULE"):
        monkeypatch.setenv(name, "k-1")
    task = begun(endpoint, calling(("run_command", {"argv": ["env"]})), DONE)
    decide(task)
    assert advance_to_rest(task).status == "completed"
    [told] = endpoint.told()
    assert "exit code 0" in told
    assert "k-1" not in told
    names = {line.partition("=")[0] for line in told.splitlines()[1:]}
    assert names <= {"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "HOME", "PWD", "TERM"}


@pytest.mark.parametrize(("argv", "said"), [
    (["echo", "$HOME", ";", "touch", "owned"], "It ended with exit code 0.\n$HOME ; touch owned"),  # no shell reads it
    (["sh", "-c", "echo no >&2; exit 3"], "It ended with exit code 3.\nno"),
    (["sh", "-c", "kill $$"], "It ended by SIGTERM."),
    (["cat"], "It ended with exit code 0."),  # there is nothing to read
    (["no-such-program"], "It ended with exit code 127."),
])  # fmt: skip
def test_it_tells_how_it_ended_and_what_it_said(argv: list[str], said: str, folder: Path) -> None:
    assert run(folder, *argv).startswith(said)
    assert run(folder, "pwd").endswith(str(folder.resolve()))
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(("last", "seconds", "said"), [
    ("sleep 600", 0.5, "It ended after 0.5 seconds."),
    ("echo done", 20, "It ended with exit code 0.\ndone"),
])  # fmt: skip
def test_all_that_it_started_ends_with_it(last: str, seconds: float, said: str, folder: Path) -> None:
    assert run(folder, "sh", "-c", f"sleep 600 & echo $! > child; {last}", seconds=seconds) == said
    child = int((folder / "child").read_text())
    until(lambda: not alive(child), what="its child is gone")


def test_a_command_that_says_too_much_is_told_from_both_its_ends(folder: Path) -> None:
    said = run(folder, "sh", "-c", "echo first; yes | head -c 5000000; echo last")
    assert said.startswith("It ended with exit code 0.\nfirst\n")
    assert said.endswith("last")
    assert "bytes are left out here" in said
    assert len(said) < 17_000


@pytest.mark.parametrize(("argv", "level", "reason"), [
    (["ls"], "medium", "cannot be undone"),
    (["/bin/sh", "-c", "ls"], "high", "Runs a shell"),
    (["python3.11", "x.py"], "high", "program that it brings along"),
    (["rm", "a"], "high", "Can destroy files: rm"),
    (["env", "sudo", "ls"], "critical", "another account: sudo"),
    (["cat", "/proc/1/environ"], "high", "outside the folder"),
    (["cat", "a/../../b"], "high", "outside the folder"),
])  # fmt: skip
def test_the_risk_is_by_rule(argv: list[str], level: str, reason: str) -> None:
    risk, reasons = assess_calls([Call(tool="run_command", id="a", ref="a", arguments={"argv": argv})], [])
    assert risk == level
    assert any(reason in text for text in reasons)


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE and pid != os.getpid()
    except psutil.NoSuchProcess:
        return False
