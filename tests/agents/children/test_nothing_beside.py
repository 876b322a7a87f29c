"""An upgraded run starts nothing beside children that cannot be undone: a fork counts on them, or they are frozen.

They were left out of what a step that starts its runs otherwise stops at, and so paid a second time unasked. So did a
fork into a version that gives its children other input than the version for which they have paid.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest

from agents import Agent, step, upcast
from agents.definition import registry
from agents.moves.fork import fork
from agents.testing import Trial
from tests.factories import ann

from .families import worked
from .test_found_after_upgrades import Boss, Pays

ONCE = ["pay", "tell"]


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """What was done outside, a line each."""
    return tmp_path / "ledger"


class OtherBoss(Agent):
    """Gives the child another memo."""

    name = "has_it_paid"
    version = "2"
    team = "Support"
    signals: ClassVar[Any] = {"go": None}
    State: ClassVar[Any] = Boss.State

    @upcast("1")
    @classmethod
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        return state

    @step
    def begin(self, done: int) -> dict[str, Any]:
        return {}

    @step
    def fan_out(self, ledger: str) -> dict[str, Any]:
        child = self.spawn("pays_and_tells", {"ledger": ledger, "memo": "November"})
        self.wait_for_signal("go")
        return {"done": len(self.gather(child))}


class AlikeBoss(OtherBoss):
    """Gives it in other words what it was given."""

    name = "has_it_paid"
    version = "3"
    team = "Support"

    @upcast("1")
    @classmethod
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        return state

    @step
    def fan_out(self, ledger: str) -> dict[str, Any]:
        child = self.spawn("pays_and_tells", {"ledger": ledger, "memo": ""})
        self.wait_for_signal("go")
        return {"done": len(self.gather(child))}


class RenamedBoss(Agent):
    """Gives it what it was given, in a step of another name."""

    name = "has_it_paid"
    version = "4"
    team = "Support"
    signals: ClassVar[Any] = {"go": None}
    State: ClassVar[Any] = Boss.State

    @upcast("1", steps={"fan_out": "pay_out"})
    @classmethod
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        return state

    @step
    def begin(self, done: int) -> dict[str, Any]:
        return {}

    @step
    def pay_out(self, ledger: str) -> dict[str, Any]:
        child = self.spawn("pays_and_tells", {"ledger": ledger})
        self.wait_for_signal("go")
        return {"done": len(self.gather(child))}


def forked(run: Trial) -> Trial:
    """Fork the run before it starts its child."""
    with run._world():
        made = run._child(fork(run.row, at=2, by=ann(run.team)))
        made.parent = None
        made._go_on()
    return made


def offered(run: Trial) -> list[str]:
    """The answers that the open question takes."""
    question = run.card.question
    assert question is not None
    return [each["id"] for each in question["choices"]]


def test_nothing_starts_beside_a_child_on_which_a_fork_counts(ledger: Path) -> None:
    run = Trial(Boss, ledger=str(ledger), starts=[Pays])
    assert forked(run).signal("go").state["done"] == 1
    run.upgrade(OtherBoss)
    assert (run.asks, offered(run), worked(ledger)) == ("fan_out", ["do_again", "stop"], ONCE)
    run.answer("do_again").signal("go")
    assert (run.status, run.asks, worked(ledger)) == ("completed", "", [*ONCE, *ONCE])


def test_nothing_starts_beside_a_child_on_which_a_fork_counts_by_the_time_of_the_answer(ledger: Path) -> None:
    run = Trial(Boss, ledger=str(ledger), starts=[Pays])
    made = forked(run)
    run.upgrade(OtherBoss)
    assert (run.asks, offered(run)) == ("fan_out", ["withdraw", "stop"])
    made.known = registry.of_classes([Boss, Pays])
    made.signal("go")
    run.answer("withdraw")
    assert (run.asks, offered(run), worked(ledger)) == ("fan_out", ["do_again", "stop"], ONCE)


def test_nothing_starts_beside_a_frozen_child(ledger: Path) -> None:
    run = Trial(Boss, ledger=str(ledger), starts=[Pays])
    [child] = run.children
    freeze(child)
    run.upgrade(OtherBoss)
    assert (run.asks, offered(run), worked(ledger)) == ("fan_out", ["do_again", "stop"], ONCE)


def freeze(run: Trial) -> None:
    """Set the run as one that was found damaged."""
    row = run.row
    type(row).objects.filter(pk=row.pk).update(status="failed", frozen_at=row.created_at)


def test_a_fork_into_a_new_version_starts_nothing_beside_what_was_done_for_its_origin(ledger: Path) -> None:
    run = Trial(Boss, ledger=str(ledger), starts=[Pays]).signal("go")
    run.known = registry.of_classes([OtherBoss, Pays])
    made = forked(run)
    assert (made.version, made.asks, offered(made), worked(ledger)) == ("2", "fan_out", ["do_again", "stop"], ONCE)
    made.answer("do_again").signal("go")
    assert (made.status, worked(ledger)) == ("completed", [*ONCE, *ONCE])


def test_a_fork_into_a_new_version_reads_what_was_given_in_other_words(ledger: Path) -> None:
    run = Trial(Boss, ledger=str(ledger), starts=[Pays]).signal("go")
    run.known = registry.of_classes([AlikeBoss, Pays])
    made = forked(run).signal("go")
    assert (made.status, made.state["done"], worked(ledger)) == ("completed", 1, ONCE)


def test_a_fork_into_a_version_that_renames_the_step_finds_what_was_done_under_the_old_name(ledger: Path) -> None:
    """By the step's name alone nothing was found, and a second child paid."""
    run = Trial(Boss, ledger=str(ledger), starts=[Pays]).signal("go")
    run.known = registry.of_classes([RenamedBoss, Pays])
    made = forked(run).signal("go")
    assert (made.version, made.status, made.state["done"], worked(ledger)) == ("4", "completed", 1, ONCE)
