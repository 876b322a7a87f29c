"""A child that was upgraded while its parent waited is undone under its new version, whose steps and fields it has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from agents import Agent, Card, EffectFailed, effect, gate, step, upcast
from agents.definition import registry
from agents.moves import rewind
from agents.runner import version_upgrade
from checkpoints import store
from checkpoints.models import Run
from tests.agents.children.families import children, to_rest
from tests.agents.pages.moves.sent_orders import member
from tests.factories import ann
from tests.factories.driven_runs import answer, make_run, open_gate
from tests.harness.examples import first_alone


class Sender(Agent):
    """Starts a payment for each name, and waits for them."""

    name = "renaming_sender"

    class State(BaseModel):
        ledger: str
        names: list[str] = []

    @step
    def send(self, ledger: str, names: list[str]) -> dict[str, Any]:
        self.gather(*(self.spawn("renamed_payer", {"ledger": ledger, "name": name}) for name in names))
        return {"names": names}


class First(Agent):
    """Pays, and then asks."""

    name = "renamed_payer"

    class State(BaseModel):
        ledger: str
        name: str
        paid: str = ""

    @step
    def prepare(self, name: str) -> dict[str, Any]:
        return {"paid": ""}

    @effect(undo="take_back", guarded=False)
    def pay(self, ledger: str, name: str) -> dict[str, Any]:
        return {"paid": name}

    def take_back(self) -> None:
        raise NotImplementedError

    @gate()
    def ask(self, paid: str) -> Card:
        return Card(title="Enough?", summary=paid)


class Second(Agent):
    """Does the same, with another name for its first step and for whom it pays."""

    name = "renamed_payer"
    version = "2"

    class State(BaseModel):
        ledger: str
        payee: str
        paid: str = ""

    @upcast("1", steps={"prepare": "begin"})
    @classmethod
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        return {"payee": state.pop("name"), **state}

    @step
    def begin(self, payee: str) -> dict[str, Any]:
        return {"paid": ""}

    @effect(undo="take_back", guarded=False)
    def pay(self, ledger: str, payee: str) -> dict[str, Any]:
        return {"paid": payee}

    def take_back(self, ledger: str, payee: str) -> None:
        with Path(ledger).open("a") as file:
            file.write(f"take back {payee}\n")
        if payee == "stuck":
            raise EffectFailed("the bank is closed")

    @gate()
    def ask(self, paid: str) -> Card:
        return Card(title="Enough?", summary=paid)


class Third(Second):
    """Leads on from the second version alone: what the first one saved can be read no more."""

    version = "3"
    from_1 = None  # type: ignore[assignment]

    @upcast("2")
    @classmethod
    def from_2(cls, state: dict[str, Any]) -> dict[str, Any]:
        return state


def upgraded(ledger: Path, name: str, *versions: type[Agent]) -> tuple[Run, Run]:
    """A parent that waits for its child, which has paid and was upgraded to each of these versions; and that child."""
    with registry.knowing(registry.of_classes([Sender, First])):
        run = to_rest(make_run("renaming_sender", ledger=str(ledger), names=[name]))
    [child] = children(run)
    for version in versions:
        with registry.knowing(registry.of_classes([Sender, version])):
            assert version_upgrade.wake(child)
            to_rest(run)
            child.refresh_from_db()
            assert (run.status, child.status, child.plan.version) == ("waiting", "waiting", version.version)
    return run, child


@pytest.mark.parametrize(
    ("name", "versions"),
    first_alone([("ann", (Second,)), ("stuck", (Second, Third)), ("stuck", (Second,))], 2),
)
def test_it_is_undone_from_its_beginning_as_its_new_version_has_it_or_else_a_person_decides(
    ledger: Path, name: str, versions: tuple[type[Agent], ...]
) -> None:
    """Nobody could: the question stood on the state of the old version, which the new one did not take."""
    run, child = upgraded(ledger, name, *versions)
    with registry.knowing(registry.of_classes([Sender, versions[-1]])):
        rewind.edit(run, at=1, patch=[{"op": "replace", "path": "/names", "value": []}], by=ann(run.team))
        to_rest(run)
        child.refresh_from_db()
        if name == "stuck":
            assert (run.status, child.status) == ("waiting", "waiting")
            reader = member(child)
            for path in (f"/runs/{child.pk}/", f"/gates/{open_gate(child).pk}/", f"/runs/{run.pk}/"):
                assert reader.get(path).status_code == 200
            answer(child, "keep")
            to_rest(run)
            child.refresh_from_db()
        else:
            assert ledger.read_text().splitlines() == ["take back ann"]
            assert child.next_step == "begin"
            assert store.load(child).state == {"ledger": str(ledger), "payee": "ann", "paid": ""}
            assert store.load(child).plan_id == child.plan_id
        assert (run.status, child.status) == ("completed", "cancelled")
