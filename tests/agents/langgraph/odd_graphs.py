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


def pays(state: MessagesState) -> Any:
    call = {"name": "pay", "args": {"to": "Ada", "amount": 5}, "id": "call-1"}
    return {"messages": [AIMessage("", id="turn-1", tool_calls=[call])]}


def asked(call: Any) -> Any:
    """Ask as Agent Inbox's programs do."""
    request = {"action": call["name"], "args": call["args"]}
    [said] = interrupt([{"action_request": request, "config": dict.fromkeys(ALLOWS, True)}])
    return said


ALLOWS = ("allow_accept", "allow_edit", "allow_ignore", "allow_respond")


def reviews(state: MessagesState) -> Any:
    """Have the call of the newest turn approved, and put an edit in its place."""
    [call] = state["messages"][-1].tool_calls  # type: ignore[union-attr]
    said = asked(call)
    if said["type"] == "edit":
        edited = {**call, "args": said["args"]["args"]}
        return {"messages": [AIMessage("", id="turn-1", tool_calls=[edited])]}
    return {}


def reviews_carelessly(state: MessagesState) -> Any:
    """Have it approved, and run it whatever was said."""
    [call] = state["messages"][-1].tool_calls  # type: ignore[union-attr]
    asked(call)
    return {}


@tool
def pay(to: str, amount: int) -> str:
    """Pay somebody."""
    return f"paid {amount} to {to}"


@tool("pay")
def asks_itself(to: str, amount: int) -> str:
    """Pay somebody, once a person has said yes."""
    said = asked({"name": "pay", "args": {"to": to, "amount": amount}})
    return str(pay.invoke(said["args"]["args"] if said["type"] == "edit" else {"to": to, "amount": amount}))


def reviewing(node: Any, tools: Any) -> Any:
    graph = StateGraph(MessagesState).add_node(pays).add_node("reviews", node).add_node("tools", ToolNode(tools))
    return graph.add_edge(START, "pays").add_edge("pays", "reviews").add_edge("reviews", "tools")


class Reviews(GraphAgent):
    """A node asks about the call that the next node runs."""

    graph = reviewing(reviews, [pay])


class ReviewsCarelessly(GraphAgent):
    """It does not heed the answer."""

    graph = reviewing(reviews_carelessly, [pay])


class AsksInTheTool(GraphAgent):
    """The tool asks about its own call, as a wrapper of a tool does."""

    graph = reviewing(lambda state: {}, [asks_itself])
