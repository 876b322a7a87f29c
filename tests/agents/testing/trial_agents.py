"""Agents that are put on trial: one with two actions and a failing step, and a second version of it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from agents import Action, Agent, Card, StepFailed, effect, gate, step, upcast

SENT: list[str] = []


class Letters(Agent):
    """Writes two letters and sends each one that is approved."""

    name = "trial-letters"

    class State(BaseModel):
        to: str
        team: str = ""
        first: dict[str, str] = {}
        second: dict[str, str] = {}
        told: str = ""
        expired: bool = False

    class Config(BaseModel):
        greeting: str = "Dear"

    @step
    def draft(self, to: str) -> dict[str, Any]:
        if to == "nobody":
            raise StepFailed("nobody is no address")
        self.note(f"Two letters to {to}.")
        return {"first": {"text": f"{self.config.greeting} {to}"}, "second": {"text": "Yours"}}

    @gate(allows=["send_first", "send_second"], edits=["first", "second"], on_expire="late")
    def review(self, to: str, first: dict[str, str], second: dict[str, str]) -> Card:
        verdicts = ["approve", "edit", "reject", "respond"]
        return Card(
            title=f"Write to {to}",
            actions=[
                Action(id="first", title="Send", pointer="/first", effect="send_first"),
                Action(id="second", title="Send", pointer="/second", effect="send_second", verdicts=verdicts),
            ],
        )

    @effect(irreversible=True)
    def send_first(self, first: dict[str, str], *, key: str) -> None:
        SENT.append(first["text"])

    @effect(irreversible=True, responds="told", then="end")
    def send_second(self, second: dict[str, str], *, key: str) -> dict[str, Any]:
        SENT.append(second["text"])
        return {"told": "sent"}

    @step
    def late(self) -> dict[str, Any]:
        return {"expired": True}

    @step
    def end(self) -> None:
        """Nothing is left to do."""


class Later(Letters):
    """The same in a second version, which asks otherwise."""

    version = "2"

    @upcast("1")
    @classmethod
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        return {**state, "second": {"text": "Kind regards"}}


class Apart(Letters):
    """Another version that takes over nothing."""

    version = "3"


class Wrong(Agent):
    """Has an effect that does not say whether it can be undone."""

    name = "wrong"

    class State(BaseModel):
        said: str = ""

    @effect()
    def act(self, said: str, *, key: str) -> None:
        """Never runs."""
