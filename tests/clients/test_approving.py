"""A program asks with the client, called or awaited: what people say is what it gets, and what it says is reported.

Nothing is taken for done that nobody said was, and what a program gets wrong is refused before anybody is asked. Also
several actions at one gate, many questions in one call, and what belongs to one conversation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import holdpoint
import pytest
from django.db.models.functions import Now
from holdpoint import Ask, AsyncCalls, AsyncHoldpoint, Holdpoint, Question, Quote, errors, question, question_each

from agents.models import Effect
from approvals.gates import closing, questions, thread
from approvals.models import Gate
from checkpoints.actors import SYSTEM
from checkpoints.models import Run
from tests.agents.remote.outside_program import decide
from tests.clients.world import POOL, WIRE, World, ended, wires, wires_awaited
from tests.factories import ann
from tests.harness.waiting import PATIENCE, until


def test_an_edit_is_what_runs(world: World) -> None:
    told = world.runs(wires)
    world.decides("edit", arguments={"wire": {**WIRE, "amount": "100.00"}}, comment="A tenth less.")
    got = told.result(PATIENCE)
    assert got["arguments"] == {"to": "ACME", "amount": "100.00"}
    assert got["edits"] == [{"op": "replace", "path": "/amount", "value": "100.00"}]
    assert got["changes"] == ["amount is now '100.00'"]
    assert (got["by"], got["comment"]) == ("Ann Okafor", "A tenth less.")
    assert ended(got["run"])["wire_result"] == {"id": "tx_1"}
    row = Effect.objects.get(run=got["run"])
    assert (row.status, row.key, row.attempts) == ("done", got["key"], 1)


def test_a_no_is_raised_with_its_words(world: World) -> None:
    told = world.awaits(wires_awaited)
    gate = world.decides("reject", comment="Not this month")
    with pytest.raises(errors.Rejected, match=r"Ann Okafor said no to wire: Not this month\. Do not") as refused:
        told.result(PATIENCE)
    assert (refused.value.by, refused.value.reason, refused.value.gate) == ("Ann Okafor", "Not this month", gate.pk)
    assert Run.objects.get(pk=gate.run_id).status == "cancelled"
    assert not Effect.objects.filter(run=gate.run_id).exists()


def test_what_is_not_to_be_done_is_raised_as_why(world: World) -> None:
    with world.client() as hp:
        answered = hp.approve.defer("wire", WIRE, respond=True)
        with pytest.raises(errors.StillOpen) as still, hp.resume(answered.id, timeout=0.0):
            raise AssertionError("it was allowed")
        assert (still.value.gate, still.value.url) == (answered.id, f"{world.url}/gates/{answered.id}/")
        world.decides("", verdicts={"wire": {"verdict": "respond", "response": "Paid by card already."}})
        silent, void = [hp.approve.defer("wire", WIRE) for _ in range(2)]
        gate = Gate.objects.get(pk=silent.id)
        closing.pass_deadline(gate)
        closing.expire(gate, by=SYSTEM)
        assert hp.withdraw(void.id, "The invoice was void.").status == "withdrawn"
        for asked, error, words in (
            (silent, errors.Expired, "Nobody answered"), (void, errors.Withdrawn, "The invoice was void"),
            (answered, errors.Answered, "Ann Okafor answered instead"),
        ):  # fmt: skip
            with pytest.raises(error, match=words) as refused, hp.resume(asked.id, timeout=PATIENCE):
                raise AssertionError("it was allowed")
            assert Run.objects.get(pk=asked.run).status == ("completed" if error is errors.Answered else "cancelled")
            assert refused.value.gate == asked.id
        with pytest.raises(errors.Problem, match="The gate was withdrawn"):
            hp.withdraw(void.id)
    answer = getattr(refused.value, "answer", None)
    assert answer == ended(answered.run)["wire_result"] == "Paid by card already."


def test_what_is_raised_decides_between_failed_and_unknown(world: World) -> None:
    cases: list[tuple[BaseException, str, str]] = [
        (errors.NotDone("refused at the door"), "failed", "refused at the door"),
        # Of a call inside of the work: it was taken for the report's own, and the effect was not reported at all.
        (errors.Unreachable("No answer\nwithin 60 s."), "unknown", "Unreachable: No answer within 60 s."),
        (KeyboardInterrupt(), "unknown", "KeyboardInterrupt:"),
    ]
    with world.client() as hp:
        for error, status, words in cases:
            gate = world.allowed(hp)
            with pytest.raises(type(error)), hp.resume(gate, timeout=PATIENCE):
                raise error
            row = Effect.objects.get(run__gates=gate)
            assert (row.status, row.error.strip()) == (status, words)


def test_what_is_forgotten_is_unknown_and_warned_of(world: World) -> None:
    with world.client() as hp:
        gate = world.allowed(hp)
        with pytest.warns(RuntimeWarning, match=r"Call call\.done"), hp.resume(gate, timeout=PATIENCE):
            pass
    assert Effect.objects.get(run__team=world.team).status == "unknown"
    assert world.gate("recovery").asked.title == "Did “wire” happen? wire"


def test_a_failure_that_may_be_tried_again_is_handed_out_under_the_same_key_and_a_report_stands(world: World) -> None:
    with world.client() as hp:
        gate = world.allowed(hp)
        with hp.resume(gate, timeout=PATIENCE) as call:
            key = call.key
            call.failed("503", retry=True)
        approval = hp.resume(gate, timeout=PATIENCE)
        call = approval.__enter__()
        assert repr(call) == f"<Call wire of gate {gate}>", "neither arguments nor token"
        call.done(object())
        with pytest.raises((errors.ReportedBefore, errors.RunEnded)):
            call.done({"id": "tx_2"})
        call.failed("It was not.")  # evidence, which people see
        approval.__exit__(KeyError, KeyError("later"), None)
    row = Effect.objects.get(run__gates=gate)
    assert (row.status, row.key, call.key) == ("done", key, key)
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


def test_without_its_block_nobody_goes_on_without_people_and_what_was_allowed_is_unknown(world: World) -> None:
    """`hp.approve(…)` alone asked nobody, so that the lines after it ran as if people had been asked."""
    world_decides = POOL.submit(world.decides)
    with world.client() as hp:
        with pytest.warns(RuntimeWarning, match="done in a block"):
            hp.approve("wire", WIRE, timeout=PATIENCE)
        gate = world_decides.result(PATIENCE)
        assert gate.asked.actions[0].arguments == WIRE
        until(lambda: Run.objects.filter(pk=gate.run_id, lease_until__lt=Now()).exists(), what="the lease is over")
        with pytest.raises(errors.Unknown):
            hp.resume(gate.pk, timeout=0.0)  # nobody answers
    assert world.gate("recovery").asked.title == "Did “wire” happen? wire"
    with pytest.warns(RuntimeWarning, match="Nobody was asked"):
        world.awaited().approve("wire", WIRE)


def test_a_question_that_cannot_be_asked_names_the_place(world: World) -> None:
    with world.client() as hp:
        wire, each = partial(hp.approve.defer, "wire", WIRE), hp.approve_each.defer
        wrong: list[tuple[Callable[[], Any], str]] = [
            (lambda: each([], title="Nothing"), r"/actions: .*at least one action"),
            (lambda: each([Ask("wire", WIRE), Ask("wire", WIRE)], title="Twice"), "wire is used twice"),
            (lambda: wire(pinned=["iban"]), "iban"),
            (lambda: wire(state={"a": {}}, quotes=[Quote(label="Marit", pointer="/letter/text")]), "/letter/text"),
            (lambda: wire(state={"wire": 1}), "is the name of an action"),
            (lambda: wire(schema={"type": "object", "required": ["iban"]}), "iban"),
            (lambda: wire(policy="nobody-knows-it"), "/policy"),
            (lambda: hp.approve.defer("a wire", WIRE), "/actions/0/id"),
        ]
        for asks, words in wrong:
            with pytest.raises(errors.Invalid, match=words) as refused:
                asks()
            assert refused.value.errors
        for goes_on in (hp.resume, hp.resume_each, hp.said):
            with pytest.raises(errors.NotFound):
                goes_on(987654321)
    assert not Gate.objects.filter(team=world.team).exists()


def test_questions_are_answered_while_the_program_waits_and_the_gate_stays_open(world: World) -> None:
    def answer(question: Question) -> str:
        if question.text == "Who?":
            raise ValueError("no idea")
        return f"{question.by}: {question.text} Because."

    done = world.awaits(wires_awaited, on_question=answer)
    gate = world.gate()
    for text in ("Why?", "Who?"):
        questions.ask(gate, by=ann(world.team), text=text, key=text)
    said = until(lambda: [each for each in thread.of_gate(gate) if each.by_agent][1:] and thread.of_gate(gate))
    assert [(each.kind, each.text) for each in said if each.by_agent] == [
        ("gate.answered", "Ann Okafor: Why? Because."), ("gate.unanswered", "ValueError: no idea"),
    ]  # fmt: skip
    world.decides()
    assert done.result(PATIENCE)["arguments"]["amount"] == "120.00"


REPLY = {"to": "ellery@example.org", "text": "It is paid."}
BOTH = [Ask("wire", WIRE, pinned=["amount"], idempotent=True), Ask("mail", REPLY, respond=True)]
QUOTED: dict[str, Any] = {
    "state": {"mail_in": {"text": "Where is my money?"}},
    "quotes": [Quote(label="Marit Ellery", pointer="/mail_in/text", role="by mail")],
}


def test_all_of_them_are_asked_at_one_gate_and_done_one_after_the_other(world: World) -> None:
    done = {}

    def does_both(hp: Holdpoint) -> dict[str, Any]:
        with hp.approve_each(BOTH, title="Pay and tell", **QUOTED) as calls:
            for call in calls:
                done[call.name] = call.arguments
                call.done({"did": call.name})
        return calls.results

    told = world.runs(does_both)
    gate = world.decides("edit", arguments={"wire": {**WIRE, "amount": "1.00"}})
    assert [action.id for action in gate.asked.actions] == ["wire", "mail"]
    [quote] = gate.asked.quotes
    assert (quote.label, quote.pointer, quote.role) == ("Marit Ellery", "/mail_in/text", "by mail")
    assert told.result(PATIENCE) == {"wire": {"did": "wire"}, "mail": {"did": "mail"}}
    assert done == {"wire": {**WIRE, "amount": "1.00"}, "mail": REPLY}
    assert ended(gate.run_id)["mail_result"] == {"did": "mail"}
    assert Gate.objects.filter(team=world.team).count() == 1


def test_what_is_refused_or_answered_for_is_not_done(world: World) -> None:
    async def asks(hp: AsyncHoldpoint) -> AsyncCalls:
        async with hp.approve_each(BOTH, title="Pay and tell", **QUOTED) as calls:
            async for call in calls:
                await call.done({"did": call.name})
        return calls

    told = world.awaits(asks)
    respond = {"verdict": "respond", "response": "I rang her."}
    first = world.decides("", verdicts={"wire": {"verdict": "approve"}, "mail": respond})
    got = told.result(PATIENCE)
    assert (got.results["wire"], got.answers) == ({"did": "wire"}, {"mail": "I rang her."})
    assert ended(first.run_id)["wire_result"] == {"did": "wire"}
    told = world.awaits(asks)
    world.decides("", verdicts={"wire": {"verdict": "reject", "reason": "Not this month."}, "mail": respond})
    got = told.result(PATIENCE)
    [(name, refused)] = got.refused.items()
    assert (name, refused.by, refused.reason) == ("wire", "Ann Okafor", "Not this month.")
    assert ("wire" in got.results, got.answers) == (False, {"mail": "I rang her."})


def test_another_process_goes_on_with_what_is_not_done(world: World) -> None:
    """The run stayed claimed until the lease was over, half a minute, though its program did nothing more in it."""
    with world.client(lease=30.0) as hp:
        asked = hp.approve_each.defer(BOTH, title="Pay and tell")
        with pytest.raises(errors.HoldpointError, match="resume_each"):
            hp.resume(asked.id)
        world.decides()
        with hp.resume_each(asked.id, timeout=PATIENCE) as calls:
            for call in calls:
                call.done({"did": call.name})
                break
        until(lambda: Run.objects.get(pk=asked.run).status == "queued", what="the run is let go of")
        with hp.resume_each(asked.id, timeout=PATIENCE) as calls:
            assert [call.name for call in calls if call.done({"did": "mail"}) is None] == ["mail"]
        assert calls.results == {"wire": {"did": "wire"}, "mail": {"did": "mail"}}
        with hp.resume_each(asked.id, timeout=PATIENCE) as calls:
            assert list(calls) == []
        assert calls.results["wire"] == {"did": "wire"}
    assert Effect.objects.filter(run__team=world.team).count() == 2


def test_what_nothing_is_said_of_is_unknown_and_the_next_is_not_begun(world: World) -> None:
    with world.client() as hp:
        gate = hp.approve_each.defer([Ask("wire", WIRE), Ask("mail", REPLY)], title="Pay and tell").id
        world.decides()
        approval = hp.resume_each(gate, timeout=2.0)
        each = iter(approval.__enter__())
        assert next(each).name == "wire"
        with pytest.warns(RuntimeWarning, match="wire was left without"), pytest.raises(errors.Unknown):
            next(each)
    assert [(each.step, each.status) for each in Effect.objects.filter(run__team=world.team)] == [("wire", "unknown")]


def test_questions_are_answered_and_leave_no_run_in_the_queue(world: World) -> None:
    told = world.runs(lambda hp: hp.ask("deploy", {"version": "4.2"}, title="Deploy 4.2 now?", respond=True))
    gate = world.decides("edit", arguments={"deploy": {"version": "4.1"}}, comment="Not that one.")
    said = told.result(PATIENCE)
    assert (said.arguments, said.changes) == ({"version": "4.1"}, ["version is now '4.1'"])
    assert (said.decision.verdict, said.decision.by, said.decision.comment) == ("edit", "Ann Okafor", "Not that one.")
    assert said.url == f"{world.url}/gates/{gate.pk}/"
    with world.client() as hp:
        colour = hp.ask.defer("colour", title="Which colour?", respond=True)
        assert colour.url == f"{world.url}/gates/{colour.id}/"
        world.decides("", verdicts={"colour": {"verdict": "respond", "response": "Green."}})
        assert Run.objects.get(pk=colour.run).plan.version.startswith("posted-")
        assert not Gate.objects.get(pk=colour.id).outcome.grants.exists()
        assert hp.said(colour.id, timeout=PATIENCE).answer == "Green."
        with pytest.raises(errors.StillOpen) as still:
            hp.ask("deploy", timeout=0.0)
        world.decides("reject", comment="Not today.")
        with pytest.raises(errors.Rejected, match=r"Not today\."):
            hp.said(still.value.gate)
    for run in (gate.run_id, colour.run):
        assert Run.objects.get(pk=run).status == "completed"
        assert not Effect.objects.filter(run=run).exists()


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
    with world.client() as hp, holdpoint.thread("chat-8"):
        assert Run.objects.get(pk=hp.approve.defer("wire", WIRE, thread="chat-9").run).thread == "chat-9"


def test_each_is_a_gate_of_its_own_and_gone_on_with_by_its_number(world: World) -> None:
    with world.client() as hp:
        two = [
            question("wire", WIRE, title="Pay invoice 7", thread="night"),
            question_each([Ask("wire", WIRE), Ask("mail", {"to": "ACME"})], title="Pay and tell"),
        ]
        first, second = hp.defer_all(two, key="nightly-17")
        assert hp.defer_all(two, key="nightly-17") == [first, second]
        assert [each.asked.title for each in Gate.objects.filter(team=world.team).order_by("pk")] == [
            "Pay invoice 7", "Pay and tell",
        ]  # fmt: skip
        assert set(world.team.runs.values_list("client__deferred", flat=True)) == {True}
        decide(Gate.objects.get(pk=first.id))
        with hp.resume(first.id, timeout=PATIENCE) as call:
            call.done({"id": call.arguments["to"]})
    assert ended(first.run)["wire_result"] == {"id": "ACME"}
    assert Gate.objects.get(pk=second.id).status == "open"


def test_none_asks_nothing_and_others_agents_are_asked_apart(world: World) -> None:
    with world.client() as hp:
        assert hp.defer_all([]) == []
        [pending] = hp.defer_all([question("deploy", {"version": "4.2"})], ask_only=True)
        assert Gate.objects.get(pk=pending.id).asked.allows == (), "nothing is done after it"
        with pytest.raises(ValueError, match="one agent and team"):
            hp.defer_all([question("wire", WIRE), question("wire", WIRE, agent="another")])
        with pytest.raises(errors.Invalid) as refused:
            hp.defer_all([question("wire", WIRE), question("wi re", WIRE)])
    assert "/gates/1/actions/0/id" in str(refused.value)
    assert Gate.objects.get(team=world.team).pk == pending.id
