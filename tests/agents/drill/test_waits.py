"""The drill of agents that wait: for a time, for a signal, and for the runs that they start."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from checkpoints.models import Run
from tests.agents.examples.refunds.conftest import World, start_sandbox  # noqa: F401 - a fixture
from tests.factories import ann, make_team
from tests.harness.session import ROOT

from .test_drill import drilled, words

HELPERS = {"HOLDPOINT_AGENTS": "tests.agents.drill.family_agents", "HOLDPOINT_LOG_LEVEL": "ERROR"}


@pytest.mark.long
def test_a_worker_may_be_killed_wherever_a_run_waits(tmp_path: Path) -> None:
    team, ledger = make_team(), tmp_path / "ledger"
    input = json.dumps({"ledger": str(ledger), "names": ["a", "bb"]})
    given = ["--input", input, "--signals", '{"go": 7}', "--team", team.name, "--as", ann(team).username]
    done = drilled(HELPERS, "patient", *given)
    assert done.returncode == 0, done.stdout + done.stderr
    assert words(done.stdout, "wait") == [["same"] * 3] * 3  # a time, a signal, its save
    assert words(done.stdout, "have_paid") == [["same"] * 3] * 2
    assert "step, waiting" in done.stdout
    assert "step, gathering" in done.stdout
    assert "Left out: the runs of helper that it starts." in done.stdout
    runs = Run.objects.filter(team=team, plan__agent="patient")
    assert len(runs) == 2 + 3 * 5
    assert {each.status for each in runs} == {"cancelled"}
    helpers = Run.objects.filter(team=team, plan__agent="helper")
    assert len(helpers) == 2 * len(runs)
    assert {(each.status, each.plan.version) for each in helpers} == {("cancelled", "1-drill")}
    written = ledger.read_text().splitlines()
    assert sorted(written) == sorted(["pay a", "pay bb", "take back a", "take back bb"] * len(runs))


def test_a_signal_that_nobody_sends_is_said() -> None:
    team = make_team()
    given = ["--input", '{"ledger": "", "names": [], "endless": true}', "--team", team.name, "--as", ann(team).username]
    done = drilled(HELPERS, "patient", *given)
    assert done.returncode == 1
    assert "wait waits for the signal never, and nobody sends it: give it with --signals." in done.stderr
    wrong = drilled(HELPERS, "patient", *given, "--signals", "[")
    assert "--signals is JSON" in wrong.stderr


@pytest.mark.long
def test_the_research_agent_may_be_killed_anywhere() -> None:
    team = make_team()
    known = {"HOLDPOINT_AGENTS": "agents.examples.research", "HOLDPOINT_LOG_LEVEL": "ERROR"}
    input = str(ROOT / "agents" / "examples" / "research" / "questions.json")
    done = drilled(known, "research", "--input", input, "--team", team.name, "--as", ann(team).username)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("Restartable at every step.\n")


@pytest.mark.long
def test_the_rollout_agent_may_be_killed_anywhere(start_sandbox: Callable[..., World]) -> None:  # noqa: F811
    team = make_team()
    known = {
        "SANDBOX_URL": start_sandbox().url,
        "HOLDPOINT_AGENTS": "agents.examples.rollout",
        "HOLDPOINT_LOG_LEVEL": "ERROR",
    }
    input = str(ROOT / "agents" / "examples" / "rollout" / "plans" / "01-checkout.json")
    given = ["--input", input, "--signals", '{"health": {"errors": 0.2, "by": "prober"}}', "--team", team.name]
    done = drilled(known, "rollout", *given, "--as", ann(team).username)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("Restartable at every step.\n")
