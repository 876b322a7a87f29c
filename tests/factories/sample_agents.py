"""Agents for the tests: small, and each with one thing that can go wrong.

What an effect does to the world outside is a line in a file, the external ledger: its path is in the state.
"""

from __future__ import annotations

import os
import signal
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.db.models import F
from pydantic import BaseModel, Field

from agents import (
    Action,
    Agent,
    Append,
    Card,
    Done,
    EffectFailed,
    EffectUnknown,
    Jump,
    Retry,
    StepFailed,
    effect,
    gate,
    step,
)
from checkpoints.models import Run


def write_line(path: str, *words: object) -> None:
    """Append one line to an external ledger, in one write."""
    with Path(path).open("a") as ledger:
        ledger.write(" ".join(map(str, words)) + "\n")


class Proposal(BaseModel):
    to: str
    amount: Decimal = Field(gt=0, le=1000)


class Feedback(BaseModel):
    text: str
    by: str
    gate: int


class Payer(Agent):
    """Proposes an amount, asks, pays, and says so: the shape of the real thing."""

    name = "payer"

    class State(BaseModel):
        ledger: str = ""
        amount: Decimal = Decimal("10.00")
        mode: str = ""
        proposal: Proposal | None = None
        feedback: list[Feedback] = []
        decision: dict[str, Any] | None = None
        told: str = ""
        payment: str = ""
        mailed: bool = False

    @classmethod
    def title(cls, state: Any) -> str:
        return f"pay {state.amount}"

    @step
    def propose(self, amount: Decimal, feedback: list[Feedback]) -> dict[str, Any]:
        """Ask for one less for every time it was sent back."""
        self.note(f"sent back {len(feedback)} times")
        return {"proposal": Proposal(to="ann", amount=amount - len(feedback))}

    @gate(policy="payments", allows=["pay", "mail"], edits=["proposal"], on_reject="propose")
    def review(self, proposal: Proposal) -> Card:
        return Card(
            title=f"Pay {proposal.amount} to {proposal.to}",
            actions=[Action(id="pay", effect="pay", pointer="/proposal", pinned=["/amount"])],
        )

    @step
    def read(self, decision: dict[str, Any] | None) -> dict[str, Any]:
        return {"told": decision["kind"] if decision else "nothing"}

    @effect(undo="cancel", idempotent=True)
    def pay(self, ledger: str, proposal: Proposal, *, key: str) -> dict[str, Any]:
        """Pay, once a key: the ledger shows every request."""
        write_line(ledger, "pay", key, proposal.amount)
        return {"payment": key}

    def cancel(self, payment: str) -> None:
        """Take it back."""

    @effect(irreversible=True)
    def mail(self, ledger: str, proposal: Proposal, mode: str, *, key: str) -> dict[str, Any]:
        """Send a mail, which nobody can take back or repeat unnoticed."""
        write_line(ledger, "mail", key, proposal.amount)
        if mode == "unknown mail":
            raise EffectUnknown("the line was cut")
        return {"mailed": True}


class Stumbler(Agent):
    """One step that fails as `mode` says, then one that goes on."""

    name = "stumbler"

    class State(BaseModel):
        mode: str
        flag: str = ""
        log: list[str] = []
        count: int = 0
        done: bool = False

    @step(retry=1, timeout=1.0, writes=["log", "count"])
    def stumble(self, mode: str, flag: str) -> dict[str, Any]:
        if flag and Path(flag).exists():
            return {"log": Append(["well"])}
        if mode == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if mode == "exit":
            raise SystemExit(3)
        if mode == "slow":
            while True:
                try:
                    time.sleep(10)
                except Exception:  # noqa: BLE001 - what a careless step does
                    write_line(flag, "swallowed")
        if mode == "hopeless":
            raise StepFailed("nothing to be done")
        if mode == "retry":
            raise Retry("not yet", after=0)
        if mode == "nan":
            return {"log": Append([float("nan")])}
        if mode == "undeclared":
            return {"done": True}
        if mode == "misfit":
            return {"count": "many"}
        if mode == "large":
            return {"log": ["x" * 17_000_000]}
        if mode == "raise":
            raise ValueError(f"line one\nattempt {self.attempt} \0 end")
        return {"log": Append(["well"])}

    @step
    def finish(self) -> dict[str, Any]:
        return {"done": True}


class Hopper(Agent):
    """Jumps until it has counted to three."""

    name = "hopper"

    class State(BaseModel):
        count: int = 0
        trail: list[int] = []

    @step
    def hop(self, count: int) -> Any:
        return Jump("land", {"count": count + 1, "trail": Append([count])})

    @step
    def never(self) -> dict[str, Any]:
        return {"count": -1}

    @step
    def land(self, count: int) -> Any:
        if count < 3:
            return Jump("hop")
        return Done({"trail": Append([100])})


class Sender(Agent):
    """One effect whose end is what the state says; no permission needed."""

    name = "sender"

    class State(BaseModel):
        ledger: str
        ends: list[str] = []
        receipt: str = ""

    @effect(undo="recall", guarded=False, retry=2)
    def send(self, ledger: str, ends: list[str], *, key: str) -> dict[str, Any]:
        before = Path(ledger).read_text().splitlines() if Path(ledger).exists() else []
        end = ends[len(before)] if len(before) < len(ends) else "done"
        write_line(ledger, "send", key, end)
        if end == "failed":
            raise EffectFailed("refused: 422")
        if end == "unsent":
            raise EffectFailed("connection refused", retry=True)
        if end == "unknown":
            raise EffectUnknown("timed out")
        if end in ("odd failed", "odd unknown"):  # words that no column and no card takes
            raise (EffectFailed if end == "odd failed" else EffectUnknown)("a\x00b\ud800c\u202e")
        if end == "bug":
            raise KeyError("oops")
        if end == "misfit":
            return {"receipt": ["not", "text"]}
        if end == "stolen":  # while it is under way another worker takes the run
            Run.objects.filter(pk=self.run.id).update(token=F("token") + 1, status="queued", lease_until=None)
        return {"receipt": key}

    def recall(self) -> None:
        """Take it back."""


class Resender(Sender):
    """The same at a provider that takes a key once, so that what is in doubt is sent again by itself."""

    name = "resender"

    @effect(undo="recall", guarded=False, retry=2, idempotent=True, writes=["receipt"])
    def send(self, ledger: str, ends: list[str], *, key: str) -> dict[str, Any]:
        return Sender.send(self, ledger, ends, key=key)


class Bypasser(Agent):
    """Jumps past its gate, to what the gate allows."""

    name = "bypasser"

    class State(BaseModel):
        ledger: str

    @step
    def hop(self) -> Any:
        return Jump("act")

    @gate(allows=["act"])
    def review(self) -> Card:
        return Card(title="May I act?")

    @effect(irreversible=True)
    def act(self, ledger: str, *, key: str) -> dict[str, Any]:
        write_line(ledger, "act", key)
        return {}


class Asker(Agent):
    """A gate that asks for facts, with a way on when nobody answers and nothing to allow."""

    name = "asker"

    class State(BaseModel):
        order: str = ""
        late: bool = False
        found: str = ""

    @gate(edits=["order"], on_expire="give_up")
    def facts(self, order: str) -> Card | None:
        return None if order else Card(title="Which order?")

    @step
    def find(self, order: str) -> Any:
        return Done({"found": f"order {order}"})

    @step
    def give_up(self) -> dict[str, Any]:
        return {"late": True}


class Grower(Agent):
    """Steps without end: for time slices, leases and fences. A step lasts as long as there is `<ledger>.held`."""

    name = "grower"

    class State(BaseModel):
        steps: int = 3
        pause: float = 0.0
        ledger: str = ""
        log: list[int] = []

    @step
    def grow(self, steps: int, pause: float, ledger: str, log: list[int]) -> Any:
        if ledger:
            write_line(ledger, "grow", len(log))
        time.sleep(pause)
        while ledger and Path(f"{ledger}.held").exists():
            time.sleep(0.05)
        if len(log) + 1 >= steps:
            return Done({"log": Append([len(log)])})
        return Jump("grow", {"log": Append([len(log)])})


class Repeater(Agent):
    """Does the same effect twice on one approval, which only allows it once."""

    name = "repeater"

    class State(BaseModel):
        ledger: str
        done: int = 0

    @gate(allows=["act"])
    def review(self) -> Card:
        return Card(title="May I act?")

    @effect(irreversible=True)
    def act(self, ledger: str, *, key: str) -> dict[str, Any]:
        write_line(ledger, "act", key)
        return {}

    @step
    def again(self, done: int) -> Any:
        return Jump("act", {"done": done + 1}) if done < 1 else Done()


class Frugal(Agent):
    """Two steps that are tried once each."""

    name = "frugal"

    class State(BaseModel):
        a: int = 0
        b: int = 0

    @step(retry=0)
    def first(self) -> dict[str, Any]:
        return {"a": 1}

    @step(retry=0)
    def second(self, a: int) -> dict[str, Any]:
        return {"b": a}
