"""An agent that pays only while the world is as it was, and the world: a file that the tests write.

`balance` is what the file says, less what the agent's own payments did: those are in the ledger.
"""

from __future__ import annotations

import os
import signal
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretBytes, SecretStr

from agents import Action, Agent, Card, EffectFailed, Precondition, StepFailed, effect, gate, observation, step
from approvals.models import Gate
from checkpoints.models import Run
from tests.factories.driven_runs import make_run

STILL = Precondition(id="balance", label="the balance is still {value}", observes="balance", effects=["pay"])
AWAKE = Precondition(id="awake", label="the shop is still as it is", observes="mood")


class Proposal(BaseModel):
    amount: Decimal


class Watcher(Agent):
    """Proposes, asks, pays and says so; every observation leaves a line in `looks`."""

    name = "watcher"

    class State(BaseModel):
        """What the card insists on and observes, and how the payments end, steers the test."""

        world: str
        required: bool = False
        observes: str = "balance"
        ends: list[str] = []
        proposal: Proposal | None = None
        payment: str = ""
        told: bool = False

    @step
    def propose(self) -> dict[str, Any]:
        return {"proposal": Proposal(amount=Decimal(10))}

    @observation(timeout=5)
    def balance(self, world: str) -> Any:
        """What the file says, line by line where it has several; some words in it are faults of the way there."""
        place = Path(world)
        said, *later = (place / "balance").read_text().splitlines()
        if later:
            (place / "balance").write_text("\n".join(later))
        with (place / "looks").open("a") as looks:
            looks.write(f"{said}\n")
        if said == "gone":
            raise ConnectionError("nobody answers")
        if said == "hopeless":
            raise StepFailed("there is no such account")
        if said == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        return {"nan": float("nan"), "large": "x" * 70_000}.get(said, {"amount": said, "currency": "EUR"})

    @observation
    def mood(self, world: str) -> str:
        place = Path(world) / "mood"
        return place.read_text() if place.exists() else "calm"

    @gate(allows=["pay", "tell"], edits=["proposal"], on_reject="propose", observes=["balance", "mood"])
    def review(self, proposal: Proposal, required: bool, observes: str) -> Card:
        still = Precondition(**{**STILL.to_json(), "required": required, "observes": observes})
        return Card(
            title=f"Pay {proposal.amount}",
            actions=[Action(id="pay", effect="pay", pointer="/proposal")],
            preconditions=[still, AWAKE],
        )

    @effect(undo="cancel", idempotent=True)
    def pay(self, world: str, ends: list[str], proposal: Proposal, *, key: str) -> dict[str, Any]:
        ledger = Path(world) / "paid"
        before = ledger.read_text().splitlines() if ledger.exists() else []
        end = ends[len(before)] if len(before) < len(ends) else "done"
        with ledger.open("a") as lines:
            lines.write(f"{key} {end}\n")
        if end == "moody":
            (Path(world) / "mood").write_text("upset")
        elif end != "done":
            raise EffectFailed(end, retry=end == "unsent")
        return {"payment": key}

    def cancel(self, world: str) -> None:
        (Path(world) / "cancelled").touch()

    @effect(irreversible=True)
    def tell(self, world: str, *, key: str) -> dict[str, Any]:
        if (Path(world) / "deaf").exists():
            raise EffectFailed("nobody listens")
        return {"told": True}


class Keyholder(Agent):
    """Opens a door while its code is what it was; the observation tells secrets of its own and of the state."""

    name = "keyholder"

    class State(BaseModel):
        world: str
        token: SecretStr
        place: dict[str, str] = {"door": "front"}
        opened: bool = False

    @observation
    def lock(self, world: str, token: SecretStr) -> Any:
        code = (Path(world) / "mood").read_text()
        heard = [f"{token.get_secret_value()} was said", {"again": SecretBytes(code.encode())}]
        return {"code": SecretStr(code), "heard": heard}

    @gate(allows=["unlock"], observes=["lock"])
    def review(self, token: SecretStr) -> Card:
        label = f"with {token.get_secret_value()} the lock is still {{value}}"
        still = Precondition(id="lock", label=label, observes="lock", required=True)
        return Card(
            title="Open", actions=[Action(id="unlock", effect="unlock", pointer="/place")], preconditions=[still]
        )

    @effect(idempotent=True, irreversible=True)
    def unlock(self, place: dict[str, str], *, key: str) -> dict[str, Any]:
        return {"opened": True}


class World:
    """The folder that the agent looks at."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.says("0.00")

    def says(self, *balances: str) -> None:
        """The balance from now on; with several, each of them once and then the last."""
        (self.folder / "balance").write_text("\n".join(balances))

    def turns(self, mood: str) -> None:
        (self.folder / "mood").write_text(mood)

    def deaf(self, deaf: bool = True) -> None:
        (self.folder / "deaf").touch() if deaf else (self.folder / "deaf").unlink()

    def looks(self) -> list[str]:
        return self._lines("looks")

    def paid(self) -> list[str]:
        return [line.split(" ", 1)[1] for line in self._lines("paid")]

    def run(self, **input: Any) -> Run:
        return make_run("watcher", world=str(self.folder), **input)

    def _lines(self, name: str) -> list[str]:
        place = self.folder / name
        return place.read_text().splitlines() if place.exists() else []


def world_rows(gate: Gate) -> list[tuple[str, Any, Any]]:
    """(pointer, before, after) of what a gate that was opened again says of the world."""
    reopened = gate.standing().card.reopened
    assert reopened is not None
    return [(row["pointer"], row["before"], row["after"]) for row in reopened["changes"] if row["of"] == "world"]
