"""Agents that start others: a parent of any number of children, which work, fail, wait or ask as they are told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from agents import Agent, Card, ChildFailed, ChildRun, EffectFailed, Jump, effect, gate, step, validator


class Worker(Agent):
    """A child: it counts in a file how often it ran, and then does what its input says."""

    name = "child_worker"

    class State(BaseModel):
        ledger: str = "/dev/null"
        name: str = ""
        mode: str = ""
        found: str = ""

    @step(retry=0, catch="give_up")
    def work(self, ledger: str, name: str, mode: str) -> dict[str, Any]:
        with Path(ledger).open("a") as file:
            file.write(f"{name}\n")
        if mode == "sleep":
            self.sleep_until(datetime.now(UTC) + timedelta(days=1))
        return {"found": f"found {name}"}

    @gate()
    def review(self, mode: str, found: str) -> Card | None:
        if mode not in ("ask", "refused"):
            return None
        return Card(title="Good?", question=None, actions=[], summary=found)

    @step
    def give_up(self, found: str) -> dict[str, Any]:
        return {"found": found or "nothing"}


class Parent(Agent):
    """Starts a child for each name, and gathers them."""

    name = "parent"
    children_at_once = 3

    class State(BaseModel):
        ledger: str = "/dev/null"
        names: list[str] = []
        modes: dict[str, str] = {}
        need: str | int = "all"
        swallows: bool = False
        found: list[str | None] = []
        caught: str = ""
        after: str = ""

    @step
    def fan_out(
        self, ledger: str, names: list[str], modes: dict[str, str], need: str | int, swallows: bool
    ) -> dict[str, Any]:
        given = [{"ledger": ledger, "name": name, "mode": modes.get(name, "")} for name in names]
        children = [self.spawn("child_worker", each, name=f"Child {each['name']}") for each in given]
        if need == "none":
            return {"found": ["started"]}
        try:
            results = self.gather(*children, need=need)
        except ChildFailed as error:
            if not swallows:
                raise
            return {"caught": str(error)}
        except BaseException:
            if not swallows:
                raise
            return {"caught": "what is no error"}
        return {"found": [each and each.state["found"] for each in results]}

    @gate()
    def look(self, modes: dict[str, str], found: list[str | None]) -> Card | None:
        return seen(modes)

    @step
    def end(self, found: list[str | None]) -> dict[str, Any]:
        return {"after": f"{len(found)} found"}


class Nested(Agent):
    """Starts a run of itself, and so on, as deep as it is told."""

    name = "nested"

    class State(BaseModel):
        depth: int = 0
        below: int = 0

    @step(retry=0)
    def go_down(self, depth: int) -> dict[str, Any]:
        if depth == 0:
            return {"below": 0}
        [below] = self.gather(self.spawn("nested", {"depth": depth - 1}))
        return {"below": (below.state["below"] if below else 0) + 1}


class Misled(Agent):
    """Starts a run where it may not, or with what does not fit."""

    name = "misled"

    class State(BaseModel):
        mode: str = ""
        ended: bool = False

    @step(retry=0)
    def begin(self, mode: str) -> dict[str, Any]:
        if mode == "unknown":
            self.spawn("nobody", {})
        elif mode == "input":
            self.spawn("child_worker", {"surname": 1})
        elif mode == "odd":
            self.spawn("child_worker", {"name": {1, 2}})
        elif mode == "need":
            self.gather(self.spawn("child_worker", {}), need=2)
        elif mode == "twice":
            child = self.spawn("child_worker", {})
            self.gather(child, child)
        elif mode in ("strange", "missing"):
            other = self.run.id - 1 if mode == "strange" else 999_999_999
            self.gather(ChildRun(other, "child_worker"))
        elif mode == "empty":
            assert self.gather() == []
        return {}

    @gate()
    def look(self, mode: str) -> Card | None:
        if mode == "gate":
            self.spawn("child_worker", {})
        return None

    @step
    def end(self, mode: str) -> dict[str, Any]:
        return {"ended": True}


class Payer(Agent):
    """A child that pays for a name, after a person's approval where it is told, and can take it back."""

    name = "child_payer"

    class State(BaseModel):
        ledger: str
        name: str = ""
        mode: str = ""
        paid: str = ""

    class Config(BaseModel):
        bank: str = "first"

    @gate(allows=["pay"])
    def ask(self, name: str, mode: str) -> Card | None:
        if mode != "ask":
            return None
        return Card(title=f"Pay {name}?", question=None, actions=[], summary=name)

    @effect(undo="take_back", guarded=False)
    def pay(self, ledger: str, name: str, mode: str) -> dict[str, Any]:
        with Path(ledger).open("a") as file:
            file.write(f"pay {name}\n")
        return {"paid": name}

    def take_back(self, ledger: str, name: str, mode: str) -> None:
        with Path(ledger).open("a") as file:
            file.write(f"take back {name}\n")
        if mode == "stuck":
            raise EffectFailed("the bank is closed")

    @step
    def wait(self, mode: str) -> dict[str, Any]:
        if mode == "sleep":
            self.sleep_until(datetime.now(UTC) + timedelta(days=1))
        return {}

    @effect(irreversible=True, guarded=False)
    def tell(self, ledger: str, name: str, mode: str) -> dict[str, Any]:
        if mode == "final":
            with Path(ledger).open("a") as file:
                file.write(f"tell {name}\n")
        return {"paid": f"{name}, told"}


class Names(BaseModel):
    """Whom children pay, and how."""

    ledger: str
    names: list[str] = []
    modes: dict[str, str] = {}


def pay_each(
    agent: Agent, ledger: str, names: list[str], modes: dict[str, str], config: dict[str, str] | None = None
) -> list[ChildRun]:
    """Start a payment for each name."""
    given = [{"ledger": ledger, "name": name, "mode": modes.get(name, "")} for name in names]
    return [agent.spawn("child_payer", each, config, f"Child {each['name']}") for each in given]


def paid_of(results: list[Any]) -> list[str]:
    """What was paid, in order."""
    return [each.state["paid"] if each else "" for each in results]


def seen(modes: dict[str, str]) -> Card | None:
    """What a gate asks that asks only where it is told to."""
    return Card(title="Seen?", question=None, actions=[], summary="Say so.") if "look" in modes else None


class Payroll(Agent):
    """Has each name paid by a child, and says what became of it."""

    name = "payroll"

    class State(Names):
        bank: str = "first"
        before: str = ""
        feedback: list[str] = []
        paid: list[str] = []
        closed: int = 0

    @step
    def prepare(self, before: str) -> dict[str, Any]:
        return {"before": before or "prepared"}

    @step
    def pay_all(self, ledger: str, names: list[str], modes: dict[str, str], bank: str) -> dict[str, Any]:
        return {"paid": paid_of(self.gather(*pay_each(self, ledger, names, modes, {"bank": bank})))}

    @gate(on_reject="prepare")
    def look(self, paid: list[str], modes: dict[str, str]) -> Card | None:
        return seen(modes)

    @step
    def close(self, paid: list[str]) -> dict[str, Any]:
        return {"closed": len(paid)}


class Strict(Agent):
    """Has each name paid by a child in its only step, some time later, whose result a validator may refuse."""

    name = "strict"

    class State(Names):
        paid: list[str] = []

    @step(retry=0, validators=["enough"], tries=1, rings=0)
    def pay_all(self, ledger: str, names: list[str], modes: dict[str, str]) -> dict[str, Any]:
        if "late" in modes:
            self.sleep_until(timedelta(days=1))
        return {"paid": paid_of(self.gather(*pay_each(self, ledger, names, modes)))}

    @validator
    def enough(self, paid: list[str], modes: dict[str, str]) -> str | None:
        return "not enough" if "strict" in modes else None


class Rash(Agent):
    """Has a child pay, and then fails, which its plan or its step catches."""

    name = "rash"

    class State(BaseModel):
        ledger: str
        swallows: bool = False
        told: str = ""

    @step(retry=0, catch="give_up")
    def act(self, ledger: str, swallows: bool) -> Jump:
        try:
            self.gather(self.spawn("child_payer", {"ledger": ledger, "name": "a"}, name="Child a"))
            raise ValueError("no")
        except ValueError:
            if not swallows:
                raise
        return Jump("end", {"told": "swallowed"})

    @step
    def give_up(self) -> dict[str, Any]:
        return {"told": "caught"}

    @step
    def end(self) -> dict[str, Any]:
        return {}


class Overseer(Agent):
    """Starts a payment for each name, and asks a person while they are made."""

    name = "overseer"

    class State(Names):
        started: int = 0

    @step
    def start(self, ledger: str, names: list[str], modes: dict[str, str]) -> dict[str, Any]:
        return {"started": len(pay_each(self, ledger, names, modes))}

    @gate()
    def look(self, started: int) -> Card | None:
        return Card(title="All well?", question=None, actions=[], summary=f"{started} are at work.")


class Looper(Agent):
    """Goes round, and falls asleep in its third turn."""

    name = "looper"

    class State(BaseModel):
        times: int = 0

    @step
    def go_round(self, times: int) -> Jump:
        if times == 2:
            self.sleep_until(datetime.now(UTC) + timedelta(days=1))
        return Jump("go_round", {"times": times + 1})


class AsksBeside(Agent):
    """Has each name paid by a child while a person is asked, and may then wait for a signal in the same step."""

    name = "asks_beside"
    signals = {"go": None}

    class State(Names):
        need: int = 1
        paid: list[str] = []

    @gate(waits=False)
    def agree(self, names: list[str]) -> Card:
        return Card(title="Agreed?", question=None, actions=[], summary="Say so.")

    @step(retry=0)
    def pay_all(self, ledger: str, names: list[str], modes: dict[str, str], need: int) -> dict[str, Any]:
        results = self.gather(*pay_each(self, ledger, names, modes), need=need)
        if "wait" in modes:
            self.wait_for_signal("go")
        return {"paid": paid_of(results)}


class Chief(Agent):
    """Starts a run that goes on beside its gate."""

    name = "chief"

    class State(BaseModel):
        ledger: str
        modes: dict[str, str] = {}
        done: int = 0

    @step
    def begin(self, ledger: str, modes: dict[str, str]) -> dict[str, Any]:
        given = {"ledger": ledger, "names": ["x"], "modes": modes}
        return {"done": len(self.gather(self.spawn("asks_beside", given, name="Child a")))}
