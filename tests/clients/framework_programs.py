"""Programs of agent frameworks: each runs in an environment of its own, in which `agents` is OpenAI's package."""

from __future__ import annotations

import re
from pathlib import Path

from approvals.models import Gate
from tests.clients.scripted_model import ScriptedModel
from tests.clients.world import World
from tests.conftest import Starter
from tests.harness.services import Service
from tests.harness.session import ROOT
from tests.harness.waiting import until

PYTHON = ROOT / ".venv-frameworks" / "bin" / "python"
CLIENT = ROOT / "clients" / "python" / "src"


def program(start: Starter, world: World, model: ScriptedModel, file: Path, *words: object, **more: str) -> Service:
    """Start a program that asks people of this world, and this model."""
    assert PYTHON.exists(), "the frameworks are not installed; make test does it"
    env = {**world.env, **model.env, "PYTHONPATH": str(CLIENT), **more}
    return start(file.stem, [str(PYTHON), str(file), *map(str, words)], env)


def first_example(page: str, folder: Path) -> Path:
    """Write the first program of a page of docs/frameworks into a file."""
    text = (ROOT / "docs" / "frameworks" / f"{page}.md").read_text()
    found = re.search(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    file = folder / f"{page.replace('-', '_')}_example.py"
    file.write_text(found.group(1))
    return file


def newer(world: World, gate: Gate) -> Gate:
    """The next gate that opens after this one."""
    asking = Gate.objects.open().filter(team=world.team, pk__gt=gate.pk)
    found = until(lambda: asking.first(), what="the next gate opens")
    assert found is not None
    return found
