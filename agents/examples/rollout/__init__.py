"""The rollout agent: it puts a new version on a few servers, waits, hears how they do, and puts it on all.

It uses no model. Between its two effects it waits for a time, the soak, and then for a signal `health` from whatever
watches the servers:

    POST /api/runs/<id>/signals/health  {"value": {"errors": 0.2, "by": "prober"}, "key": "soak-1"}

With few errors it goes on by the approval that it has. With many, or without a signal in time, it asks people; where
they say no, the version is taken back from the few servers. Releases go to `SANDBOX_URL`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from agents import Action, Agent, Card, SignalTimeout, effect, gate, step, undo
from agents.examples.nouns import Noun, keep_state, read_inputs
from agents.examples.sending import ask_provider as ask


class Stage(Noun):
    """A version on so many servers."""

    service: str
    version: str
    servers: int = Field(ge=1)


class Release(Noun):
    """A release as the servers' control plane tells of it."""

    id: str
    status: str
    at: datetime


class Health(Noun):
    """How the servers do: the share of requests that fail, in percent, and who says so."""

    errors: float = Field(ge=0, le=100)
    by: str = ""


class Feedback(BaseModel):
    """A reviewer's words. The runner fills it in."""

    text: str
    by: str
    at: str
    gate: int


class Rollout(Agent):
    """Roll a version out: propose, ask, a few servers, soak, health, all servers."""

    name = "rollout"
    version = "3"
    team = "Support"
    from_1, from_2 = map(keep_state, "12")
    signals = {"health": Health}
    lasts = timedelta(days=14)

    class State(Noun):
        """What is saved after every step."""

        service: str = Field(min_length=1, max_length=80)
        version: str = Field(min_length=1, max_length=40)
        servers: int = Field(ge=2, le=10_000)
        soak: float = Field(default=3600, ge=0, title="Soak, in seconds")
        patience: float = Field(default=86_400, ge=1, title="How long the signal is waited for, in seconds")
        most_errors: float = Field(default=1.0, ge=0, le=100, title="Most errors, in percent")
        few: Stage | None = None
        all: Stage | None = None
        health: Health | None = None
        feedback: list[Feedback] = Field(default_factory=list)
        begun: Release | None = None
        soaked: datetime | None = None
        widened: Release | None = None
        summary: str = ""

    @classmethod
    def title(cls, state: State) -> str:
        """Say what is rolled out."""
        return f"{state.service} {state.version} on {state.servers} servers"

    @classmethod
    def result(cls, state: State) -> str:
        """Say what was done."""
        return state.summary

    @classmethod
    def inputs_from(cls, path: Path) -> list[dict[str, Any]]:
        """One input for each .json file of a folder, by name."""
        return read_inputs(path)

    @step(title="Propose the stages")
    def propose(self, service: str, version: str, servers: int, feedback: list[Feedback]) -> dict[str, Any]:
        """Take a tenth of the servers first, or half as many for each time that people said no."""
        number = max(1, servers // (10 * 2 ** len(feedback)))
        return {
            "few": Stage(service=service, version=version, servers=number),
            "all": Stage(service=service, version=version, servers=servers),
        }

    @gate(title="Review the rollout", policy="rollout", allows=["begin", "widen"], edits=["few"], on_reject="propose")
    def review(self, service: str, version: str, few: Stage, all: Stage, soak: float) -> Card:
        """Ask about both stages at once."""
        return Card(
            title=f"Roll out {service} {version}",
            summary=f"On {few.servers} of {all.servers} servers first; after {soak:g} s, if they are well, on all.",
            for_whom=service,
            amount=f"{all.servers} servers",
            risk="medium",
            actions=[
                Action(id="begin", title="Put it on a few servers", tool="servers.release", effect="begin",
                       pointer="/few", pinned=["/version", "/servers"]),
                Action(id="widen", title="Then on all", tool="servers.release", effect="widen",
                       pointer="/all", pinned=["/version", "/servers"]),
            ],
        )  # fmt: skip

    @effect(title="Put it on a few servers", undo="take_back", idempotent=True)
    def begin(self, few: Stage, *, key: str) -> dict[str, Any]:
        """Release to the first servers."""
        return {"begun": ask("/releases", few.model_dump(mode="json"), Release, key=key)}

    @undo(idempotent=True)
    def take_back(self, begun: Release | None) -> None:
        """Take the version back from them; as often as it is asked."""
        if begun:
            ask(f"/releases/{begun.id}/withdraw", {}, Release)

    @step(title="Soak", reads_world=True)
    def wait_a_while(self, begun: Release, soak: float) -> dict[str, Any]:
        """Wait; no worker is held."""
        self.sleep_until(begun.at + timedelta(seconds=soak), "soak")
        return {"soaked": datetime.now(UTC)}

    @step(title="Hear how they do", reads_world=True)
    def watch(self, soaked: datetime, patience: float) -> dict[str, Any]:
        """Wait for the signal; without it in time nothing is known."""
        try:
            return {"health": self.wait_for_signal("health", timeout=timedelta(seconds=patience))}
        except SignalTimeout:
            self.note("No signal came in time.")
            return {"health": None}

    @gate(title="Go on although it is not well", policy="rollout", allows=["widen"], on_reject="propose")
    def confirm(self, version: str, all: Stage, health: Health | None, most_errors: float) -> Card | None:
        """Ask only if it is not known to be well."""
        if health and health.errors <= most_errors:
            return None
        state = f"{health.errors:g} % errors, {most_errors:g} % are the most" if health else "nobody said how it does"
        return Card(
            title=f"Put {version} on all servers?",
            summary=f"{state}. If you say no, it is taken back from the first servers.",
            risk="high",
            reasons=[state],
            actions=[Action(id="widen", title="Put it on all", tool="servers.release", effect="widen", pointer="/all")],
        )

    @effect(title="Put it on all servers", undo="narrow", idempotent=True)
    def widen(self, all: Stage, *, key: str) -> dict[str, Any]:
        """Release to all servers."""
        return {"widened": ask("/releases", all.model_dump(mode="json"), Release, key=key)}

    @undo(idempotent=True)
    def narrow(self, widened: Release | None) -> None:
        """Take the version back from all; as often as it is asked."""
        if widened:
            ask(f"/releases/{widened.id}/withdraw", {}, Release)

    @step(title="Write the report")
    def report(self, all: Stage, health: Health | None) -> dict[str, Any]:
        """Say what was done."""
        well = f"{health.errors:g} % errors on the first ones" if health else "unknown on the first ones"
        return {"summary": f"{all.service} {all.version} is on {all.servers} servers; {well}."}
