"""A conversation that outgrows its budget loses its oldest turns, whole, and says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.examples.assistant.conversation import Message, count_tokens, shorten
from tests.factories.driven_runs import state

from .assistant_runs import begun, calling
from .endpoint import Endpoint, Messages, Reply

HEAD = [{"role": "system", "content": "how"}, {"role": "user", "content": "task"}]


def talk(first: int, last: int) -> list[Message]:
    """Turns of two calls with their results."""
    messages = []
    for turn in range(first, last):
        ids = [f"c{turn}-0", f"c{turn}-1"]
        call = {"type": "function", "function": {"name": "read_file", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call | {"id": id} for id in ids]})
        messages += [{"role": "tool", "tool_call_id": id, "content": "x" * 400} for id in ids]
    return messages


@pytest.mark.parametrize(("turns", "budget"), [(3, 10_000), (1, 10)])
def test_what_fits_is_left_alone_and_the_newest_turn_is_not_torn_apart(turns: int, budget: int) -> None:
    messages = [*HEAD, *talk(0, turns)]
    assert shorten(messages, budget) is messages


@pytest.mark.parametrize("turns", [2, 3, 10, 50])
@pytest.mark.parametrize("budget", [200, 1000, 3000])
def test_what_stays_is_the_beginning_and_whole_turns(turns: int, budget: int) -> None:
    messages = [*HEAD, *talk(0, turns)]
    recent = shorten(messages, budget)
    if recent is messages:
        assert count_tokens(messages) <= budget
        return
    assert recent[:2] == HEAD
    assert f"{len(messages) - len(recent) + 1} earlier messages" in recent[2]["content"]
    asked = [call["id"] for message in recent for call in message.get("tool_calls", [])]
    assert asked == [message["tool_call_id"] for message in recent if message["role"] == "tool"]
    assert recent[-3:] == messages[-3:]
    assert count_tokens(recent) <= budget or len(recent) == 6


def test_shortened_again_it_counts_what_went_before() -> None:
    recent = shorten([*HEAD, *talk(0, 20)], 2_000)
    recent = shorten([*recent, *talk(20, 40)], 2_000)
    assert recent[2]["content"].startswith(f"[{2 + 40 * 3 - (len(recent) - 1)} earlier messages")


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
