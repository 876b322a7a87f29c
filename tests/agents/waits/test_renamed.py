"""A new version that renames the step under way, and says so in its upcaster, goes on with what that had kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel

from agents import Agent, step, upcast
from agents.models import Memo, StepCheckpoint, Wait
from agents.testing import Trial


class First(Agent):
    """Calls something once, keeps how far it is, and waits for a word and a time."""

    name = "renamed_waiting"
    team = "Support"
    signals = {"word": str}

    class State(BaseModel):
        ledger: str
        said: list[Any] = []

    def work(self, ledger: str) -> list[Any]:
        """The body of the step, under either name."""
        done = self.checkpointed(default=0)
        with Path(ledger).open("a") as file:
            file.writelines(f"item {item}\n" for item in range(done, 2))
        if not done:
            self.checkpoint(2)

        def called() -> str:
            with Path(ledger).open("a") as file:
                file.write("called\n")
            return "result"

        kept = self.once("call", called)
        first = self.wait_for_signal("word")
        second = self.wait_for_signal("word")
        return [kept, first, second]

    @step
    def old_step(self, ledger: str) -> dict[str, Any]:
        return {"said": self.work(ledger)}


class Second(First):
    """Does the same under another name."""

    name = "renamed_waiting"
    version = "2"
    State: ClassVar[Any] = First.State
    old_step = None  # type: ignore[assignment]

    @upcast("1", steps={"old_step": "new_step"})
    @classmethod
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        return state

    @step
    def new_step(self, ledger: str) -> dict[str, Any]:
        return {"said": self.work(ledger)}


def test_a_renamed_step_finds_its_waits_and_what_it_kept(tmp_path: Path) -> None:
    """It waited anew, began at its first item, and made its calls again."""
    ledger = tmp_path / "ledger"
    run = Trial(First, ledger=str(ledger))
    run.signal("word", "one")
    assert run.status == "waiting"
    run.upgrade(Second)
    assert (run.version, run.status) == ("2", "waiting")
    assert ledger.read_text().splitlines() == ["item 0", "item 1", "called"]
    for kind in (Wait, Memo, StepCheckpoint):
        assert {each.step for each in kind.objects.filter(run=run.row)} == {"new_step"}
    run.signal("word", "two")
    assert (run.status, run.state["said"]) == ("completed", ["result", "one", "two"])


class Early(Agent):
    """Two steps that wait for the same signal; the first waits for another one too."""

    name = "renamed_reader"
    team = "Support"
    signals = {"word": str, "end": None}

    class State(BaseModel):
        first: str = ""
        second: str = ""

    def read_both(self) -> str:
        """The body of the first step, under either name."""
        word = self.wait_for_signal("word")
        self.wait_for_signal("end")
        return str(word)

    @step
    def watch(self) -> dict[str, Any]:
        return {"first": self.read_both()}

    @step
    def read(self) -> dict[str, Any]:
        return {"second": self.wait_for_signal("word")}


class Late(Early):
    """Does the same; its first step has another name."""

    name = "renamed_reader"
    version = "2"
    State: ClassVar[Any] = Early.State
    watch = None  # type: ignore[assignment]
    read = None  # type: ignore[assignment]

    @upcast("1", steps={"watch": "look", "read": "reread"})
    @classmethod
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        return state

    @step
    def look(self) -> dict[str, Any]:
        return {"first": self.read_both()}

    @step
    def reread(self) -> dict[str, Any]:
        return {"second": self.wait_for_signal("word")}


def test_what_a_renamed_step_had_read_no_later_step_reads() -> None:
    """The wait kept the digest of the old step, so its signal counted as unread."""
    run = Trial(Early)
    run.signal("word", "one")
    run.upgrade(Late)
    run.signal("end")
    assert (run.status, run.state["first"]) == ("waiting", "one")
    run.signal("word", "two")
    assert (run.status, run.state["second"]) == ("completed", "two")
