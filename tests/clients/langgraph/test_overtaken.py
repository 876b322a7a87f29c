"""Of two invocations of one thread the one that overtook asks, and the one that was overtaken is told so.

A refused put was noted for the whole thread until the next read of it. So the invocation that had won was refused its
question, which nobody was asked then; and any read between the refusal and the question of the one that had lost hid
the refusal, so that its question stood on a state that was never saved.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from holdpoint.langgraph import HoldpointSaver, ThreadMoved
from holdpoint.langgraph.memory import Memory, known_state
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.types import INTERRUPT
from langgraph.runtime import RunControl, Runtime

from tests.clients.langgraph.savers import Made
from tests.factories import unique

STATE = known_state({"a": 1}, {"a": [1]})
BUSY = [f"busy {number}" for number in range(4)]
METADATA: Any = {"source": "loop", "step": 1, "parents": {}}


@pytest.fixture
def saver(make: Made) -> HoldpointSaver:
    return make()


class Invocation:
    """What LangGraph calls the saver with in one invocation of a graph with a subgraph, "inner".

    `root`: the graph's checkpoint from which the subgraph was called; "" in the graph itself.
    """

    def __init__(self, saver: HoldpointSaver, thread: str) -> None:
        self.saver, self.thread = saver, thread
        self.runtime = Runtime(control=RunControl())

    def place(self, at: str | None, *, root: str = "") -> Any:
        inside = {"checkpoint_ns": "inner", "checkpoint_map": {"": root}} if root else {"checkpoint_ns": ""}
        named = {"checkpoint_id": at} if at else {}
        return {"configurable": {"thread_id": self.thread, "__pregel_runtime": self.runtime, **inside, **named}}

    def begin(self) -> None:
        self.saver.get_tuple(self.place(None))

    def put(self, after: str | None, *, root: str = "") -> str:
        checkpoint = empty_checkpoint()
        self.saver.put(self.place(after, root=root), checkpoint, METADATA, {})
        return checkpoint["id"]

    def ask(self, at: str, *, root: str = "") -> None:
        self.saver.put_writes(self.place(at, root=root), [(INTERRUPT, "Pay?")], "task")


@pytest.fixture
def two(saver: HoldpointSaver) -> tuple[Invocation, Invocation]:
    """The one that loses, and the one that wins."""
    thread = unique("chat")
    return Invocation(saver, thread), Invocation(saver, thread)


def asked(saver: HoldpointSaver, thread: str, at: str) -> bool:
    """Whether people are asked at this checkpoint of the graph, as a program that looks reads it."""
    found = saver.get_tuple({"configurable": {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": at}})
    return found is not None and any(channel == INTERRUPT for _, channel, _ in found.pending_writes or [])


def test_the_question_of_the_one_that_overtook_is_asked(
    saver: HoldpointSaver, two: tuple[Invocation, Invocation]
) -> None:
    loser, winner = two
    begun = loser.put(None)
    newest = winner.put(begun)
    with pytest.raises(ThreadMoved):
        loser.put(begun)
    winner.ask(newest)
    assert asked(saver, winner.thread, newest)


def overtaken(two: tuple[Invocation, Invocation]) -> tuple[str, str]:
    """The graph's checkpoint from which both called the subgraph, and the winner's newest one of that."""
    loser, winner = two
    root = loser.put(None)
    begun = loser.put(None, root=root)
    newest = winner.put(begun, root=root)
    with pytest.raises(ThreadMoved):
        loser.put(begun, root=root)
    return root, newest


def test_of_two_that_are_in_a_subgraph_the_one_that_was_overtaken_alone_is_refused_its_question(
    saver: HoldpointSaver, two: tuple[Invocation, Invocation]
) -> None:
    """Both called it from one checkpoint of the graph, and reads by others change nothing."""
    loser, winner = two
    root, newest = overtaken(two)
    assert not asked(saver, loser.thread, root)
    saver.get_tuple({"configurable": {"thread_id": loser.thread}})
    Invocation(saver, loser.thread).begin()
    for _ in range(2):
        with pytest.raises(ThreadMoved, match="has moved on"):
            loser.ask(root)
    with pytest.raises(ThreadMoved, match="has moved on"):
        loser.ask(newest, root=root)
    assert not asked(saver, loser.thread, root)
    winner.ask(newest, root=root)
    winner.ask(root)
    assert asked(saver, winner.thread, root)


def test_what_was_refused_is_kept_without_the_state_that_was_to_be_saved(
    saver: HoldpointSaver, two: tuple[Invocation, Invocation]
) -> None:
    loser, _ = two
    root, _ = overtaken(two)
    refusals = []
    for _ in range(2):
        with pytest.raises(ThreadMoved) as refused:
            loser.ask(root)
        refusals.append(refused.value)
    assert refusals[0] is not refusals[1]
    names = [each.name for each in refused.traceback]
    assert names[-1] == "put_writes"
    assert "put" not in names


def test_an_invocation_that_begins_anew_under_the_same_control_may_ask(
    saver: HoldpointSaver, two: tuple[Invocation, Invocation]
) -> None:
    """A program may hand one control to all that it invokes, so as to end them together."""
    loser, _ = two
    root, _ = overtaken(two)
    loser.begin()
    loser.ask(root)
    assert asked(saver, loser.thread, root)


@pytest.fixture
def restless() -> Iterator[None]:
    """Let threads interrupt one another as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.long
@pytest.mark.usefixtures("restless")
def test_new_threads_come_while_others_are_saved() -> None:
    memory, over, faults = Memory(), threading.Event(), list[Exception]()

    def saving(name: str) -> None:
        known, number = memory.known_thread(name, ""), 0
        while not over.is_set():
            number += 1
            try:
                known.know(str(number % 6), STATE)
                known.is_newest(str(number % 6), number)
                known.asked_for(str((number + 1) % 6))
            except Exception as error:  # noqa: BLE001 - a thread would only print it
                faults.append(error)
                return

    threads = [threading.Thread(target=saving, args=(name,)) for name in BUSY]
    for each in threads:
        each.start()
    try:
        for number in range(1000):
            memory.known_thread(f"chat {number}", "")
            for name in BUSY:
                memory.known_thread(name, "")
    finally:
        over.set()
        for each in threads:
            each.join()
    assert faults == []
