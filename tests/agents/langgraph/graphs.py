"""Graphs as their authors write them, as agents."""

from __future__ import annotations

import asyncio
import operator
import os
import signal
from pathlib import Path
from typing import Annotated, Any, Literal

from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AnyMessage
from langchain_core.tools import tool
from langgraph.config import get_config
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from agents import ReviewerQuestion
from agents.langgraph import GraphAgent, idempotency_key, once
from agents.models import StepCheckpoint
from tests.harness.waiting import until

from .scripted import Scripted, first


def did(folder: str, what: str) -> None:
    """Note in a file that something was done: tests count the lines, in whichever process it was."""
    with (Path(folder) / "did.txt").open("a") as out:
        out.write(f"{what}\n")


class Both(TypedDict, total=False):
    folder: str
    said: Annotated[list[str], operator.add]
    end: str


def left(state: Both) -> Any:
    did(state["folder"], "left")
    return {"said": [f"left {interrupt('Left?')}", f"again {interrupt('Left again?')}"]}


def right(state: Both) -> Any:
    did(state["folder"], "right")
    return {"said": [f"right {interrupt({'question': 'Right?', 'why': 'to know'})}"]}


def finish(state: Both) -> Any:
    return {"end": " / ".join(state["said"])}


def both() -> Any:
    graph = StateGraph(Both)
    graph.add_node(left)
    graph.add_node(right)
    graph.add_node(finish)
    graph.add_edge(START, "left")
    graph.add_edge(START, "right")
    graph.add_edge(["left", "right"], "finish")
    graph.add_edge("finish", END)
    return graph


class TwoQuestions(GraphAgent):
    """Asks two things at once, and one of them twice."""

    graph = both()


class Refund(BaseModel):
    """What a person fills in."""

    amount: int = Field(ge=1, le=100, title="Amount")
    reason: Literal["late", "broken"] = "late"


class Case(TypedDict, total=False):
    customer: str
    answer: str


def ask_refund(state: Case) -> Any:
    found = interrupt({"message": f"How much for {state['customer']}?"}, response_schema=Refund)
    return {"answer": f"{found.amount} because it was {found.reason}"}


class Typed(GraphAgent):
    """Asks for a refund, in a form."""

    graph = StateGraph(Case).add_node(ask_refund).add_edge(START, "ask_refund")


def starts(state: Both) -> Any:
    did(state["folder"], "before")
    return {}


def inner() -> Any:
    def deepest(state: Both) -> Any:
        did(state["folder"], "deepest")
        return {"said": [f"deep {interrupt('How deep?')}"]}

    graph = StateGraph(Both)
    graph.add_node("before", starts)
    graph.add_node("deepest", deepest)
    graph.add_edge(START, "before")
    graph.add_edge("before", "deepest")
    return graph.compile()


def middle() -> Any:
    graph = StateGraph(Both)
    graph.add_node("inner", inner())
    graph.add_edge(START, "inner")
    return graph.compile()


class Nested(GraphAgent):
    """Asks from a graph in a graph in a graph."""

    name = "nested_graph"  # `nested` is the children's
    graph = StateGraph(Both).add_node("middle", middle()).add_edge(START, "middle").compile()


@tool
def pay(to: str, amount: int) -> str:
    """Pay somebody."""
    return once("pay", lambda: f"paid {amount} to {to}")


@tool
def write(to: str, text: str) -> str:
    """Write to somebody."""
    return f"wrote to {to}: {text}"


CALLS = (("pay", {"to": "Ada", "amount": 5}), ("write", {"to": "Ada", "text": "It comes."}))
EVERY = {"allowed_decisions": ["approve", "edit", "reject", "respond"]}


def calling(mode: Any, *calls: Any, **options: Any) -> Any:
    gates: Any = {"pay": EVERY, "write": EVERY}
    middleware = HumanInTheLoopMiddleware(interrupt_on=gates, interrupt_mode=mode, **options)
    return create_agent(Scripted(turns=first(*calls)), tools=[pay, write], middleware=[middleware])


class Batched(GraphAgent):
    """Makes two calls, about which LangChain asks at once."""

    graph = calling("batched", *CALLS)


class PerCall(GraphAgent):
    """Makes two calls, about each of which LangChain asks by itself."""

    graph = calling("per_call", *CALLS)


FOUR = (*CALLS, ("pay", {"to": "Bob", "amount": 8}), ("write", {"to": "Bob", "text": "Call me."}))


class FourCalls(GraphAgent):
    """Makes four calls, about which LangChain asks at once."""

    graph = calling("batched", *FOUR)


class OneCall(GraphAgent):
    """Makes one call, and answers questions about it."""

    graph = calling("batched", CALLS[0])

    def answer(self, question: ReviewerQuestion, messages: list[AnyMessage]) -> str:
        """Answer from the conversation."""
        return f"{question.text} {len(messages)} messages, the first of them {messages[0].content!r}."


class NeedsAYes(GraphAgent):
    """Makes two calls, of which one takes no refusal."""

    graph = create_agent(
        Scripted(turns=first(*CALLS)),
        tools=[pay, write],
        middleware=[
            HumanInTheLoopMiddleware(interrupt_on={"pay": {"allowed_decisions": ["approve", "edit"]}, "write": EVERY})
        ],
    )


class Untold(GraphAgent):
    """Makes one call; LangChain is told to say nothing of an edit."""

    graph = calling("batched", CALLS[0], edit_notice="")


def inbox(state: MessagesState) -> Any:
    request = {
        "action_request": {"action": "send_invoice", "args": {"to": "Ada", "amount": 7}},
        "config": {"allow_accept": True, "allow_edit": True, "allow_respond": True, "allow_ignore": True},
        "description": "An invoice for Ada.",
    }
    [said] = interrupt([request])
    return {"messages": [("ai", f"{said['type']}: {said['args']}")]}


def sums_up(state: MessagesState) -> Any:
    return {"messages": [("ai", "I heard: " + str(state["messages"][-1].content))]}


class Inbox(GraphAgent):
    """Asks as Agent Inbox's programs do."""

    graph = (
        StateGraph(MessagesState)
        .add_node(inbox)
        .add_node(sums_up)
        .add_edge(START, "inbox")
        .add_edge("inbox", "sums_up")
    )


@task
def costly(folder: str, item: str) -> str:
    did(folder, f"costly {item}")
    return item.upper()


@entrypoint()
def functional(given: dict[str, Any]) -> str:
    found = [costly(given["folder"], item) for item in ("a", "b")]
    first_of_them = [each.result() for each in found]
    return f"{''.join(first_of_them)} {interrupt('Go on?')}"


class Functional(GraphAgent):
    """A function with tasks."""

    graph = functional


def dies(state: Both) -> Any:
    """End the worker the first time, once the other node is done."""
    if (once_only := Path(state["folder"]) / "died").exists():
        did(state["folder"], f"survivor {idempotency_key('x')}")
        return {"said": ["survivor"]}
    run = int(get_config()["configurable"]["thread_id"].removeprefix("R-"))
    until(lambda: StepCheckpoint.objects.filter(run=run).exists(), what="the other node is kept")
    once_only.touch()
    did(state["folder"], f"victim {idempotency_key('x')}")
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def works(state: Both) -> Any:
    did(state["folder"], "works")
    return {"said": ["works"]}


class Dying(GraphAgent):
    """Two nodes at once, of which one ends the worker once the other is done."""

    graph = StateGraph(Both).add_node(dies).add_node(works).add_edge(START, "dies").add_edge(START, "works")


def asks_twice(state: Both) -> Any:
    return {"said": [f"first {interrupt('First?')}", f"second {interrupt('Second?')}"]}


def asks_and_dies(state: Both) -> Any:
    said = interrupt("Ready?")
    return {**dies(state), "said": [f"ready {said}"]}


def subagent() -> Any:
    def approved(state: Both) -> Any:
        did(state["folder"], "approved")
        return {"said": [f"approved {interrupt('Pay?')}"]}

    graph = StateGraph(Both).add_node(approved).add_node(dies)
    return graph.add_edge(START, "approved").add_edge("approved", "dies").compile()


class DyingInASubagent(GraphAgent):
    """Asks in a graph in a graph, where the next node ends the worker."""

    graph = StateGraph(Both).add_node("subagent", subagent()).add_edge(START, "subagent").compile()


class AskingTwiceBesideDying(GraphAgent):
    """Asks two things one after the other, beside a node that ends the worker between them."""

    graph = (
        StateGraph(Both)
        .add_node(asks_twice)
        .add_node(asks_and_dies)
        .add_edge(START, "asks_twice")
        .add_edge(START, "asks_and_dies")
    )


def fails_between(state: Both) -> Any:
    said = f"first {interrupt('First?')}"
    if not (failed := Path(state["folder"]) / "failed").exists():
        failed.touch()
        raise ConnectionError("The line was busy.")
    return {"said": [said, f"second {interrupt('Second?')}"]}


class FailingBetweenQuestions(GraphAgent):
    """Asks two things one after the other, and fails between them once."""

    graph = StateGraph(Both).add_node(fails_between).add_edge(START, "fails_between")


class Stopping(GraphAgent):
    """A graph that was compiled to stop before a node."""

    graph = StateGraph(Both).add_node(works).add_edge(START, "works").compile(interrupt_before=["works"])


async def only_awaited(state: Both) -> Any:
    did(state["folder"], "awaited")
    return {"said": [str(await asyncio.to_thread(str.upper, interrupt("Awaited?")))]}


class Awaited(GraphAgent):
    """A graph whose node can only be awaited."""

    graph = StateGraph(Both).add_node(only_awaited).add_edge(START, "only_awaited")


def subagents() -> Any:
    """Two subagents at work at the same time, each with a tool that asks."""

    def delegates(messages: Any) -> Any:
        if (task := str(messages[-1].content)).startswith("Subtask: pay "):
            return "", [("pay", {"to": task.removeprefix("Subtask: pay "), "amount": 1})]
        return first(
            *(("task", {"description": f"Subtask: pay {who}", "subagent_type": "payer"}) for who in ("Ada", "Bob"))
        )(messages)

    model = Scripted(turns=delegates)
    payer: Any = {
        "name": "payer", "description": "Pays.", "system_prompt": "Pay.", "tools": [pay], "model": model,
        "interrupt_on": {"pay": True},
    }  # fmt: skip
    return create_deep_agent(model=model, tools=[], subagents=[payer])


class Subagents(GraphAgent):
    """A Deep Agent with two subagents that ask at the same time."""

    graph = subagents()


class AsksAPerson(GraphAgent):
    """Makes one call that only a person can answer."""

    graph = create_agent(
        Scripted(turns=first(CALLS[1])),
        tools=[write],
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"write": {"allowed_decisions": ["respond"]}})],
    )


def charges(state: Both) -> Any:
    once("charge", did, state["folder"], "charged")
    key = idempotency_key("charge")
    did(state["folder"], f"key {key}")
    return {"said": [str(interrupt("Charged. Go on?"))]}


class ChargesFirst(GraphAgent):
    """Acts before it asks, in the same node."""

    graph = StateGraph(Both).add_node(charges).add_edge(START, "charges")
