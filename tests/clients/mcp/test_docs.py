"""The first examples of the two pages work as they stand."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from tests.clients.mcp.mcp_client import SOURCE
from tests.clients.mcp.test_hook import BASH, event, heard
from tests.clients.world import POOL, World
from tests.conftest import Starter
from tests.harness.session import ROOT
from tests.harness.waiting import PATIENCE

PAGES = ROOT / "docs" / "frameworks"


def first(page: str, language: str) -> str:
    """The first block of code in a language."""
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


def test_the_hook_of_the_claude_code_page_works_as_its_settings_say(web: str, tmp_path: Path) -> None:
    import os
    import subprocess

    world = World(web)
    [matcher] = json.loads(first("claude-code.md", "json"))["hooks"]["PreToolUse"]
    [hook] = matcher["hooks"]
    script = tmp_path / "holdpoint"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m holdpoint.command "$@"\n')
    script.chmod(0o755)
    env = {**os.environ, **world.env, "PYTHONPATH": SOURCE, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(["/bin/sh", "-c", hook["command"]], env=env, cwd=ROOT, **pipes)  # type: ignore[call-overload]
    answer = POOL.submit(lambda: heard(process, event()))
    world.decides()
    found = answer.result(PATIENCE)
    assert found is not None
    assert (found["permissionDecision"], found["updatedInput"]) == ("allow", BASH)


def test_the_hook_blocks_where_it_cannot_be_started(tmp_path: Path) -> None:
    import subprocess

    [matcher] = json.loads(first("claude-code.md", "json"))["hooks"]["PreToolUse"]
    missing = subprocess.run(
        ["/bin/sh", "-c", matcher["hooks"][0]["command"]], env={"PATH": str(tmp_path)}, check=False
    )
    assert missing.returncode == 2
