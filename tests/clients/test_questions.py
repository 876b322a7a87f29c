"""A program that waits at its gate answers what people ask it there, called or awaited."""

from __future__ import annotations

import pytest
from holdpoint import AsyncHoldpoint, Holdpoint, Question

from approvals.gates import questions, thread
from tests.clients.test_approving import Got, wires, wires_awaited
from tests.clients.world import World
from tests.factories import ann
from tests.harness.examples import first_alone
from tests.harness.waiting import PATIENCE, until


@pytest.mark.parametrize("fails", first_alone([False, True]))
@pytest.mark.parametrize("way", ["called", "awaited"])
def test_a_question_is_answered_while_the_program_waits_and_the_gate_stays_open(
    world: World, way: str, fails: bool
) -> None:
    def answer(question: Question) -> str:
        if fails:
            raise ValueError("no idea")
        return f"{question.by}: {question.text} Because."

    def program(hp: Holdpoint) -> Got:
        return wires(hp)

    async def awaited(hp: AsyncHoldpoint) -> Got:
        return await wires_awaited(hp)

    more = {"on_question": answer}
    done = world.runs(program, **more) if way == "called" else world.awaits(awaited, **more)
    gate = world.gate()
    questions.ask(gate, by=ann(world.team), text="Why?", key="k")
    [said] = until(lambda: [each for each in thread.of_gate(gate) if each.by_agent], what="it answers")
    assert (said.kind, said.text) == (
        ("gate.unanswered", "ValueError: no idea") if fails else ("gate.answered", "Ann Okafor: Why? Because.")
    )
    world.decides()
    assert done.result(PATIENCE)["arguments"]["amount"] == "120.00"
