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
from tests.agents.langgraph.scripted import Scripted, agent, first
from tests.harness.waiting import until


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


def at_once(*nodes: Any, of: Any = Both) -> Any:
    """A graph that begins with all of these nodes."""
    graph = StateGraph(of)
    for node in nodes:
        graph.add_node(node).add_edge(START, node.__name__)
    return graph


asks_twice_and_beside = agent(
    "two-questions", at_once(left, right).add_node(finish).add_edge(["left", "right"], "finish").add_edge("finish", END)
)


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


typed = agent("typed", at_once(ask_refund, of=Case))


def starts(state: Both) -> Any:
    did(state["folder"], "before")
    return {}


def deepest(state: Both) -> Any:
    did(state["folder"], "deepest")
    return {"said": [f"deep {interrupt('How deep?')}"]}


def nested() -> Any:
    inner = at_once(starts).add_node(deepest).add_edge("starts", "deepest").compile()
    middle = StateGraph(Both).add_node("inner", inner).add_edge(START, "inner").compile()
    return StateGraph(Both).add_node("middle", middle).add_edge(START, "middle").compile()


asks_from_deep_inside = agent("nested_graph", nested())  # `nested` is the children's


@tool
def pay(to: str, amount: int) -> str:
    """Pay somebody."""
    return once("pay", lambda: f"paid {amount} to {to}")


@tool
def write(to: str, text: str) -> str:
    """Write to somebody."""
    return f"wrote to {to}: {text}"


CALLS = (("pay", {"to": "Ada", "amount": 5}), ("write", {"to": "Ada", "text": "It comes."}))
FOUR = (*CALLS, ("pay", {"to": "Bob", "amount": 8}), ("write", {"to": "Bob", "text": "Call me."}))
EVERY = {"allowed_decisions": ["approve", "edit", "reject", "respond"]}


def calling(*calls: Any, pays: Any = EVERY, writes: Any = EVERY, **options: Any) -> Any:
    """A model that makes these calls, about which LangChain's middleware asks."""
    middleware = HumanInTheLoopMiddleware(interrupt_on={"pay": pays, "write": writes}, **options)
    return create_agent(Scripted(turns=first(*calls)), tools=[pay, write], middleware=[middleware])


makes_two_calls = agent("batched", calling(*CALLS))
makes_two_calls_each = agent("per-call", calling(*CALLS, interrupt_mode="per_call"))
makes_four_calls = agent("four-calls", calling(*FOUR))
takes_no_refusal = agent("needs-a-yes", calling(*CALLS, pays={"allowed_decisions": ["approve", "edit"]}))
tells_of_no_edit = agent("untold", calling(CALLS[0], edit_notice=""))
asks_a_person = agent("asks-a-person", calling(CALLS[1], writes={"allowed_decisions": ["respond"]}))


class OneCall(GraphAgent):
    """Makes one call, and answers questions about it."""

    graph = calling(CALLS[0])

    def answer(self, question: ReviewerQuestion, messages: list[AnyMessage]) -> str:
        """Answer from the conversation."""
        return f"{question.text} {len(messages)} messages, the first of them {messages[0].content!r}."


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


asks_as_inboxes_do = agent("inbox", at_once(inbox, of=MessagesState).add_node(sums_up).add_edge("inbox", "sums_up"))


@task
def costly(folder: str, item: str) -> str:
    did(folder, f"costly {item}")
    return item.upper()


@entrypoint()
def functional(given: dict[str, Any]) -> str:
    found = [costly(given["folder"], item) for item in ("a", "b")]
    first_of_them = [each.result() for each in found]
    return f"{''.join(first_of_them)} {interrupt('Go on?')}"


is_a_function = agent("functional", functional)


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


def asks_twice(state: Both) -> Any:
    return {"said": [f"first {interrupt('First?')}", f"second {interrupt('Second?')}"]}


def asks_and_dies(state: Both) -> Any:
    said = interrupt("Ready?")
    return {**dies(state), "said": [f"ready {said}"]}


async def only_awaited(state: Both) -> Any:
    did(state["folder"], "awaited")
    return {"said": [str(await asyncio.to_thread(str.upper, interrupt("Awaited?")))]}


dies_beside_work = agent("dying", at_once(dies, works))
dies_beside_questions = agent("asking-twice-beside-dying", at_once(asks_twice, asks_and_dies))
stops = agent("stopping", at_once(works).compile(interrupt_before=["works"]))
awaited = agent("awaited", at_once(only_awaited))


def subagents(*people: str, **options: Any) -> Any:
    """A subagent for each of these people at the same time, with a tool that asks."""

    def delegates(messages: Any) -> Any:
        if (task := str(messages[-1].content)).startswith("Subtask: pay "):
            return "", [("pay", {"to": task.removeprefix("Subtask: pay "), "amount": 5})]
        return first(*(("task", {"description": f"Subtask: pay {who}", "subagent_type": "payer"}) for who in people))(
            messages
        )

    model = Scripted(turns=delegates)
    payer: Any = {
        "name": "payer", "description": "Pays.", "system_prompt": "Pay.", "tools": [pay], "model": model,
        "interrupt_on": {"pay": True}, **options,
    }  # fmt: skip
    return create_deep_agent(model=model, tools=[], subagents=[payer])


two_subagents = agent("subagents", subagents("Ada", "Bob"))


def charges(state: Both) -> Any:
    once("charge", did, state["folder"], "charged")
    key = idempotency_key("charge")
    did(state["folder"], f"key {key}")
    return {"said": [str(interrupt("Charged. Go on?"))]}


charges_first = agent("charges-first", at_once(charges))
