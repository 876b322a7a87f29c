"""Three agents alike but for how often they save. A line in the ledger: the step, and how much was saved by then."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import BaseModel

from agents import Action, Agent, Append, Card, Done, Jump, effect, gate, step, undo
from agents.models import Spoken
from checkpoints.models import Run
from tests.factories.sample_agents import write_line


class Steps(Agent):
    """Works in three steps, the second in a loop, asks, pays, and ends."""

    name = "steps"

    class State(BaseModel):
        ledger: str
        mode: str = ""
        rounds: int = 1
        wish: str = ""
        first: str = ""
        done: list[int] = []
        last: str = ""
        paid: int = 0
        ended: bool = False

    def told(self, ledger: str, name: str) -> None:
        write_line(ledger, name, Run.objects.get(pk=self.run.id).seq)

    @step(backoff=0)
    def begin(self, ledger: str) -> dict[str, Any]:
        self.told(ledger, "begin")
        self.note("began")
        return {"first": "begun"}

    @step(backoff=0, jumps=["work"], loop_guard=12)
    def work(self, ledger: str, mode: str, rounds: int, first: str, done: list[int]) -> Any:
        self.told(ledger, "work")
        if mode == "fails" and self.attempt == 1:
            raise RuntimeError("failed here")
        if mode == "once":
            self.once("call", lambda: write_line(ledger, "called", self.attempt))
        if mode == "speaks":
            self.progress("half way")
            run = Run.objects.get(pk=self.run.id)
            write_line(ledger, "spoken at", run.seq if Spoken.objects.get(run=run).base == run.head else 0)
        if mode == "sleeps":
            self.sleep_until(datetime.now(UTC) + timedelta(hours=1))
        if mode == "lost":
            Run.objects.filter(pk=self.run.id).update(token=Run.objects.get(pk=self.run.id).token + 1)
        if mode == "halts":
            Run.objects.filter(pk=self.run.id).update(halt=True)
            self.run_beat_asks()
        if len(done) + 1 < rounds:
            return Jump("work", {"done": Append([len(done)])})
        return {"done": Append([len(done)])}

    def run_beat_asks(self) -> None:
        self.memory.session.beat.halt = True  # type: ignore[union-attr]

    @step(backoff=0, milestone=True)
    def sum_up(self, ledger: str, done: list[int], wish: str) -> dict[str, Any]:
        self.told(ledger, "sum_up")
        return {"last": f"{len(done)}{wish}"}

    @step(backoff=0)
    def prepare(self, ledger: str, last: str) -> dict[str, Any]:
        self.told(ledger, "prepare")
        return {"last": f"{last} prepared"}

    @gate(allows=["pay"])
    def review(self, last: str, ledger: str) -> Card:
        self.told(ledger, "review")
        return Card(title="Pay?", actions=[Action(id="pay", title="Pay", effect="pay", pointer="/last")])

    @effect(undo="take_back")
    def pay(self, ledger: str, last: str, *, key: str) -> dict[str, Any]:
        self.told(ledger, "pay")
        return {"paid": 1}

    @undo(idempotent=True)
    def take_back(self, ledger: str, *, key: str) -> None:
        write_line(ledger, "take_back", 0)

    @step(backoff=0)
    def tidy(self, ledger: str, paid: int) -> dict[str, Any]:
        self.told(ledger, "tidy")
        return {"last": "tidy"}

    @step(backoff=0)
    def end(self, ledger: str, paid: int) -> Any:
        self.told(ledger, "end")
        return Done({"ended": True})


class Milestones(Steps):
    name = "milestones"
    checkpoints = "milestones"


class Effects(Steps):
    name = "effects"
    checkpoints = "effects"
