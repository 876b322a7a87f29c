"""What a declaration of validators and policies may say: the rest is refused before anything runs."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from agents import Agent, AgentError, step, validator
from agents.definition.plan_builder import plan_of


class Base(Agent):
    name = "declared"

    class State(BaseModel):
        size: int = 1
        draft: int = 0
        feedback: list[str] = []
        numbers: list[int] = []

    @validator
    def enough(self, draft: int, size: int) -> str | None:
        return None if draft >= size else "too little"


def declared(base: type[Agent] = Base, **options: Any) -> type[Agent]:
    class Declared(base):  # type: ignore[misc, valid-type]
        @step(**options)
        def write(self, size: int) -> dict[str, Any]:
            return {"draft": size}

    return Declared


def test_words_go_into_the_list_of_that_name_where_its_items_take_them() -> None:
    judged, plain = plan_of(declared(validators=["enough"])).step("write"), plan_of(declared()).step("write")
    assert (judged.feedback, judged.rings, judged.tries) == ("feedback", 1, 1)
    assert (plain.feedback, plain.rings) == ("", 0)

    class Counting(Base):
        class State(Base.State):
            feedback: list[int] = []  # type: ignore[assignment]

    assert plan_of(declared(Counting, validators=["enough"])).step("write").feedback == ""


def test_a_validator_judges_by_what_its_step_reads_or_writes_and_a_stricter_one_makes_another_step() -> None:
    class Blind(Base):
        @step(validators=["enough"])
        def write(self) -> dict[str, Any]:
            return {"draft": 1}

    with pytest.raises(AgentError, match="is judged by enough, which reads size; let the step read size too"):
        plan_of(Blind)

    class Strict(Base):
        @validator
        def enough(self, draft: int, size: int) -> str | None:
            return None if draft > size else "too little"

    lax, strict = (plan_of(declared(base, validators=["enough"])).step("write") for base in (Base, Strict))
    assert lax.code_hash != strict.code_hash


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"validators": ["enough"], "feedback": "numbers"}, "puts feedback into numbers, whose items take no text"),
        ({"catch": "nowhere"}, "catches with nowhere, which is not a step"),
        ({"rings": -1}, "has rings="),
        ({"tries": 0}, "has tries="),
    ],
)
def test_an_option_that_leads_nowhere_or_is_no_number_of_times_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(AgentError, match=said):
        plan_of(declared(**options))


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
