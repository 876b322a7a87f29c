"""LangGraph graphs as agents: each superstep is a checkpoint of the run, and each interrupt a question at its gate.

`GraphAgent` is an ordinary agent of four steps, in a circle:

- `go` takes the graph one superstep further (superstep), or to where it interrupts, with the answers that there are.
- `prepare` turns the pending interrupts into questions (questions), each in its own form.
- `ask` is the gate: an action for each question, with the verdicts that the question's form has.
- `hear` turns the decision into what the graph gets for each interrupt's id (answers).

The state holds the graph's channels as fields, and in the field `langgraph` what LangGraph knows beside the values
(position): so reviewers see, compare, edit and rewind what the graph itself works on. While a superstep runs, `bridge`
is its checkpointer, in memory; what has finished in it is kept by the step as soon as it has, so that a worker that
dies repeats none of it. `calls` has what tools and nodes use: `once` and `idempotency_key`.

A decision is for one execution of exactly what it was about: `seals` keep people from deciding by an edit, `validity`
tells which decisions a move of the run has outdated, and `calls` compares each tool's call with what was decided.

The names are loaded on first use: whoever has no LangGraph installed can still import the package of agents.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .calls import idempotency_key, once
    from .graph_agent import GraphAgent

_HOMES = {"GraphAgent": "graph_agent", "idempotency_key": "calls", "once": "calls"}

__all__ = ["GraphAgent", "idempotency_key", "once"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
