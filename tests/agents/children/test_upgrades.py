"""A step that a new version starts otherwise starts nothing beside what the old version started: a person is asked.

It started six new payments beside six old ones, whose gates stayed open. Both were approved, and one account was paid
twice.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel

from agents import Agent, Card, effect, gate, step, upcast
from agents.definition import registry
from agents.models import ChildLink
from agents.moves import child_orders, rewind
from agents.testing import Trial
from approvals.models import Gate
from checkpoints.models import Event
from tests.factories import ann
from tests.factories.driven_runs import trail

from .families import worked


def note(ledger: str, words: str) -> None:
    """Write down what was done outside."""
    with Path(ledger).open("a") as file:
        file.write(words + "\n")


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """What was done outside, a line each."""
    return tmp_path / "ledger"


class Pays(Agent):
    """A child that asks, pays, and says so where it is told to."""

    name = "pays_one_invoice"
    team = "Support"

    class State(BaseModel):
        ledger: str
        invoice: str
        memo: str = ""
        tells: bool = False
        paid: bool = False

    @gate(allows=["pay"])
    def ask(self, invoice: str) -> Card:
        return Card(title=f"Pay {invoice}?", question=None, actions=[], summary=invoice)

    @effect(undo="take_back")
    def pay(self, ledger: str, invoice: str) -> dict[str, Any]:
        note(ledger, f"pay {invoice}")
        return {"paid": True}

    def take_back(self, ledger: str, invoice: str) -> None:
        note(ledger, f"take back {invoice}")

    @effect(irreversible=True, guarded=False)
    def tell(self, ledger: str, invoice: str, tells: bool) -> dict[str, Any]:
        if tells:
            note(ledger, f"tell {invoice}")
        return {"paid": True}


class Batch(Agent):
    """Has each invoice paid by a child."""

    name = "pays_a_batch"
    team = "Support"

    class State(BaseModel):
        ledger: str
        invoices: list[str]
        tells: bool = False
        paid: list[str] = []

    @step
    def begin(self, invoices: list[str]) -> dict[str, Any]:
        return {"invoices": sorted(invoices)}

    @step
    def pay_all(self, ledger: str, invoices: list[str], tells: bool) -> dict[str, Any]:
        children = [
            self.spawn("pays_one_invoice", {"ledger": ledger, "invoice": each, "tells": tells}) for each in invoices
        ]
        return {"paid": [each.state["invoice"] for each in self.gather(*children) if each]}


class LaterBatch(Batch):
    """A version of it that others follow: it takes over the runs of the first, with the step as it was."""

    name = "pays_a_batch"
    version = "2"
    team = "Support"
    State: ClassVar[Any] = Batch.State

    @upcast("1")
    @classmethod
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        return state


class WithMemo(LaterBatch):
    """Gives each payment a memo."""

    @step
    def pay_all(self, ledger: str, invoices: list[str], tells: bool) -> dict[str, Any]:
        given = [{"ledger": ledger, "invoice": each, "tells": tells, "memo": "November"} for each in invoices]
        children = [self.spawn("pays_one_invoice", each) for each in given]
        return {"paid": [each.state["invoice"] for each in self.gather(*children) if each]}


def started(run: Trial) -> list[str]:
    """The statuses of the children, oldest first."""
    return [each.status for each in run.children]


def held(ledger: Path, version: type[Agent] = WithMemo, **input: Any) -> Trial:
    """A run with two payments that wait for their approval, upgraded to a version that starts them otherwise."""
    run = Trial(Batch, ledger=str(ledger), invoices=["a", "b"], starts=[Pays], **input)
    assert started(run) == ["waiting"] * 2
    return run.upgrade(version)


def choices(run: Trial) -> list[str]:
    """The answers that the run's open question takes."""
    question = run.card.question
    return [each["id"] for each in question["choices"]] if question else []


def test_nothing_starts_beside_what_the_old_version_started(ledger: Path) -> None:
    run = held(ledger)
    assert (run.version, len(run.children)) == ("2", 2)
    assert (run.status, run.asks, choices(run)) == ("waiting", "pay_all", ["withdraw", "stop"])
    first, second = run.children
    assert [first.title, second.title] == ["pays_one_invoice"] * 2
    assert run.card.risk == "high"
