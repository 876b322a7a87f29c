"""A LangGraph graph as an agent, which asks at once; the times pass through Redis, as those of the other agents do."""

from __future__ import annotations

import time

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict

from agents.langgraph import GraphAgent

from .agents import client

# As LangChain's HumanInTheLoopMiddleware asks.
CALL = {"name": "book_berth", "args": {"vessel": "Ada", "berth": "B4"}}
REVIEW = {"action_name": "book_berth", "allowed_decisions": ["approve", "reject"]}


class Asked(TypedDict, total=False):
    question: str
    answer: str


def ask(state: Asked, config: RunnableConfig) -> Asked:
    """Interrupt, and go on with the answer; say when either happened."""
    run = config["configurable"]["thread_id"].removeprefix("R-")
    reached = time.monotonic_ns()
    client().setnx(f"reached-{run}", reached)  # a node that was interrupted runs again from its start
    answer = interrupt({"action_requests": [CALL], "review_configs": [REVIEW]})
    resumed = time.monotonic_ns()
    client().rpush(f"resumed-{run}", resumed)
    return {"answer": str(answer)}


def graph() -> StateGraph[Asked]:
    """Return the graph."""
    made = StateGraph(Asked)
    made.add_node(ask)
    made.add_edge(START, "ask")
    made.add_edge("ask", END)
    return made


class GraphRelay(GraphAgent):
    """Interrupts at once; its node says when it goes on."""

    graph = graph()
