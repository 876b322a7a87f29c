"""What a declaration of validators and policies may say: the rest is refused before anything runs."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from agents import Agent, AgentError, gate, step, validator
from agents.definition.plan_builder import plan_of


class Base(Agent):
    """What each of these has in common."""

    name = "declared"

    class State(BaseModel):
        """Lists for words of several kinds."""

        size: int = 1
        draft: int = 0
        other: int = 0
        feedback: list[str] = []
        numbers: list[int] = []

    @validator
    def enough(self, draft: int, size: int) -> str | None:
        """Judge."""
        return None if draft >= size else "too little"

    @validator
    def beside(self, other: int) -> None:
        """Judge by something else."""


def test_a_validator_judges_by_what_its_step_reads_or_writes() -> None:
    class Blind(Base):
        @step(validators=["enough"])
        def write(self) -> dict[str, Any]:
            return {"draft": 1}

    with pytest.raises(AgentError, match="is judged by enough, which reads size; let the step read size too"):
        plan_of(Blind)


def test_words_go_into_the_list_of_that_name_where_its_items_take_them() -> None:
    class Fine(Base):
        @step(validators=[Base.enough])
        def write(self, size: int) -> dict[str, Any]:
            return {"draft": size}

        @step
        def plain(self) -> None:
            pass

    plan = plan_of(Fine)
    assert (plan.step("write").feedback, plan.step("write").rings, plan.step("write").tries) == ("feedback", 1, 1)
    assert (plan.step("plain").feedback, plan.step("plain").rings) == ("", 0)


def test_words_do_not_go_into_a_list_whose_items_take_none() -> None:
    class Numbers(Base):
        @step(validators=["enough"], feedback="numbers")
        def write(self, size: int) -> dict[str, Any]:
            return {"draft": size}

    with pytest.raises(AgentError, match="puts feedback into numbers, whose items take no text"):
        plan_of(Numbers)

    class Unasked(Agent):
        name = "unasked"

        class State(BaseModel):
            feedback: list[int] = []

        @gate()
        def review(self) -> None:
            pass

    assert plan_of(Unasked).step("review").feedback == ""


def test_a_catch_that_leads_back_needs_a_guard() -> None:
    class Round(Base):
        @step
        def fix(self) -> None:
            pass

        @step(catch="fix")
        def fall(self) -> None:
            pass

    with pytest.raises(AgentError, match="catches with fix, from where the run may come back to it; give it a loop"):
        plan_of(Round)


def test_a_catch_names_a_step() -> None:
    class Lost(Base):
        @step(catch="nowhere")
        def fall(self) -> None:
            pass

    with pytest.raises(AgentError, match="catches with nowhere, which is not a step"):
        plan_of(Lost)


@pytest.mark.parametrize(
    ("word", "value"), [("tries", 0), ("rings", -1), ("retry", -1), ("backoff", -1.0), ("loop_guard", -1)]
)
def test_a_policy_is_no_negative_number(word: str, value: Any) -> None:
    class Negative(Base):
        @step(**{word: value})
        def write(self) -> None:
            pass

    with pytest.raises(AgentError, match=f"has {word}="):
        plan_of(Negative)


def test_a_stricter_validator_makes_another_step() -> None:
    class Lax(Base):
        @step(validators=["enough"])
        def write(self, size: int) -> dict[str, Any]:
            return {"draft": size}

    class Strict(Lax):
        @validator
        def enough(self, draft: int, size: int) -> str | None:
            """Judge harder."""
            return None if draft > size else "too little"

    assert plan_of(Lax).step("write").code_hash != plan_of(Strict).step("write").code_hash
