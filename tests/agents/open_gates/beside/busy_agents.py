"""Agents that do every kind of work beside an open gate: wait, start runs, are refused, loop, act, fail and catch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from agents import (
    Action,
    Agent,
    Card,
    EffectFailed,
    EffectUnknown,
    Jump,
    Precondition,
    effect,
    gate,
    observation,
    step,
    validator,
)
from tests.agents.open_gates.launching import Launch, Said, Survey, written

__all__ = ["Launch", "Survey"]  # which are known too


class Errand(Agent):
    """A child, which asks at its end."""

    name = "errand"

    class State(BaseModel):
        topic: str = ""
        found: str = ""

    @step
    def look(self, topic: str) -> dict[str, Any]:
        return {"found": topic}

    @gate()
    def review(self, found: str) -> Card:
        return Card(title="Good?", question=None, actions=[], summary=found)


class Busy(Agent):
    """Asks, and meanwhile does in one step what its input says."""

    name = "busy"
    signals = {"go": None}

    class State(BaseModel):
        ledger: str = "/dev/null"
        does: str = ""
        topic: str = ""
        note: str = ""
        worked: str = ""
        feedback: list[Said] = []

    @step
    def begin(self, topic: str, feedback: list[Said]) -> dict[str, Any]:
        return {"note": f"{topic} {len(feedback)}"}

    @gate(waits=False, edits=["note"], on_reject="begin")
    def agree(self, topic: str, note: str) -> Card:
        return Card(title="Agreed?", actions=[Action(id="note", title="Note", pointer="/note")])

    @step(retry=1)
    def work(self, ledger: str, does: str) -> dict[str, Any]:
        written(ledger, "began")
        self.once("call", written, ledger, "called")
        if self.checkpointed() is None:
            written(ledger, "counted")
            self.checkpoint(1)
        if does == "sleep":
            self.sleep_until(datetime.now(UTC) + timedelta(days=1))
        if does == "listen":
            self.wait_for_signal("go", timeout=timedelta(days=1))
        if does == "gather":
            self.gather(*[self.spawn("errand", {"topic": name}) for name in ("a", "b")])
        if does == "fail":
            raise RuntimeError("broken")
        written(ledger, "done")
        return {"worked": "done"}


class Redone(Agent):
    """Goes back past its open gate: a validator refuses what was made before the gate asked."""

    name = "redone"

    class State(BaseModel):
        ledger: str = "/dev/null"
        topic: str = ""
        made: str = ""
        used: str = ""
        note: str = "n"
        feedback: list[Said] = []

    @step
    def make(self, ledger: str, topic: str, feedback: list[Said]) -> dict[str, Any]:
        written(ledger, "make")
        return {"made": f"{topic} {len(feedback)}"}

    @gate(waits=False, edits=["note"])
    def agree(self, made: str, note: str) -> Card:
        return Card(title="Agreed?", actions=[Action(id="note", title="Note", pointer="/note")])

    @step(validators=["good"], tries=1, rings=1)
    def use(self, ledger: str, made: str) -> dict[str, Any]:
        written(ledger, "use")
        return {"used": made}

    @validator
    def good(self, used: str) -> str | None:
        return "make it again" if used.endswith("0") else None


class Payment(BaseModel):
    amount: int
    to: str = "acme"


class Paying(Agent):
    """Two gates allow the same payments, each of which is an action."""

    name = "paying"

    class State(BaseModel):
        ledger: str = "/dev/null"
        mode: str = ""
        first: Payment = Payment(amount=10)
        second: Payment = Payment(amount=20)
        current: str = ""
        left: list[str] = ["first", "second"]
        receipts: list[str] = []
        feedback: list[Said] = []

    @gate(waits=False, allows=["pay"])
    def finance(self, first: Payment, second: Payment) -> Card:
        return Card(title="Pay?", actions=actions())

    @gate(waits=False, allows=["pay"])
    def legal(self, first: Payment, second: Payment) -> Card:
        return Card(title="Is it legal?", actions=actions())

    @step
    def choose(self, left: list[str]) -> dict[str, Any]:
        return {"current": left[0], "left": left[1:]}

    @effect(action="current", undo="take_back", idempotent=True)
    def pay(self, ledger: str, current: str, first: Payment, second: Payment, *, key: str) -> dict[str, Any]:
        written(ledger, f"pay {current} {({'first': first, 'second': second}[current]).amount}")
        return {"receipts": [current]}

    @step
    def more(self, left: list[str]) -> Any:
        return Jump("choose") if left else {}

    @step
    def close(self, receipts: list[str]) -> dict[str, Any]:
        return {}

    def take_back(self, ledger: str, receipts: list[str]) -> None:
        written(ledger, f"take back {receipts[-1]}")


def actions() -> list[Action]:
    """The two payments."""
    return [
        Action(id="first", title="First", effect="pay", pointer="/first"),
        Action(id="second", title="Second", effect="pay", pointer="/second"),
    ]


class Doubtful(Agent):
    """Leaves an effect behind of which nobody knows whether it happened, with a gate open beside it."""

    name = "doubtful"

    class State(BaseModel):
        ledger: str = "/dev/null"
        topic: str = ""
        note: str = "n"
        receipt: str = ""
        more: str = ""
        feedback: list[Said] = []

    @step
    def begin(self, topic: str) -> dict[str, Any]:
        return {}

    @gate(waits=False, edits=["note"])
    def agree(self, note: str) -> Card:
        return Card(title="Agreed?", actions=[Action(id="note", title="Note", pointer="/note")])

    @step
    def plan(self, topic: str) -> Any:
        return Jump("close", {"more": topic}) if topic == "water" else {"more": topic}

    @effect(undo="cancel", guarded=False)
    def book(self, ledger: str, topic: str, more: str, *, key: str) -> dict[str, Any]:
        written(ledger, f"book {topic}")
        if topic == "tea":
            raise EffectUnknown("the line was cut")
        return {"receipt": key}

    @step
    def close(self, receipt: str) -> dict[str, Any]:
        return {}

    def cancel(self, ledger: str, *, key: str) -> None:
        written(ledger, "cancel")


class Sparse(Launch):
    """Saves its plain steps with what comes next."""

    name = "sparse"
    checkpoints = "milestones"


class Repeating(Agent):
    """Asks again while its first question is open, and acts once after each approval."""

    name = "repeating"

    class State(BaseModel):
        ledger: str = "/dev/null"
        turns: int = 0

    @gate(waits=False, allows=["send"])
    def agree(self, turns: int) -> Card:
        return Card(title=f"Turn {turns}?", actions=[Action(id="turn", title="Turn", pointer="/turns")])

    @step
    def work(self, ledger: str, turns: int) -> dict[str, Any]:
        written(ledger, f"work {turns}")
        return {}

    @step
    def again(self, turns: int) -> Any:
        return Jump("agree", {"turns": turns + 1}) if turns < 1 else {}

    @effect(irreversible=True, retry=1, backoff=0.0)
    def send(self, ledger: str, turns: int, *, key: str) -> dict[str, Any]:
        written(ledger, f"send {turns}")
        return {}


class Sending(Agent):
    """Sends something that is refused at first, while another question is open."""

    name = "sending"

    class State(BaseModel):
        ledger: str
        note: str = "n"
        text: str = "t"

    @gate(waits=False, allows=["send"])
    def release(self, text: str) -> Card:
        return Card(title="Send it?", actions=[Action(id="text", title="Text", pointer="/text")])

    @gate(waits=False, edits=["note"])
    def agree(self, note: str) -> Card:
        return Card(title="Agreed?", actions=[Action(id="note", title="Note", pointer="/note")])

    @effect(irreversible=True, retry=2)
    def send(self, ledger: str, text: str, *, key: str) -> dict[str, Any]:
        written(ledger, f"send {key}")
        if len(done(ledger)) < 2:
            raise EffectFailed("503", retry=True)
        return {}


def done(ledger: str) -> list[str]:
    """What was done, in order."""
    return Path(ledger).read_text().splitlines()


class Careful(Agent):
    """Sends and bills once both are allowed, and the rate is what it was; an unrelated question is open meanwhile."""

    name = "careful"

    class State(BaseModel):
        ledger: str
        rate: str  # a file
        parcel: str = "tea"
        price: int = 10
        note: str = "n"
        feedback: list[Said] = []

    @observation
    def rate_now(self, rate: str) -> str:
        return Path(rate).read_text()

    @gate(waits=False, allows=["send", "bill"], observes=["rate_now"])
    def release(self, parcel: str, price: int) -> Card:
        still = Precondition(
            id="rate", label="the rate is {value}", observes="rate_now", effects=["bill"], required=True
        )
        return Card(
            title="Send and bill?",
            actions=[
                Action(id="send", title="Send", effect="send", pointer="/parcel"),
                Action(id="bill", title="Bill", effect="bill", pointer="/price"),
            ],
            preconditions=[still],
        )

    @gate(waits=False, edits=["note"])
    def agree(self, note: str) -> Card:
        return Card(title="Agreed?", actions=[Action(id="note", title="Note", pointer="/note")])

    @step
    def prepare(self, ledger: str) -> dict[str, Any]:
        written(ledger, "prepare")
        return {}

    @effect(irreversible=True)
    def send(self, ledger: str, parcel: str, *, key: str) -> dict[str, Any]:
        written(ledger, f"send {parcel}")
        return {}

    @effect(irreversible=True)
    def bill(self, ledger: str, price: int, *, key: str) -> dict[str, Any]:
        written(ledger, f"bill {price}")
        return {}


class Catching(Agent):
    """Its work fails and is caught, by a step that the open question holds where `needs` says so."""

    name = "catching"

    class State(BaseModel):
        ledger: str
        topic: str = ""
        note: str = "n"
        done: str = ""
        feedback: list[Said] = []

    @step
    def begin(self, ledger: str, topic: str) -> dict[str, Any]:
        written(ledger, "begin")
        return {}

    @gate(waits=False, edits=["note"], on_reject="begin")
    def agree(self, note: str) -> Card:
        return Card(title="Agreed?", actions=[Action(id="note", title="Note", pointer="/note")])

    @step(retry=0, catch="by_hand", loop_guard=3)
    def work(self, ledger: str) -> dict[str, Any]:
        written(ledger, "work")
        raise RuntimeError("broken")

    @step
    def close(self, done: str) -> dict[str, Any]:
        return {}

    @step
    def by_hand(self, ledger: str, topic: str) -> dict[str, Any]:
        written(ledger, "by hand")
        return {"done": topic}
