"""Calls that LangChain's middleware and Agent Inbox's programs ask about, decided one by one."""

from __future__ import annotations

from typing import Any

import pytest

from agents.questions import answering
from approvals.errors import Invalid
from approvals.gates import closing, questions, thread
from approvals.models import Gate
from checkpoints.models import Run
from tests.approvals.cards.verdicts.verdict_forms import APPROVE, edit, reject, respond, say
from tests.factories import ann
from tests.factories.driven_runs import advance_to_rest, decide, open_gate, state
from tests.harness.examples import first_alone

from .test_interrupts import LATER, begun

HELLO = [{"role": "user", "content": "Pay Ada."}]


def asking(agent: str) -> Run:
    return begun(agent, messages=HELLO)


def heard(run: Run) -> str:
    """What the model heard of its calls, as it repeats it in its last words."""
    run = advance_to_rest(run)
    assert run.status == "completed", run.reason
    return str(state(run)["messages"][-1]["content"])


def ids(run: Run) -> list[str]:
    return [each.id for each in open_gate(run).asked.actions]


@pytest.fixture(params=first_alone(["batched", "per-call"]))
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_each_call_is_an_action_with_its_tool_arguments_form_and_verdicts(mode: str) -> None:
    pay, write = open_gate(asking(mode)).asked.actions
    assert (pay.tool, pay.title, pay.arguments) == ("pay", "Pay", {"to": "Ada", "amount": 5})
    assert pay.schema["properties"]["amount"]["type"] == "integer"
    assert list(pay.verdicts) == ["approve", "edit", "reject", "respond", "later"]
    assert write.arguments == {"to": "Ada", "text": "It comes."}


def test_approved_calls_run_as_they_were_shown(mode: str) -> None:
    run = asking(mode)
    decide(run)
    assert heard(run) == "tool: paid 5 to Ada || tool: wrote to Ada: It comes."


def test_an_edited_call_runs_as_edited_and_the_model_knows(mode: str) -> None:
    run = asking(mode)
    pay, write = ids(run)
    say(run, each={pay: edit(run, pay, amount=3), write: APPROVE})
    told = heard(run)
    assert "paid 3 to Ada" in told
    assert "Do not re-issue your original call" in told
    assert '"amount": 3' in told
    assert "A reviewer changed" not in told, "it was told once"


def test_an_edit_that_the_middleware_does_not_tell_of_is_told_by_a_message() -> None:
    run = asking("untold")
    decide(run, "edit", arguments={ids(run)[0]: {"to": "Ada", "amount": 3}})
    told = heard(run)
    assert "tool: paid 3 to Ada" in told
    assert "human: A reviewer changed your call of pay before it ran." in told
    assert '"amount":5' in told
    assert "do not repeat your original call" in told


def test_an_edit_that_does_not_fit_the_tool_is_asked_about_again() -> None:
    run = asking("one-call")
    decide(run, "edit", arguments={ids(run)[0]: {"to": "Ada", "amount": "much"}})
    advance_to_rest(run)
    assert "was not taken: /amount" in open_gate(run).asked.summary


def test_a_question_is_answered_from_the_graphs_channels_with_the_gate_open() -> None:
    gate = open_gate(asking("one-call"))
    asked = questions.ask(gate, by=ann(gate.team), text="Why five?", key="k1")
    assert answering.answer(asked.pk)
    [_, said] = thread.questions_of(gate)
    assert said.text == "Why five? 2 messages, the first of them 'Pay Ada.'."
    decide(gate.run)
    assert heard(gate.run) == "tool: paid 5 to Ada"


def test_a_refused_call_does_not_run_and_the_model_reads_why(mode: str) -> None:
    run = asking(mode)
    pay, write = ids(run)
    say(run, each={pay: reject("Ada has been paid."), write: APPROVE})
    told = heard(run)
    assert "paid 5" not in told
    assert "Ada has been paid." in told
    assert "Do not do it another way" in told
    assert "wrote to Ada" in told


def test_where_all_is_refused_the_model_is_told_and_goes_on(mode: str) -> None:
    run = asking(mode)
    decide(run, "reject", then="back", comment="Not today.")
    told = heard(run)
    assert told.count("Not today.") == 2
    assert "paid" not in told
    assert "wrote" not in told


def test_an_answer_instead_is_the_tools_result(mode: str) -> None:
    run = asking(mode)
    pay, write = ids(run)
    say(run, each={pay: respond("Paid by hand."), write: APPROVE})
    assert heard(run) == "tool: Paid by hand. || tool: wrote to Ada: It comes."


def test_a_call_may_be_left_for_later_and_the_other_keeps_its_verdict(mode: str) -> None:
    run = asking(mode)
    pay, write = ids(run)
    say(run, each={pay: LATER, write: reject("No letter.")})
    run = advance_to_rest(run)
    assert ids(run) == [pay]
    decide(run)
    told = heard(run)
    assert "paid 5 to Ada" in told
    assert "No letter." in told


def test_not_everything_can_be_left_for_later(mode: str) -> None:
    run = asking(mode)
    with pytest.raises(Invalid, match="at least one"):
        say(run, each=dict.fromkeys(ids(run), LATER))


@pytest.mark.parametrize("agent", ["one-call", "asks-a-person"])
def test_nobodys_decision_is_no_rejection(agent: str) -> None:
    run = asking(agent)
    gate = open_gate(run)
    closing.pass_deadline(gate)
    closing.expire(Gate.objects.get(pk=gate.pk))
    told = heard(run)
    assert "Nobody decided in time" in told
    assert "This is not a rejection" in told


def test_nobodys_decision_leaves_what_was_decided_before() -> None:
    run = asking("needs-a-yes")
    pay, write = ids(run)
    say(run, each={pay: APPROVE, write: LATER})
    gate = open_gate(advance_to_rest(run))
    closing.pass_deadline(gate)
    closing.expire(Gate.objects.get(pk=gate.pk))
    told = heard(run)
    assert "paid 5 to Ada" in told
    assert "Nobody decided in time" in told


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        (APPROVE, "I heard: accept: None"),
        (respond("Call her."), "I heard: response: Call her."),
        ("edit", "edit: {'action': 'send_invoice', 'args': {'amount': 6, 'to': 'Ada'}}"),
    ],
)
def test_agent_inboxs_form_is_answered_in_its_own(verdict: Any, words: str) -> None:
    run = asking("inbox")
    [action] = open_gate(run).asked.actions
    assert (action.tool, action.arguments) == ("send_invoice", {"to": "Ada", "amount": 7})
    assert "An invoice for Ada." in open_gate(run).asked.summary
    say(run, each={action.id: edit(run, action.id, amount=6) if verdict == "edit" else verdict})
    assert words in str(state(advance_to_rest(run))["messages"])


def test_agent_inboxs_form_is_ignored_with_a_message_that_says_why() -> None:
    run = asking("inbox")
    decide(run, "reject", then="back", comment="She left.")
    messages = str(state(advance_to_rest(run))["messages"])
    assert "ignore: None" in messages
    assert "A reviewer refused your call of send_invoice. She left." in messages


def test_nobodys_decision_in_agent_inboxs_form_names_no_reviewer_who_refused() -> None:
    """The model was told that a reviewer refused its call, and in the next sentence that this is no rejection."""
    run = asking("inbox")
    gate = open_gate(run)
    closing.pass_deadline(gate)
    closing.expire(Gate.objects.get(pk=gate.pk))
    messages = str(state(advance_to_rest(run))["messages"])
    assert "Your call of send_invoice got no answer. Nobody decided in time" in messages
    assert "refused" not in messages


def test_subagents_at_work_at_once_each_get_their_own_answer() -> None:
    """Requests of subagents were dropped, or answered for one another (langgraph #6626)."""
    run = asking("subagents")
    asked = {each.arguments["to"]: each.id for each in open_gate(run).asked.actions}
    assert set(asked) == {"Ada", "Bob"}
    say(run, each={asked["Ada"]: LATER, asked["Bob"]: reject("Bob is paid.")})
    run = advance_to_rest(run)
    assert [each.arguments["to"] for each in open_gate(run).asked.actions] == ["Ada"]
    decide(run)
    told = heard(run)
    assert "paid 1 to Ada" in told
    assert "Bob is paid." in told
    assert "paid 1 to Bob" not in told


def test_a_call_that_takes_only_an_answer_cannot_be_approved() -> None:
    run = asking("asks-a-person")
    [action] = open_gate(run).asked.actions
    with pytest.raises(Invalid, match="does not take approve"):
        decide(run)
    say(run, each={action.id: respond("She knows.")})
    assert heard(run) == "tool: She knows."
