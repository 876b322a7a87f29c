"""The programs of docs/frameworks/recipes.md, each with its library in a new virtual environment."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from approvals.models import Gate
from tests.clients.framework_programs import newer
from tests.clients.scripted_model import Call, ScriptedModel, scripted
from tests.clients.world import World
from tests.conftest import Starter
from tests.harness.services import Service, run
from tests.harness.session import ROOT
from tests.harness.waiting import PATIENCE, until

pytestmark = pytest.mark.long
INSTALLING = 40 * PATIENCE  # some of these libraries are large
REFUND: Call = ("refund", {"order": "7", "amount": "20.00"})
LESS = {"order": "7", "amount": "10.00"}
CANNOT_EDIT = ["Microsoft Agent Framework"]
LIBRARIES = {
    "CrewAI": ["crewai==1.15.30"],
    "Microsoft Agent Framework": ["agent-framework-core==1.23.0", "agent-framework-openai==1.17.0"],
    "Google ADK": ["google-adk==2.13.0"],
    "Temporal": ["temporalio==1.35.0"],
    "Airflow": ["apache-airflow==3.3.2"],
    "Prefect": ["prefect==3.9.1"],
}
QUIET = {
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False", "CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TESTING": "true",
    "OTEL_SDK_DISABLED": "true", "DO_NOT_TRACK": "1", "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "300",
}  # fmt: skip
TEMPORAL = """

import asyncio

from temporalio.testing import ActivityEnvironment

print(asyncio.run(ActivityEnvironment().run(refund, "7", "20.00")))
"""


def recipe(heading: str) -> str:
    """The program under a heading."""
    text = (ROOT / "docs" / "frameworks" / "recipes.md").read_text()
    section = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    found = re.search(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found.group(1)


def started(name: str, folder: Path, start: Starter, world: World, model: ScriptedModel) -> Service:
    """Install the library and the client, and start the program."""
    uv, python = str(Path(sys.executable).parent / "uv"), folder / "venv" / "bin" / "python"
    source = folder / "source"
    shutil.copytree(ROOT / "clients" / "python", source, ignore=shutil.ignore_patterns("__pycache__", "build"))
    install = ["pip", "install", "--python", python, source, *LIBRARIES[name]]
    for words in (["venv", "--python", sys.executable, folder / "venv"], install):
        done = run(uv, *map(str, words), within=INSTALLING)
        assert done.returncode == 0, done.stdout + done.stderr
    return begun(name, python, folder, start, {**world.env, **model.env})


def begun(name: str, python: Path, folder: Path, start: Starter, env: dict[str, str]) -> Service:
    """Start the program; Airflow reads it from its folder of DAGs."""
    file = folder / "home" / "dags" / "recipe.py"
    file.parent.mkdir(parents=True)
    file.write_text(recipe(name) + (TEMPORAL if name == "Temporal" else ""))
    home = str(folder / "home")
    env |= QUIET | {"HOME": home, "AIRFLOW_HOME": home, "PREFECT_HOME": home}
    if name != "Airflow":
        return start("recipe", [str(python), str(file)], env)
    airflow = str(python.with_name("airflow"))
    for words in (["db", "migrate"], ["dags", "reserialize"]):
        done = run(airflow, *words, env=env, within=INSTALLING)
        assert done.returncode == 0, done.stdout + done.stderr
    return start("recipe", [airflow, "dags", "test", "refunds"], env)


def asks(world: World) -> None:
    """Wait until it asks: importing some of these libraries takes long."""
    until(lambda: Gate.objects.open().filter(team=world.team).first(), within=5 * PATIENCE, what="a gate opens")


@pytest.mark.parametrize("name", list(LIBRARIES))
def test_it_runs_as_people_left_it(name: str, web: str, start_service: Starter, tmp_path: Path) -> None:
    world = World(web)
    again: list[str | list[Call]] = [[("refund", LESS)]] if name in CANNOT_EDIT else []
    with scripted([REFUND], *again, "It is paid back.", "It is paid back.") as model:
        service = started(name, tmp_path, start_service, world, model)
        asks(world)
        first = world.decides("edit", arguments={"refund": LESS})
        if name in CANNOT_EDIT:
            assert newer(world, first).asked.actions[0].arguments == LESS
            assert "Ann Okafor wants another call" in model.everything(1)
            world.decides()
        service.says("Paying back 10.00 for order 7", within=4 * PATIENCE)


@pytest.mark.parametrize("name", ["CrewAI", "Microsoft Agent Framework", "Google ADK"])
def test_a_no_reaches_the_model(name: str, web: str, start_service: Starter, tmp_path: Path) -> None:
    world = World(web)
    with scripted([REFUND], "Then not.", "Then not.") as model:
        service = started(name, tmp_path, start_service, world, model)
        asks(world)
        world.decides("reject", comment="Not this month.")
        service.says("Then not", within=4 * PATIENCE)
        assert "Ann Okafor said no to refund: Not this month. Do not do it another way." in model.everything(1)
        assert "Paying back" not in service.log
