"""The drill tells an agent that may be killed anywhere from those that may not, and says where and why."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from checkpoints.audit import verify_runs
from checkpoints.models import Run
from tests.agents.examples.refunds.conftest import World, start_sandbox  # noqa: F401 - a fixture
from tests.factories import ann, make_policy, make_team
from tests.harness.services import run
from tests.harness.session import ROOT

AGENTS = {"HOLDPOINT_AGENTS": "tests.agents.drill.drilled_agents", "HOLDPOINT_LOG_LEVEL": "ERROR"}


def drill(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "manage.py", "drill", *arguments, env=AGENTS, within=300)


def drilled(known: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Drill an agent of these, and perform its effects."""
    return run(sys.executable, "manage.py", "drill", *arguments, "--yes", env=known, within=600)


def words(table: str, step: str) -> list[list[str]]:
    """The cells of a step's rows, without its name and what it is."""
    rows = [re.split(r"\s{2,}", line) for line in table.splitlines() if line.startswith(f"{step} ")]
    return [row[2:] for row in rows if len(row) == 5]


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


def test_an_agent_that_may_be_killed_anywhere_is_restartable(ledger: Path) -> None:
    team = make_team()
    make_policy(team, name="default", quorum=2)
    people = [ann(team).username, ann(team).username]
    given = ["--as", people[0], "--as", people[1], "--team", team.name, "--yes"]
    done = drill("sound", "--input", json.dumps({"ledger": str(ledger)}), *given)
    assert done.returncode == 0, done.stdout + done.stderr
    assert words(done.stdout, "count") == [["same"] * 3] * 4
    assert words(done.stdout, "review") == [["same"] * 3] * 2
    assert words(done.stdout, "pay") == [["same"] * 3]
    assert words(done.stdout, "mail") == [["same", "asks a person", "same"]]
    assert "A person is asked when a worker dies in mail" in done.stdout
    assert "/receipt, /seen_at" in done.stdout

    runs = list(Run.objects.filter(team=team))
    assert len(runs) == 2 + 3 * 9
    assert {each.status for each in runs} == {"cancelled"}  # when it was over
    assert (
        f"Done and taken back: pay {len(runs)} times.\nDone, and left as it is: mail {len(runs)} times." in done.stdout
    )
    assert all(each.title.startswith("Drill: sound (") for each in runs)
    assert {each.plan.version for each in runs} == {"1-drill"}
    assert [problem for each in runs for problem in verify_runs.verify_run(each)] == []
    written = ledger.read_text().splitlines()
    assert len(written) == len(set(written)) == 2 * len(runs)  # one payment and one mail each


def test_a_step_that_remembers_something_in_its_process_is_found(ledger: Path) -> None:
    team = make_team()
    done = drill("counting", "--input", "{}", "--team", team.name)
    assert done.returncode == 1
    assert done.stderr.strip() == "CommandError: Not restartable: two."
    assert words(done.stdout, "one") == [["same", "same", "differs"]]
    assert words(done.stdout, "two") == [["differs", "differs", "same"]]
    assert words(done.stdout, "three") == [["same"] * 3]
    assert re.search(
        r"(?m)^two, killed before it \(run \d+\):\n  /second was 2, is 1; /third was 20, is 10$", done.stdout
    )
    assert re.search(r"(?m)^one, killed after its save \(run \d+\):\n  two: /second was 2, is 1", done.stdout)


def test_a_step_that_throws_dice_is_found_without_a_kill() -> None:
    done = drill("tossing", "--input", "{}", "--team", make_team().name)
    assert done.returncode == 1
    assert done.stderr.strip() == "CommandError: Not restartable: toss."
    assert "toss, undisturbed: writes something else on the same input: /thrown was 0." in done.stdout
    assert "Not compared, because undisturbed runs differ there too: /doubled, /thrown." in done.stdout


def test_an_effect_that_ignores_its_key_is_found(ledger: Path) -> None:
    done = drill("forgetful", "--input", json.dumps({"ledger": str(ledger)}), "--team", make_team().name, "--yes")
    assert done.returncode == 1
    assert done.stderr.strip() == "CommandError: Not restartable: pay."
    assert words(done.stdout, "pay") == [["same", "differs", "same"]]
    assert "answered something else when it was sent again under its key: /receipt was 1, is 2" in done.stdout


def test_nothing_is_performed_without_a_yes(ledger: Path) -> None:
    team = make_team()
    done = drill("sound", "--input", json.dumps({"ledger": str(ledger)}), "--team", team.name)
    assert done.returncode == 1
    assert done.stderr.strip() == "CommandError: Nothing was run. Add --yes to really perform the effects."
    assert re.search(r"(?m)^  pay +is undone by take_back$", done.stdout)
    assert re.search(r"(?m)^  mail +cannot be undone$", done.stdout)
    assert not ledger.exists()
    assert not Run.objects.filter(team=team).exists()


def test_a_gate_that_nobody_may_answer_ends_the_drill_with_a_sentence(ledger: Path) -> None:
    team = make_team()
    given = ["--input", json.dumps({"ledger": str(ledger)}), "--team", team.name, "--yes"]
    assert "The gate review asks, and nobody answers: say who decides with --as." in drill("sound", *given).stderr
    outsider = ann().username
    refused = drill("sound", *given, "--as", outsider)
    assert (refused.returncode, "Traceback" in refused.stderr) == (1, False)
    assert "Only people in" in refused.stderr


def test_a_file_of_answers_that_has_an_unknown_key_is_refused(ledger: Path, tmp_path: Path) -> None:
    team = make_team()
    answers = tmp_path / "answers.json"
    answers.write_text(json.dumps({"review": {"verdikt": "reject"}}))
    given = ["--input", json.dumps({"ledger": str(ledger)}), "--team", team.name, "--as", ann(team).username, "--yes"]
    assert "has verdikt" in drill("sound", *given, "--answer", str(answers)).stderr


@pytest.mark.long
def test_gates_are_answered_as_a_file_says(ledger: Path, tmp_path: Path) -> None:
    team = make_team()
    answers = tmp_path / "answers.json"
    answers.write_text(json.dumps({"review": {"verdict": "reject", "then": "stop", "comment": "no"}}))
    given = ["--input", json.dumps({"ledger": str(ledger)}), "--team", team.name, "--as", ann(team).username, "--yes"]
    done = drill("sound", *given, "--answer", str(answers))
    assert done.returncode == 0, done.stdout + done.stderr
    assert words(done.stdout, "pay") == []
    assert words(done.stdout, "review") == [["same"] * 3] * 2
    assert {each.status for each in Run.objects.filter(team=team)} == {"cancelled"}


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


@pytest.mark.long  # tests/agents/testing/test_readme.py has the same drill, and that it ends well
def test_the_refunds_agent_may_be_killed_anywhere(start_sandbox: Callable[..., World]) -> None:  # noqa: F811
    world, team = start_sandbox(), make_team()
    mail = str(next((ROOT / "agents" / "examples" / "refunds" / "mails").glob("12-*.eml")))
    given = ["--input", mail, "--team", team.name, "--as", ann(team).username, "--yes"]
    told = {"SANDBOX_URL": world.url, "HOLDPOINT_AGENTS": "agents.examples.refunds", "HOLDPOINT_LOG_LEVEL": "ERROR"}
    done = run(sys.executable, "manage.py", "drill", "refunds", *given, env=told, within=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "A person is asked when a worker dies in reply" in done.stdout
    assert done.stdout.endswith("Restartable at every step.\n")
    amounts = {amount for amount, _ in world.refunds()}
    assert len(amounts) == 1  # the same in every run
    assert {status for _, status in world.refunds()} == {"cancelled"}
