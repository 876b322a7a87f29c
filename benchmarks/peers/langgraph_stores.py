"""Measures the same work through LangGraph's own stores. A process in its own environment:

    python -m benchmarks.peers.langgraph_stores saver|delta|messages|async URL STEPS
    python -m benchmarks.peers.langgraph_stores saver|delta URL BUDGET MARK MARK…

prints one JSON object: steps per second, milliseconds of a step in the saver's put and put_writes, bytes on disk,
milliseconds to load the newest state; or the points that
benchmarks.store.growth draws. "saver" is a list that PostgresSaver writes whole at each step; "async" the same in an
event loop with AsyncPostgresSaver; "delta" is the same list in a DeltaChannel, as its documentation shows it;
"messages" a list of LangChain's messages under add_messages.
"""

from __future__ import annotations

import asyncio
import json
import operator
import statistics
import sys
import time
from collections.abc import Callable
from functools import wraps
from itertools import pairwise
from typing import Annotated, Any, TypedDict

import psycopg
from langchain_core.messages import AIMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

from benchmarks.parts.numbers import point
from benchmarks.parts.workload import SHORT, Workload

THREAD = {"configurable": {"thread_id": "bench", "checkpoint_ns": ""}}


def extend(messages: list[Any], writes: list[list[Any]]) -> list[Any]:
    """Reduce the writes of a DeltaChannel."""
    return [*messages, *(message for written in writes for message in written)]


reduce: Any = extend
CHANNELS: dict[str, Any] = {
    "saver": Annotated[list, operator.add],
    "async": Annotated[list, operator.add],
    "delta": Annotated[list, DeltaChannel(reduce, snapshot_frequency=100)],
    "messages": Annotated[list, add_messages],
}


def timed(saver: type[Any]) -> type[Any]:
    """Return the class of a saver that notes in `spent` the seconds of each put and put_writes."""
    spent: list[float] = []

    def noting(call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def noted(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            try:
                return call(*args, **kwargs)
            finally:
                spent.append(time.perf_counter() - began)

        return noted

    return type("Timed", (saver,), {"spent": spent, "put": noting(saver.put), "put_writes": noting(saver.put_writes)})


def first_of(kind: str, work: Workload) -> dict[str, Any]:
    """Return a graph's input."""
    return {"messages": [item(kind, work, 0)], "document": work.document, "cursor": work.cursors[0]}


def item(kind: str, work: Workload, n: int) -> Any:
    """Return the message of a step."""
    found = work.messages[n]
    return AIMessage(found["text"], id=found["id"]) if kind == "messages" else found


def build(kind: str, work: Workload, saver: Any, until: Callable[[int], bool] | None = None) -> Any:
    """Build a graph of one node that runs until the work is done, or `until` says so of a step."""
    fields = {"messages": CHANNELS[kind], "document": dict, "cursor": dict}
    state = TypedDict("state", fields)  # type: ignore[misc]

    def work_on(given: dict[str, Any]) -> dict[str, Any]:
        n = given["cursor"]["step"] + 1
        return {"messages": [item(kind, work, n)], "cursor": work.cursors[n]}

    def is_done(given: dict[str, Any]) -> str:
        step = given["cursor"]["step"]
        return END if step >= work.steps - 1 or (until and until(step)) else "work"

    graph: Any = StateGraph(state)
    graph.add_node("work", work_on)
    graph.add_edge(START, "work")
    graph.add_conditional_edges("work", is_done)
    return graph.compile(checkpointer=saver)


def size(url: str) -> int:
    """Return the bytes of all tables with their indexes."""
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' "
            "AND relnamespace = 'public'::regnamespace"
        ).fetchone()
    return int(found[0])  # type: ignore[index]


async def run_async(kind: str, work: Workload, saver: Any, config: Any) -> float:
    """Run the work once in this event loop, durably at each step; return its seconds."""
    graph, given = build(kind, work, saver), first_of(kind, work)
    began = time.perf_counter()
    await graph.ainvoke(given, {**config, "recursion_limit": work.steps + 20}, durability="sync")
    took = time.perf_counter() - began
    state = await graph.aget_state(config)
    assert len(state.values["messages"]) == work.steps, "the saver did not keep every message"
    return took


async def main_async(url: str, steps: int) -> None:
    """Run the work once on AsyncPostgresSaver."""
    async with AsyncPostgresSaver.from_conn_string(url) as saver:
        await saver.setup()
        took = await run_async("async", Workload(steps), saver, THREAD)
    print(json.dumps({"rate": steps / took}))


def main(kind: str, url: str, steps: int) -> None:
    """Run the work once, durably at each step."""
    work = Workload(steps)
    with timed(PostgresSaver).from_conn_string(url) as saver:
        saver.setup()
        before = size(url)
        graph = build(kind, work, saver)
        began = time.perf_counter()
        graph.invoke(first_of(kind, work), {**THREAD, "recursion_limit": steps + 20}, durability="sync")
        took, own = time.perf_counter() - began, sum(saver.spent) / steps * 1e3
        loads = []
        for _ in range(9):
            began = time.perf_counter()
            state = graph.get_state(THREAD)
            loads.append(time.perf_counter() - began)
        assert len(state.values["messages"]) == steps, "LangGraph did not keep every message"
        load = statistics.median(loads) * 1e3
        result = {"rate": steps / took, "own_ms": own, "bytes": size(url) - before, "load_ms": load}
    print(json.dumps(result))


def grow(kind: str, url: str, budget: float, marks: list[int]) -> None:
    """Run the work from mark to mark; a step takes the time from one call of the node to the next."""
    work, points, began = Workload(marks[-1], message=SHORT), [], time.perf_counter()
    starts: list[float] = []
    upto = 0

    def until(step: int) -> bool:
        starts.append(time.perf_counter())
        return step >= upto - 1 or starts[-1] - began > budget

    with PostgresSaver.from_conn_string(url) as saver:
        saver.setup()
        graph = build(kind, work, saver, until)
        given = {"messages": [work.messages[0]], "document": work.document, "cursor": work.cursors[0]}
        for upto in marks:
            starts.clear()
            graph.invoke(given, {**THREAD, "recursion_limit": upto + 20}, durability="sync")
            done = graph.get_state(THREAD).values["cursor"]["step"] + 1
            if done < upto:
                break
            times = [after - before for before, after in pairwise(starts)]
            points.append(point(upto, times, lambda: graph.get_state(THREAD)))
            if upto < work.steps:
                given = {"messages": [work.messages[upto]], "cursor": work.cursors[upto]}
    print(json.dumps({"points": points}))


if __name__ == "__main__":
    if sys.argv[1] == "async":
        asyncio.run(main_async(sys.argv[2], int(sys.argv[3])))
    elif len(sys.argv) == 4:
        main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    else:
        grow(sys.argv[1], sys.argv[2], float(sys.argv[3]), [int(mark) for mark in sys.argv[4:]])
