"""A program whose graph kills its own process at a step: python -m tests.clients.langgraph.killed_graph …"""

from __future__ import annotations

import importlib
import json
import operator
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph


class Steps(TypedDict):
    done: Annotated[list[int], operator.add]


def build(saver: Any, log: Path, *, dies_at: int, upto: int) -> Any:
    """A graph of two tasks a step, each of which writes into the log; one of them dies once."""

    def quick(state: Steps) -> dict[str, Any]:
        _note(log, f"quick {len(state['done'])}")
        return {"done": [len(state["done"])]}

    def slow(state: Steps, config: RunnableConfig) -> dict[str, Any]:
        if len(state["done"]) == dies_at:
            thread = {"configurable": {"thread_id": config["configurable"]["thread_id"]}}
            while ("done", [dies_at]) not in [each[1:] for each in saver.get_tuple(thread).pending_writes]:
                pass  # until the quick one's writes are kept
            os.kill(os.getpid(), signal.SIGKILL)
        _note(log, f"slow {len(state['done'])}")
        return {}

    graph = StateGraph(Steps)
    graph.add_node("quick", quick)
    graph.add_node("slow", slow)
    graph.add_node("both", lambda state: {})
    graph.add_edge(START, "quick")
    graph.add_edge(START, "slow")
    graph.add_edge(["quick", "slow"], "both")
    graph.add_conditional_edges("both", lambda state: END if len(state["done"]) >= upto else ["quick", "slow"])
    return graph.compile(checkpointer=saver)


def _note(log: Path, words: str) -> None:
    with log.open("a") as file:
        file.write(words + "\n")


def main(given: dict[str, Any]) -> None:
    importlib.import_module("config")  # puts the client on the path
    from holdpoint.langgraph import HoldpointSaver

    if given.get("team"):
        import django

        django.setup()
        from agents.threads.local import InProcess

        saver = HoldpointSaver(InProcess(agent=given["agent"], team=given["team"]))
    else:
        saver = HoldpointSaver()
    graph = build(saver, Path(given["log"]), dies_at=given["dies_at"], upto=given["upto"])
    graph.invoke({"done": []}, {"configurable": {"thread_id": given["thread"]}}, durability="sync")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
