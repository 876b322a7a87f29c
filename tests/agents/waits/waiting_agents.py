"""Agents that wait: for a time, for a signal, or both."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, SecretStr

from agents import Agent, Card, SignalTimeout, gate, step
from checkpoints.values import artifacts


def write(ledger: str, line: str) -> None:
    """Write a line of what really happened."""
    with Path(ledger).open("a") as file:
        file.write(f"{line}\n")


class Health(BaseModel):
    """The value of a signal."""

    percent: int = Field(ge=0, le=100)


class Code(BaseModel):
    """A signal's value with a secret in it."""

    by: str
    pin: SecretStr


class Sleeper(Agent):
    """Sleeps between two steps, and counts in a file how often its step began."""

    name = "sleeper"

    class State(BaseModel):
        ledger: str
        seconds: float = 3600
        times: int = 1
        slept: list[str] = []
        said: str = ""

    @step
    def sleep(self, ledger: str, seconds: float, times: int) -> dict[str, Any]:
        write(ledger, "began")
        self.once("ask", write, ledger, "asked")
        for _ in range(times):
            self.sleep_until(timedelta(seconds=seconds))
        return {"slept": [f"{times} times"]}

    @gate()
    def review(self, slept: list[str]) -> Card:
        return Card(title="Slept well?", question=None, actions=[], summary="Say so.")

    @step
    def say(self, slept: list[str]) -> dict[str, Any]:
        return {"said": "slept"}


def keep_text(text: str) -> dict[str, Any]:
    """Keep a file with this text."""
    return artifacts.keep(text.encode(), "text/plain")


class Receiver(Agent):
    """Keeps a file of its own, then saves whatever a signal brings."""

    name = "receiver"
    signals = {"paper": dict[str, Any]}

    class State(BaseModel):
        own: dict[str, Any] = {}
        paper: dict[str, Any] = {}

    @step
    def keep(self) -> dict[str, Any]:
        return {"own": self.once("keep", keep_text, "its own")}

    @step
    def receive(self) -> dict[str, Any]:
        return {"paper": self.wait_for_signal("paper")}


class Listener(Agent):
    """Waits for signals, as many as it is told, one after the other."""

    name = "listener"
    signals = {"health": Health, "go": None}

    class State(BaseModel):
        count: int = 1
        timeout: float | None = None
        swallows: bool = False
        heard: list[int] = []
        late: bool = False
        went: bool = False

    @step
    def listen(self, count: int, timeout: float | None, swallows: bool) -> dict[str, Any]:
        heard = []
        for _ in range(count):
            try:
                within = None if timeout is None else timedelta(seconds=timeout)
                heard.append(self.wait_for_signal("health", timeout=within).percent)
            except SignalTimeout:
                return {"late": True}
            except BaseException:
                if not swallows:
                    raise
        return {"heard": heard}

    @step
    def go(self) -> dict[str, Any]:
        self.wait_for_signal("go")
        return {"went": True}


class Escalating(Agent):
    """Waits for an answer, and once that is late for another one."""

    name = "escalating"
    signals = {"health": Health, "go": None}

    class State(BaseModel):
        took: list[str] = []
        later: int = -1

    @step
    def ask(self) -> dict[str, Any]:
        try:
            self.wait_for_signal("health", timeout=timedelta(hours=1))
        except SignalTimeout:
            self.wait_for_signal("go")
            return {"took": ["late"]}
        return {"took": ["in time"]}

    @step
    def read(self) -> dict[str, Any]:
        return {"later": self.wait_for_signal("health").percent}


class Locked(Agent):
    """Waits for a secret."""

    name = "locked"
    signals = {"code": Code}

    class State(BaseModel):
        length: int = 0

    @step
    def unlock(self) -> dict[str, Any]:
        return {"length": len(self.wait_for_signal("code").pin.get_secret_value())}


class Relay(Agent):
    """Two steps that wait for the same signal, of which the first fails until a file is there."""

    name = "relay"
    signals = {"health": Health}

    class State(BaseModel):
        mended: str = ""
        size: int = 0
        first: list[int] = []
        second: int = -1

    @step(retry=0)
    def listen(self, mended: str) -> dict[str, Any]:
        heard = [self.wait_for_signal("health").percent]
        if mended and not Path(mended).exists():
            raise RuntimeError("failed here")
        return {"first": [*heard, self.wait_for_signal("health").percent]}

    @step
    def hear(self, size: int) -> dict[str, Any]:
        return {"second": self.wait_for_signal("health").percent}


class Counter(Agent):
    """Works on many items in one step, and keeps how far it is."""

    name = "counter"

    class State(BaseModel):
        ledger: str
        items: int = 10
        every: int = 100
        milestone: int = -1
        fails_at: int = -1
        mode: str = ""
        done: list[int] = []

    @step(backoff=0)
    def count(self, ledger: str, items: int, every: int, milestone: int, fails_at: int, mode: str) -> dict[str, Any]:
        if mode:
            self.checkpoint("x" * 11_000_000 if mode == "large" else {"set": {1}})
        done = self.checkpointed(default=[])
        for item in range(len(done), items):
            write(ledger, str(item))
            done.append(item)
            self.checkpoint(done, every=every)
            if item == milestone:
                self.checkpoint(done, "milestone")
            if item == fails_at and self.attempt == 1:
                raise RuntimeError("failed here")
        return {"done": done}


class Series(Agent):
    """Four steps that read one signal each; the inputs of the second and of the last one can be edited."""

    name = "series"
    signals = {"health": Health}

    class State(BaseModel):
        salt: int = 0
        pepper: int = 0
        first: int = -1
        second: int = -1
        third: int = -1
        fourth: int = -1

    @step
    def one(self) -> dict[str, Any]:
        return {"first": self.wait_for_signal("health").percent}

    @step
    def two(self, salt: int) -> dict[str, Any]:
        return {"second": self.wait_for_signal("health").percent}

    @step
    def three(self) -> dict[str, Any]:
        return {"third": self.wait_for_signal("health").percent}

    @step
    def four(self, first: int, pepper: int) -> dict[str, Any]:
        return {"fourth": self.wait_for_signal("health").percent}


class Twin(Series):
    """The same, under another name."""

    name = "twin"
