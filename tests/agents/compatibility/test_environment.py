"""A run's configuration and its libraries' versions are recorded when it starts, and looked at before it goes on."""

from __future__ import annotations

import sys
from decimal import Decimal
from importlib import invalidate_caches
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pydantic import BaseModel, Field, SecretStr

from agents import Agent, step
from agents.definition import environment
from agents.definition.plan_builder import plan_of
from agents.errors import AgentError, ConfigRefused
from agents.runs.start import start_run
from approvals.gates import preflight_facts
from checkpoints.actors import SYSTEM
from checkpoints.models import Run
from checkpoints.values.canonical_json import encode_canonical
from tests.agents.compatibility import porter
from tests.agents.compatibility.conftest import Deploy
from tests.factories import make_team
from tests.factories.driven_runs import advance_to_rest, state

LIBRARY = "porter-library"


class Settled(Agent):
    """Says what it was configured to say."""

    name = "settled"
    libraries = (LIBRARY,)

    class State(BaseModel):
        said: str = ""
        sum: Decimal = Decimal(0)

    class Config(BaseModel):
        word: str = "hello"
        limit: Decimal = Field(Decimal("10.00"), gt=0)

    @step
    def say(self) -> dict[str, Any]:
        return {"said": self.config.word}

    @step
    def count(self) -> dict[str, Any]:
        return {"sum": self.config.limit}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return installed(version): that version of the library is found from now on; none for None."""

    def install(version: str | None) -> None:
        folder = tmp_path / "porter_library-1.dist-info"
        folder.mkdir(exist_ok=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {LIBRARY}\nVersion: {version}\n")
        monkeypatch.setattr(sys, "path", [each for each in sys.path if each != str(tmp_path)])
        if version:
            monkeypatch.syspath_prepend(str(tmp_path))
        invalidate_caches()
        environment.version.cache_clear()

    yield install
    environment.version.cache_clear()


def started(**config: Any) -> Run:
    return start_run("settled", {}, by=SYSTEM, team=make_team(), config=config)


def shown(run: Run) -> dict[str, tuple[str, str]]:
    return {each.check: (each.colour, each.words) for each in preflight_facts.of_run(run).findings}


def test_what_is_given_goes_over_the_defaults_and_stays_with_the_run(deploy: Deploy, installed: Any) -> None:
    installed("1.2")
    deploy(Settled)
    run = started(word="é")
    recorded = {"config": {"word": "é", "limit": "10.00"}, "libraries": {LIBRARY: "1.2"}}
    assert (environment.recorded(run), bytes(run.environment)) == (recorded, encode_canonical(recorded))
    told = shown(run)
    assert told["configuration"] == ("green", "The configuration is the recorded one.")
    assert told["libraries"] == ("green", f"{LIBRARY} 1.2, as recorded.")
    assert advance_to_rest(run).status == "completed"
    assert state(run) == {"said": "é", "sum": "10.00"}


def test_every_fault_of_a_configuration_is_named_and_nothing_is_started(deploy: Deploy) -> None:
    deploy(Settled, porter.One)
    before = Run.objects.count()
    with pytest.raises(ConfigRefused) as refused:
        started(limit="-1", colour="red")
    assert [each["pointer"] for each in refused.value.errors] == ["/limit", "/colour"]
    with pytest.raises(ConfigRefused, match="no such field"):  # it has no configuration
        start_run("porter", {"order": "A-1"}, by=SYSTEM, team=make_team(), config={"word": "moin"})
    assert Run.objects.count() == before


def test_by_command_it_is_json(deploy: Deploy) -> None:
    deploy(Settled)
    team = make_team()
    call_command("run_agent", "settled", "--input", "{}", "--team", team.name, "--config", '{"word": "moin"}')
    assert environment.recorded(Run.objects.get(team=team))["config"]["word"] == "moin"
    for wrong in ('{"limit": 0}', "[1]"):
        with pytest.raises(CommandError, match="The configuration was refused"):
            call_command("run_agent", "settled", "--input", "{}", "--team", team.name, "--config", wrong)


def test_a_library_of_another_version_is_amber_and_one_that_is_gone_is_red(deploy: Deploy, installed: Any) -> None:
    installed("1.2")
    deploy(Settled)
    run = started()
    installed("2.0")
    assert shown(run)["libraries"] == ("amber", f"{LIBRARY} was 1.2 when the run started and is 2.0 here.")
    installed(None)
    assert shown(run)["libraries"] == ("red", f"Not installed here: {LIBRARY} 1.2. Install it again.")


def test_a_field_that_is_new_or_gone_is_amber_and_one_that_does_not_fit_is_red(
    deploy: Deploy, installed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed("1.2")
    deploy(Settled)
    run = started(word="moin")

    class Wider(Settled.Config):
        colour: str = "red"

    class Other(BaseModel):
        word: int = 1
        limit: Decimal = Decimal(1)

    monkeypatch.setattr(Settled, "Config", Wider)
    assert shown(run)["configuration"][0] == "amber"
    assert "colour differs" in shown(run)["configuration"][1]
    monkeypatch.setattr(Settled, "Config", Other)
    assert shown(run)["configuration"][0] == "red"


def test_a_run_from_before_anything_was_recorded_says_so(deploy: Deploy, installed: Any) -> None:
    installed("1.2")
    deploy(Settled)
    run = started()
    Run.objects.filter(pk=run.pk).update(environment=b"{}")
    run.refresh_from_db()
    told = shown(run)
    assert {told["configuration"][0], told["libraries"][0]} == {"amber"}
    assert advance_to_rest(run).status == "completed"
    assert state(run)["said"] == "hello"


class Keyed(BaseModel):
    """Its secret would be kept with each run, as stars, and those would be what a step gets."""

    word: str = ""
    keys: list[SecretStr] = []


class Required(BaseModel):
    word: str


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"Config": Required}, "the field word of its Config has no default"),
        ({"Config": Keyed}, "a secret in its Config"),
        ({"Config": dict}, "a Config that is not a pydantic BaseModel"),
        ({"Config": Settled.Config, "libraries": "numpy"}, "`libraries` is a tuple"),
        ({}, r"lonely\.say uses self\.config\.word"),
    ],
)
def test_a_declaration_that_no_run_could_start_with_is_refused(attributes: dict[str, Any], words: str) -> None:
    class Lonely(Agent):
        name = "lonely"

        class State(BaseModel):
            said: str = ""

        @step
        def say(self) -> dict[str, Any]:
            return {"said": self.config.word}

    for name, value in attributes.items():
        setattr(Lonely, name, value)
    with pytest.raises(AgentError, match=words):
        environment.check(Lonely, plan_of(Lonely))
