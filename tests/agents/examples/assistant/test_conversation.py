"""What a model and its endpoint can do to a turn: nothing loses the run, each call is decided, old turns go first."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from agents.examples.assistant.conversation import Message, count_tokens, shorten
from agents.questions import answering
from agents.runner import engine
from approvals.gates import questions, thread
from tests.agents.examples.assistant.assistant_runs import DONE, WRITE, begun, calling, start
from tests.agents.examples.assistant.endpoint import KEY, Endpoint, Messages, Reply
from tests.approvals.cards.verdicts.verdict_forms import APPROVE, edit, reject, respond, say
from tests.factories import ann, decide
from tests.factories.driven_runs import advance, advance_to_rest, answer, effects, failures, open_gate, state, trail


def test_an_answer_without_a_call_ends_the_run_and_says_the_tokens(endpoint: Endpoint) -> None:
    run = begun(endpoint, Reply("There was nothing to tidy.", usage=(1200, 34)))
    assert run.status == "completed"
    now = state(run)
    assert now["answer"] == "There was nothing to tidy."
    assert now["usage"] == {"turns": 1, "read": 1200, "wrote": 34, "cost": None}
    assert endpoint.keys == [f"Bearer {KEY}"]
    assert [each["function"]["name"] for each in endpoint.requests[0]["tools"]] == [
        "list_files", "read_file", "write_file", "run_command", "http_get",
    ]  # fmt: skip


def test_too_many_requests_pause_the_run_for_as_long_as_asked_and_hold_no_worker(endpoint: Endpoint) -> None:
    run = start(endpoint, DONE)
    endpoint.faults.append(Reply(status=429, headers={"Retry-After": "40"}))
    engine.advance(run.pk)
    run.refresh_from_db()
    assert run.status == "queued"
    assert run.wake_at is not None
    assert timedelta(seconds=30) < run.wake_at - timezone.now() <= timedelta(seconds=41)
    assert advance_to_rest(run).status == "completed"
    assert len(endpoint.requests) == 2


def test_what_passes_by_itself_is_tried_again_and_nothing_of_it_stays(endpoint: Endpoint, settings: Any) -> None:
    run = start(endpoint, DONE)
    settings.OPENAI_BASE_URL = "http://127.0.0.1:9/v1"  # nobody listens there
    assert advance(run).status == "queued"
    settings.OPENAI_BASE_URL = endpoint.url
    junk = '{"choices": [{"delta": {"tool_calls": 3}}]}'
    for fault in (
        Reply(status=503), Reply(calls=[WRITE], cut=True), Reply("So far", junk="no JSON"), Reply("So far", junk=junk),
    ):  # fmt: skip
        endpoint.faults.append(fault)
        assert advance(run).status == "queued"
    assert advance_to_rest(run).status == "completed"
    assert state(run)["answer"] == "All done."
    assert [each["role"] for each in endpoint.conversation] == ["system", "user"]


def test_what_somebody_has_to_mend_is_asked_at_once_in_plain_words(endpoint: Endpoint) -> None:
    run = start(endpoint, DONE)
    for fault, words in [
        (Reply(status=401), "Check OPENAI_API_KEY"),
        (Reply(status=429, code="insufficient_quota"), "no quota"),
        (Reply(status=400, code="context_length_exceeded"), "HOLDPOINT_ASSISTANT_CONTEXT"),
        (Reply(finish="content_filter"), "filter"),
    ]:
        endpoint.faults.append(fault)
        assert advance(run).status == "waiting"
        gate = open_gate(run)
        assert gate.kind == "recovery"
        assert words in failures(run)[-1].error or words in str(gate.asked.to_json())
        answer(run, "retry")
    assert advance_to_rest(run).status == "completed"


def test_a_call_that_cannot_be_read_is_told_to_the_model_and_asked_of_nobody(endpoint: Endpoint) -> None:
    calls: list[tuple[str, Any]] = [
        ("write_file", '{"path": "a", '), ("write_file", {"path": "a", "content": "b", "mode": "777"}),
        ("format_disk", {}), ("read_file", '{"path": "a", "path": "b"}'),
    ]  # fmt: skip
    assert begun(endpoint, calling(*calls), DONE).status == "completed"
    no_json = "no JSON that can be read"
    for told, words in zip(endpoint.told(), (no_json, "/mode", "There is no tool 'format_disk'", no_json), strict=True):
        assert (words in told, "Nothing was done." in told) == (True, True)
    beside = begun(endpoint, calling(calls[0], WRITE), DONE)  # the others are asked about
    assert [action.arguments["path"] for action in open_gate(beside).asked.actions] == ["notes.md"]


def test_a_model_of_which_nothing_can_be_used_three_times_is_a_persons_matter(endpoint: Endpoint) -> None:
    run = begun(endpoint, calling(("nonsense", {})), Reply(""), Reply("Half a", finish="length"), DONE)
    gate = open_gate(run)
    assert gate.kind == "recovery"
    assert len(endpoint.requests) == 3
    asked = endpoint.conversation
    assert [each["role"] for each in asked] == ["system", "user", "assistant", "tool", "user"]


def test_an_answer_that_was_cut_off_is_asked_to_go_on_and_a_refusal_is_an_answer(endpoint: Endpoint) -> None:
    run = begun(endpoint, Reply("The first half", finish="length"), Reply(refusal="I will not go on."))
    assert run.status == "completed"
    assert "cut off" in endpoint.conversation[-1]["content"]
    assert state(run)["answer"] == "I will not go on."


def test_ids_that_name_no_action_are_replaced_in_the_conversation_too(endpoint: Endpoint) -> None:
    calls = [("list_files", {}), ("list_files", {"path": "."}), ("list_files", {})]
    begun(endpoint, Reply(calls=calls, ids=["a", "a", ""]), DONE)
    asked = [call["id"] for each in endpoint.conversation for call in each.get("tool_calls", [])]
    told = [each["tool_call_id"] for each in endpoint.conversation if each["role"] == "tool"]
    assert asked == told == ["call00100", "call00101", "call00102"]


def test_free_calls_need_no_gate(endpoint: Endpoint, folder: Any) -> None:
    (folder / "a.txt").write_text("hello")
    run = begun(endpoint, calling(("list_files", {}), ("read_file", {"path": "a.txt"})), DONE)
    assert run.status == "completed"
    assert endpoint.told() == ["a.txt  5 bytes", "hello"]
    assert ("gate", "review") not in trail(run)


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
    asked = next(each for each in endpoint.conversation if each.get("tool_calls"))
    answered = [each["tool_call_id"] for each in endpoint.conversation if each["role"] == "tool"]
    assert answered == [call["id"] for call in asked["tool_calls"]]  # each under its call
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


HEAD = [{"role": "system", "content": "how"}, {"role": "user", "content": "task"}]


def talk(first: int, last: int) -> list[Message]:
    messages = []
    for turn in range(first, last):
        ids = [f"c{turn}-0", f"c{turn}-1"]
        call = {"type": "function", "function": {"name": "read_file", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call | {"id": id} for id in ids]})
        messages += [{"role": "tool", "tool_call_id": id, "content": "x" * 400} for id in ids]
    return messages


@pytest.mark.parametrize("turns", [1, 3, 50])
@pytest.mark.parametrize("budget", [10, 1000, 10_000])
def test_what_stays_is_the_beginning_and_whole_turns_of_which_the_newest_is_not_torn_apart(
    turns: int, budget: int
) -> None:
    messages = [*HEAD, *talk(0, turns)]
    recent = shorten(messages, budget)
    if recent is messages:
        assert count_tokens(messages) <= budget or turns == 1
        return
    assert recent[:2] == HEAD
    assert f"{len(messages) - len(recent) + 1} earlier messages" in recent[2]["content"]
    asked = [call["id"] for message in recent for call in message.get("tool_calls", [])]
    assert asked == [message["tool_call_id"] for message in recent if message["role"] == "tool"]
    assert recent[-3:] == messages[-3:]
    assert count_tokens(recent) <= budget or len(recent) == 6
    again = shorten([*recent, *talk(turns, turns + 20)], 2_000)  # it counts what went before
    assert again[2]["content"].startswith(f"[{2 + (turns + 20) * 3 - (len(again) - 1)} earlier messages")


def test_a_run_goes_on_with_what_stays_and_its_page_says_so(endpoint: Endpoint, folder: Path, settings: Any) -> None:
    settings.HOLDPOINT_ASSISTANT_CONTEXT = 3_000
    (folder / "long.txt").write_text("word " * 1000)
    reading = calling(("read_file", {"path": "long.txt"}))

    def answered(messages: Messages) -> Reply:
        return reading if len(endpoint.requests) < 7 else Reply("Read it six times.")

    run = begun(endpoint, answered)
    assert run.status == "completed"
    assert [message["role"] for message in endpoint.conversation[:3]] == ["system", "user", "user"]
    assert "earlier messages are left out here" in endpoint.conversation[2]["content"]
    assert endpoint.conversation == state(run)["messages"][: len(endpoint.conversation)]
    assert state(run)["usage"]["turns"] == 7
    assert any(b"messages are left out" in bytes(note.text) for note in run.notes.all())
