"""A step that a new version starts otherwise starts nothing beside what the old version started: a person is asked.

It started six new payments beside six old ones, whose gates stayed open. Both were approved, and one account was paid
twice.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
from django.db.models.functions import Now
from pydantic import BaseModel

from agents import Agent, Card, effect, gate, step, upcast
from agents.definition import registry
from agents.moves import child_orders, rewind
from agents.testing import Trial
from approvals.consequences.gate import GateImpacts
from approvals.models import Gate
from checkpoints import crash_points
from checkpoints.models import Event, Run
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


class Follows:
    """Takes over the runs of version 1."""

    @upcast("1")
    @classmethod
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        return state


class WithMemo(Follows, Batch):
    """Gives each payment a memo."""

    name = "pays_a_batch"
    version = "2"
    team = "Support"
    State: ClassVar[Any] = Batch.State

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


def test_the_question_names_each_run_with_what_it_did(ledger: Path) -> None:
    run = Trial(Batch, ledger=str(ledger), invoices=["a", "b"], tells=True, starts=[Pays])
    run.children[0].approve()
    run.upgrade(WithMemo)
    first, second = (each.row.pk for each in run.children)
    assert run.card.reasons == (
        f"R-{first} “pays_one_invoice” has completed. It did “Pay” and “Tell”. “Tell” cannot be undone",
        f"R-{second} “pays_one_invoice” waits for the decision at “Pay b?”. Nothing to undo",
    )
    question = run.card.question
    assert question is not None
    assert question["runs"] == [first, second]
    seq = trail(run.row).index(("step", "begin")) + 1
    assert question["text"].endswith(
        f"To keep them, serve version 1 again, then rewind this run to checkpoint {seq}, before the upgrade."
    )


def test_withdrawn_and_undone_before_others_start_each_is_paid_once(ledger: Path) -> None:
    run = held(ledger)
    old, waits = run.children
    old.approve()
    assert worked(ledger) == ["pay a"]
    assert run.asks == "pay_all", "the first payment changes nothing about the question"
    run.answer("withdraw")
    assert [each.status for each in (old, waits)] == ["cancelled"] * 2
    assert not Gate.objects.open().filter(run__in=[old.row, waits.row]).exists()
    assert worked(ledger) == ["pay a", "take back a"]
    for each in run.children[2:]:
        each.approve()
    assert (run.status, run.state["paid"]) == ("completed", ["a", "b"])
    assert worked(ledger) == ["pay a", "take back a", "pay a", "pay b"]


def test_nothing_new_starts_before_what_was_withdrawn_is_undone(ledger: Path) -> None:
    """A worker that goes on at once would have them wait beside each other, until somebody carries the order out."""
    run = held(ledger)
    carry_out = child_orders.carry_out
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(child_orders, "carry_out", lambda parent: 0)
        run.answer("withdraw")
        assert (started(run), run.reason[:25]) == (["waiting"] * 2, "Waits until 2 runs are un")
    carry_out(run.row.pk)
    with run._world():
        run._go_on()
    assert started(run) == ["cancelled"] * 2 + ["waiting"] * 2


def test_the_old_version_served_again_goes_on_with_what_it_started(ledger: Path) -> None:
    run = held(ledger)
    run.known = registry.of_classes([Batch, Pays])
    with run._world():
        rewind.rewind(run._fresh(), to=trail(run.row).index(("step", "begin")) + 1, by=ann(run.team))
        run._go_on()
    assert (run.version, run.asks, started(run)) == ("1", "", ["waiting"] * 2)
    for each in run.children:
        each.approve()
    assert (run.status, worked(ledger)) == ("completed", ["pay a", "pay b"])


class Renamed(Batch):
    """Calls the step otherwise, and gives each payment a memo."""

    name = "pays_a_batch"
    version = "3"
    team = "Support"
    State: ClassVar[Any] = Batch.State

    pay_all = None  # type: ignore[assignment]

    @upcast("1", steps={"pay_all": "pay_each"})
    @classmethod
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        return state

    @step
    def pay_each(self, ledger: str, invoices: list[str]) -> dict[str, Any]:
        given = [{"ledger": ledger, "invoice": each, "memo": "November"} for each in invoices]
        children = [self.spawn("pays_one_invoice", each) for each in given]
        return {"paid": [each.state["invoice"] for each in self.gather(*children) if each]}


def test_so_it_does_where_the_new_version_had_renamed_the_step(ledger: Path) -> None:
    run = held(ledger, Renamed)
    assert (run.asks, len(run.children)) == ("pay_each", 2)
    run.known = registry.of_classes([Batch, Pays])
    with run._world():
        rewind.rewind(run._fresh(), to=trail(run.row).index(("step", "begin")) + 1, by=ann(run.team))
        run._go_on()
    assert (run.version, run.asks, started(run)) == ("1", "", ["waiting"] * 2)


def test_the_old_version_starts_nothing_beside_what_the_new_one_started(ledger: Path) -> None:
    run = held(ledger).answer("withdraw")
    run.known = registry.of_classes([Batch, Pays])
    with run._world():
        rewind.rewind(run._fresh(), to=trail(run.row).index(("step", "begin")) + 1, by=ann(run.team))
        run._go_on()
    assert (run.version, run.asks, started(run)) == ("1", "pay_all", ["cancelled"] * 2 + ["waiting"] * 2)
    run.answer("withdraw")
    assert started(run) == ["cancelled"] * 4 + ["waiting"] * 2


class Reordered(Follows, Batch):
    """Has something new paid first, and the others in another order."""

    name = "pays_a_batch"
    version = "4"
    team = "Support"
    State: ClassVar[Any] = Batch.State

    @step
    def pay_all(self, ledger: str, invoices: list[str], tells: bool) -> dict[str, Any]:
        children = [
            self.spawn("pays_one_invoice", {"ledger": ledger, "invoice": each, "tells": tells})
            for each in ("new", *reversed(invoices))
        ]
        return {"paid": [each.state["invoice"] for each in self.gather(*children) if each]}


def test_a_version_that_calls_for_all_of_them_in_another_order_is_not_stopped(ledger: Path) -> None:
    run = held(ledger, Reordered)
    assert (run.asks, started(run)) == ("", ["waiting"] * 3)
    for each in run.children:
        each.approve()
    assert (run.status, run.state["paid"]) == ("completed", ["new", "b", "a"])
    assert worked(ledger) == ["pay a", "pay b", "pay new"]


class Partly(Follows, Batch):
    """Gives one of the payments a memo."""

    name = "pays_a_batch"
    version = "5"
    team = "Support"
    State: ClassVar[Any] = Batch.State

    @step
    def pay_all(self, ledger: str, invoices: list[str], tells: bool) -> dict[str, Any]:
        given = [
            {"ledger": ledger, "invoice": each, "tells": tells, **({"memo": "late"} if each == "a" else {})}
            for each in invoices
        ]
        children = [self.spawn("pays_one_invoice", each) for each in given]
        return {"paid": [each.state["invoice"] for each in self.gather(*children) if each]}


def test_only_what_was_not_called_for_is_withdrawn(ledger: Path) -> None:
    run = held(ledger, Partly)
    other, same = run.children
    question = run.card.question
    assert question is not None
    assert question["runs"] == [other.row.pk]
    same.stop("not this one")
    run.answer("withdraw")
    assert [each.status for each in run.children[:2]] == ["cancelled"] * 2
    assert run.asks == "pay_all", "it was stopped by a person, and is not started anew by the answer"
    assert len(run.children) == 3


def test_what_the_answer_would_do_is_said_before(ledger: Path) -> None:
    run = Trial(Batch, ledger=str(ledger), invoices=["a", "b"], tells=True, starts=[Pays])
    run.children[0].approve()
    run.upgrade(WithMemo)
    first, second = (each.row.pk for each in run.children)
    with run._world():
        gate = Gate.objects.open().select_related("run__plan").get(run=run.row)
        found = GateImpacts(gate, gate.standing().card, []).answering("withdraw")
    assert found is not None
    assert [(each.run, str(each.fate), each.undone, each.cannot) for each in found.children] == [
        (first, "undone", ("pay",), ("tell",)),
        (second, "undone", (), ()),
    ]


def test_stopped_there_the_run_ends_with_what_waits_and_what_was_paid_stays(ledger: Path) -> None:
    run = held(ledger)
    run.children[0].approve()
    run.answer("stop")
    assert (run.status, started(run)) == ("failed", ["completed", "cancelled"])
    assert worked(ledger) == ["pay a"]


def test_the_same_version_that_starts_something_else_when_it_is_tried_again_is_not_asked(ledger: Path) -> None:
    """Without an upgrade nothing is another version's."""
    run = Trial(Wavering, ledger=str(ledger), starts=[Pays])
    assert (run.asks, len(run.children)) == ("", 2)
    assert not Event.objects.filter(run_id=run.row.pk, kind="gate.opened").exists()


class Wavering(Agent):
    """Starts one child, fails, and starts another one."""

    name = "wavers"
    team = "Support"

    class State(BaseModel):
        ledger: str
        paid: list[str] = []

    @step(retry=1)
    def pay_all(self, ledger: str) -> dict[str, Any]:
        tries = 2 if Path(f"{ledger}.tried").exists() else 1
        Path(f"{ledger}.tried").touch()
        child = self.spawn("pays_one_invoice", {"ledger": ledger, "invoice": f"try {tries}"})
        if tries == 1:
            raise ValueError("the model was not there")
        return {"paid": [each.state["invoice"] for each in self.gather(child) if each]}


@pytest.mark.parametrize(
    "point", ["before_outcome", "after_save", "after_outcome", "before_order", "beside_undo_child", "after_order"]
)
def test_whoever_dies_while_they_are_withdrawn_each_is_paid_once(
    ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    run = held(ledger)
    run.children[0].approve()
    with monkeypatch.context() as patch:
        patch.setenv("HOLDPOINT_CRASH", f"{point}@pay_all:raise:1:{tmp_path / 'hits'}")
        with pytest.raises(crash_points.Crashed):
            run.answer("withdraw")
    assert len(run.children) == 2
    Run.objects.filter(pk=run.row.pk, status="running").update(lease_until=Now())
    with run._world():
        run._go_on()
    assert started(run) == ["cancelled"] * 2 + ["waiting"] * 2
    assert worked(ledger) == ["pay a", "take back a"]
