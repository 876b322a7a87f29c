"""A graph's interrupts are questions at the run's gate, answered by id; calls are decided one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.questions import answering
from approvals.errors import Invalid
from approvals.gates import closing, questions, thread
from approvals.models import Gate
from checkpoints.models import Run
from tests.agents.moves.moved_runs import after, rewind
from tests.approvals.cards.verdicts.verdict_forms import APPROVE, edit, reject, respond, say
from tests.factories import ann
from tests.factories.driven_runs import advance_to_rest, decide, make_run, open_gate, state, trail
from tests.harness.signed_in_clients import signed_in

LATER = {"verdict": "later"}
HELLO = [{"role": "user", "content": "Pay Ada."}]


def begun(agent: str, **given: Any) -> Run:
    return advance_to_rest(make_run(agent, **given))


def answers(run: Run, **said: Any) -> dict[str, Any]:
    """Verdicts by action: an answer for each title given, and the others later."""
    return {
        each.id: {"verdict": "edit", "arguments": {"answer": said[each.title]}} if each.title in said else LATER
        for each in open_gate(run).asked.actions
    }


def titles(run: Run) -> list[str]:
    return [each.title for each in open_gate(run).asked.actions]


def lines(folder: Path) -> list[str]:
    return (folder / "did.txt").read_text().split()


def test_two_interrupts_are_two_actions_and_both_answers_find_their_node(tmp_path: Path) -> None:
    run = begun("two-questions", folder=str(tmp_path))
    assert titles(run) == ["Left?", "Right?"]
    assert "the nodes “left” and “right” run again from their start" in open_gate(run).asked.summary
    say(run, each=answers(run, **{"Left?": "L", "Right?": "R"}))
    run = advance_to_rest(run)
    assert titles(run) == ["Left again?"]
    assert [step for _, step in trail(run)] == ["input", "go", "go", "prepare", "ask", "hear", "go", "prepare"]
    say(run, each=answers(run, **{"Left again?": "true"}))
    run = advance_to_rest(run)
    assert run.status == "completed", run.reason
    assert state(run)["said"] == ["left L", "again True", "right R"]
    assert state(run)["end"] == "left L / again True / right R"


def test_the_second_is_answered_first_and_the_first_waits_under_its_own_id(tmp_path: Path) -> None:
    run = begun("two-questions", folder=str(tmp_path))
    left = open_gate(run).asked.actions[0].id
    say(run, each=answers(run, **{"Right?": "R"}))
    run = advance_to_rest(run)
    assert [each.id for each in open_gate(run).asked.actions] == [left]
    say(run, each=answers(run, **{"Left?": "L"}))
    run = advance_to_rest(run)
    say(run, each=answers(run, **{"Left again?": "2"}))
    run = advance_to_rest(run)
    assert state(run)["said"] == ["left L", "again 2", "right R"]
    assert lines(tmp_path).count("right") == 2, "a node that was answered has run twice, and never again"


def test_a_response_schema_is_the_form_and_its_rules_hold(tmp_path: Path) -> None:
    run = begun("typed", customer="Ada")
    [action] = open_gate(run).asked.actions
    assert action.title == "How much for Ada?"
    assert action.schema["properties"]["amount"]["maximum"] == 100
    assert list(action.missing) == ["/amount"]
    page = " ".join(signed_in(ann(run.team)).get(f"/gates/{open_gate(run).pk}/").content.decode().split())
    assert [page.count('data-choice="edit"'), page.count('data-field="/amount" data-missing')] == [1, 1]
    decide(run, "edit", arguments={action.id: {"amount": 700, "reason": "late"}})
    run = advance_to_rest(run)
    assert "was not taken: /amount" in open_gate(run).asked.summary
    decide(run, "edit", arguments={action.id: {"amount": 7, "reason": "broken"}})
    run = advance_to_rest(run)
    assert run.status == "completed", run.reason
    assert state(run)["answer"] == "7 because it was broken"


def test_a_question_of_a_graph_in_a_graph_in_a_graph_is_answered_where_it_was_asked(tmp_path: Path) -> None:
    run = begun("nested_graph", folder=str(tmp_path))
    assert titles(run) == ["How deep?"]
    say(run, each=answers(run, **{"How deep?": "far"}))
    run = advance_to_rest(run)
    assert run.status == "completed", run.reason
    assert state(run)["said"] == ["deep far"]
    assert lines(tmp_path) == ["before", "deepest", "deepest"]


def test_finished_tasks_of_a_function_are_not_done_again_after_an_answer_and_a_rewind(tmp_path: Path) -> None:
    run = begun("functional", input={"folder": str(tmp_path)})
    say(run, each=answers(run, **{"Go on?": "yes"}))
    run = advance_to_rest(run)
    assert run.status == "completed", run.reason
    assert state(run)["output"] == "AB yes"
    run = advance_to_rest(rewind(run, after(run, "prepare", last=False)))
    say(run, each=answers(run, **{"Go on?": "no"}))
    assert state(advance_to_rest(run))["output"] == "AB no"
    assert sorted(lines(tmp_path)) == ["a", "b", "costly", "costly"]


def test_a_graph_that_can_only_be_awaited_is(tmp_path: Path) -> None:
    run = begun("awaited", folder=str(tmp_path))
    say(run, each=answers(run, **{"Awaited?": "yes"}))
    run = advance_to_rest(run)
    assert state(run)["said"] == ["YES"], run.reason


def test_what_a_node_did_once_is_not_done_again_when_it_runs_again_nor_under_another_key_after_a_rewind(
    tmp_path: Path,
) -> None:
    """Side effects ran twice on a resume (langgraph #6577)."""
    run = begun("charges-first", folder=str(tmp_path))
    say(run, each=answers(run, **{"Charged. Go on?": "yes"}))
    run = advance_to_rest(run)
    assert state(run)["said"] == ["yes"], run.reason
    assert (tmp_path / "did.txt").read_text().splitlines().count("charged") == 1
    run = advance_to_rest(rewind(run, after(run, "go", last=False)))
    assert titles(run) == ["Charged. Go on?"], "what was approved is asked anew"
    keys = [each for each in (tmp_path / "did.txt").read_text().splitlines() if each.startswith("key")]
    assert (len(keys), len(set(keys))) == (3, 1), "the provider gets the same key"


def asking(agent: str) -> Run:
    return begun(agent, messages=HELLO)


def heard(run: Run) -> str:
    """What the model heard of its calls, as it repeats it in its last words."""
    run = advance_to_rest(run)
    assert run.status == "completed", run.reason
    return str(state(run)["messages"][-1]["content"])


def ids(run: Run) -> list[str]:
    return [each.id for each in open_gate(run).asked.actions]


def test_each_call_is_an_action_and_runs_as_decided_and_the_model_knows() -> None:
    run = asking("four-calls")
    actions = open_gate(run).asked.actions
    pay, write = actions[:2]
    assert (pay.tool, pay.title, pay.arguments) == ("pay", "Pay", {"to": "Ada", "amount": 5})
    assert pay.schema["properties"]["amount"]["type"] == "integer"
    assert list(pay.verdicts) == ["approve", "edit", "reject", "respond", "later"]
    assert write.arguments == {"to": "Ada", "text": "It comes."}
    approved, rejected, edited, answered = (each.id for each in actions)
    said = {approved: APPROVE, rejected: reject("No letter."), edited: edit(run, edited, amount=3)}
    say(run, each={**said, answered: respond("I called him.")})
    told = heard(run)
    assert "tool: paid 5 to Ada" in told
    assert "No letter." in told
    assert "Do not do it another way" in told
    assert "wrote to" not in told
    assert "paid 3 to Bob" in told
    assert "Do not re-issue your original call" in told
    assert '"amount": 3' in told
    assert "A reviewer changed" not in told, "it was told once"
    assert "tool: I called him." in told


def test_an_edit_that_the_middleware_does_not_tell_of_is_told_by_a_message() -> None:
    run = asking("untold")
    decide(run, "edit", arguments={ids(run)[0]: {"to": "Ada", "amount": 3}})
    told = heard(run)
    assert "tool: paid 3 to Ada" in told
    assert "human: A reviewer changed your call of pay before it ran." in told
    assert '"amount":5' in told
    assert "do not repeat your original call" in told


def test_a_question_is_answered_from_the_graphs_channels_with_the_gate_open() -> None:
    gate = open_gate(asking("one-call"))
    asked = questions.ask(gate, by=ann(gate.team), text="Why five?", key="k1")
    assert answering.answer(asked.pk)
    [_, said] = thread.questions_of(gate)
    assert said.text == "Why five? 2 messages, the first of them 'Pay Ada.'."
    decide(gate.run)
    assert heard(gate.run) == "tool: paid 5 to Ada"


def test_where_all_is_refused_the_model_is_told_and_goes_on() -> None:
    run = asking("per-call")
    decide(run, "reject", then="back", comment="Not today.")
    told = heard(run)
    assert told.count("Not today.") == 2
    assert "paid" not in told
    assert "wrote" not in told


def test_a_call_may_be_left_for_later_and_the_other_keeps_its_verdict() -> None:
    run = asking("per-call")
    pay, write = ids(run)
    with pytest.raises(Invalid, match="at least one"):
        say(run, each=dict.fromkeys((pay, write), LATER))
    say(run, each={pay: LATER, write: reject("No letter.")})
    run = advance_to_rest(run)
    assert ids(run) == [pay]
    decide(run)
    told = heard(run)
    assert "paid 5 to Ada" in told
    assert "No letter." in told


def expired(run: Run) -> str:
    """What the model heard after the deadline."""
    gate = open_gate(run)
    closing.pass_deadline(gate)
    closing.expire(Gate.objects.get(pk=gate.pk))
    run = advance_to_rest(run)
    assert run.status == "completed", run.reason
    return str(state(run)["messages"])


def test_nobodys_decision_is_no_rejection_and_leaves_what_was_decided_before() -> None:
    """In Agent Inbox's form the model was told that a reviewer refused its call."""
    told = expired(asking("asks-a-person"))
    assert "Nobody decided in time" in told
    assert "This is not a rejection" in told
    run = asking("needs-a-yes")
    pay, write = ids(run)
    say(run, each={pay: APPROVE, write: LATER})
    told = expired(advance_to_rest(run))
    assert "paid 5 to Ada" in told
    assert "Nobody decided in time" in told
    told = expired(asking("inbox"))
    assert "Your call of send_invoice got no answer. Nobody decided in time" in told
    assert "refused" not in told


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


def test_a_no_in_agent_inboxs_form_is_a_message_that_says_why_and_what_takes_only_an_answer_gets_no_yes() -> None:
    run = asking("inbox")
    decide(run, "reject", then="back", comment="She left.")
    messages = str(state(advance_to_rest(run))["messages"])
    assert "ignore: None" in messages
    assert "A reviewer refused your call of send_invoice. She left." in messages
    run = asking("asks-a-person")
    with pytest.raises(Invalid, match="does not take approve"):
        decide(run)
    say(run, each={ids(run)[0]: respond("She knows.")})
    assert heard(run) == "tool: She knows."


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
    assert "paid 5 to Ada" in told
    assert "Bob is paid." in told
    assert "paid 5 to Bob" not in told
