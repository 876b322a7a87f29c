"""Steps that fail: tried again where that may help, then a person is asked; the traceback is kept."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import structlog
from django.core.management import call_command
from django.db import connection

from agents.errors import InputRefused
from agents.steps import execute
from approvals.models import Policy
from approvals.policy.rules import missing_policy
from checkpoints.models import Checkpoint, Run
from checkpoints.runs.plans import spec_of
from checkpoints.values import characters
from tests.factories import make_plan, make_policy, make_team, make_user
from tests.factories.driven_runs import (
    advance,
    advance_to_rest,
    answer,
    decide,
    failures,
    make_run,
    open_gate,
    state,
    trail,
)
from tests.harness.signed_in_clients import signed_in


def test_a_step_that_raises_is_tried_again_after_a_backoff_then_a_person_is_asked_and_its_traceback_kept() -> None:
    run = advance(make_run("stumbler", mode="raise"))
    assert (run.status, run.attempts) == ("queued", 1)
    assert run.wake_at is not None
    assert timedelta(seconds=0.5) < run.wake_at - failures(run)[0].at < timedelta(seconds=2)
    assert advance(run).status == "waiting"
    gate = open_gate(run)
    assert (gate.kind, gate.step) == ("recovery", "stumble")
    assert [choice["id"] for choice in gate.standing().card.question["choices"]] == ["retry", "skip", "stop"]  # type: ignore[index]
    kept = failures(run)
    assert [failure.attempt for failure in kept] == [1, 2]
    assert kept[0].error == "ValueError: line one attempt 1 end"
    text = bytes(kept[1].traceback).decode()
    assert "sample_agents.py" in text
    assert "attempt 2" in text


def test_a_traceback_is_cut_at_its_beginning() -> None:
    assert characters.encode_tail("a" * 70_000 + "the end", execute.TRACEBACK_LIMIT).endswith(b"the end")
    assert len(characters.encode_tail("é" * 70_000, execute.TRACEBACK_LIMIT)) <= execute.TRACEBACK_LIMIT


USELESS = {
    "hopeless": "nothing to be done", "nan": "/log/0", "misfit": "/count", "large": "/log", "undeclared": "'done'",
}  # fmt: skip


def test_what_cannot_get_better_is_not_tried_again_and_names_the_culprit() -> None:
    for mode, names in USELESS.items():
        run = advance(make_run("stumbler", mode=mode))
        assert run.status == "waiting"
        assert names in failures(run)[0].error
        assert names in open_gate(run).standing().card.summary


def test_a_step_over_its_time_limit_is_stopped_even_if_it_swallows_exceptions(tmp_path: Path) -> None:
    flag = tmp_path / "no" / "such"
    run = advance(make_run("stumbler", mode="slow", flag=str(flag)))
    assert run.status == "queued"
    assert failures(run)[0].error.startswith("StepTimeout: The step ran past its time limit of 1 s")


def test_a_step_that_exits_does_not_end_the_worker_and_one_may_ask_to_be_tried_again_at_once() -> None:
    run = advance(make_run("stumbler", mode="exit"))
    assert (run.status, failures(run)[0].error) == ("queued", "SystemExit: 3")
    run = advance(make_run("stumbler", mode="retry"))
    assert run.wake_at is not None
    assert run.wake_at - failures(run)[0].at < timedelta(seconds=0.5)  # any other pause is longer


def test_a_person_has_it_tried_again_goes_on_without_it_or_stops_the_run(tmp_path: Path) -> None:
    again, skipped, stopped = (
        advance(make_run("stumbler", mode="hopeless", flag=str(tmp_path / "flag"))) for _ in range(3)
    )
    answer(again, "retry")
    assert (advance(again).status, len(failures(again))) == ("waiting", 2)
    (tmp_path / "flag").touch()
    answer(again, "retry")
    assert advance(again).status == "completed"
    assert trail(again)[-3:] == [("recovery", "stumble"), ("step", "stumble"), ("step", "finish")]
    assert Checkpoint.objects.get(run=again, step="stumble", kind="step").attempt == 1
    answer(skipped, "skip")
    assert advance(skipped).status == "completed"
    assert (state(skipped)["log"], state(skipped)["done"]) == ([], True)
    answer(stopped, "stop")
    advance(stopped)
    assert (stopped.status, stopped.reason) == ("failed", "“Stumble” failed; stopped by Ann Okafor")


def test_a_step_that_never_came_back_is_quarantined_without_being_started_again() -> None:
    run = make_run("stumbler", mode="kill")  # would end this process
    Run.objects.filter(pk=run.pk).update(attempts=2)
    assert advance(run).status == "waiting"
    assert "2 workers died in this step" in failures(run)[0].error


def test_a_run_whose_data_does_not_verify_is_frozen_and_names_the_last_good_checkpoint() -> None:
    run = advance(make_run("payer"))
    decide(run, "reject", then="back", back_to="propose")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE checkpoints_checkpoint SET took_us = took_us + 1 WHERE id = %s", [run.head])
    advance(run)
    assert (run.status, run.frozen) == ("failed", True)
    assert run.reason.startswith("Integrity fault at ")
    assert run.reason.endswith("the last checkpoint that verifies is 1")


def test_a_gate_whose_policy_its_team_has_not_is_asked_about_and_not_asked_under_the_default() -> None:
    """A misspelt or missing name made one member of the team enough."""
    team = make_team()
    run = make_run("payer", team=team)
    make_policy(team, name="paymnets", quorum=2)
    make_policy(team, name="mild")
    advance_to_rest(run)
    gate = open_gate(run)
    assert (gate.kind, gate.policy.name) == ("recovery", "paymnets"), "the strictest that there is"
    assert f"{team.name} has no policy payments; it has mild, paymnets" in gate.standing().card.summary
    make_policy(team, name="payments", quorum=2)
    answer(run, "retry")
    answer(run, "retry")  # by another, as that policy asks
    gate = open_gate(advance_to_rest(run))
    assert (gate.kind, gate.policy.name) == ("review", "payments")
    assert not Policy.objects.filter(team=team, name="default").exists()


def test_a_gate_that_the_default_decides_in_place_of_its_policy_says_so_wherever_it_is_told_of(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In a team with only a default any name passed, and an author took the default's one vote for their policy's."""
    team = make_team()
    said = f"{team.name} has no policy “payments”, so “default” decides."
    call_command("run_agent", "payer", "--input", "{}", "--team", team.name)
    assert said in capsys.readouterr().err
    with structlog.testing.capture_logs() as logged:
        gate = open_gate(advance_to_rest(Run.objects.get(team=team)))
    assert [each["why"].startswith(said) for each in logged if each["event"] == "policy.missing"] == [True]
    reader = signed_in(make_user("Ann", team))
    assert said in reader.get(f"/gates/{gate.pk}/").content.decode()
    assert reader.get(f"/api/gates/{gate.pk}").json()["agreement"]["rules"][0].startswith(said)
    make_policy(team, name="payments")
    call_command("run_agent", "payer", "--input", "{}", "--team", team.name)
    assert "has no policy" not in capsys.readouterr().err
    # The open gate went on saying that the team has no such policy, and to make it.
    [why] = reader.get(f"/api/gates/{gate.pk}").json()["agreement"]["rules"]
    assert why == (
        f"{team.name} had no policy “payments” when this gate opened, so “default” decides. “payments” counts for "
        "gates that open afterwards."
    )


def test_a_gate_says_nothing_of_a_policy_that_only_a_later_version_of_its_agent_names() -> None:
    """The plan that the run has by now was read, and not the one that the gate was opened under."""
    gate = open_gate(advance_to_rest(make_run("payer")))
    assert missing_policy.missing_at(gate)
    before = spec_of(gate.run.plan)
    steps = tuple(replace(step, policy="") for step in before.steps)
    Checkpoint.objects.filter(pk=gate.checkpoint).update(plan=make_plan(replace(before, version="0", steps=steps)))
    assert missing_policy.missing_at(gate) == ""


def test_a_run_is_not_started_where_no_policy_of_the_team_could_decide_its_gate() -> None:
    team = make_team()
    make_policy(team, name="paymnets", quorum=2)
    with pytest.raises(InputRefused, match=f"{team.name} has no policy payments; it has paymnets"):
        make_run("payer", team=team)
    make_policy(team, name="payments")
    assert open_gate(advance_to_rest(make_run("payer", team=team))).policy.name == "payments"
