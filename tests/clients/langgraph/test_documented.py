"""What docs/frameworks/langgraph.md shows works as it stands there."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from django.conf import settings

from checkpoints.models import Run
from tests.clients.world import World
from tests.harness.services import run
from tests.harness.session import ROOT

TEXT = (Path(settings.BASE_DIR) / "docs/frameworks/langgraph.md").read_text()
PART = TEXT[TEXT.index("## A checkpointer") :]


def test_the_first_example_is_complete(web: str, tmp_path: Path) -> None:
    world, script = World(web), tmp_path / "graph.py"
    script.write_text(re.findall(r"```python\n(.*?)```", PART, re.S)[0])
    path = {"PYTHONPATH": str(ROOT / "clients/python/src")}
    for lines in (2, 4):
        done = run(sys.executable, str(script), env={**os.environ, **world.env, **path})
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("You said:") == lines
    kept = Run.objects.get(thread="chat-1207", team=world.team)
    assert kept.plan.agent == world.agent


def test_every_name_in_the_page_is_there() -> None:
    import holdpoint.langgraph as package

    for name in re.findall(r"`(Thread\w+|Tampered|HoldpointSaver|import_thread)`", PART):
        assert hasattr(package, name)


@pytest.mark.parametrize("command", re.findall(r"^python -m holdpoint\.langgraph.*$", PART, re.M))
def test_the_command_is_understood(command: str) -> None:
    path = {"PYTHONPATH": str(ROOT / "clients/python/src")}
    done = run(sys.executable, *command.split()[1:3], "import", "--help", env={**os.environ, **path})
    assert done.returncode == 0
    assert "--all" in done.stdout
