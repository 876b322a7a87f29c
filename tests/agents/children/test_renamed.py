"""A new version that renames the step, and says so in its upcaster, goes on with the children of the old one."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel

from agents import Agent, Card, gate, step, upcast
from agents.testing import Trial


class Asking(Agent):
    """A child that asks."""

    name = "asking"
    team = "Support"

    class State(BaseModel):
        word: str

    @gate()
    def ask(self, word: str) -> Card:
        return Card(title=word, question=None, actions=[], summary=word)


class First(Agent):
    """Starts a child for each word."""

    name = "renamed_fan_out"
    team = "Support"

    class State(BaseModel):
        words: list[str]
        said: list[str] = []

    @step
    def fan_out(self, words: list[str]) -> dict[str, Any]:
        children = [self.spawn("asking", {"word": word}) for word in words]
        return {"said": [each.state["word"] for each in self.gather(*children) if each]}


class Second(Agent):
    """Does the same under another name."""

    name = "renamed_fan_out"
    version = "2"
    team = "Support"
    State: ClassVar[Any] = First.State

    @upcast("1", steps={"fan_out": "spread"})
    @classmethod
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        return state

    @step
    def spread(self, words: list[str]) -> dict[str, Any]:
        children = [self.spawn("asking", {"word": word}) for word in words]
        return {"said": [each.state["word"] for each in self.gather(*children) if each]}


def test_a_renamed_step_finds_the_children_that_it_waits_for() -> None:
    run = Trial(First, words=["a", "b"], starts=[Asking])
    run.children[0].approve()
    run.upgrade(Second)
    assert (run.version, len(run.children)) == ("2", 2)
    run.children[1].approve()
    assert (run.status, run.state["said"]) == ("completed", ["a", "b"])
    assert [each.status for each in run.children] == ["completed"] * 2
