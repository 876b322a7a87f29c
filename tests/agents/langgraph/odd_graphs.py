"""Graphs that people write too: a ToolNode with several calls, channels of deltas, malformed requests."""

from __future__ import annotations

from typing import Annotated, Any

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.channels import DeltaChannel
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import interrupt
from typing_extensions import TypedDict

from agents.langgraph import GraphAgent, idempotency_key, once

from .graphs import did


@tool
def note(folder: str, what: str) -> str:
    """Note something."""

    def noted() -> str:
        did(folder, f"{what} {idempotency_key()}")
        return f"noted {what}"

    return once("note", noted)


def notes(state: MessagesState) -> Any:
    folder = state["messages"][0].content
    calls = [
        {"name": "note", "args": {"folder": folder, "what": what}, "id": f"call-{number}"}
        for number, what in enumerate(("a", "b", "a"))
    ]
    return {"messages": [AIMessage("", tool_calls=calls)]}


def noting() -> Any:
    graph = StateGraph(MessagesState).add_node(notes).add_node("tools", ToolNode([note]))
    return graph.add_edge(START, "notes").add_edge("notes", "tools")


class OneToolNode(GraphAgent):
    """Makes three calls of one tool in one task."""

    graph = noting()


class OneToolNodeAwaited(GraphAgent):
    """The same, awaited."""

    graph = noting()
    is_async = True


class Which(TypedDict, total=False):
    value: Any
    said: Any


def asks(state: Which) -> Any:
    return {"said": interrupt(state["value"])}


class AsksAnything(GraphAgent):
    """Asks what the run begins with."""

    graph = StateGraph(Which).add_node(asks).add_edge(START, "asks")


def joined(base: Any, writes: Any) -> Any:
    return [*(base or []), *(line for each in writes for line in each)]


class Log(TypedDict, total=False):
    log: Annotated[list[str], DeltaChannel(joined)]


def begins(state: Log) -> Any:
    return {"log": ["begun"]}


def goes_on(state: Log) -> Any:
    return {"log": [f"said {interrupt('Go on?')}"]}


def ends(state: Log) -> Any:
    return {"log": [f"after {len(state['log'])}"]}


class Deltas(GraphAgent):
    """Stores only what was added to its log."""

    graph = (
        StateGraph(Log)
        .add_node(begins)
        .add_node(goes_on)
        .add_node(ends)
        .add_edge(START, "begins")
        .add_edge("begins", "goes_on")
        .add_edge("goes_on", "ends")
    )
