"""Graphs that call a subgraph with a memory of its own again and again."""

from __future__ import annotations

import operator
import os
import signal
from pathlib import Path
from typing import Annotated, Any

from langgraph.config import get_config
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict

from agents.langgraph import GraphAgent
from agents.models import StepCheckpoint
from tests.clients.langgraph.graphs import treasurer
from tests.harness.waiting import until

from .graphs import did


class Treasurer(GraphAgent):
    """Its subgraph asks about each of two invoices."""

    graph = treasurer()
    supersteps = 20


class TreasurerAwaited(GraphAgent):
    """The same, awaited."""

    graph = treasurer()
    supersteps = 20
    is_async = True


def later(before: int, after: int) -> int:
    return max(before, after)


class Rounds(TypedDict, total=False):
    """What was done in which round."""

    folder: str
    round: Annotated[int, later]
    log: Annotated[list[str], operator.add]


def noting(name: str, *questions: str) -> Any:
    """A node that asks, and logs the answers with the round."""

    def node(state: Rounds) -> Any:
        heard = [interrupt(f"{name} {state['round']} {question}?") for question in questions]
        return {"log": [" ".join([name, str(state["round"]), *heard])]}

    return node


def in_rounds(*nodes: str, **graphs: Any) -> Any:
    """A graph of nodes at once, twice."""
    graph = StateGraph(Rounds)
    for name in nodes:
        graph.add_node(name, graphs[name]).add_edge(START, name)
    graph.add_node("next", lambda state: {"round": state["round"] + 1})
    graph.add_edge(list(nodes), "next")
    return graph.add_conditional_edges("next", lambda state: [*nodes] if state["round"] < 3 else END, [*nodes, END])


def beside() -> Any:
    """A subgraph with a memory that asks, beside a node that asks, and one without a memory that asks."""
    kept = StateGraph(Rounds).add_node("x", noting("x")).add_node("y", noting("y", "a"))
    kept.add_edge(START, "x").add_edge("x", "y")
    fresh = StateGraph(Rounds).add_node("w", noting("w")).add_node("z", noting("z", "a"))
    fresh.add_edge(START, "w").add_edge("w", "z")
    graphs = {"kept": kept.compile(checkpointer=True), "plain": noting("plain", "a"), "fresh": fresh.compile()}
    return in_rounds(*graphs, **graphs)


class Beside(GraphAgent):
    """Of several that ask at once, one has a memory."""

    graph = beside()
    supersteps = 40


ledger = StateGraph(Rounds).add_node("write", noting("wrote")).add_edge(START, "write").compile(checkpointer=True)


def writes(state: Rounds) -> Any:
    """Have the ledger write; the first time in the second round, end the worker before."""
    once_only = Path(state["folder"]) / "died"
    if state["round"] == 2 and not once_only.exists():
        run = int(get_config()["configurable"]["thread_id"].removeprefix("R-"))
        until(lambda: StepCheckpoint.objects.filter(run=run).exists(), what="the other subgraph is kept")
        once_only.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"log": ledger.invoke({"round": state["round"], "log": []})["log"][-1:]}


def waits(state: Rounds) -> Any:
    """Be at work when the worker ends."""
    if state["round"] == 2:
        until(lambda: (Path(state["folder"]) / "died").exists(), what="the worker ends")
    return {"log": [f"waited {state['round']}"]}


def starts(state: Rounds) -> Any:
    did(state["folder"], f"started-{state['round']}")
    return {}


def dying() -> Any:
    at_work = StateGraph(Rounds).add_node(starts).add_node(waits).add_edge(START, "starts").add_edge("starts", "waits")
    return in_rounds("writes", "works", writes=writes, works=at_work.compile())


class DyingBeforeItsLedger(GraphAgent):
    """Its worker is killed before a subgraph with a memory has begun, beside one that is at work."""

    graph = dying()
    supersteps = 20
