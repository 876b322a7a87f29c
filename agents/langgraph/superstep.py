"""Takes a graph one superstep further: to its next checkpoint, or to where it interrupts.

The graph is stopped before each node that is next (`interrupt_before="*"`), so that one call is one superstep. It is
called without input from the second on, as LangGraph is when it goes on from a checkpoint: tasks that have finished
are not run again, and interrupted ones run from their start with the answers that they have.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from django.db import connection, connections
from holdpoint.langgraph.interrupts import refusal_of
from holdpoint.langgraph.saver_errors import Unreadable, Unsaveable
from holdpoint.langgraph.values import decode_value
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command
from pydantic import ValidationError

from agents.definition.agent import Agent
from agents.errors import StepFailed

from . import calls, position, questions
from .answers import add_due_messages
from .bridge import Bridge
from .calls import CallGuard
from .compiled import CompiledGraph


@dataclass
class Superstep:
    """The result of one superstep. `refused`: why an answer was not taken; then nothing else is known."""

    writes: dict[str, Any] = field(default_factory=dict)
    asks: bool = False
    ends: bool = False
    refused: str = ""
    notes: Sequence[str] = ()


def take(agent: Agent, graph: CompiledGraph, values: Mapping[str, Any], since: str) -> Superstep:
    """Take the graph on from the state `values`. `since`: people's newest move of the run, as of validity.

    Raises StepFailed for a value that cannot be saved or read, and for a call that is not as it was decided.
    """
    try:
        return _take(agent, graph, dict(values), since)
    except (Unsaveable, Unreadable) as error:
        raise StepFailed(str(error)) from error


def _take(agent: Agent, graph: CompiledGraph, values: dict[str, Any], since: str) -> Superstep:
    bridge = Bridge(f"R-{agent.run.id}", allow=graph.allow, keep=Keeper(agent.checkpoint))
    at, answers, notes = values["langgraph"], values["answers"], list[str]()
    before = dict(values)
    guard = CallGuard((at or {}).get("decided", {}), since)
    if at is None:
        given: Any = decode_value(graph.channels.input_of(values), allow=graph.allow)
        due = list[Any]()
    else:
        if names := position.edited(graph.channels, values, at):
            at = position.moved(at, names, values=values, channels=graph.channels)
            notes.append(f"{', '.join(names)} was edited: the graph goes on with the new value.")
            if answers:
                notes.append("It asks again, since the answers were about the value before.")
            answers = {}
        # What people said since the graph last got their words, where they sent the run back to here.
        remarks = [remark for remark in values["feedback"][values["heard"] :] if not remark.action]
        words = [remark.text for remark in remarks if remark.text.strip()]
        at, due = add_due_messages(graph, at, values, words, answering=bool(answers))
        position.load(bridge, graph.channels, values, at)
        bridge.take_up(agent.checkpointed())
        given = Command(resume=answers) if answers and not at["stops"] else None
    try:
        nodes = _run(agent, graph, bridge, given, guard)
    except ValidationError as error:
        return Superstep(refused=refusal_of(error))
    if guard.refused:  # the node made something else of the error
        raise StepFailed(guard.refused[0])
    return _came_of(graph, bridge, before, nodes, due, notes, guard)


def _run(agent: Agent, graph: CompiledGraph, bridge: Bridge, given: Any, guard: CallGuard) -> list[str]:
    """Run the superstep, and return the nodes that ran in it."""
    runnable = graph.graph.copy(update={"checkpointer": bridge})
    bound: Any = graph.graph.config or {}
    config: RunnableConfig = {
        "configurable": {**bound.get("configurable", {}), "thread_id": bridge.thread},
        "callbacks": [guard],
    }
    options: dict[str, Any] = {"stream_mode": "updates", "interrupt_before": "*", "durability": "sync"}
    if agent.config is not None:
        options["context"] = agent.config.model_dump() if graph.graph.context_schema is not None else None
    ran: list[str] = []
    with calls.inside(bridge, agent.run.id):
        if graph.is_async:

            async def stream() -> None:
                async for chunk in runnable.astream(given, config, **options):
                    ran.extend(chunk)

            asyncio.run(stream())
        else:
            for chunk in runnable.stream(given, config, **options):
                ran += chunk
    return [name for name in ran if not name.startswith("__")]


def _came_of(
    graph: CompiledGraph, bridge: Bridge, before: Mapping[str, Any], nodes: Sequence[str], due: Sequence[Any],
    notes: Sequence[str], guard: CallGuard,
) -> Superstep:  # fmt: skip
    writes, at = position.saved(bridge, graph.channels, before)
    runnable = graph.graph.copy(update={"checkpointer": bridge})
    state = runnable.get_state({"configurable": {"thread_id": bridge.thread}})
    node_of = {interrupt.id: task.name for task in state.tasks for interrupt in task.interrupts}
    known = {pending["id"]: pending for pending in (before["langgraph"] or {}).get("asks", [])}
    asking = bridge.asking()
    asks = []
    for interrupt in state.interrupts:
        value, node = questions.as_json(interrupt.value), node_of.get(interrupt.id, "")
        where, task = asking.get(interrupt.id, ("", ""))
        calls = guard.asked(where, task, value)
        if calls is None:  # its task did not run in this superstep
            calls = known.get(interrupt.id, {}).get("calls", [])
        ask = {"id": interrupt.id, "value": value, "schema": interrupt.response_schema, "node": node}
        asks.append({**ask, "graph": where, "calls": calls})
    over = at["root"]["head"]["id"] != bridge.began
    stops = graph.stops(after=nodes, before=state.next) if over and state.next else None
    # A superstep that is run again has another mark, so that what follows is asked and run again too: the same calls
    # under an approval that was given once would be made twice.
    at |= {"asks": asks, "stops": stops, "told": list(due), "mark": uuid4().hex}
    at |= {"decided": guard.decided, "ran": [*guard.ran]}
    ran = [
        f"{verb} {', '.join(names)}." for verb, names in (("Ran", dict.fromkeys(nodes)), ("Called", guard.ran)) if names
    ]
    return Superstep({**writes, "langgraph": at}, bool(asks or stops), not state.next, notes=[*notes, *ran])


class Keeper:
    """Keeps what has finished, from whichever thread LangGraph saves it in.

    A thread that is not the step's has a database connection of its own, which is closed again. In a test whose
    transaction is open that would not see the run, so there only the step's own thread keeps anything.
    """

    def __init__(self, keep: Callable[[Any], None]) -> None:
        self.keep = keep
        self.thread = threading.get_ident()
        self.alone = connection.in_atomic_block

    def __call__(self, progress: Mapping[str, Any]) -> None:
        """Keep it. Raises RunLost."""
        if threading.get_ident() == self.thread:
            self.keep(progress)
        elif not self.alone:
            try:
                self.keep(progress)
            finally:
                connections.close_all()
