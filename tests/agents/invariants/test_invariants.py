"""A state's own rules hold at every checkpoint that a step, an effect or an outcome saves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field, model_validator

from agents import Agent, AgentError, Append, step
from agents.definition import invariants
from agents.definition.plan_builder import plan_of
from agents.errors import InvariantBroken
from agents.models import Effect
from agents.moves import rewind
from checkpoints.audit import verify_runs
from checkpoints.models import Run
from tests.agents.steps.killable_workers import KillableWorkers, go_on
from tests.factories import ann
from tests.factories.driven_runs import (
    advance,
    advance_to_rest,
    answer,
    decide,
    effects,
    failures,
    make_run,
    open_gate,
    state,
    trail,
)

from .ruled_agents import Purse

OVER = "/: 99 is more than the limit of 10 (within_limit)"


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """What really ran."""
    return tmp_path / "ledger"


def lines(ledger: Path, step: str) -> int:
    """How often this step really ran."""
    return sum(line.startswith(f"{step} ") for line in ledger.read_text().splitlines())


def choices(run: Run) -> list[str]:
    """The answers that the run's gate offers."""
    question = open_gate(run).standing().card.question
    return [each["id"] for each in question["choices"]] if question else []


def at_effect(ledger: Path, **input: Any) -> Run:
    """A run whose effect was approved, and is next."""
    run = advance(make_run("buyer", ledger=str(ledger), **input))
    decide(run)
    return run


def test_a_step_that_breaks_a_rule_saves_nothing_and_a_person_is_told_which_rule(ledger: Path) -> None:
    run = advance(make_run("buyer", ledger=str(ledger), mode="step"))
    assert (run.status, trail(run), state(run)["spent"]) == ("waiting", [("input", "input")], 0)
    assert failures(run)[0].error == f"The state would break its rules: {OVER}"
    assert OVER in open_gate(run).standing().card.summary
    assert (choices(run), lines(ledger, "plan")) == (["retry", "skip", "stop"], 1)


def test_after_an_edit_that_makes_room_the_step_runs_again_and_is_saved(ledger: Path) -> None:
    run = advance(make_run("buyer", ledger=str(ledger), mode="step"))
    rewind.edit(run, at=1, patch=[{"op": "replace", "path": "/limit", "value": 100}], by=ann(run.team))
    advance(run)
    assert (state(run)["spent"], open_gate(run).step) == (99, "review")


def test_a_list_may_not_grow_past_its_length(ledger: Path) -> None:
    """Each item was checked, and the list never."""
    run = advance(make_run("buyer", ledger=str(ledger), mode="append"))
    assert "/ordered: List should have at most 3 items" in failures(run)[0].error
    assert state(run)["ordered"] == []


@pytest.mark.parametrize(("mode", "told"), [("bug", "TypeError: the rule has a bug (within_limit)"), ("secret", "…")])
def test_a_rule_with_a_bug_holds_and_no_secret_is_told(mode: str, told: str, ledger: Path) -> None:
    run = advance(make_run("buyer", ledger=str(ledger), mode=mode))
    (failure,) = failures(run)
    kept = failure.error + bytes(failure.traceback).decode()
    assert ("s3cr3t" in kept, trail(run)) == (False, [("input", "input")])
    assert mode == "secret" or told in failure.error


def test_an_agent_may_have_its_rules_checked_at_edits_alone(ledger: Path) -> None:
    run = advance(make_run("careless", ledger=str(ledger), mode="step"))
    assert (state(run)["spent"], open_gate(run).step) == (99, "review")


def test_the_result_of_an_effect_is_kept_and_a_person_enters_one_that_fits(ledger: Path) -> None:
    run = advance(at_effect(ledger, mode="effect"))
    (row,) = effects(run)
    assert (run.status, row.status, row.returned, row.landings) == ("waiting", "done", {"spent": 99}, [])
    assert (state(run)["spent"], choices(run)) == (1, ["gave", "stop"])
    assert OVER in open_gate(run).standing().card.summary
    answer(run, "gave", {"spent": 98})
    assert (advance(run).status, effects(run)[0].status) == ("waiting", "done")  # neither does that fit
    answer(run, "gave", {"spent": 9})
    assert (advance(run).status, state(run)["spent"]) == ("completed", 9)
    assert ([row.status for row in effects(run)], lines(ledger, "order")) == (["done"], 1)
    assert verify_runs.verify_run(run) == []


def test_after_an_edit_that_makes_room_the_kept_result_is_adopted(ledger: Path) -> None:
    run = advance(at_effect(ledger, mode="effect"))
    rewind.edit(run, at=run.seq, patch=[{"op": "replace", "path": "/limit", "value": 100}], by=ann(run.team))
    advance(run)
    assert (run.status, state(run)["spent"], lines(ledger, "order")) == ("completed", 99, 1)


def test_a_run_that_is_stopped_there_leaves_the_effect_done(ledger: Path) -> None:
    run = advance(at_effect(ledger, mode="effect"))
    answer(run, "stop")
    assert (advance(run).status, effects(run)[0].status, lines(ledger, "send_back")) == ("failed", "done", 0)


def test_a_run_that_goes_back_from_there_undoes_the_effect(ledger: Path) -> None:
    run = advance(at_effect(ledger, mode="effect"))
    rewind.rewind(run, to=1, by=ann(run.team))
    rewind.settle_now(run, by=ann(run.team))
    advance(run)
    assert (effects(run)[0].status, lines(ledger, "send_back")) == ("undone", 1)


def test_a_worker_that_lost_the_run_leaves_the_result_and_asks_nobody(ledger: Path) -> None:
    run = at_effect(ledger, mode="lost")
    advance(run)
    (row,) = effects(run)
    assert (row.status, row.returned, run.gates.filter(status="open").count()) == ("done", {"spent": 99}, 0)


@pytest.mark.parametrize(
    ("place", "asks"),
    [("after_effect@order:kill", "happened"), ("after_gate@order:kill", "happened"), ("after_gate@order:cut", "gave")],
)
def test_a_worker_that_dies_at_the_question_leaves_no_half(
    place: str, asks: str, ledger: Path, workers: KillableWorkers
) -> None:
    """The result and the question are one transaction: before it the effect is unknown, after it both are there."""
    run = at_effect(ledger, mode="effect")
    workers.tell(f"{run.pk} {place}")
    go_on(run)
    assert (run.status, run.gates.filter(status="open").count(), choices(run)[0]) == ("waiting", 1, asks)
    assert Effect.objects.get(run=run).status == ("done" if asks == "gave" else "unknown")
    answer(run, asks, {"spent": 9})
    assert (advance_to_rest(run).status, lines(ledger, "order")) == ("completed", 1)


def test_an_outcome_that_breaks_a_rule_is_not_saved_and_the_gate_may_ask_again(ledger: Path) -> None:
    run = advance(at_effect(ledger, mode="outcome"))
    assert (run.status, choices(run)) == ("waiting", ["retry", "stop"])
    assert "nobody may decide this (within_limit)" in failures(run)[0].error
    assert ("gate", "review") not in trail(run)
    answer(run, "retry")
    assert (advance(run).status, open_gate(run).kind) == ("waiting", "review")
    assert not ledger.read_text().count("order")


def test_a_state_without_rules_is_never_read_as_a_whole() -> None:
    class Plain(BaseModel):
        amount: int = Field(default=0, ge=0)

        @classmethod
        def model_validate(cls, *args: Any, **kwargs: Any) -> Any:
            raise AssertionError("the whole state was read")

    made = type("Made", (Agent,), {"name": "made", "State": Plain})
    assert invariants.ruled(Plain) == frozenset()
    invariants.check(made, {"amount": 1}, {"amount": 2})


def test_a_validator_that_changes_its_input_changes_no_saved_state() -> None:
    class Sorter(BaseModel):
        names: list[Any] = []

        @model_validator(mode="before")
        @classmethod
        def in_order(cls, values: dict[str, Any]) -> dict[str, Any]:
            values["names"][0]["seen"] = True
            return values

    made, before = type("Made", (Agent,), {"name": "made", "State": Sorter}), {"names": [{"a": 1}]}
    invariants.check(made, before, {"names": Append([2])})
    assert before == {"names": [{"a": 1}]}


def test_only_fields_that_a_rule_reads_make_it_read_the_state() -> None:
    assert invariants.ruled(Purse) == frozenset(Purse.model_fields)
    broken = {"ledger": "", "spent": 11}
    made = type("Made", (Agent,), {"name": "made", "State": Purse})
    with pytest.raises(InvariantBroken, match=r"/: 11 is more than the limit of 10 \(within_limit\)"):
        invariants.check(made, broken, {"mode": ""})


def test_a_misspelt_setting_is_refused() -> None:
    class Odd(Agent):
        name = "odd"
        invariants = "never"
        State = Purse

        @step
        def go(self) -> None:
            """Do nothing."""

    with pytest.raises(AgentError, match='invariants=\'never\'; it is "saves" or "edits"'):
        plan_of(Odd)
