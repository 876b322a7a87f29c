"""A turn of four calls is one gate, and the model is told what a person made of each."""

from __future__ import annotations

from pathlib import Path

from agents.questions import answering
from approvals.gates import questions, thread
from tests.approvals.cards.verdicts.verdict_forms import APPROVE, edit, reject, respond, say
from tests.factories import ann, decide
from tests.factories.driven_runs import advance_to_rest, effects, open_gate, state

from .assistant_runs import DONE, WRITE, begun, calling
from .endpoint import Endpoint, Messages, Reply

FOUR = [
    WRITE,
    ("run_command", {"argv": ["wc", "-l", "notes.md"]}),
    ("run_command", {"argv": ["rm", "notes.md"]}),
    ("http_get", {"url": "https://weather.example/oslo"}),
]


def closing(messages: Messages) -> Reply:
    """A model's last words: what its tools told it, in its own."""
    return Reply("I read: " + " | ".join(each["content"] for each in messages if each["role"] == "tool"))


def test_four_calls_one_approved_one_edited_one_refused_and_one_answered_make_one_answer(
    endpoint: Endpoint, folder: Path
) -> None:
    run = begun(endpoint, calling(*FOUR, text="I write, count, clean up and look at the weather."), closing)
    gate = open_gate(run)
    write, count, remove, weather = [action.id for action in gate.asked.actions]
    assert [action.effect for action in gate.asked.actions] == ["write_file", "run_command", "run_command", "http_get"]
    say(run, each={
        write: APPROVE,
        count: edit(run, count, argv=["wc", "-c", "notes.md"]),
        remove: reject("The notes are needed."),
        weather: respond("Rain, 4 degrees."),
    })  # fmt: skip
    assert advance_to_rest(run).status == "completed"
    assert (folder / "notes.md").read_text() == "one\ntwo\n"
    assert [row.step for row in effects(run)] == ["write_file", "run_command"]
    written, counted, removed, told = endpoint.told()
    assert written == "notes.md is written: 8 bytes."
    assert '-argv: ["wc", "-l", "notes.md"]\n+argv: ["wc", "-c", "notes.md"]' in counted
    assert "8 notes.md" in counted
    assert "Ann" in counted
    assert "refused" in removed
    assert "The notes are needed." in removed
    assert "Do not try this in another way" in removed
    assert told.endswith("Rain, 4 degrees.")
    assert "was not made" in told
    answer = state(run)["answer"]
    assert all(words in answer for words in ("8 bytes", '"-c"', "The notes are needed.", "Rain, 4 degrees."))


def test_where_all_is_refused_the_model_is_told_and_goes_on(endpoint: Endpoint, folder: Path) -> None:
    run = begun(endpoint, calling(WRITE), closing)
    decide(open_gate(run), ann(run.team), "reject", then="back", comment="Not into the notes.")
    assert advance_to_rest(run).status == "completed"
    [told] = endpoint.told()
    assert "Not into the notes." in told
    assert "Do not try this in another way" in told
    assert not (folder / "notes.md").exists()


def test_whoever_edits_a_file_has_that_text_written_and_the_model_reads_the_difference(
    endpoint: Endpoint, folder: Path
) -> None:
    run = begun(endpoint, calling(WRITE), DONE)
    [action] = open_gate(run).asked.actions
    changed = {action.id: {"path": "notes.md", "content": "one\n2\n"}}
    decide(open_gate(run), ann(run.team), "edit", arguments=changed)
    assert advance_to_rest(run).status == "completed"
    assert (folder / "notes.md").read_text() == "one\n2\n"
    [told] = endpoint.told()
    assert "-two\n+2" in told


def test_what_was_answered_in_its_place_is_what_the_next_turn_sees_under_its_call(endpoint: Endpoint) -> None:
    run = begun(endpoint, calling(("run_command", {"argv": ["date"]}), WRITE), DONE)
    first, second = [action.id for action in open_gate(run).asked.actions]
    say(run, each={first: respond("Sunday."), second: reject("Later.")})
    advance_to_rest(run)
    asked = next(each for each in endpoint.conversation if each.get("tool_calls"))
    assert (first, second) == ("run_command.1", "write_file.2")
    [mine, theirs] = [call["id"] for call in asked["tool_calls"]]
    answers = {each["tool_call_id"]: each["content"] for each in endpoint.conversation if each["role"] == "tool"}
    assert "Sunday." in answers[mine]
    assert "Later." in answers[theirs]


def test_the_model_answers_a_question_at_the_gate_without_tools_and_the_conversation_stays_as_it_was(
    endpoint: Endpoint,
) -> None:
    run = begun(endpoint, calling(WRITE))
    before = state(run)
    gate = open_gate(run)
    asked = questions.ask(gate, by=ann(run.team), text="Why notes.md?", key="k")
    endpoint.script.append(Reply("Because it is where notes go."))
    assert answering.answer(asked.pk)
    [_, answered] = thread.of_gate(gate)
    assert (answered.kind, answered.text) == ("gate.answered", "Because it is where notes go.")
    sent = endpoint.requests[-1]
    assert "tools" not in sent
    assert "Ann Okafor asks: Why notes.md?" in sent["messages"][-1]["content"]
    assert sent["messages"][-2]["role"] == "tool"  # an endpoint refuses a call without its answer
    assert state(run) == before
