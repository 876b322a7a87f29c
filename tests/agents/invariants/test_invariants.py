"""A state's own rules hold at every checkpoint that a step, an effect or an outcome saves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field, model_validator

from agents import Agent, AgentError, Append
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

from .ruled_agents import Buyer, Purse

OVER = "/: 99 is more than the limit of 10 (within_limit)"


def lines(ledger: Path, step: str) -> int:
    return sum(line.startswith(f"{step} ") for line in ledger.read_text().splitlines())


def choices(run: Run) -> list[str]:
    question = open_gate(run).standing().card.question
    return [each["id"] for each in question["choices"]] if question else []


def at_effect(ledger: Path, **input: Any) -> Run:
    run = advance(make_run("buyer", ledger=str(ledger), **input))
    decide(run)
    return run


def test_a_step_that_breaks_a_rule_saves_nothing_and_a_person_makes_room(ledger: Path) -> None:
    run = advance(make_run("buyer", ledger=str(ledger), mode="step"))
    assert (run.status, trail(run), state(run)["spent"]) == ("waiting", [("input", "input")], 0)
    assert failures(run)[0].error == f"The state would break its rules: {OVER}"
    assert OVER in open_gate(run).standing().card.summary
    assert (choices(run), lines(ledger, "plan")) == (["retry", "skip", "stop"], 1)
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


def test_a_kept_result_is_adopted_after_an_edit_undone_by_a_rewind_and_left_by_a_stop(ledger: Path) -> None:
    made_room, rewound, stopped = (advance(at_effect(ledger, mode="effect")) for _ in range(3))
    person = ann(made_room.team)
    rewind.edit(made_room, at=made_room.seq, patch=[{"op": "replace", "path": "/limit", "value": 100}], by=person)
    assert (advance(made_room).status, state(made_room)["spent"]) == ("completed", 99)
    rewind.rewind(rewound, to=1, by=ann(rewound.team))
    rewind.settle_now(rewound, by=ann(rewound.team))
    advance(rewound)
    assert (effects(rewound)[0].status, lines(ledger, "send_back")) == ("undone", 1)
    answer(stopped, "stop")
    assert (advance(stopped).status, effects(stopped)[0].status) == ("failed", "done")
    assert (lines(ledger, "order"), lines(ledger, "send_back")) == (3, 1)


def test_a_worker_that_lost_the_run_leaves_the_result_and_asks_nobody(ledger: Path) -> None:
    run = at_effect(ledger, mode="lost")
    advance(run)
    (row,) = effects(run)
    assert (row.status, row.returned, run.gates.filter(status="open").count()) == ("done", {"spent": 99}, 0)


@pytest.mark.parametrize(("crash", "asks"), [("kill", "happened"), ("cut", "gave")])
def test_a_worker_that_dies_at_the_question_leaves_no_half(
    crash: str, asks: str, ledger: Path, workers: KillableWorkers
) -> None:
    """The result and the question are one transaction: before it the effect is unknown, after it both are there."""
    run = at_effect(ledger, mode="effect")
    workers.tell(f"{run.pk} after_gate@order:{crash}")
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


class Plain(BaseModel):
    amount: int = Field(default=0, ge=0)


def test_only_fields_that_a_rule_reads_make_it_read_the_state() -> None:
    assert (invariants.ruled(Plain), invariants.ruled(Purse)) == (frozenset(), frozenset(Purse.model_fields))
    broken = {"ledger": "", "spent": 11}
    made = type("Made", (Agent,), {"name": "made", "State": Purse})
    with pytest.raises(InvariantBroken, match=r"/: 11 is more than the limit of 10 \(within_limit\)"):
        invariants.check(made, broken, {"mode": ""})


def test_a_misspelt_setting_is_refused() -> None:
    odd = type("Odd", (Buyer,), {"name": "odd", "invariants": "never"})
    with pytest.raises(AgentError, match='invariants=\'never\'; it is "saves" or "edits"'):
        plan_of(odd)
