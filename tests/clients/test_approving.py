"""A program asks with the client, called or awaited: what people say is what it gets, and what it says is reported.

Nothing is taken for done that nobody said was, and what a program gets wrong is refused before anybody is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from holdpoint import (
    Answered,
    Ask,
    AsyncHoldpoint,
    Expired,
    Holdpoint,
    Invalid,
    NotDone,
    NotFound,
    Problem,
    Question,
    Quote,
    Rejected,
    ReportedBefore,
    RunEnded,
    StillOpen,
    Unknown,
    Unreachable,
    Withdrawn,
)

from agents.models import Effect
from approvals.gates import closing, questions, thread
from approvals.models import Gate
from checkpoints.actors import SYSTEM
from checkpoints.models import Run
from tests.clients.world import POOL, WIRE, Got, World, ended, wires, wires_awaited
from tests.conftest import SharedWeb
from tests.factories import ann
from tests.harness.examples import first_alone
from tests.harness.waiting import PATIENCE, until


def start(world: World, way: str, **more: Any) -> Future[Got]:
    """Let the program run beside the test."""
    if way == "called":
        return world.runs(lambda hp: wires(hp, **more))
    return world.awaits(lambda hp: wires_awaited(hp, **more))


def test_an_edit_is_what_runs(world: World, way: str) -> None:
    told = start(world, way)
    world.decides("edit", arguments={"wire": {**WIRE, "amount": "100.00"}}, comment="A tenth less.")
    got = told.result(PATIENCE)
    assert got["arguments"] == {"to": "ACME", "amount": "100.00"}
    assert got["edits"] == [{"op": "replace", "path": "/amount", "value": "100.00"}]
    assert got["changes"] == ["amount is now '100.00'"]
    assert (got["by"], got["comment"]) == ("Ann Okafor", "A tenth less.")
    assert ended(got["run"])["wire_result"] == {"id": "tx_1"}
    row = Effect.objects.get(run=got["run"])
    assert (row.status, row.key, row.attempts) == ("done", got["key"], 1)


def test_a_no_is_raised_with_its_words(world: World, way: str) -> None:
    told = start(world, way)
    gate = world.decides("reject", comment="Not this month")
    with pytest.raises(Rejected, match=r"Ann Okafor said no to wire: Not this month\. Do not") as refused:
        told.result(PATIENCE)
    assert (refused.value.by, refused.value.reason, refused.value.gate) == ("Ann Okafor", "Not this month", gate.pk)
    assert Run.objects.get(pk=gate.run_id).status == "cancelled"
    assert not Effect.objects.filter(run=gate.run_id).exists()


def test_an_answer_in_its_place_is_raised_as_a_value(world: World, way: str) -> None:
    told = start(world, way, respond=True)
    gate = world.decides("", verdicts={"wire": {"verdict": "respond", "response": "Paid by card already."}})
    with pytest.raises(Answered) as answered:
        told.result(PATIENCE)
    assert (answered.value.answer, answered.value.by) == ("Paid by card already.", "Ann Okafor")
    assert ended(gate.run_id)["wire_result"] == "Paid by card already."


def test_a_deadline_that_passed_is_no_no(world: World, way: str) -> None:
    told = start(world, way)
    gate = world.gate()
    closing.pass_deadline(gate)
    closing.expire(gate, by=SYSTEM)
    with pytest.raises(Expired, match="Nobody answered"):
        told.result(PATIENCE)
    assert Run.objects.get(pk=gate.run_id).status == "cancelled"


def test_a_gate_that_was_withdrawn_says_why(world: World, way: str) -> None:
    told = start(world, way)
    gate = world.gate()
    closing.withdraw(gate, by=SYSTEM, reason="The invoice was void.")
    with pytest.raises(Withdrawn, match=r"The invoice was void\."):
        told.result(PATIENCE)


def test_nobody_decides_in_the_time_that_is_given(world: World, way: str) -> None:
    told = start(world, way, timeout=0.0)
    with pytest.raises(StillOpen) as still:
        told.result(PATIENCE)
    assert still.value.gate == world.gate().pk
    assert Gate.objects.get(pk=still.value.gate).status == "open"


def left(world: World, error: BaseException) -> Effect:
    """The effect after its block was left by this error."""
    with world.client() as hp:
        gate = world.allowed(hp)
        with pytest.raises(type(error)), hp.resume(gate, timeout=PATIENCE):
            raise error
    return Effect.objects.get(run__team=world.team)


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (ValueError("line one\nline two"), "unknown", "ValueError: line one line two"),
        (NotDone("refused at the door"), "failed", "refused at the door"),
        # Of a call inside of the work: it was taken for the report's own, and the effect was not reported at all.
        (Unreachable("No answer within 60 s."), "unknown", "Unreachable: No answer within 60 s."),
        pytest.param(KeyboardInterrupt(), "unknown", "KeyboardInterrupt: ", marks=pytest.mark.long),
        pytest.param(SystemExit(3), "unknown", "SystemExit: 3", marks=pytest.mark.long),
    ],
)
def test_what_is_raised_decides_between_failed_and_unknown(
    world: World, error: BaseException, status: str, words: str
) -> None:
    row = left(world, error)
    assert (row.status, row.error.strip()) == (status, words.strip())


def test_what_is_forgotten_is_unknown_and_warned_of(world: World) -> None:
    with world.client() as hp:
        gate = world.allowed(hp)
        with pytest.warns(RuntimeWarning, match=r"Call call\.done"), hp.resume(gate, timeout=PATIENCE):
            pass
    assert Effect.objects.get(run__team=world.team).status == "unknown"
    assert world.gate("recovery").asked.title == "Did “wire” happen? wire"


def test_what_was_said_before_an_error_stands(world: World) -> None:
    with world.client() as hp:
        gate = world.allowed(hp)
        approval = hp.resume(gate, timeout=PATIENCE)
        approval.__enter__().done({"id": "tx_1"})
        approval.__exit__(KeyError, KeyError("later"), None)
    assert Effect.objects.get(run__team=world.team).status == "done"


def test_a_failure_that_may_be_tried_again_is_handed_out_under_the_same_key(world: World) -> None:
    keys = []
    with world.client() as hp:
        gate = world.allowed(hp)
        with hp.resume(gate, timeout=PATIENCE) as call:
            keys.append(call.key)
            call.failed("503", retry=True)
        with hp.resume(gate, timeout=PATIENCE) as call:
            keys.append(call.key)
            assert repr(call) == f"<Call wire of gate {gate}>", "neither arguments nor token"
            call.done(object())
    assert len(keys) == 2
    row = Effect.objects.get(run__team=world.team)
    assert (row.status, row.key) == ("done", keys[1])
    assert str(row.returned["wire_result"]).startswith("<object object")


def test_a_task_that_is_cancelled_reports_that_nobody_knows(world: World) -> None:
    with world.client() as hp:
        gate = world.allowed(hp)

    async def program() -> None:
        async with world.awaited() as hp:
            begun = asyncio.Event()

            async def wires() -> None:
                async with hp.resume(gate, timeout=PATIENCE):
                    begun.set()
                    await asyncio.Event().wait()

            task = asyncio.create_task(wires())
            await asyncio.wait_for(begun.wait(), PATIENCE)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(program())
    row = Effect.objects.get(run__team=world.team)
    assert (row.status, row.error.strip()) == ("unknown", "CancelledError:")


def test_what_is_not_needed_any_more_is_taken_back(world: World) -> None:
    with world.client() as hp:
        gate = hp.approve.defer("wire", WIRE).id
        assert hp.withdraw(gate, "The invoice was cancelled.").status == "withdrawn"
        with pytest.raises(Withdrawn, match=r"The invoice was cancelled\."), hp.resume(gate, timeout=PATIENCE):
            pass
        with pytest.raises(Problem, match="The gate was withdrawn"):
            hp.withdraw(gate)


def test_without_its_block_nobody_goes_on_without_people_and_what_was_allowed_is_unknown(world: World) -> None:
    """`hp.approve(…)` alone asked nobody, so that the lines after it ran as if people had been asked."""
    world_decides = POOL.submit(world.decides)
    with world.client() as hp:
        with pytest.warns(RuntimeWarning, match="done in a block"):
            hp.approve("wire", WIRE, timeout=PATIENCE)
        assert world_decides.result(PATIENCE).asked.actions[0].arguments == WIRE
        with pytest.raises(Unknown):
            hp.resume(world_decides.result().pk, timeout=1)  # nobody answers
    assert world.gate("recovery").asked.title == "Did “wire” happen? wire"


def test_an_awaited_one_without_its_block_is_warned_of() -> None:
    hp = AsyncHoldpoint("http://127.0.0.1:9", "hp_a")
    with pytest.warns(RuntimeWarning, match="Nobody was asked"):
        hp.approve("wire", WIRE)


MAIL = {"text": "Where is my money?"}


@pytest.mark.parametrize(
    ("asks", "words"),
    [
        (lambda hp: hp.approve_each.defer([], title="Nothing"), r"/actions: .*at least one action"),
        (lambda hp: hp.approve_each.defer([Ask("wire", WIRE), Ask("wire", WIRE)], title="Twice"), "wire is used twice"),
        (lambda hp: hp.approve.defer("wire", WIRE, pinned=["iban"]), "iban"),
        (lambda hp: hp.approve.defer("wire", WIRE, state={"mail": MAIL},
                                     quotes=[Quote(label="Marit", pointer="/letter/text")]), "/letter/text"),
        (lambda hp: hp.approve.defer("wire", WIRE, state={"wire": 1}), "is the name of an action"),
        (lambda hp: hp.approve.defer("wire", WIRE, schema={"type": "object", "required": ["iban"]}), "iban"),
        (lambda hp: hp.approve.defer("wire", WIRE, policy="nobody-knows-it"), "/policy"),
        (lambda hp: hp.approve.defer("a wire", WIRE), "/actions/0/id"),
    ],
)  # fmt: skip
def test_a_question_that_cannot_be_asked_names_the_place(
    world: World, asks: Callable[[Holdpoint], Any], words: str
) -> None:
    with world.client() as hp, pytest.raises(Invalid, match=words) as refused:
        asks(hp)
    assert refused.value.errors
    assert not Gate.objects.filter(team=world.team).exists()


def test_a_state_that_is_too_large_says_how_large_it_may_be(shared_web: SharedWeb) -> None:
    world = World(shared_web({"HOLDPOINT_STATE_LIMIT": "100000"}))
    with world.client() as hp, pytest.raises(Problem, match="the limit is") as refused:
        hp.approve.defer("wire", {**WIRE, "note": "x" * 200_000})
    assert refused.value.status in (413, 422)


def test_a_gate_that_is_not_there_is_not_resumed(world: World) -> None:
    with world.client() as hp:
        for goes_on in (hp.resume, hp.resume_each, hp.said):
            with pytest.raises(NotFound):
                goes_on(987654321)


def test_a_second_report_changes_nothing(world: World) -> None:
    with world.client() as hp:
        gate = hp.approve.defer("wire", WIRE)
        world.decides()
        with hp.resume(gate.id, timeout=PATIENCE) as call:
            call.done({"id": "tx_1"})
            with pytest.raises((ReportedBefore, RunEnded)):
                call.done({"id": "tx_2"})
            call.failed("It was not.")  # evidence, which people see
    row = Effect.objects.get(run=gate.run)
    assert (row.status, row.returned["wire_result"]) == ("done", {"id": "tx_1"})


@pytest.mark.parametrize("fails", first_alone([False, True]))
@pytest.mark.parametrize("way", ["called", "awaited"])
def test_a_question_is_answered_while_the_program_waits_and_the_gate_stays_open(
    world: World, way: str, fails: bool
) -> None:
    def answer(question: Question) -> str:
        if fails:
            raise ValueError("no idea")
        return f"{question.by}: {question.text} Because."

    more = {"on_question": answer}
    done = world.runs(wires, **more) if way == "called" else world.awaits(wires_awaited, **more)
    gate = world.gate()
    questions.ask(gate, by=ann(world.team), text="Why?", key="k")
    [said] = until(lambda: [each for each in thread.of_gate(gate) if each.by_agent], what="it answers")
    assert (said.kind, said.text) == (
        ("gate.unanswered", "ValueError: no idea") if fails else ("gate.answered", "Ann Okafor: Why? Because.")
    )
    world.decides()
    assert done.result(PATIENCE)["arguments"]["amount"] == "120.00"
