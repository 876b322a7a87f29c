"""Several actions at one gate, many questions in one call, quotes, and what belongs to one conversation."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import Future
from typing import Any

import pytest
from holdpoint import (
    Ask,
    AsyncHoldpoint,
    Holdpoint,
    HoldpointError,
    Invalid,
    Posting,
    Quote,
    Rejected,
    StillOpen,
    Unknown,
    question,
    question_each,
    thread,
)

from agents.models import Effect
from approvals.models import Gate
from checkpoints.models import Run
from tests.agents.remote.outside_program import decide
from tests.clients.world import WIRE, World, ended
from tests.harness.waiting import PATIENCE, until

MAIL = {"to": "ellery@example.org", "text": "It is paid."}
BOTH = [Ask("wire", WIRE, pinned=["amount"], idempotent=True), Ask("mail", MAIL, respond=True)]
QUOTED: dict[str, Any] = {
    "state": {"mail_in": {"text": "Where is my money?"}},
    "quotes": [Quote(label="Marit Ellery", pointer="/mail_in/text", role="by mail")],
}
Got = dict[str, Any]


def started(world: World, way: str) -> Future[Got]:
    """Do what people allow of two actions."""

    def does_both(hp: Holdpoint) -> Got:
        done: Got = {}
        with hp.approve_each(BOTH, title="Pay and tell", **QUOTED) as calls:
            for call in calls:
                done[call.name] = call.arguments
                call.done({"did": call.name})
        return {"done": done, "refused": calls.refused, "answers": calls.answers, "results": calls.results}

    async def does_both_awaited(hp: AsyncHoldpoint) -> Got:
        done: Got = {}
        async with hp.approve_each(BOTH, title="Pay and tell", **QUOTED) as calls:
            async for call in calls:
                done[call.name] = call.arguments
                await call.done({"did": call.name})
        return {"done": done, "refused": calls.refused, "answers": calls.answers, "results": calls.results}

    return world.runs(does_both) if way == "called" else world.awaits(does_both_awaited)


def test_all_of_them_are_asked_at_one_gate_and_done_one_after_the_other(world: World, way: str) -> None:
    told = started(world, way)
    gate = world.gate()
    assert [action.id for action in gate.asked.actions] == ["wire", "mail"]
    assert [(quote.label, quote.pointer, quote.role) for quote in gate.asked.quotes] == [
        ("Marit Ellery", "/mail_in/text", "by mail")
    ]
    world.decides("edit", arguments={"wire": {**WIRE, "amount": "1.00"}})
    got = told.result(PATIENCE)
    assert got["done"] == {"wire": {**WIRE, "amount": "1.00"}, "mail": MAIL}
    assert got["results"] == {"wire": {"did": "wire"}, "mail": {"did": "mail"}}
    assert ended(gate.run_id)["mail_result"] == {"did": "mail"}
    assert Gate.objects.filter(team=world.team).count() == 1


def test_what_is_refused_or_answered_for_is_not_done(world: World, way: str) -> None:
    told = started(world, way)
    respond = {"verdict": "respond", "response": "I rang her."}
    world.decides("", verdicts={"wire": {"verdict": "reject", "reason": "Not this month."}, "mail": respond})
    got = told.result(PATIENCE)
    assert got["done"] == {}
    assert {name: (each.by, each.reason) for name, each in got["refused"].items()} == {
        "wire": ("Ann Okafor", "Not this month.")
    }
    assert got["answers"] == {"mail": "I rang her."}


def test_a_no_to_all_of_them_is_raised(world: World, way: str) -> None:
    told = started(world, way)
    world.decides("reject", comment="Not this month.")
    with pytest.raises(Rejected, match=r"Ann Okafor said no to wire, mail: Not this month\."):
        told.result(PATIENCE)


def test_another_process_goes_on_with_what_is_not_done(world: World) -> None:
    with world.client() as hp:
        gate = hp.approve_each.defer(BOTH, title="Pay and tell").id
        with pytest.raises(HoldpointError, match="resume_each"):
            hp.resume(gate)
        world.decides()
        with hp.resume_each(gate, timeout=PATIENCE) as calls:
            for call in calls:
                call.done({"did": call.name})
                break
        with hp.resume_each(gate, timeout=PATIENCE) as calls:
            assert [call.name for call in calls if call.done({"did": "mail"}) is None] == ["mail"]
        assert calls.results == {"wire": {"did": "wire"}, "mail": {"did": "mail"}}
        with hp.resume_each(gate, timeout=PATIENCE) as calls:
            assert list(calls) == []
        assert calls.results["wire"] == {"did": "wire"}
    assert Effect.objects.filter(run__team=world.team).count() == 2


def test_what_nothing_is_said_of_is_unknown_and_the_next_is_not_begun(world: World) -> None:
    with world.client() as hp:
        gate = hp.approve_each.defer([Ask("wire", WIRE), Ask("mail", MAIL)], title="Pay and tell").id
        world.decides()
        approval = hp.resume_each(gate, timeout=2.0)
        each = iter(approval.__enter__())
        assert next(each).name == "wire"
        with pytest.warns(RuntimeWarning, match="wire was left without"), pytest.raises(Unknown):
            next(each)
    assert [(each.step, each.status) for each in Effect.objects.filter(run__team=world.team)] == [("wire", "unknown")]


def test_a_question_is_answered_and_leaves_no_run_in_the_queue(world: World) -> None:
    told = world.runs(lambda hp: hp.ask("deploy", {"version": "4.2"}, title="Deploy 4.2 now?", respond=True))
    gate = world.decides("edit", arguments={"deploy": {"version": "4.1"}}, comment="Not that one.")
    said = told.result(PATIENCE)
    assert (said.arguments, said.changes) == ({"version": "4.1"}, ["version is now '4.1'"])
    assert (said.decision.verdict, said.decision.by, said.decision.comment) == ("edit", "Ann Okafor", "Not that one.")
    assert said.url == f"{world.url}/gates/{gate.pk}/"
    assert Run.objects.get(pk=gate.run_id).status == "completed"
    assert not Effect.objects.filter(run=gate.run_id).exists()


def test_a_question_may_be_answered_in_words(world: World) -> None:
    told = world.awaits(lambda hp: hp.ask("colour", title="Which colour?", respond=True))
    world.decides("", verdicts={"colour": {"verdict": "respond", "response": "Green."}})
    assert told.result(PATIENCE).answer == "Green."


def test_a_no_to_a_question_is_raised_and_so_is_silence(world: World) -> None:
    told = world.runs(lambda hp: hp.ask("deploy", {"version": "4.2"}))
    gate = world.decides("reject", comment="Not today.")
    with pytest.raises(Rejected, match=r"Not today\.") as refused:
        told.result(PATIENCE)
    assert refused.value.url == f"{world.url}/gates/{gate.pk}/"
    with world.client() as hp, pytest.raises(StillOpen) as still:
        hp.ask("deploy", timeout=0.0)
    assert still.value.url.endswith(f"/gates/{still.value.gate}/")


def test_a_question_that_nobody_comes_back_for_leaves_no_run_either(world: World) -> None:
    with world.client() as hp:
        pending = hp.ask.defer("deploy", {"version": "4.2"})
    assert pending.url == f"{world.url}/gates/{pending.id}/"
    world.decides()
    assert Run.objects.get(pk=pending.run).plan.version.startswith("posted-")
    assert not Gate.objects.get(pk=pending.id).outcome.grants.exists()
    with world.client() as hp:
        assert hp.said(pending.id, timeout=PATIENCE).arguments == {"version": "4.2"}
    assert Run.objects.get(pk=pending.run).status == "completed"


def test_what_is_asked_in_one_conversation_is_one_thread(world: World) -> None:
    async def program(hp: AsyncHoldpoint) -> list[int]:
        @hp.requires_approval
        async def wire(amount: str) -> str:
            return amount

        with hp.thread("chat-7"):
            first = await wire.defer("1.00")
            second = await hp.approve.defer("wire", WIRE)
        return [first.run, second.run, (await hp.approve.defer("wire", WIRE)).run]

    runs = world.awaits(program).result(PATIENCE)
    assert [Run.objects.get(pk=run).thread for run in runs] == ["chat-7", "chat-7", ""]
    with world.client() as hp, thread("chat-8"):
        assert Run.objects.get(pk=hp.approve.defer("wire", WIRE, thread="chat-9").run).thread == "chat-9"


def test_the_gates_page_is_in_the_log_and_in_the_objects(world: World, caplog: pytest.LogCaptureFixture) -> None:
    with world.client() as hp, caplog.at_level(logging.INFO, logger="holdpoint"):
        pending = hp.approve.defer("wire", WIRE, title="Pay invoice 7")
        world.decides()
        with hp.resume(pending.id, timeout=PATIENCE) as call:
            assert call.url == pending.url == f"{world.url}/gates/{pending.id}/"
            call.done()
    assert f"Gate {pending.id} asks: Pay invoice 7. {pending.url}" in caplog.messages


def test_a_run_that_goes_on_is_let_go_of_once_its_effect_is_told(world: World) -> None:
    """It stayed claimed until the lease was over, half a minute, though its program did nothing more in it."""
    with world.client(lease=30.0) as hp:
        gate = hp.approve_each.defer([Ask("wire", WIRE), Ask("mail", MAIL)], title="Pay and tell")
        world.decides()
        with hp.resume_each(gate.id, timeout=PATIENCE) as calls:
            next(iter(calls)).done()
        until(lambda: Run.objects.get(pk=gate.run).status == "queued", what="the run is let go of")


def questions() -> list[Posting]:
    return [
        question("wire", WIRE, title="Pay invoice 7", thread="night"),
        question_each([Ask("wire", WIRE), Ask("mail", {"to": "ACME"})], title="Pay and tell"),
    ]


def test_each_is_a_gate_of_its_own_and_gone_on_with_by_its_number(world: World) -> None:
    with world.client() as hp:
        first, second = hp.defer_all(questions(), key="nightly-17")
        assert hp.defer_all(questions(), key="nightly-17") == [first, second]
        assert [each.asked.title for each in Gate.objects.filter(team=world.team).order_by("pk")] == [
            "Pay invoice 7", "Pay and tell",
        ]  # fmt: skip
        assert set(world.team.runs.values_list("client__deferred", flat=True)) == {True}
        decide(Gate.objects.get(pk=first.id))
        with hp.resume(first.id, timeout=PATIENCE) as call:
            call.done({"id": call.arguments["to"]})
    assert ended(first.run)["wire_result"] == {"id": "ACME"}
    assert Gate.objects.get(pk=second.id).status == "open"


async def test_only_asked_and_awaited(world: World) -> None:
    async def asks() -> str:
        async with world.awaited() as hp:
            [pending] = await hp.defer_all([question("deploy", {"version": "4.2"})], ask_only=True)
            return (await hp.said(pending.id, timeout=PATIENCE)).decision.by

    told = world.awaits(lambda _: asks())

    await asyncio.to_thread(world.decides)
    assert await asyncio.to_thread(told.result, PATIENCE)
    [gate] = await asyncio.to_thread(lambda: list(Gate.objects.filter(team=world.team)))
    assert gate.asked.allows == (), "nothing is done after it"


def test_none_asks_nothing_and_others_agents_are_asked_apart(world: World) -> None:
    with world.client() as hp:
        assert hp.defer_all([]) == []
        with pytest.raises(ValueError, match="one agent and team"):
            hp.defer_all([question("wire", WIRE), question("wire", WIRE, agent="another")])
        with pytest.raises(Invalid) as refused:
            hp.defer_all([question("wire", WIRE), question("wi re", WIRE)])
    assert "/gates/1/actions/0/id" in str(refused.value)
    assert not Gate.objects.filter(team=world.team).exists()
