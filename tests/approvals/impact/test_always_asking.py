"""A gate that says `-> Card` always asks; the runner holds it to that."""

from __future__ import annotations

from typing import Any

from agents import Card
from agents.definition import registry
from agents.definition.inferred_writes import always_asks
from checkpoints.runs.plans import PlanSpec, StepSpec
from tests.factories.driven_runs import advance, make_run, open_gate


def asks(self: object) -> Card:
    raise NotImplementedError


def may_pass(self: object) -> Card | None:
    raise NotImplementedError


def says_nothing(self):  # type: ignore[no-untyped-def]
    raise NotImplementedError


def test_only_a_gate_that_is_annotated_with_a_card_alone_is_taken_to_ask_always() -> None:
    assert [always_asks(each) for each in (asks, may_pass, says_nothing)] == [True, False, False]


def test_a_plan_of_before_says_of_no_gate_that_it_always_asks() -> None:
    old = PlanSpec("robo", "1", steps=(StepSpec("review", kind="gate"),)).to_json()
    del old["steps"][0]["asks"]
    assert not PlanSpec.from_json(old).step("review").asks


def test_a_gate_that_breaks_its_word_stops_and_asks_how_to_go_on(settings: Any) -> None:
    settings.HOLDPOINT_AGENTS = ["tests.approvals.impact.quiet_agents"]
    registry.forget()
    try:
        run = advance(make_run("quiet"))
        assert run.status == "waiting"
        assert open_gate(run).kind == "recovery"
        assert "asked nothing" in str(open_gate(run).standing().card.summary)
    finally:
        registry.forget()
