"""Small graphs for tests."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import interrupt


class Talk(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    count: int


def config(thread: str, **more: Any) -> Any:
    return {"configurable": {"thread_id": thread, **more}}


def talker(saver: BaseCheckpointSaver[Any]) -> Any:
    def answer(state: Talk) -> dict[str, Any]:
        count = state.get("count", 0) + 1
        return {"messages": [AIMessage(f"answer {count}", id=f"a{count}")], "count": count}

    return StateGraph(Talk).add_node(answer).add_edge(START, "answer").compile(checkpointer=saver)


class Asked(TypedDict):
    question: str
    done: Annotated[list[str], operator.add]
    answer: str


def asker(saver: BaseCheckpointSaver[Any], log: list[str]) -> Any:
    """A graph of which one branch asks a person while the other has done its work."""

    def ask(state: Asked) -> dict[str, Any]:
        log.append("ask")
        return {"answer": interrupt({"question": state["question"]})}

    def work(state: Asked) -> dict[str, Any]:
        log.append("work")
        return {"done": ["worked"]}

    def end(state: Asked) -> dict[str, Any]:
        log.append("end")
        return {"done": [f"ended with {state['answer']}"]}

    graph = StateGraph(Asked).add_node(ask).add_node(work).add_node(end)
    graph.add_edge(START, "ask").add_edge(START, "work").add_edge(["ask", "work"], "end")
    return graph.compile(checkpointer=saver)


def extend(items: list[Any], writes: list[list[Any]]) -> list[Any]:
    """Reduce the writes of a DeltaChannel, in their order."""
    return [*items, *(item for written in writes for item in written)]


class Counted(TypedDict):
    items: Annotated[list[Any], DeltaChannel(extend, snapshot_frequency=4)]
    upto: int


def counter(saver: BaseCheckpointSaver[Any]) -> Any:
    """A graph that adds an item a step in two tasks, up to a number."""

    def left(state: Counted) -> dict[str, Any]:
        return {"items": [f"left {len(state['items'])}"]}

    def right(state: Counted) -> dict[str, Any]:
        return {"items": [f"right {len(state['items'])}"]}

    graph = StateGraph(Counted).add_node(left).add_node(right).add_node("loop", lambda state: {})
    graph.add_edge(START, "left").add_edge(START, "right").add_edge(["left", "right"], "loop")
    graph.add_conditional_edges(
        "loop", lambda state: END if len(state["items"]) >= state["upto"] else ["left", "right"]
    )
    return graph.compile(checkpointer=saver)


class Paid(TypedDict):
    invoice: int
    asked: Annotated[list[str], operator.add]


def treasurer(saver: BaseCheckpointSaver[Any] | None = None) -> Any:
    """A graph whose subgraph has a memory of its own, and asks about each of two invoices."""

    def ask(state: Paid) -> dict[str, Any]:
        answer = interrupt(f"Pay invoice {state['invoice']}?")
        return {"asked": [f"{state['invoice']}: {answer}"]}

    inner = StateGraph(Paid).add_node(ask).add_edge(START, "ask").compile(checkpointer=True)
    graph = StateGraph(Paid).add_node("treasurer", inner).add_edge(START, "treasurer")
    graph.add_node("count", lambda state: {"invoice": state["invoice"] + 1}).add_edge("treasurer", "count")
    graph.add_conditional_edges("count", lambda state: "treasurer" if state["invoice"] < 3 else END)
    return graph.compile(checkpointer=saver) if saver is not None else graph
