"""The jobshop agent from the file to the board, with the person in between: the real runner and store."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from agents import AgentError
from agents.definition.agent import RunInfo
from agents.errors import ConfigRefused, InputRefused
from agents.examples.jobshop import JobShop, shop, solver
from agents.moves import rewind
from checkpoints.models import Checkpoint
from tests.factories import make_user
from tests.factories.driven_runs import advance_to_rest, answer, decide, effects, open_gate, state, trail
from tests.harness.services import run as run_process

from .made_up_shops import BUNDLED, THREE, make_waiting_run

pytestmark = pytest.mark.usefixtures("floor")
FIVE = """5 5
2 94 4 66 0 10 3 53 1 26
1 15 3 65 0 82 2 10 4 27
4 93 3 92 1 96 0 70 2 83
1 74 2 31 3 88 4 51 0 57
1 78 3 8 0 7 2 91 4 79
"""


def sheets(floor: Path) -> list[dict[str, Any]]:
    return [json.loads(file.read_text()) for file in sorted(floor.glob("*.json"))]


def test_a_run_plans_breaks_mends_in_two_ways_and_asks() -> None:
    run = make_waiting_run(breakdown={"machine": 1, "since": 2, "until": 5})
    assert [step for kind, step in trail(run) if kind == "step"] == [
        "read_shop", "sequence", "set_times", "break_down", "repair_locally", "solve_globally",
    ]  # fmt: skip
    gate = open_gate(run)
    card = gate.standing().card
    assert card.title == "Machine 1 is down: choose how three goes on"
    assert [chart.pointer for chart in card.charts] == ["/local_repair", "/global_plan"]
    assert card.question is not None
    assert [choice["id"] for choice in card.question["choices"]] == ["local", "global"]
    assert dict(card.charts[0].figures) | {"Found in": ""} == {
        "Ends at": "13", "Against the plan": "2 later", "Operations moved": "5 of 9", "of them in another order": "0",
        "Found in": "",
    }  # fmt: skip
    assert card.allows == ("dispatch",)


def test_the_schedule_that_a_person_chooses_and_no_other_goes_to_the_board_and_a_second_thought_replaces_it(
    floor: Path,
) -> None:
    run = make_waiting_run(source={"name": "five", "text": FIVE}, config={"swaps": 0})
    answer(run, "local")
    assert advance_to_rest(run).status == "completed"
    [sheet] = sheets(floor)
    saved = state(run)
    assert saved["local_repair"]["operations"] != saved["global_plan"]["operations"]
    assert saved["published"]["key"] == sheet["key"] == effects(run)[0].key
    worked = [(row["from"], row["until"], row["job"]) for lane in sheet["work"].values() for row in lane]
    assert sorted(worked) == sorted((row[3], row[4], row[0]) for row in saved["local_repair"]["operations"])
    assert saved["decision"]["answer"] == {"choice": "local", "value": None}

    asked = Checkpoint.objects.get(run=run, step="solve_globally").seq
    rewind.rewind(run, to=asked, by=make_user("Rea", run.team, may=("checkpoints.rewind_run",)))
    advance_to_rest(run)
    answer(run, "global")
    assert advance_to_rest(run).status == "completed"
    [second] = sheets(floor)
    assert (second["key"] != sheet["key"], state(run)["chosen"]) == (True, "global")


def test_a_job_that_a_reviewer_wants_kept_is_kept_by_both_the_next_time() -> None:
    run = make_waiting_run(breakdown={"machine": 0, "since": 1, "until": 4})
    before = {tuple(row[:2]): row[3] for row in state(run)["plan"]["operations"]}
    decide(run, "reject", then="back", comment="Please keep job 2.")
    advance_to_rest(run)
    again = state(run)
    assert again["feedback"][0]["text"] == "Please keep job 2."
    for field in ("local_repair", "global_plan"):
        kept = {tuple(row[:2]): row[3] for row in again[field]["operations"] if row[0] == 2}
        assert kept == {op: start for op, start in before.items() if op[0] == 2}
    steps = [step for kind, step in trail(run) if kind == "step"]
    assert steps.count("sequence") == 1
    assert steps.count("repair_locally") == steps.count("solve_globally") == 2
    [quote] = open_gate(run).standing().card.quotes
    assert quote.role == "sent it back"
    decide(run, "reject", then="back", comment="Make it nicer.")
    advance_to_rest(run)
    card = open_gate(run).standing().card
    assert "No rule of the agent reads what Ann Okafor wrote" in card.reasons
    assert card.summary.endswith("Kept as asked: job 2.")


def test_a_global_plan_that_breaks_a_rule_never_reaches_the_person(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planner cannot pass its own output: the checker knows the shop's rules from the shop."""

    def overlapping(now: Any, **_: Any) -> tuple[list[int], int, bool]:
        return [now.down.since] * len(now.planned), 0, True

    monkeypatch.setattr(solver, "solve", overlapping)
    run = make_waiting_run()
    gate = open_gate(run)
    assert (gate.step, gate.kind) == ("solve_globally", "recovery")
    assert any("check_global" in text for text in [gate.title, gate.standing().card.summary])


def test_a_published_schedule_is_read_back_published_once_and_a_board_out_of_reach_is_a_failure(floor: Path) -> None:
    plan = shop.Schedule.model_validate(state(make_waiting_run())["plan"])
    agent, key = JobShop(RunInfo(0, ""), 1), "a" * 64
    assert agent.on_the_board(key=key) is None
    published = shop.publish("three", plan, key)
    assert shop.publish("three", plan, key) == published
    assert agent.on_the_board(key=key) == {"published": published}
    assert len(sheets(floor)) == len(list(floor.iterdir())) == 1
    agent.withdraw(published)
    agent.withdraw(published)
    assert agent.on_the_board(key=key) is None
    floor.rmdir()
    floor.write_text("a file where the folder should be")
    run = make_waiting_run()
    answer(run, "local")
    advance_to_rest(run)
    assert {effect.status for effect in effects(run)} == {"failed"}  # which is no doubt
    assert open_gate(run).kind == "recovery"


@pytest.mark.parametrize(("input", "words"), [
    ({"source": {"name": "x", "text": "1 2\n0 1 9 2"}}, "line 2: there is no machine 9"),
    ({"source": {"name": "x", "text": THREE}, "breakdown": {"machine": 3}}, "there is no machine 3"),
    ({"source": {"name": "x", "text": THREE}, "breakdown": {"since": 5, "until": 5}}, "it has to be later than 5"),
    ({"config": {"rule": "by feeling"}}, "'most work remaining', 'shortest first'"),
])  # fmt: skip
def test_an_input_that_is_no_shop_or_breaks_no_machine_of_it_is_refused_at_the_door(
    input: dict[str, Any], words: str
) -> None:
    with pytest.raises((InputRefused, ConfigRefused)) as refused:
        make_waiting_run(**input)
    assert any(words in error["message"] for error in refused.value.errors)


def test_files_and_folders_become_inputs_and_a_bad_one_is_named_with_its_lines(tmp_path: Path) -> None:
    assert len(JobShop.inputs_from(BUNDLED)) == 10
    assert [each["source"]["name"] for each in JobShop.inputs_from(BUNDLED / "ta01.txt")] == ["ta01"]
    (tmp_path / "empty").mkdir()
    (tmp_path / "wrong.txt").write_text("2 1\n0 5\n0 x\n")
    for name, words in (
        ("wrong.txt", "line 3: “x” is no whole number"),
        ("none.txt", "No such file"),
        ("empty", "no file"),
    ):
        with pytest.raises(AgentError, match=words):
            JobShop.inputs_from(tmp_path / name)


@pytest.mark.long
def test_importing_the_agent_does_not_import_the_solver() -> None:
    known = "{'ortools', 'numpy'} & set(sys.modules)"
    code = f"import sys, django; django.setup(); import agents.examples.jobshop.solver; sys.exit(bool({known}))"
    assert run_process(sys.executable, "-c", code, env={"DJANGO_SETTINGS_MODULE": "config.settings"}).returncode == 0
