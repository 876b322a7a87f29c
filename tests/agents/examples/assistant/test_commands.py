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
    secrets = {
        "OPENAI_API_KEY": "k-1",
        "DATABASE_URL": "postgres://u:k-2@h/d",
        "HOLDPOINT_SECRET_KEY": "k-3",
        "REDIS_URL": "redis://:k-4@h",
        "AWS_SECRET_ACCESS_KEY": "k-5",
        "DJANGO_SETTINGS_MODULE": "k-6",
    }
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    task = begun(endpoint, calling(("run_command", {"argv": ["env"]})), DONE)
    decide(task)
    assert advance_to_rest(task).status == "completed"
    [told] = endpoint.told()
    assert "exit code 0" in told
    assert not [value for value in ("k-1", "k-2", "k-3", "k-4", "k-5", "k-6") if value in told]
    names = {line.partition("=")[0] for line in told.splitlines()[1:]}
    assert names <= {"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "HOME", "PWD", "TERM"}


def test_no_shell_reads_its_arguments(folder: Path) -> None:
    assert run(folder, "echo", "$HOME", ";", "touch", "owned") == "It ended with exit code 0.\n$HOME ; touch owned"
    assert list(folder.iterdir()) == []


def test_it_runs_in_the_folder_and_tells_how_it_ended(folder: Path) -> None:
    assert run(folder, "pwd").endswith(str(folder.resolve()))
    assert run(folder, "sh", "-c", "echo no >&2; exit 3") == "It ended with exit code 3.\nno"
    assert "no-such-program" in run(folder, "no-such-program")


def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started(folder: Path) -> None:
    said = run(folder, "sh", "-c", "sleep 600 & echo $! > child; sleep 600", seconds=0.5)
    assert said == "It ended after 0.5 seconds."
    child = int((folder / "child").read_text())
    until(lambda: not alive(child), what="its child is gone")


def test_what_it_leaves_behind_is_ended_with_it(folder: Path) -> None:
    said = run(folder, "sh", "-c", "sleep 600 & echo $! > child; echo done")
    assert said == "It ended with exit code 0.\ndone"
    child = int((folder / "child").read_text())
    until(lambda: not alive(child), what="its child is gone")


def test_a_command_that_says_too_much_is_told_from_both_its_ends(folder: Path) -> None:
    said = run(folder, "sh", "-c", "echo first; yes | head -c 5000000; echo last")
    assert said.startswith("It ended with exit code 0.\nfirst\n")
    assert said.endswith("last")
    assert "bytes are left out here" in said
    assert len(said) < 17_000


def test_it_reads_nothing(folder: Path) -> None:
    assert run(folder, "cat") == "It ended with exit code 0."


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
