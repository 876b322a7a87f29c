"""What every adapter does: people's verdicts, programs that die wherever they are, and errors that say what to do.

OpenAI's Agents SDK makes an edited call anew, and has hooks, streams and agents that call others; in Pydantic AI an
edited call runs as it was edited, and calls that are done elsewhere are the program's.
"""

from __future__ import annotations

import asyncio
import re
import signal
from types import SimpleNamespace
from typing import Any, cast

import pytest
from holdpoint import Invalid, StaleToken
from holdpoint.errors import CannotAsk, CannotResume
from holdpoint.tool_runs import driving
from holdpoint.tool_runs.driving import ToolRun
from holdpoint.tool_runs.plan import ToolCall, Verdict, entered_results, name_tool_calls

from agents.models import Effect
from approvals.gates import closing
from approvals.models import Gate
from checkpoints.actors import SYSTEM
from tests.clients.framework_programs import newer
from tests.clients.scripted_model import Call, scripted
from tests.clients.tool_runs.tellers import DIE, LESS, LOOK, MAIL, NO_MAIL, REFUND, Teller
from tests.clients.world import ended
from tests.conftest import SharedWeb
from tests.harness.waiting import PATIENCE, until


@pytest.mark.long
def test_a_no_to_all_goes_back_to_the_agent_and_what_nobody_decided_is_told_as_that(teller: Teller) -> None:
    with scripted([REFUND, MAIL], [MAIL], "Then not.") as model:
        service = teller.start(model, "run", "k1")
        first = teller.world.decides("reject", comment="Not this month.", then="back")
        model.was_asked(2)
        assert model.told().count("Ann Okafor said no to") == 2
        assert "Not this month. Do not do it another way." in model.told()
        gate = newer(teller.world, first)
        closing.pass_deadline(gate)
        closing.expire(gate, by=SYSTEM)
        service.says("final Then not")
        assert "Nobody decided about mail in time, so it was not done. This is not a rejection" in model.told()
        assert model.told().count("said no") == 2
    assert "ran" not in service.log


def test_killed_while_it_waits_it_goes_on_by_its_key_with_a_verdict_for_each_call(teller: Teller) -> None:
    with scripted([REFUND, MAIL], "All is done.") as model:
        first = teller.start(model, "run", "k1")
        gate = teller.world.gate()
        assert [(each.id, each.arguments) for each in gate.asked.actions] == [REFUND, MAIL]
        first.kill()
        teller.world.decides("", verdicts=NO_MAIL)
        second = teller.start(model, "run", "k1")
        second.says(r"final All is done\.")
        assert second.log.count("ran refund 7 20.00") == 1
        assert "ran mail" not in second.log
        told = model.told()
        assert len(model.asked) == 2
    assert "paid" in told
    assert "20.00" in told
    assert "Ann Okafor said no to mail: She has no mail. Do not do it another way." in told
    state = ended(gate.run_id)
    assert (state["results"], state["output"]) == ({"refund": teller.paid}, "All is done.")
    assert [(each.step, each.status, each.action) for each in Effect.objects.filter(run=gate.run_id)] == [
        ("call", "done", "refund")
    ]
    assert Gate.objects.filter(run__team=teller.world.team).count() == 1


@pytest.mark.long
def test_what_was_deferred_is_one_gate_under_its_key_and_resumed_in_another_process(teller: Teller) -> None:
    with scripted([REFUND], "Done.", [REFUND], "Done.") as model:
        number = teller.deferred(model, "k1")
        assert teller.deferred(model, "k1") == number
        assert len(model.asked) == 1
        teller.start(model, "run", "k1", "Something else.").says(
            r"KeyReused \| The key 'k1' belongs to another input: go on with that one, or choose a new key"
        )
        teller.start(model, "resume", number, 0).says(rf"StillOpen \| Gate {number} is still open")
        teller.world.decides()
        teller.start(model, "resume", number).says("final Done")
        teller.start(model, "run", "k1").says(
            r"AlreadyDone \| Run \d+ of Teller has ended already; use its result\. \| Done\."
        )
        first = teller.start(model, "sync", "k2")  # a program without an event loop
        teller.world.gate()
        first.kill()
        teller.world.decides()
        second = teller.start(model, "sync", "k2")
        second.says("final Done")
        assert second.log.count("ran refund") == 1


def test_a_call_in_whose_middle_the_program_died_is_asked_about(teller: Teller) -> None:
    with scripted([REFUND, DIE], "Done.") as model:
        first = teller.start(model, "run", "k1")
        teller.world.decides()
        until(lambda: not first.alive, what="the program dies")
        assert first.process.returncode == -signal.SIGKILL
        second = teller.start(model, "run", "k1")
        results = {"refund": teller.paid, "die": "it happened after all"}
        told = {"choice": "happened", "value": {"results": results}}
        assert teller.world.decides("answer", kind="recovery", answer=told).title.startswith("Did")
        second.says("final Done")
        assert "ran" not in second.log
        assert "it happened after all" in model.told()


@pytest.mark.long
def test_what_cannot_be_resumed_says_what_to_do_and_its_approval_stays(teller: Teller) -> None:
    with scripted([REFUND, MAIL], "Done.", [REFUND]) as model:
        with teller.world.client() as hp:
            foreign = hp.approve.defer("wire", {"to": "ACME"}, title="Pay").id
        number = teller.deferred(model)
        teller.world.decides()
        removed = rf"The agent Teller has no tool refund by now, about which people decided at gate {number}"
        for gate, agent, words in (
            (987654321, "plain", "There is no gate 987654321"), (foreign, "plain", r"Gate \d+ was not opened by"),
            (number, "less", removed), (number, *teller.other),
        ):  # fmt: skip
            service = teller.start(model, "resume", gate, agent=agent)
            service.says(rf"CannotResume \| {words}")
            assert "ran refund" not in service.log
        assert not Effect.objects.filter(run__team=teller.world.team).exists()
        service = teller.start(model, "resume", number)
        service.says("final Done")
        assert service.log.count("ran refund") == 1
        number = teller.deferred(model, SAVED_BY="9.9")  # by another version of the framework
        teller.world.decides()
        teller.start(model, "resume", number).says(rf"CannotResume \| {teller.unreadable}")


@pytest.mark.long
def test_a_result_that_is_too_large_says_what_to_do(shared_web: SharedWeb, teller: Teller) -> None:
    teller.world.url = shared_web({"HOLDPOINT_STATE_LIMIT": "100000"})
    with scripted([("archive", {"order": "7"})], "Done.", "Done.") as model:
        service = teller.start(model, "run", "k1")
        teller.world.decides()
        service.says(r"StateTooLarge \| archive ran, but the server does not keep its result \(200,002 bytes\)")
        told = {"choice": "happened", "value": {"results": {"archive": "in the cellar"}}}
        teller.world.decides("answer", kind="recovery", answer=told)
        second = teller.start(model, "run", "k1")
        second.says("final Done")
        assert "ran archive" not in second.log
        assert "in the cellar" in model.told()


REFUSED = Invalid(422, {"detail": "The state is too large."})
LOST = StaleToken(409, {"detail": "Somebody else has the run."})


class Standing:
    """A run whose server refuses the first request of one kind."""

    def __init__(self, refuses: str, *calls: str) -> None:
        self.refuses = refuses
        self.state: dict[str, Any] = {"calls": [{"id": each, "tool": "pay", "arguments": {}} for each in calls]}
        self.begun: list[str] = []

    def made(self) -> ToolRun[Any]:
        hp, run, framework = cast(Any, (SimpleNamespace(), self, SimpleNamespace(agent="teller")))
        return ToolRun(hp, run, framework, {})

    async def save(self, step: str, *, set: dict[str, Any], next_step: str | None) -> None:
        self.refuse("save", REFUSED)
        self.state |= set

    async def begin(self, step: str) -> Any:
        self.refuse("begin", REFUSED)
        self.begun.append(self.state["calling"])
        return SimpleNamespace(id=len(self.begun))

    async def unknown(self, effect: Any, error: str) -> None:
        """Take the report."""

    def check(self) -> None:
        self.refuse("check", LOST)

    def refuse(self, what: str, error: Exception) -> None:
        if self.refuses == what:
            self.refuses = ""
            raise error


def verdict(id: str) -> Verdict:
    return Verdict(id=id, tool="pay", call=id, kind="approve", arguments={}, asked={})


@pytest.mark.parametrize("refuses", ["save", "begin", "check"])
def test_a_call_that_cannot_begin_lets_the_others_of_its_turn_begin(refuses: str) -> None:
    """Where the save or the beginning failed, the turn stayed this call's, and the others waited for ever."""

    async def turn() -> list[str]:
        run = Standing(refuses, "first", "second")
        made = run.made()
        with pytest.raises((Invalid, StaleToken)):
            await made.begin(verdict("first"), "pay", {})
        second = await asyncio.wait_for(made.begin(verdict("second"), "pay", {}), PATIENCE)
        await second.unknown()
        return run.begun

    assert asyncio.run(turn())[-1] == "second"


def test_a_call_at_which_the_run_stands_and_that_is_not_made_again_ends_the_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its process had died, and its tool took other arguments by now: the next call waited for ever."""
    monkeypatch.setattr(driving, "COMES_WITHIN", 0.05)

    async def turn() -> None:
        run = Standing("")
        made = run.made()
        made._at = "first"
        with pytest.raises(CannotResume, match="stands at first, which the agent did not call again"):
            await asyncio.wait_for(made.begin(verdict("second"), "pay", {}), PATIENCE)
        assert run.begun == []

    asyncio.run(turn())


def test_calls_have_names_of_their_own_and_what_cannot_be_told_apart_or_shown_is_refused() -> None:
    def call(id: str, tool: str = "pay", **arguments: Any) -> ToolCall:
        return ToolCall(id="", tool=tool, call=id, arguments=arguments)

    named = name_tool_calls([call("1"), call("2"), call("3", "bank pay")])
    assert [each.id for each in named] == ["pay", "pay_2", "bank_pay"]
    for calls, words in (
        ([call("1"), call("1", "mail")], "Two calls of the agent have the id '1'"),
        ([call("1", amount=float("inf"))], "The arguments of pay cannot be shown"),
        ([], "stopped without a call to approve"),
        ([call(str(at)) for at in range(51)], "made 51 calls at once"),
    ):
        with pytest.raises(CannotAsk, match=words):
            name_tool_calls(calls)


def test_whatever_people_enter_is_the_result_of_the_call_at_which_the_run_stood() -> None:
    for entered, told in (
        ({}, "It was done, as people found out"), ({"die": "so it did"}, "so it did"), ({"id": "tx_1"}, "tx_1"),
    ):  # fmt: skip
        results = entered_results({"calling": "die", "results": entered, "before": {"refund": "paid 20.00"}})
        assert results["refund"] == "paid 20.00"
        assert told in str(results["die"])


OTHER = {"order": "7", "amount": "10.01"}
FAIL: Call = ("fail", {"order": "7"})


def test_an_edited_call_runs_as_corrected_without_another_question_once(openai: Teller) -> None:
    with scripted([REFUND, MAIL, LOOK], [("refund", LESS)], [("refund", LESS)], "Done.") as model:
        service = openai.start(model, "run", "k1")
        first = openai.world.decides("edit", arguments={"refund": LESS})
        assert "an edit rejects it and tells the agent to make the corrected one" in first.asked.summary
        again = newer(openai.world, first)
        told = model.told(1)
        assert "ran refund 7 10.00" in service.log
        assert "hook end refund" in service.log
        assert service.log.count("ran refund") == 1
        assert again.asked.actions[0].arguments == LESS
        openai.world.decides("reject", comment="Once is enough.", then="back")
        service.says("final Done")
        assert service.log.count("ran refund") == 1
        assert "Once is enough" in model.told()
    assert "Ann Okafor did not allow this call but a corrected one (amount is now '10.00')" in told
    assert "sent to marit" in told
    assert 'refund({"amount": "10.00", "order": "7"}). It is approved already, once.' in told.replace("\\", "")
    effects = Effect.objects.filter(run=first.run_id).order_by("pk")
    assert [(each.action, each.status) for each in effects] == [("mail", "done"), ("refund", "done")]


@pytest.mark.long
@pytest.mark.parametrize(
    ("call", "tool", "arguments", "ran"),
    [
        (("shell_call", {"commands": ["rm -rf build"], "timeout_ms": 1000}), "shell",
         {"action": {"commands": ["rm -rf build"], "timeout_ms": 1000}}, "ran shell rm -rf build"),
        (("bank.pay", {"amount": "5"}), "bank.pay", {"amount": "5"}, ""),
    ],
)  # fmt: skip
def test_a_call_of_a_shell_or_a_hosted_server_is_asked_about_with_its_own_members(
    openai: Teller, call: Call, tool: str, arguments: dict[str, object], ran: str
) -> None:
    with scripted([call], "Done.") as model:
        service = openai.start(model, "run", "k1", agent="operator")
        [action] = openai.world.decides().asked.actions
        service.says("final Done")
        assert ran in service.log
        assert ran or '"approve": true' in model.everything()
    assert (action.tool, action.arguments) == (tool, arguments)


@pytest.mark.long
def test_a_streamed_run_asks_is_killed_and_goes_on_streamed(openai: Teller) -> None:
    with scripted([REFUND, MAIL, LOOK], "Done.") as model:
        first = openai.start(model, "run", "k1", STREAMED="1")
        gate = openai.world.gate()
        first.says("event raw_response_event")
        assert "ran refund" not in first.log
        first.kill()
        openai.world.decides("", verdicts=NO_MAIL)
        second = openai.start(model, "run", "k1", STREAMED="1")
        second.says("final Done")
        assert "event run_item_stream_event tool_output" in second.log
        assert second.log.count("ran refund") == 1
        assert "ran mail" not in second.log
        assert "She has no mail." in model.told()
        assert all(each.get("stream") for each in model.asked)
    assert ended(gate.run_id)["output"] == "Done."


@pytest.mark.long
def test_a_call_that_raises_is_unknown_and_the_program_is_told(openai: Teller) -> None:
    with scripted([FAIL], "Done.") as model:
        first = openai.start(model, "run", "k1")
        openai.world.decides()
        first.says("(OSError|raised UserError).*no bank")
        told = {"choice": "happened", "value": {"results": {"fail": "paid"}}}
        assert openai.world.decides("answer", kind="recovery", answer=told).title.startswith("Did")
        openai.start(model, "run", "k1").says("final Done")


@pytest.mark.long
def test_the_calls_of_an_agent_that_it_was_handed_to_are_asked(openai: Teller) -> None:
    with scripted([("transfer_to_clerk", {})], [REFUND], "Done.") as model:
        first = openai.start(model, "run", "k1", agent="desk")
        assert openai.world.gate().asked.actions[0].title == "refund (Clerk)"
        first.kill()
        openai.world.decides()
        second = openai.start(model, "run", "k1", agent="desk")
        second.says("final Done")
        assert second.log.count("ran refund") == 1


def test_the_calls_of_an_agent_and_of_its_tool_are_one_gate(openai: Teller) -> None:
    with scripted([("ask_clerk", {"input": "refund it"}), MAIL], [REFUND], "Clerk is done.", "Done.") as model:
        service = openai.start(model, "run", "k1", agent="chief")
        gate = openai.world.decides()
        assert {each.title for each in gate.asked.actions} == {"refund (Clerk)", "mail (Chief)"}
        service.says("final Done")
        assert "ran refund 7 20.00" in service.log
        assert "ran mail" in service.log
        assert "Clerk is done." in model.told()
    assert ended(gate.run_id)["results"] == {"refund": "paid 20.00", "mail": "sent to marit@example.org"}
    assert Effect.objects.filter(run=gate.run_id, status="done").count() == 2


@pytest.mark.parametrize(
    ("agent", "turns", "asked"),
    [
        ("chief", [[("ask_clerk", {"input": "refund it"})], [REFUND], "I cannot.", [("refund", LESS)]],
         ("refund (Chief)", LESS)),
        pytest.param("plain", [[REFUND], [("refund", OTHER)]], ("refund (Teller)", OTHER), marks=pytest.mark.long),
    ],
)  # fmt: skip
def test_a_correction_approves_no_other_agents_call_and_no_other_value(
    openai: Teller, agent: str, turns: list[Any], asked: tuple[str, dict[str, str]]
) -> None:
    with scripted(*turns, "Done.") as model:
        service = openai.start(model, "run", "k1", agent=agent)
        first = openai.world.decides("edit", arguments={"refund": LESS})
        [action] = newer(openai.world, first).asked.actions
        assert (action.title, action.arguments) == asked
        assert "ran refund" not in service.log


def test_an_edited_call_runs_once_with_the_edit_and_the_agent_is_told(pydantic: Teller) -> None:
    """After a kill too, by the record of the call; and a later call under its id is another call."""
    with scripted([REFUND, MAIL], [("look", {"order": "8"})], "hang", "All is done.") as model:
        model.ids_again = True
        first = pydantic.start(model, "run", "k1")
        gate = pydantic.world.decides("edit", arguments={"refund": LESS})
        assert "mail: why: it leaves the house" in gate.asked.reasons
        assert gate.asked.actions[0].schema["properties"]["amount"]["type"] == "string"
        model.was_asked(3)
        assert re.findall(r"ran .*", first.log) == [
            "ran refund 7 10.00",
            "ran mail marit@example.org Olga",
            "ran look 8",
        ]
        first.kill()
        second = pydantic.start(model, "run", "k1")
        second.says("final All is done")
        assert "ran refund" not in second.log
        assert "ran mail" not in second.log
        assert "Ann Okafor changed the call of refund before it ran: amount is now '10.00'." in model.everything()
    effects = Effect.objects.filter(run=gate.run_id).order_by("pk")
    assert sorted((each.action, each.status) for each in effects) == [("mail", "done"), ("refund", "done")]


@pytest.mark.long
def test_a_tool_that_asks_the_model_again_has_run(pydantic: Teller) -> None:
    with scripted([("again", {"order": "7"})], "Done.") as model:
        service = pydantic.start(model, "run", "k1")
        gate = pydantic.world.decides()
        service.says("final Done")
        assert "Take order 8." in model.told()
    assert ended(gate.run_id)["results"] == {"again": "The tool told the agent: Take order 8."}


@pytest.mark.long
def test_calls_that_are_done_elsewhere_are_the_programs(pydantic: Teller) -> None:
    with scripted([("elsewhere", {"order": "7"}), REFUND], [("elsewhere", {"order": "8"})], "Done.") as model:
        service = pydantic.start(model, "run", "k1", agent="elsewhere")
        assert [each.id for each in pydantic.world.decides().asked.actions] == ["refund"]
        service.says("final Done")
        assert "external elsewhere {'order': '7'}" in service.log
        assert "external elsewhere {'order': '8'}" in service.log
        assert "done elsewhere" in model.told()
    with scripted([("elsewhere", {"order": "7"})]) as model:
        pydantic.start(model, "run", "k2").says(r"CannotAsk \| The agent waits for elsewhere")
