"""The programs of docs/frameworks, each with its library in a new virtual environment."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from approvals.models import Gate
from tests.clients.framework_programs import first_example, newer
from tests.clients.scripted_model import Call, ScriptedModel, scripted
from tests.clients.world import World
from tests.conftest import Starter
from tests.harness.services import Service, run
from tests.harness.session import ROOT
from tests.harness.waiting import PATIENCE, until

pytestmark = pytest.mark.long
CLIENT = "./clients/python"
PAGES = ROOT / "docs" / "frameworks"
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
    """The program under a heading, or that of the file which stands there."""
    section = (PAGES / "recipes.md").read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    found = re.search(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    if found is None:
        found = re.search(r"\]\((\S+\.py)\)", section)
        assert found is not None
        return (PAGES / found.group(1)).read_text()
    return found.group(1)


def environment(folder: Path, *wanted: str) -> Path:
    """Make a virtual environment with what is wanted, the client among it; return its Python."""
    uv, python = str(Path(sys.executable).parent / "uv"), folder / "venv" / "bin" / "python"
    source = folder / "source"
    shutil.copytree(ROOT / "clients" / "python", source, ignore=shutil.ignore_patterns("__pycache__", "build"))
    install = ["pip", "install", "--python", python, *(each.replace(CLIENT, str(source)) for each in wanted)]
    for words in (["venv", "--python", sys.executable, folder / "venv"], install):
        done = run(uv, *map(str, words), within=INSTALLING)
        assert done.returncode == 0, done.stdout + done.stderr
    return python


def started(name: str, folder: Path, start: Starter, world: World, model: ScriptedModel) -> Service:
    """Install the library and the client, and start the program; Airflow reads it from its folder of DAGs."""
    python = environment(folder, CLIENT, *LIBRARIES[name])
    file = folder / "home" / "dags" / "recipe.py"
    file.parent.mkdir(parents=True)
    file.write_text(recipe(name) + (TEMPORAL if name == "Temporal" else ""))
    home = str(folder / "home")
    env = world.env | model.env | QUIET | {"HOME": home, "AIRFLOW_HOME": home, "PREFECT_HOME": home}
    if name != "Airflow":
        return start("recipe", ["env", "-C", home, str(python), str(file)], env)  # in a folder of its own
    airflow = str(python.with_name("airflow"))
    for words in (["db", "migrate"], ["dags", "reserialize"]):
        done = run(airflow, *words, env=env, within=INSTALLING)
        assert done.returncode == 0, done.stdout + done.stderr
    return start("recipe", [airflow, "dags", "test", "refunds"], env)


def started_again(folder: Path, start: Starter, world: World, model: ScriptedModel) -> Service:
    home, python = folder / "home", folder / "venv" / "bin" / "python"
    words = ["env", "-C", str(home), str(python), str(home / "dags" / "recipe.py")]
    return start("recipe", words, {**world.env, **model.env, "HOME": str(home)})


def asks(world: World, service: Service) -> None:
    opened = Gate.objects.open().filter(team=world.team)
    until(lambda: opened.first() or not service.alive, within=5 * PATIENCE, what="a gate opens")
    assert service.alive, service.log


@pytest.mark.parametrize("name", list(LIBRARIES))
def test_it_runs_as_people_left_it(name: str, world: World, start_service: Starter, tmp_path: Path) -> None:
    again: list[str | list[Call]] = [[("refund", LESS)]] if name in CANNOT_EDIT else []
    with scripted([REFUND], *again, "It is paid back.", "It is paid back.") as model:
        service = started(name, tmp_path, start_service, world, model)
        asks(world, service)
        first = world.decides("edit", arguments={"refund": LESS})
        if name in CANNOT_EDIT:
            assert newer(world, first).asked.actions[0].arguments == LESS
            assert "Ann Okafor wants another call" in model.everything(1)
            world.decides()
        service.says("Paying back 10.00 for order 7", within=4 * PATIENCE)


def test_killed_while_it_waits_it_goes_on_and_after_the_call_ran_it_is_not_run_on_the_same_approval(
    world: World, start_service: Starter, tmp_path: Path
) -> None:
    """Started again it read the approval under its key once more, and paid twice on it."""
    with scripted([REFUND], "hang", "Somebody has to look.") as model:
        first = started("Microsoft Agent Framework", tmp_path, start_service, world, model)
        asks(world, first)
        first.kill()
        world.decides()
        second = started_again(tmp_path, start_service, world, model)
        second.says("Paying back 20.00 for order 7", within=4 * PATIENCE)
        model.was_asked(2)
        second.kill()
        third = started_again(tmp_path, start_service, world, model)
        third.says("Somebody has to look", within=4 * PATIENCE)
        assert "Paying back" not in third.log
        assert "it may have been made" in model.everything()
    assert Gate.objects.filter(team=world.team).count() == 1


def installed_by(page: str) -> list[str]:
    """What a page of docs/frameworks says to install first."""
    found = re.search(r"^pip install (.+)$", (PAGES / f"{page}.md").read_text(), re.MULTILINE)
    assert found is not None, f"{page}.md does not say what to install"
    return shlex.split(found.group(1), comments=True)


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("openai-agents", "Paying back 20.00 for order 7"),
        ("pydantic-ai", "Paying back 20.00 for order 7"),
        ("mcp", "Wiring {'amount': '120.00', 'to': 'ACME Ltd'}"),
    ],
)
def test_a_pages_example_works_with_what_the_page_installs(
    page: str, said: str, world: World, start_service: Starter, tmp_path: Path
) -> None:
    python = environment(tmp_path, *installed_by(page))
    with scripted([REFUND], "It is paid back.") as model:
        file = first_example(page, tmp_path)
        service = start_service("example", [str(python), str(file)], {**world.env, **model.env})
        asks(world, service)
        world.decides()
        service.says(re.escape(said), within=4 * PATIENCE)
