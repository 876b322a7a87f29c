"""Measures the work through LangGraph's own stores. A process in its own environment:

    python -m benchmarks.peers.langgraph_stores saver|delta URL STEPS

prints one JSON object: steps per second, and milliseconds to load the newest state. "saver" is a list that
PostgresSaver writes whole at each step; "delta" is the same list in a DeltaChannel, as its documentation shows it.
"""

from __future__ import annotations

import json
import operator
import statistics
import sys
import time
from typing import Annotated, Any, TypedDict

from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, StateGraph

from benchmarks.workload import Workload

THREAD = {"configurable": {"thread_id": "bench", "checkpoint_ns": ""}}


def extend(messages: Any, writes: Any) -> Any:
    """Reduce the writes of a DeltaChannel."""
    return [*messages, *(message for written in writes for message in written)]


CHANNELS: dict[str, Any] = {
    "saver": Annotated[list, operator.add],
    "delta": Annotated[list, DeltaChannel(extend, snapshot_frequency=100)],
}


def build_graph(kind: str, work: Workload, saver: Any) -> Any:
    """Build a graph of one node that runs until the work is done."""
    fields = {"messages": CHANNELS[kind], "document": dict, "cursor": dict}
    state = TypedDict("state", fields)  # type: ignore[misc]

    def work_on(given: dict[str, Any]) -> dict[str, Any]:
        n = given["cursor"]["step"] + 1
        return {"messages": [work.messages[n]], "cursor": work.cursors[n]}

    graph: Any = StateGraph(state)
    graph.add_node("work", work_on)
    graph.add_edge(START, "work")
    graph.add_conditional_edges("work", lambda given: END if given["cursor"]["step"] >= work.steps - 1 else "work")
    return graph.compile(checkpointer=saver)


def main(kind: str, url: str, steps: int) -> None:
    """Run the work once, durably at each step."""
    work = Workload(steps)
    with PostgresSaver.from_conn_string(url) as saver:
        saver.setup()
        graph = build_graph(kind, work, saver)
        first = {"messages": [work.messages[0]], "document": work.document, "cursor": work.cursors[0]}
        began = time.perf_counter()
        graph.invoke(first, {**THREAD, "recursion_limit": steps + 20}, durability="sync")
        took, loads = time.perf_counter() - began, []
        for _ in range(9):
            began = time.perf_counter()
            state = graph.get_state(THREAD)
            loads.append(time.perf_counter() - began)
        assert len(state.values["messages"]) == steps, "LangGraph did not store every message"
    print(json.dumps({"rate": steps / took, "load_ms": statistics.median(loads) * 1e3}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
