"""`run` and `arun`: a graph's `invoke`, with people who answer its interrupts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.pregel import Pregel
from langgraph.types import Command, StateSnapshot
from pydantic import ValidationError
from typing_extensions import TypedDict, Unpack

from ..client import AsyncHoldpoint, Holdpoint
from ..errors import CannotAsk
from ..posting import Risk
from . import gates
from .answers import refusal_of

Graph = Pregel[Any, Any, Any, Any]


class Asking(TypedDict, total=False):
    """The texts of the gates, who decides, and further arguments of the graph's `invoke`.

    `thread` is the thread's id unless given. The members are those of `hp.approve`.
    """

    title: str
    summary: str
    risk: Risk
    reasons: Sequence[str]
    for_whom: str
    amount: str
    resource: str
    policy: str
    agent: str
    team: str
    thread: str
    key: str
    timeout: float | None
    options: Mapping[str, Any]


def run(graph: Graph, input: Any, config: RunnableConfig, *, hp: Holdpoint, **asking: Unpack[Asking]) -> Any:
    """Invoke the graph, and whenever it is interrupted ask people and go on with their answers; return its result.

    Where the thread stands in the middle of its work it goes on from there, without `input`: so a program that died is
    simply started again. `timeout`: seconds to wait for people at a gate; None for ever. A question has one gate;
    another `key` asks once more, as after Rejected or Expired.

    Raises StillOpen after the timeout; Rejected and Expired where the graph takes no rejection, Withdrawn; CannotAsk;
    Altered where the graph would get something else than people approved.
    """
    options, shown = _sorted(graph, config, asking)
    invoke = partial(graph.invoke, config=config, **options)
    state, result = graph.get_state(config), None
    if (begins := not state.next) or _is_under_way(state):
        result = invoke(input if begins else None)
    while (asked := gates.asked(graph.get_state(config), _saver(graph).get_tuple(config), shown)) is not None:
        taken = False
        while not taken:
            outcome, gate = hp._io.run(gates.decided(hp._api, asked.posting))
            try:
                result, taken = invoke(Command(resume=gates.answers(asked, outcome, gate))), True
            except ValidationError as error:
                asked = asked.again(gate.id, refusal_of(error))
    return result


async def arun(
    graph: Graph, input: Any, config: RunnableConfig, *, hp: AsyncHoldpoint, **asking: Unpack[Asking]
) -> Any:
    """Do the same, awaited: by the graph's `ainvoke`."""
    options, shown = _sorted(graph, config, asking)
    invoke = partial(graph.ainvoke, config=config, **options)
    state, result = await graph.aget_state(config), None
    if (begins := not state.next) or _is_under_way(state):
        result = await invoke(input if begins else None)
    while True:
        asked = gates.asked(await graph.aget_state(config), await _saver(graph).aget_tuple(config), shown)
        if asked is None:
            return result
        taken = False
        while not taken:
            outcome, gate = await hp._io.run(gates.decided(hp._api, asked.posting))
            try:
                result, taken = await invoke(Command(resume=gates.answers(asked, outcome, gate))), True
            except ValidationError as error:
                asked = asked.again(gate.id, refusal_of(error))


def _sorted(graph: Graph, config: RunnableConfig, asking: Asking) -> tuple[Mapping[str, Any], dict[str, Any]]:
    """Return the arguments of `invoke`, and those of the gates. Raises CannotAsk."""
    _saver(graph)
    if graph.interrupt_before_nodes or graph.interrupt_after_nodes:
        raise CannotAsk("Compile the graph without interrupt_before and interrupt_after, and call interrupt() instead.")
    if config.get("configurable", {}).get("checkpoint_id"):
        raise CannotAsk("Leave checkpoint_id out: the graph goes on from the newest checkpoint of its thread.")
    # LangGraph would begin the next node while the save is under way that tells it that another program goes on too.
    options: Mapping[str, Any] = {"durability": "sync", **asking.get("options", {})}
    return options, {name: value for name, value in asking.items() if name != "options"}


def _saver(graph: Graph) -> Any:
    if not graph.checkpointer or graph.checkpointer is True:
        raise CannotAsk("Compile the graph with checkpointer=HoldpointSaver(): it waits in its saved thread.")
    return graph.checkpointer


def _is_under_way(state: StateSnapshot) -> bool:
    """Tell whether a node has neither ended nor asked yet, as after a crash: it comes first, as it may ask too."""
    return any(task.result is None and not task.interrupts for task in state.tasks)
