"""What a model's endpoint can do to a turn, met by the real client: nothing of it loses the run or a worker."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from agents.runner import engine
from checkpoints.models import Run
from tests.factories.driven_runs import advance, advance_to_rest, answer, failures, open_gate, state, trail

from .assistant_runs import DONE, WRITE, begun, calling, start
from .endpoint import KEY, Endpoint, Reply


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


BROKEN = [
    "no JSON",
    "[1]",
    '{"choices": [7]}',
    '{"choices": [{"delta": {"tool_calls": 3}}]}',
    '{"error": {"message": "x"}}',
]


@pytest.mark.parametrize("fault", [
    None, Reply(status=500), Reply(status=503), Reply("So far, so", cut=True), Reply(calls=[WRITE], cut=True),
    *(Reply("So far", junk=junk) for junk in BROKEN),
])  # fmt: skip
def test_what_passes_by_itself_is_tried_again_and_nothing_of_it_stays(
    fault: Reply | None, endpoint: Endpoint, settings: Any
) -> None:
    run = start(endpoint, DONE)
    if fault is None:  # nobody listens there
        settings.OPENAI_BASE_URL = "http://127.0.0.1:9/v1"
    else:
        endpoint.faults.append(fault)
    assert advance(run).status == "queued"
    settings.OPENAI_BASE_URL = endpoint.url
    assert advance_to_rest(run).status == "completed"
    assert state(run)["answer"] == "All done."
    assert [each["role"] for each in endpoint.conversation] == ["system", "user"]


@pytest.mark.parametrize(("fault", "words"), [
    (Reply(status=401), "Check OPENAI_API_KEY"),
    (Reply(status=404), "HOLDPOINT_ASSISTANT_MODEL"),
    (Reply(status=429, code="insufficient_quota"), "no quota"),
    (Reply(status=400, code="context_length_exceeded"), "HOLDPOINT_ASSISTANT_CONTEXT"),
    (Reply(finish="content_filter"), "filter"),
])  # fmt: skip
def test_what_somebody_has_to_mend_is_asked_at_once_in_plain_words(
    fault: Reply, words: str, endpoint: Endpoint
) -> None:
    run = start(endpoint, DONE)
    endpoint.faults.append(fault)
    assert advance(run).status == "waiting"
    gate = open_gate(run)
    assert gate.kind == "recovery"
    assert words in failures(run)[0].error or words in str(gate.asked.to_json())
    answer(run, "retry")
    assert advance_to_rest(run).status == "completed"


@pytest.mark.parametrize(("call", "words"), [
    (("write_file", '{"path": "a", '), "no JSON that can be read"),
    (("write_file", {"path": "a"}), "/content"),
    (("write_file", {"path": "a", "content": "b", "mode": "777"}), "/mode"),
    (("run_command", {"argv": []}), "/argv"),
    (("format_disk", {}), "There is no tool 'format_disk'"),
    (("read_file", '{"path": "a", "path": "b"}'), "no JSON that can be read"),
])  # fmt: skip
def test_a_call_that_cannot_be_read_is_told_to_the_model_and_asked_of_nobody(
    call: tuple[str, Any], words: str, endpoint: Endpoint
) -> None:
    run = begun(endpoint, calling(call), DONE)
    assert run.status == "completed"
    [told] = endpoint.told()
    assert words in told
    assert "Nothing was done." in told


def test_beside_a_call_that_cannot_be_read_the_others_are_asked_about(endpoint: Endpoint) -> None:
    run = begun(endpoint, calling(("write_file", "{"), WRITE), DONE)
    assert [action.arguments["path"] for action in open_gate(run).asked.actions] == ["notes.md"]


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


@pytest.mark.parametrize("ids", [["a", "a"], ["", ""], ["a", ""]])
def test_ids_that_name_no_action_are_replaced_in_the_conversation_too(ids: list[str], endpoint: Endpoint) -> None:
    calls = [("list_files", {}), ("list_files", {"path": "."})]
    begun(endpoint, Reply(calls=calls, ids=ids), DONE)
    asked = [call["id"] for each in endpoint.conversation for call in each.get("tool_calls", [])]
    told = [each["tool_call_id"] for each in endpoint.conversation if each["role"] == "tool"]
    assert asked == told == ["call00100", "call00101"]


def test_a_model_that_never_ends_is_a_persons_matter(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    run = start(endpoint, *[calling(("list_files", {}))] * 70)
    Run.objects.filter(pk=run.pk).update(wake_at=None)
    assert advance_to_rest(run).status == "waiting"
    assert open_gate(run).kind == "recovery"
    assert len(endpoint.requests) == 60


def test_free_calls_need_no_gate(endpoint: Endpoint, folder: Any) -> None:
    (folder / "a.txt").write_text("hello")
    run = begun(endpoint, calling(("list_files", {}), ("read_file", {"path": "a.txt"})), DONE)
    assert run.status == "completed"
    assert endpoint.told() == ["a.txt  5 bytes", "hello"]
    assert ("gate", "review") not in trail(run)
