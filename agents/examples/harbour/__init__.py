"""The harbour agent: a Deep Agent of LangChain's that books a berth, as an agent of Holdpoint's.

A graph as an author has it, with three tools and a subagent, and four lines that make it an agent. Two of the tools
ask first: LangChain's own `interrupt_on` says which, and each call is an action at the run's gate.

1. `free_berths` needs no approval. `book_berth` and `send_letter` always do; a letter may be answered instead.
2. A booking is made once: the office gets the task's key, and `once` keeps its answer across a crash and an interrupt.
3. The subagent asks the tide tables. The model is scripted (model), so that the example works without a network; give
   `build` a model of yours, such as `init_chat_model("…")`, and nothing else changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from deepagents import create_deep_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import tool
from langgraph.pregel import Pregel

from agents import AgentError
from agents.langgraph import GraphAgent, idempotency_key, once

from .model import ScriptedModel

HOW = "You run a harbour's office. Look at the tides and the free berths before you book, and write to the master."
BERTHS = {"North 1": 80, "North 2": 45, "Quay 7": 120}  # name -> the longest vessel in metres
TIDES = ("05:40", "18:05")


@dataclass
class Office:
    """In the place of a harbour office: what it booked and sent, once a key, for as long as the process lives."""

    bookings: dict[str, str] = field(default_factory=dict)
    letters: dict[str, str] = field(default_factory=dict)

    def free(self, length: int, date: str) -> list[str]:
        """List the berths that are long enough and free."""
        taken = set(self.bookings.values())
        return [name for name, longest in BERTHS.items() if longest >= length and f"{name} on {date}" not in taken]

    def book(self, vessel: str, berth: str, date: str, key: str) -> str:
        """Book a berth, once for each key."""
        self.bookings.setdefault(key, f"{berth} on {date}")
        return f"{vessel} has {self.bookings[key]}."

    def send(self, to: str, text: str, key: str) -> str:
        """Send a letter, once for each key."""
        self.letters.setdefault(key, f"{to}: {text}")
        return f"The letter to {to} is sent."

    def tides(self, date: str) -> str:
        """Say when the water is high."""
        return f"High water on {date}: {' and '.join(TIDES)}."


OFFICE = Office()


@tool
def free_berths(length: int, date: str) -> str:
    """List the berths that are free on a date for a vessel of this length in metres."""
    return ", ".join(OFFICE.free(length, date)) or "none"


@tool
def book_berth(vessel: str, berth: str, date: str) -> str:
    """Book a berth for a vessel on a date. It costs the vessel's owner a fee."""
    return once("booking", OFFICE.book, vessel, berth, date, idempotency_key())


@tool
def send_letter(to: str, text: str) -> str:
    """Send a letter to a vessel's master."""
    return once("letter", OFFICE.send, to, text, idempotency_key())


@tool
def tide_table(date: str) -> str:
    """Look up when the water is high on a date."""
    return OFFICE.tides(date)


def build(model: BaseChatModel | None = None) -> Pregel[Any, Any, Any, Any]:
    """Return the graph: a Deep Agent with three tools and a subagent."""
    model = model or ScriptedModel()
    made: Pregel[Any, Any, Any, Any] = create_deep_agent(
        model=model,
        tools=[free_berths, book_berth, send_letter],
        system_prompt=HOW,
        subagents=[
            {
                "name": "tides",
                "description": "Knows when the water is high enough.",
                "system_prompt": "You read tide tables. Answer with the times.",
                "tools": [tide_table],
                "model": model,
                "interrupt_on": {},
            }
        ],
        interrupt_on={
            "book_berth": {"allowed_decisions": ["approve", "edit", "reject"]},
            "send_letter": {"allowed_decisions": ["approve", "edit", "reject", "respond"]},
        },
    )
    return made


class Harbour(GraphAgent):
    """Books a berth for a vessel: asks about the tides and the berths, books one, and writes to the master."""

    name = "harbour"
    version = "1"
    team = "Support"
    graph = build()
    risks: ClassVar = {"book_berth": "high"}
    libraries = ("langgraph", "langchain", "deepagents")

    @classmethod
    def inputs_from(cls, path: Path) -> list[dict[str, Any]]:
        """One input for each .txt file of a folder, by name, or for the one file: the text of the request."""
        files = sorted(path.glob("*.txt")) if path.is_dir() else [path]
        if not files:
            raise AgentError(f"There is no .txt file in {path}.")
        return [{"messages": [{"role": "user", "content": file.read_text().strip()}]} for file in files]
