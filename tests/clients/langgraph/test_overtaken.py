"""Of two invocations of one thread the first goes on and asks; the other is told that it was overtaken.

A refused put was noted for the whole thread until the next read of it. So the invocation that had won was refused its
question, which nobody was asked then; and any read between the refusal and the question of the one that had lost hid
the refusal, so that its question stood on a state that was never saved.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from holdpoint.langgraph import ThreadMoved
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from checkpoints.models import Run
from tests.clients.langgraph.graphs import Paid, config
from tests.clients.langgraph.savers import Made, savers
from tests.factories import unique
from tests.harness.waiting import PATIENCE, until


@pytest.fixture
def make() -> Iterator[Made]:
    with savers("in process") as made:
        yield made


class Loser(threading.Thread):
    """An invocation that is overtaken while a node of it is at work."""

    def __init__(self, graph: Any, thread: str, given: Any) -> None:
        super().__init__()
        self.graph, self.place, self.given = graph, config(thread), given
        self.inside, self.may_go_on = threading.Event(), threading.Event()
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self.graph.invoke(self.given, self.place)
        except Exception as error:  # noqa: BLE001
            self.error = error

    def work(self) -> None:
        self.inside.set()
        assert self.may_go_on.wait(PATIENCE)

    def begin(self) -> None:
        self.start()
        assert self.inside.wait(PATIENCE)

    def end(self) -> None:
        self.may_go_on.set()
        self.join(PATIENCE)


def test_the_question_of_the_one_that_overtook_is_asked(make: Made) -> None:
    thread, saver = unique("chat"), make()

    def ask(state: Paid) -> dict[str, Any]:
        if state["invoice"] == 1:
            loser.work()
            return {}
        loser.end()
        return {"asked": [interrupt("Pay?")]}

    graph: Any = StateGraph(Paid).add_node(ask).add_edge(START, "ask").compile(checkpointer=saver)
    loser = Loser(graph, thread, {"invoice": 1})
    loser.begin()
    [question] = graph.invoke({"invoice": 2}, config(thread))["__interrupt__"]
    assert isinstance(loser.error, ThreadMoved)
    assert question.value == "Pay?"
    assert graph.get_state(config(thread)).interrupts == (question,)
    assert Run.objects.get(thread=thread).status == "waiting"


def test_of_two_that_answer_one_question_of_a_subgraph_the_second_alone_is_refused_the_next(make: Made) -> None:
    """Both go on from one checkpoint of the graph, and only the subgraph's tells them apart; reads change nothing."""
    thread, saver = unique("chat"), make()

    def first(state: Paid) -> dict[str, Any]:
        if (answer := interrupt("First?")) == "late":
            loser.work()
        return {"asked": [answer]}

    def second(state: Paid) -> dict[str, Any]:
        if state["asked"] == ["soon"]:
            until(lambda: inner_run().seq > before)
            loser.may_go_on.set()
        until(lambda: saver._memory.of(thread, "").refused)
        graph.get_state(config(thread))
        if state["asked"] == ["late"]:
            assert won.wait(PATIENCE)
        return {"asked": [interrupt("Second?")]}

    def inner_run() -> Run:
        return Run.objects.get(thread=thread, graph__namespace="inner")

    inner = StateGraph(Paid).add_node(first).add_node(second).add_edge(START, "first").add_edge("first", "second")
    graph: Any = StateGraph(Paid).add_node("inner", inner.compile(checkpointer=True)).add_edge(START, "inner")
    graph = graph.compile(checkpointer=saver)
    graph.invoke({"invoice": 1, "asked": []}, config(thread))
    before, won = inner_run().seq, threading.Event()
    loser = Loser(graph, thread, Command(resume="late"))
    loser.begin()
    [question] = graph.invoke(Command(resume="soon"), config(thread))["__interrupt__"]
    won.set()
    loser.join(PATIENCE)
    assert question.value == "Second?"
    assert isinstance(loser.error, ThreadMoved)
    assert graph.get_state(config(thread)).interrupts == (question,)
