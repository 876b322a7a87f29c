"""The drill tells an agent that may be killed anywhere from those that may not, and says where and why."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from agents.drill import walk
from agents.drill.record import Answers, Stuck, read_signals
from agents.errors import AgentError
from approvals.errors import DecisionRefused
from checkpoints.audit import verify_runs
from checkpoints.models import Run
from tests.factories import ann, make_policy, make_team
from tests.factories.driven_runs import advance, make_run, open_gate
from tests.harness.known_agents import knowing_only
from tests.harness.services import run
from tests.harness.session import ROOT

AGENTS = "tests.agents.drill.drilled_agents"
FAMILY = "tests.agents.drill.family_agents"


def drill(*arguments: str, known: str = AGENTS) -> subprocess.CompletedProcess[str]:
    """Drill an agent of this module, and perform its effects."""
    env = {"HOLDPOINT_AGENTS": known, "HOLDPOINT_LOG_LEVEL": "ERROR"}
    return run(sys.executable, "manage.py", "drill", *arguments, "--yes", env=env, within=900)


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
    given = ["--as", people[0], "--as", people[1], "--team", team.name]
    done = drill("sound", "--input", json.dumps({"ledger": str(ledger)}), *given)
    assert done.returncode == 0, done.stdout + done.stderr
    assert words(done.stdout, "review") == [["same"] * 3] * 2
    assert words(done.stdout, "pay") == [["same"] * 3]
    assert words(done.stdout, "mail") == [["same", "asks a person", "same"]]
    assert "A person is asked when a worker dies in mail" in done.stdout
    assert "Not compared, because undisturbed runs differ there too: /receipt." in done.stdout

    runs = list(Run.objects.filter(team=team))
    assert len(runs) == 2 + 3 * 4
    assert {each.status for each in runs} == {"cancelled"}  # when it was over
    assert (
        f"Done and taken back: pay {len(runs)} times.\nDone, and left as it is: mail {len(runs)} times." in done.stdout
    )
    assert all(each.title.startswith("Drill: sound (") for each in runs)
    assert {each.plan.version for each in runs} == {"1-drill"}
    assert [problem for each in runs for problem in verify_runs.verify_run(each)] == []
    written = ledger.read_text().splitlines()
    assert len(written) == len(set(written)) == 2 * len(runs)  # one payment and one mail each


def test_what_is_remembered_in_a_process_thrown_by_dice_and_sent_again_under_a_key_that_is_ignored_is_found(
    ledger: Path,
) -> None:
    done = drill("faulty", "--input", json.dumps({"ledger": str(ledger)}), "--team", make_team().name)
    assert done.returncode == 1
    assert done.stderr.strip() == "CommandError: Not restartable: pay, toss, two."
    assert words(done.stdout, "one") == [["same", "same", "differs"]]
    assert words(done.stdout, "two") == [["differs", "differs", "same"]]
    assert words(done.stdout, "three") == [["same"] * 3]
    assert words(done.stdout, "pay") == [["same", "differs", "same"]]
    assert re.search(
        r"(?m)^two, killed before it \(run \d+\):\n  /second was 2, is 1; /third was 20, is 10$", done.stdout
    )
    assert re.search(r"(?m)^one, killed after its save \(run \d+\):\n  two: /second was 2, is 1", done.stdout)
    assert "toss, undisturbed: writes something else on the same input: /thrown was 0." in done.stdout
    assert "Not compared, because undisturbed runs differ there too: /thrown." in done.stdout
    assert "answered something else when it was sent again under its key: /receipt was 1, is 2" in done.stdout


def test_nothing_is_performed_without_a_yes(ledger: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    team, out = make_team(), io.StringIO()
    with (
        knowing_only(AGENTS, settings, monkeypatch),
        pytest.raises(CommandError, match="Add --yes to really perform the effects"),
    ):
        call_command("drill", "sound", input=json.dumps({"ledger": str(ledger)}), team=team.name, stdout=out)
    assert re.search(r"(?m)^  pay +is undone by take_back$", out.getvalue())
    assert re.search(r"(?m)^  mail +cannot be undone$", out.getvalue())
    assert not ledger.exists()
    assert not Run.objects.filter(team=team).exists()


def test_what_nobody_answers_or_may_answer_and_what_no_answer_is_are_said(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with knowing_only(AGENTS, settings, monkeypatch):
        gate = open_gate(advance(make_run("sound", ledger="")))
    with pytest.raises(Stuck, match="The gate review asks, and nobody answers: say who decides with --as"):
        Answers().give(gate, None)
    with pytest.raises(DecisionRefused, match="Only people in"):
        Answers(people=(ann().pk,)).give(gate, None)
    (tmp_path / "answers.json").write_text(json.dumps({"review": {"verdikt": "reject"}}))
    with pytest.raises(AgentError, match="has verdikt"):
        Answers.read(str(tmp_path / "answers.json"))
    with pytest.raises(AgentError, match="--signals is JSON"):
        read_signals("[")
    with knowing_only(FAMILY, settings, monkeypatch):
        waits = make_run("patient", ledger="", names=[], endless=True)
        stuck = walk.walk(waits.pk, Answers()).stuck
    assert stuck == "wait waits for the signal never, and nobody sends it: give it with --signals."


@pytest.mark.long
def test_gates_are_answered_as_a_file_says(ledger: Path, tmp_path: Path) -> None:
    team = make_team()
    answers = tmp_path / "answers.json"
    answers.write_text(json.dumps({"review": {"verdict": "reject", "then": "stop", "comment": "no"}}))
    given = ["--input", json.dumps({"ledger": str(ledger)}), "--team", team.name, "--as", ann(team).username]
    done = drill("sound", *given, "--answer", str(answers))
    assert done.returncode == 0, done.stdout + done.stderr
    assert words(done.stdout, "pay") == []
    assert words(done.stdout, "review") == [["same"] * 3] * 2
    assert {each.status for each in Run.objects.filter(team=team)} == {"cancelled"}


@pytest.mark.long
def test_a_worker_may_be_killed_wherever_a_run_waits(tmp_path: Path) -> None:
    team, ledger = make_team(), tmp_path / "ledger"
    input = json.dumps({"ledger": str(ledger), "names": ["a", "bb"]})
    given = ["--input", input, "--signals", '{"go": 7}', "--team", team.name, "--as", ann(team).username]
    done = drill("patient", *given, known=FAMILY)
    assert done.returncode == 0, done.stdout + done.stderr
    assert words(done.stdout, "wait") == [["same"] * 3] * 3  # a time, a signal, its save
    assert words(done.stdout, "count") == words(done.stdout, "have_paid") == [["same"] * 3] * 2
    assert "step, waiting" in done.stdout
    assert "step, gathering" in done.stdout
    assert "Left out: the runs of helper that it starts." in done.stdout
    runs = Run.objects.filter(team=team, plan__agent="patient")
    assert len(runs) == 2 + 3 * 7
    assert {each.status for each in runs} == {"cancelled"}
    helpers = Run.objects.filter(team=team, plan__agent="helper")
    assert len(helpers) == 2 * len(runs)
    assert {(each.status, each.plan.version) for each in helpers} == {("cancelled", "1-drill")}
    written = ledger.read_text().splitlines()
    assert sorted(written) == sorted(["pay a", "pay bb", "take back a", "take back bb"] * len(runs))


@pytest.mark.long
def test_the_research_agent_may_be_killed_anywhere() -> None:
    team = make_team()
    input = str(ROOT / "agents" / "examples" / "research" / "questions.json")
    given = ["--input", input, "--team", team.name, "--as", ann(team).username]
    done = drill("research", *given, known="agents.examples.research")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("Restartable at every step.\n")
