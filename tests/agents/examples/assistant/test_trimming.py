"""A conversation that outgrows its budget loses its oldest turns, whole, and says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.examples.assistant.state import Asked, Message
from agents.examples.assistant.turns import count_tokens, cut_oldest
from checkpoints.values import ops
from tests.factories.driven_runs import state, trail

from .assistant_runs import begun, calling
from .endpoint import Endpoint, Messages, Reply

HEAD = [Message(role="system", content="how"), Message(role="user", content="task")]


def turn(number: int, *, size: int = 400, calls: int = 2) -> list[Message]:
    ids = [f"c{number}-{n}" for n in range(calls)]
    mine = Message(role="assistant", calls=[Asked(id=id, name="read_file", arguments="{}") for id in ids])
    return [mine, *(Message(role="tool", answers=id, content="x" * size) for id in ids)]


def conversation(turns: int) -> list[Message]:
    return HEAD + [message for number in range(turns) for message in turn(number)]


def test_what_fits_is_left_alone() -> None:
    assert cut_oldest(conversation(3), 10_000) is None


@pytest.mark.parametrize("turns", [2, 3, 10, 50])
@pytest.mark.parametrize("budget", [300, 1000, 3000])
def test_what_stays_is_the_beginning_and_whole_turns(turns: int, budget: int) -> None:
    messages = conversation(turns)
    splice = cut_oldest(messages, budget)
    if splice is None:
        assert count_tokens(messages) <= budget
        return
    kept = ops.apply_write(messages, splice)
    assert kept[:2] == HEAD
    assert f"{splice.delete} earlier messages" in kept[2].content
    asked = [call.id for each in kept for call in each.calls]
    assert asked == [each.answers for each in kept if each.role == "tool"]
    assert kept[-3:] == messages[-3:]
    assert count_tokens(kept) <= budget or len(kept) == 6


def test_trimmed_again_it_counts_what_went_before() -> None:
    messages = conversation(20)
    first = cut_oldest(messages, 2_000)
    assert first is not None
    again = [*ops.apply_write(messages, first), *[each for n in range(20, 40) for each in turn(n)]]
    second = cut_oldest(again, 2_000)
    assert second is not None
    kept = ops.apply_write(again, second)
    left_out = len(messages) + 60 - (len(kept) - 1)
    assert kept[2].content.startswith(f"[{left_out} earlier messages")


def test_one_turn_that_is_too_long_by_itself_is_not_torn_apart() -> None:
    assert cut_oldest(conversation(1), 10) is None


def test_a_run_goes_on_with_what_is_left(endpoint: Endpoint, folder: Path, settings: Any) -> None:
    settings.HOLDPOINT_ASSISTANT_CONTEXT = 3_000
    (folder / "long.txt").write_text("word " * 1000)
    reading = calling(("read_file", {"path": "long.txt"}))

    def answered(messages: Messages) -> Reply:
        return reading if len(endpoint.requests) < 7 else Reply("Read it six times.")

    run = begun(endpoint, answered)
    assert run.status == "completed"
    assert ("step", "trim") in trail(run)
    roles = [each["role"] for each in endpoint.conversation]
    assert roles[:3] == ["system", "user", "user"]
    assert "earlier messages are left out here" in endpoint.conversation[2]["content"]
    assert state(run)["usage"]["turns"] == 7
