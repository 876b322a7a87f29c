"""Agents that ask about several actions at once. What an effect does to the world is a line in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from agents import Action, Agent, Card, EffectFailed, Jump, effect, gate, step, undo
from tests.factories.sample_agents import write_line

ALL = ["approve", "edit", "reject", "respond"]


class Feedback(BaseModel):
    text: str
    by: str
    at: str
    gate: int
    action: str = ""
    pointer: str = ""


class Call(BaseModel):
    id: str
    tool: str
    amount: int = Field(ge=0, le=1000)


class Result(BaseModel):
    of: str
    said: str


class Caller(Agent):
    """Proposes several calls of one turn; one effect step performs them, one after the other."""

    name = "dialler"

    class State(BaseModel):
        ledger: str
        calls: list[Call]
        calling: str = ""
        order: list[str] = []  # in which it picks, whatever is asked about
        mode: str = ""
        results: list[Result] = []
        feedback: list[Feedback] = []
        decision: dict[str, Any] | None = None
        turns: int = 0

    @step
    def think(self, calls: list[Call], feedback: list[Feedback]) -> dict[str, Any]:
        return {"calls": calls, "turns": 1, "calling": ""}

    @gate(policy="calls", allows=["call_tool"], edits=["calls"], on_reject="think")
    def review(self, calls: list[Call]) -> Card:
        return Card(
            title=f"Call {len(calls)} tools",
            actions=[
                Action(
                    id=each.id, title=each.tool, tool=each.tool, effect="call_tool", pointer=f"/calls/{n}", verdicts=ALL
                )
                for n, each in enumerate(calls)
            ],
        )

    @step
    def pick(self, calls: list[Call], order: list[str], turns: int) -> Any:
        names = order or [each.id for each in calls]
        if turns > len(names):
            return Jump("finish")
        return {"calling": names[turns - 1], "turns": turns + 1}

    @effect(undo="take_back", action="calling", responds="results")
    def call_tool(
        self, ledger: str, calls: list[Call], calling: str, mode: str, results: list[Result], *, key: str
    ) -> Any:
        [mine] = [each for each in calls if each.id == calling]
        if mode == f"fails {calling}" and "failed" not in Path(ledger).read_text():
            write_line(ledger, "failed", calling)
            raise EffectFailed("refused", retry=False)
        write_line(ledger, "call", mine.id, mine.amount)
        return {"results": [*results, Result(of=mine.id, said="done")]}

    @undo(idempotent=True)
    def take_back(self, ledger: str, calling: str) -> None:
        write_line(ledger, "undo", calling)

    @step
    def on(self) -> Any:
        return Jump("pick")

    @step
    def finish(self, results: list[Result]) -> dict[str, Any]:
        return {"calling": ""}


class Three(Agent):
    """Three effects, an action each, and a fourth that belongs to none."""

    name = "three"

    class State(BaseModel):
        ledger: str
        one: Call
        two: Call
        three: Call
        feedback: list[Feedback] = []
        decision: dict[str, Any] | None = None
        said: str = Field(default="", max_length=30)
        did_one: str = ""
        did_two: str = ""
        seen: str = ""

    @step
    def look(self, one: Call) -> dict[str, Any]:
        return {"seen": one.tool}

    @gate(
        policy="three", allows=["do_one", "do_two", "do_three", "log"], edits=["one", "two", "three"], on_reject="look"
    )
    def review(self, one: Call, two: Call, three: Call, seen: str) -> Card:
        return Card(
            title="Three things",
            actions=[
                Action(id="a", effect="do_one", pointer="/one"),
                Action(id="b", effect="do_two", pointer="/two"),
                Action(id="c", effect="do_three", pointer="/three", verdicts=ALL),
            ],
        )

    @effect(undo="undo_one")
    def do_one(self, ledger: str, one: Call, *, key: str) -> dict[str, Any]:
        write_line(ledger, "one", one.amount)
        return {"did_one": key}

    @undo(idempotent=True)
    def undo_one(self, ledger: str, did_one: str) -> None:
        write_line(ledger, "undo one")

    @effect(undo="undo_two")
    def do_two(self, ledger: str, two: Call, *, key: str) -> dict[str, Any]:
        write_line(ledger, "two", two.amount)
        return {"did_two": key}

    @undo(idempotent=True)
    def undo_two(self, ledger: str, did_two: str) -> None:
        write_line(ledger, "undo two")

    @effect(irreversible=True, responds="said")
    def do_three(self, ledger: str, three: Call, *, key: str) -> dict[str, Any]:
        write_line(ledger, "three", three.amount)
        return {"said": "sent"}

    @effect(irreversible=True)
    def log(self, ledger: str, did_one: str, *, key: str) -> dict[str, Any]:
        write_line(ledger, "log", bool(did_one))
        return {}
