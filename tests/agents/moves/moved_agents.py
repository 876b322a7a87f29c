"""Agents for the tests of rewinds: what they do outside is a line in a file, whose path is in the state."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from agents import (
    Action,
    Agent,
    Append,
    Card,
    Done,
    EffectFailed,
    EffectUnknown,
    Jump,
    Splice,
    effect,
    gate,
    step,
    undo,
)


def write_line(path: str, *words: object) -> None:
    """Append one line to an external ledger, in one write."""
    with Path(path).open("a") as ledger:
        ledger.write(" ".join(map(str, words)) + "\n")


def fails_now(flag: str) -> bool:
    """Whether a file tells the outside world to fail; once."""
    there = bool(flag) and Path(flag).exists()
    if there:
        Path(flag).unlink()
    return there


class Feedback(BaseModel):
    """What a person sent back."""

    text: str
    by: str
    gate: int


class Chain(Agent):
    """Plain steps in a row, of which some read what others write."""

    name = "chain"

    class State(BaseModel):
        """`ran` shows which steps ran, in what order; it is read by none."""

        ledger: str = ""
        a: int = 1
        b: int = 1
        double: int = 0
        other: int = 0
        big: bool = False
        said: str = ""
        log: list[str] = []
        feedback: list[Feedback] = []

    @step
    def twice(self, ledger: str, a: int) -> dict[str, Any]:
        write_line(ledger, "twice", a)
        return {"double": a * 2, "log": Append(["twice"])}

    @step
    def aside(self, ledger: str, b: int) -> dict[str, Any]:
        write_line(ledger, "aside", b)
        return {"other": b + 1, "log": Append(["aside"])}

    @step
    def judge(self, ledger: str, double: int) -> dict[str, Any]:
        write_line(ledger, "judge", double)
        return {"big": double > 100, "log": Append(["judge"])}

    @step(reads_world=True)
    def look(self, ledger: str) -> dict[str, Any]:
        write_line(ledger, "look")
        return {}

    @step
    def say(self, ledger: str, big: bool, other: int) -> dict[str, Any]:
        write_line(ledger, "say", big, other)
        return {"said": f"{big} {other}", "log": Append(["say"])}


class Payments(Agent):
    """A loop that pays whoever is in the list, one after the other."""

    name = "payments"

    class State(BaseModel):
        ledger: str
        people: list[str]
        place: int = 0
        current: str = ""
        receipt: str = ""
        receipts: list[str] = []

    @step
    def take(self, people: list[str], place: int) -> Any:
        if place >= len(people):
            return Done()
        return {"current": people[place], "place": place + 1}

    @effect(undo="cancel", guarded=False)
    def pay(self, ledger: str, current: str, *, key: str) -> dict[str, Any]:
        write_line(ledger, "pay", current, key[:8])
        return {"receipt": f"{current}-{key[:8]}"}

    @undo(idempotent=True)
    def cancel(self, ledger: str, receipt: str) -> None:
        write_line(ledger, "cancel", receipt)

    @step
    def keep(self, receipt: str) -> Any:
        return Jump("take", {"receipts": Append([receipt])})


class Booking(Agent):
    """An order that is asked about, booked, charged and told: undoable, made of one another, and one that is final."""

    name = "booking"

    class State(BaseModel):
        """`flag` and `undo_flag` are files that make the world fail once."""

        ledger: str
        size: int = 1
        offer: int = 0
        flag: str = ""
        undo_flag: str = ""
        room: str = ""
        charge: str = ""
        told: str = ""
        feedback: list[Feedback] = []
        decision: dict[str, Any] | None = None

    @step
    def plan(self, size: int, feedback: list[Feedback]) -> dict[str, Any]:
        return {"offer": size * 10 - len(feedback)}

    @gate(allows=["book", "pay", "tell"], edits=["offer"], on_reject="plan")
    def review(self, offer: int) -> Card:
        return Card(title=f"Book for {offer}?", actions=[Action(id="offer", effect="pay", pointer="/offer")])

    @effect(undo="unbook")
    def book(self, ledger: str, offer: int, *, key: str) -> dict[str, Any]:
        write_line(ledger, "book", offer, key[:8])
        return {"room": f"room {key[:8]}"}

    @undo
    def unbook(self, ledger: str, room: str) -> None:
        write_line(ledger, "unbook", room)

    @effect(undo="refund")
    def pay(self, ledger: str, flag: str, room: str, offer: int, *, key: str) -> dict[str, Any]:
        write_line(ledger, "pay", room, key[:8])
        if fails_now(flag):
            raise EffectUnknown("the line was cut")
        return {"charge": f"charge {key[:8]}"}

    @undo
    def refund(self, ledger: str, undo_flag: str, charge: str) -> None:
        if fails_now(undo_flag):
            raise EffectFailed("refused: 422")
        write_line(ledger, "refund", charge)

    @effect(irreversible=True)
    def tell(self, ledger: str, charge: str, *, key: str) -> dict[str, Any]:
        write_line(ledger, "tell", charge, key[:8])
        return {"told": charge}


class Deposit(Agent):
    """Pays before it asks, and has a way to go on where nobody answers."""

    name = "deposit"

    class State(BaseModel):
        ledger: str
        paid: str = ""
        late: bool = False

    @effect(undo="give_back", guarded=False)
    def pay(self, ledger: str, *, key: str) -> dict[str, Any]:
        write_line(ledger, "pay", key[:8])
        return {"paid": key[:8]}

    @undo
    def give_back(self, ledger: str, paid: str) -> None:
        write_line(ledger, "give_back", paid)

    @gate(on_expire="remind")
    def review(self, paid: str) -> Card:
        return Card(title=f"Keep {paid}?")

    @step
    def remind(self) -> dict[str, Any]:
        return {"late": True}


class Reader(Agent):
    """One effect whose provider can be asked by key; `world` is a folder with a file for each key that it has done."""

    name = "reader"

    class State(BaseModel):
        ledger: str
        world: str
        mode: str = ""
        receipt: str = ""

    @effect(irreversible=True, guarded=False, readable="find", retry=2)
    def send(self, ledger: str, world: str, mode: str, *, key: str) -> dict[str, Any]:
        first = not Path(ledger).exists()
        write_line(ledger, "send", key[:8])
        if not (first and mode == "lost"):
            (Path(world) / key).touch()
        if first and mode:
            raise EffectUnknown("the line was cut")
        return {"receipt": key}

    def find(self, world: str, mode: str, *, key: str) -> dict[str, Any] | None:
        if mode == "mute":
            raise EffectUnknown("it does not answer")
        return {"receipt": key} if (Path(world) / key).exists() else None


class Waiter(Agent):
    """One effect that is under way until a file is there; what it does is done before that."""

    name = "waiter"

    class State(BaseModel):
        ledger: str
        gate: str
        end: str = ""
        receipt: str = ""

    @effect(undo="recall", guarded=False, idempotent=True)
    def send(self, ledger: str, gate: str, end: str, *, key: str) -> dict[str, Any]:
        write_line(ledger, "send", key[:8])
        while not Path(gate).exists():
            time.sleep(0.01)
        if end == "refused":
            raise EffectFailed("422")
        return {"receipt": key}

    @undo
    def recall(self, ledger: str) -> None:
        write_line(ledger, "recall")


class Doubter(Waiter):
    """The same at a provider that does not know keys: what is in doubt is asked."""

    name = "doubter"

    @effect(undo="recall", guarded=False, writes=["receipt"])
    def send(self, ledger: str, gate: str, end: str, *, key: str) -> dict[str, Any]:
        return Waiter.send(self, ledger, gate, end, key=key)


class Trip(Agent):
    """A trip that buys a ticket, or goes without one; `flag` and `undo_flag` are files that let the world fail once."""

    name = "trip"

    class State(BaseModel):
        ledger: str
        mode: str = ""
        flag: str = ""
        undo_flag: str = ""
        ticket: str = ""
        packed: bool = False

    @step
    def choose(self, mode: str) -> Any:
        return Done() if mode == "skip" else Jump("buy")

    @effect(undo="sell", guarded=False)
    def buy(self, ledger: str, flag: str, *, key: str) -> dict[str, Any]:
        write_line(ledger, "buy", key[:8])
        if fails_now(flag):
            raise EffectUnknown("the line was cut")
        return {"ticket": key[:8]}

    @undo
    def sell(self, ledger: str, undo_flag: str, ticket: str) -> None:
        if fails_now(undo_flag):
            raise EffectFailed("refused: 422")
        write_line(ledger, "sell", ticket)

    @step
    def pack(self, ticket: str) -> dict[str, Any]:
        return {"packed": bool(ticket)}


class Once(Agent):
    """An effect that is tried once, with an undo that may be tried again."""

    name = "once"

    class State(BaseModel):
        """`flag` is a file that lets the undo fail once."""

        ledger: str
        what: str = ""
        flag: str = ""
        ticket: str = ""

    @effect(undo="sell", guarded=False, retry=0)
    def buy(self, ledger: str, what: str, *, key: str) -> dict[str, Any]:
        write_line(ledger, "buy", what)
        return {"ticket": key[:8]}

    @undo(idempotent=True)
    def sell(self, ledger: str, flag: str, ticket: str) -> None:
        if fails_now(flag):
            raise EffectUnknown("the line was cut")
        write_line(ledger, "sell", ticket)


class Trimmer(Agent):
    """A step that changes a list which it does not read."""

    name = "trimmer"

    class State(BaseModel):
        log: list[str] = ["a", "b"]
        size: int = 1

    @step
    def trim(self, size: int) -> dict[str, Any]:
        return {"log": Splice(1, size, ["t"])}


class Final(Agent):
    """One effect that cannot be undone, with a step before it and one after."""

    name = "final"

    class State(BaseModel):
        ledger: str
        size: int = 1
        offer: int = 0
        told: str = ""
        closed: bool = False

    @step
    def plan(self, size: int) -> dict[str, Any]:
        return {"offer": size}

    @effect(irreversible=True, guarded=False)
    def tell(self, ledger: str, offer: int, *, key: str) -> dict[str, Any]:
        write_line(ledger, "tell", offer)
        return {"told": key}

    @step
    def close(self, told: str) -> dict[str, Any]:
        return {"closed": bool(told)}
