"""A step that goes on in another version finds what it started, and starts nothing beside what it does not call for.

It started six new payments beside six old ones, whose gates stayed open; both were approved, and one account was paid
twice. Upgrades that renamed the step, a model with a default more, a new version of the child alone, and a fork into a
new version each started all children again.
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
from agents.moves.fork import fork
from agents.testing import Trial
from approvals.consequences.gate import GateImpacts
from approvals.models import Gate
from checkpoints import crash_points
from checkpoints.models import Run
from tests.agents.children.families import worked
from tests.factories import ann
from tests.factories.driven_runs import trail
from tests.harness.examples import first_alone


class From1:
    """Takes over the runs of version 1."""

    @upcast("1")
    @classmethod
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        return state


def note(ledger: str, words: str) -> None:
    """Write down what was done outside."""
    with Path(ledger).open("a") as file:
        file.write(words + "\n")


def choices(run: Trial) -> list[str]:
    """The answers that the run's open question takes."""
    question = run.card.question
    return [each["id"] for each in question["choices"]] if question else []


def started(run: Trial) -> list[str]:
    """The statuses of the children, oldest first."""
    return [each.status for each in run.children]


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


def paid_each(agent: Agent, given: list[dict[str, Any]]) -> list[str]:
    """Have a child pay each, and return what was paid."""
    children = [agent.spawn("pays_one_invoice", each) for each in given]
    return [each.state["invoice"] for each in agent.gather(*children) if each]


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
        return {"paid": paid_each(self, [{"ledger": ledger, "invoice": each, "tells": tells} for each in invoices])}


class WithMemo(From1, Batch):
    """Gives each payment a memo."""

    version = "2"
    memos: ClassVar[Any] = {"a": {"memo": "November"}, "b": {"memo": "November"}}

    @step
    def pay_all(self, ledger: str, invoices: list[str], tells: bool) -> dict[str, Any]:
        given = [{"ledger": ledger, "invoice": each, "tells": tells, **self.memos.get(each, {})} for each in invoices]
        return {"paid": paid_each(self, given)}


class Partly(WithMemo):
    """Gives one of the payments a memo."""

    version = "4"
    memos: ClassVar[Any] = {"a": {"memo": "late"}}


def held(ledger: Path, version: type[Agent] = WithMemo) -> Trial:
    """A run with two payments that wait for their approval, upgraded to a version that starts them otherwise."""
    run = Trial(Batch, ledger=str(ledger), invoices=["a", "b"], starts=[Pays])
    assert started(run) == ["waiting"] * 2
    return run.upgrade(version)


def test_nothing_starts_beside_what_the_old_version_started_and_a_person_is_told_what_that_did(ledger: Path) -> None:
    run = Trial(Batch, ledger=str(ledger), invoices=["a", "b"], tells=True, starts=[Pays])
    run.children[0].approve()
    run.upgrade(WithMemo)
    assert (run.version, len(run.children), run.card.risk) == ("2", 2, "high")
    assert (run.status, run.asks, choices(run)) == ("waiting", "pay_all", ["withdraw", "stop"])
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
    with run._world():
        asked = Gate.objects.open().select_related("run__plan").get(run=run.row)
        foreseen = GateImpacts(asked, asked.standing().card, []).answering("withdraw")
    assert foreseen is not None
    assert [(each.run, str(each.fate), each.undone, each.cannot) for each in foreseen.children] == [
        (first, "undone", ("pay",), ("tell",)),
        (second, "undone", (), ()),
    ]


def test_withdrawn_and_undone_before_others_start_each_is_paid_once(ledger: Path) -> None:
    """A worker that goes on at once would have them wait beside each other, until somebody carries the order out."""
    run = held(ledger)
    old, waits = run.children
    old.approve()
    assert run.asks == "pay_all", "the first payment changes nothing about the question"
    carry_out = child_orders.carry_out
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(child_orders, "carry_out", lambda parent: 0)
        run.answer("withdraw")
        assert (started(run), run.reason[:25]) == (["completed", "waiting"], "Waits until 2 runs are un")
    with run._world():
        carry_out(run.row.pk)
        run._go_on()
    assert started(run) == ["cancelled"] * 2 + ["waiting"] * 2
    assert not Gate.objects.open().filter(run__in=[old.row, waits.row]).exists()
    assert worked(ledger) == ["pay a", "take back a"]
    for each in run.children[2:]:
        each.approve()
    assert (run.status, run.state["paid"]) == ("completed", ["a", "b"])
    assert worked(ledger) == ["pay a", "take back a", "pay a", "pay b"]


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


def test_only_what_was_not_called_for_is_withdrawn(ledger: Path) -> None:
    run = held(ledger, Partly)
    other, same = run.children
    question = run.card.question
    assert question is not None
    assert question["runs"] == [other.row.pk]
    same.stop("not this one")
    run.answer("withdraw")
    assert started(run)[:2] == ["cancelled"] * 2
    assert run.asks == "pay_all", "it was stopped by a person, and is not started anew by the answer"
    assert len(run.children) == 3


POINTS = ["after_save", "after_order", "before_outcome", "after_outcome", "before_order", "beside_undo_child"]


@pytest.mark.parametrize("point", first_alone(POINTS))
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


class Asks(Agent):
    """A child that asks."""

    name = "asks_for_a_word"
    team = "Support"

    class State(BaseModel):
        word: str
        currency: str = "EUR"

    @gate()
    def ask(self, word: str) -> Card:
        return Card(title=word, question=None, actions=[], summary=word)


class Words(BaseModel):
    """What the parents are given."""

    words: list[str]
    said: list[str] = []
    end: int = 0


class OldInput(BaseModel):
    """What a child is given."""

    word: str


class NewInput(OldInput):
    """The same, with the currency that a child had anyway."""

    currency: str = "EUR"


def asked_each(agent: Agent, given: list[Any]) -> list[str]:
    """Start a child for each, and return what was said."""
    children = [agent.spawn("asks_for_a_word", each) for each in given]
    return [each.state["word"] for each in agent.gather(*children) if each]


class One(Agent):
    """Starts a child for each word."""

    name = "starts_askers"
    team = "Support"
    State: ClassVar[Any] = Words

    @step
    def fan_out(self, words: list[str]) -> dict[str, Any]:
        return {"said": asked_each(self, [OldInput(word=word) for word in words])}


class Two(One):
    """Does so under another name."""

    version = "2"
    fan_out = None  # type: ignore[assignment]

    @upcast("1", steps={"fan_out": "spread"})
    @classmethod
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        return state

    @step
    def spread(self, words: list[str]) -> dict[str, Any]:
        return {"said": asked_each(self, [OldInput(word=word) for word in words])}


def test_a_step_that_was_renamed_finds_its_children() -> None:
    run = Trial(One, words=["a", "b"], starts=[Asks])
    run.children[0].approve()
    run.upgrade(Two)
    assert (run.version, run.asks, len(run.children)) == ("2", "", 2)
    run.children[1].approve()
    assert (run.status, run.state["said"]) == ("completed", ["a", "b"])


class ByNewModel(From1, One):
    """Gives them a model with a default more."""

    version = "4"

    @step
    def fan_out(self, words: list[str]) -> dict[str, Any]:
        return {"said": asked_each(self, [NewInput(word=word) for word in words])}


class ByBoth(From1, One):
    """Gives one word in both ways, which are two children."""

    version = "5"

    @step
    def fan_out(self, words: list[str]) -> dict[str, Any]:
        given = [kind(word=word) for word in words for kind in (NewInput, OldInput)]
        return {"said": asked_each(self, given)}


class OneOtherwise(From1, One):
    """Gives the second child another word, and the first one what it was given, in other words."""

    version = "6"

    @step
    def fan_out(self, words: list[str]) -> dict[str, Any]:
        return {"said": asked_each(self, [NewInput(word=words[0]), NewInput(word=f"{words[1]}!")])}


def test_a_default_that_a_model_got_starts_no_child_again_and_one_is_found_by_one_call_alone() -> None:
    run = Trial(One, words=["a", "b"], starts=[Asks]).upgrade(ByNewModel)
    assert (run.version, run.asks, len(run.children)) == ("4", "", 2)
    run = Trial(One, words=["a"], starts=[Asks]).upgrade(ByBoth)
    assert (run.asks, len(run.children)) == ("", 2)


def test_what_was_found_stays_found_once_the_others_are_withdrawn() -> None:
    """The answer made a child that is only read alike look as if this version had started it: it started again."""
    run = Trial(One, words=["a", "b"], starts=[Asks]).upgrade(OneOtherwise)
    first, second = run.children
    assert (run.asks, [line.split(" ")[0] for line in run.card.reasons]) == ("fan_out", [f"R-{second.row.pk}"])
    run.answer("withdraw")
    assert [(each.status, each.state["word"]) for each in run.children] == [
        ("waiting", "a"), ("cancelled", "b"), ("waiting", "b!"),
    ]  # fmt: skip
    assert run.children[0].row == first.row


ONCE = ["pay", "tell"]


class Tells(Agent):
    """A child that pays, and says so."""

    name = "pays_and_tells"
    team = "Support"

    class State(BaseModel):
        ledger: str
        memo: str = ""
        paid: bool = False

    @effect(guarded=False, undo="take_back")
    def pay(self, ledger: str) -> dict[str, Any]:
        note(ledger, "pay")
        return {"paid": True}

    def take_back(self, ledger: str) -> None:
        note(ledger, "take back")

    @effect(guarded=False, irreversible=True)
    def tell(self, ledger: str) -> dict[str, Any]:
        note(ledger, "tell")
        return {}


class LaterTells(From1, Tells):
    """A new version of it, which says in its input what it is for."""

    version = "2"

    class State(Tells.State):
        memo: str = "November"


class Boss(Agent):
    """Has a child pay, and waits for a word."""

    name = "has_it_paid"
    team = "Support"
    signals: ClassVar[Any] = {"go": None}

    class State(BaseModel):
        ledger: str
        by_model: bool = False
        done: int = 0

    @step
    def begin(self, done: int) -> dict[str, Any]:
        return {}

    @step
    def fan_out(self, ledger: str, by_model: bool) -> dict[str, Any]:
        given = registry.agent_named("pays_and_tells").agent.State(ledger=ledger) if by_model else {"ledger": ledger}
        child = self.spawn("pays_and_tells", given)
        self.wait_for_signal("go")
        return {"done": len(self.gather(child))}

    @gate()
    def look(self, done: int) -> Card:
        return Card(title="Seen?", question=None, actions=[], summary="")


class OtherBoss(From1, Boss):
    """Gives the child another memo."""

    version = "2"

    @step
    def fan_out(self, ledger: str, by_model: bool) -> dict[str, Any]:
        child = self.spawn("pays_and_tells", {"ledger": ledger, "memo": "November"})
        self.wait_for_signal("go")
        return {"done": len(self.gather(child))}


def forked(run: Trial) -> Trial:
    """Fork the run before it starts its child."""
    with run._world():
        made = run._child(fork(run.row, at=2, by=ann(run.team)))
        made.parent = None
        made._go_on()
    return made


@pytest.mark.parametrize("move", first_alone(["rewind", "fork"]))
def test_a_new_version_of_the_child_alone_has_nothing_done_twice(ledger: Path, move: str) -> None:
    run = Trial(Boss, ledger=str(ledger), starts=[Tells]).signal("go")
    run.known = registry.of_classes([Boss, LaterTells])
    if move == "rewind":
        with run._world():
            rewind.rewind(run._fresh(), to=trail(run.row).index(("step", "fan_out")), by=ann(run.team))
            run._go_on()
    else:
        run = forked(run)
    run.signal("go")
    assert (run.status, run.asks, run.state["done"], worked(ledger)) == ("waiting", "look", 1, ONCE)


def test_a_new_version_of_the_child_alone_starts_no_other_beside_it(ledger: Path) -> None:
    """The parent is as it was, but gives what the child's new State makes of it."""
    run = Trial(Boss, ledger=str(ledger), by_model=True, starts=[Tells])
    run.known = registry.of_classes([Boss, LaterTells])
    run.signal("go")
    assert (run.asks, choices(run), worked(ledger)) == ("fan_out", ["withdraw", "retry", "stop"], ONCE)
    question = run.card.question
    assert question is not None
    assert question["text"].endswith(
        "To keep them, serve the earlier version again, then let “Fan out” try again here."
    )
    run.known = registry.of_classes([Boss, Tells])
    run.answer("retry")
    assert (run.status, run.asks, worked(ledger)) == ("waiting", "look", ONCE)


class Middle(Agent):
    """A child that has its payment made by a child of its own."""

    name = "has_a_child_pay"
    team = "Support"

    class State(BaseModel):
        ledger: str
        memo: str = ""
        done: int = 0

    @step
    def fan_out(self, ledger: str) -> dict[str, Any]:
        return {"done": len(self.gather(self.spawn("pays_and_tells", {"ledger": ledger})))}


class Top(Agent):
    """Has a child have a child pay."""

    name = "three_generations"
    team = "Support"
    signals: ClassVar[Any] = {"go": None}
    given: ClassVar[dict[str, str]] = {}
    State: ClassVar[Any] = Middle.State

    @step
    def fan_out(self, ledger: str) -> dict[str, Any]:
        child = self.spawn("has_a_child_pay", {"ledger": ledger, **self.given})
        self.wait_for_signal("go")
        return {"done": len(self.gather(child))}


class LaterTop(From1, Top):
    """Gives the child a memo."""

    version = "2"
    given = {"memo": "November"}


def test_what_a_childs_own_child_did_is_named_and_undone(ledger: Path) -> None:
    """A child that had completed, with no effects of its own, counted as one that did nothing."""
    run = Trial(Top, ledger=str(ledger), starts=[Middle, Tells])
    assert (started(run), worked(ledger)) == (["completed"], ONCE)
    run.upgrade(LaterTop)
    assert (run.asks, len(run.children)) == ("fan_out", 1)
    assert run.card.reasons == (
        f"R-{run.children[0].row.pk} “has_a_child_pay” has completed. It did “Pay” and “Tell”. “Tell” cannot be undone",
    )
    run.answer("withdraw")
    assert started(run) == ["cancelled", "completed"]
    assert worked(ledger) == [*ONCE, "take back", *ONCE]


def test_nothing_starts_beside_a_child_on_which_a_fork_counts(ledger: Path) -> None:
    run = Trial(Boss, ledger=str(ledger), starts=[Tells])
    assert forked(run).signal("go").state["done"] == 1
    run.upgrade(OtherBoss)
    assert (run.asks, choices(run), worked(ledger)) == ("fan_out", ["do_again", "stop"], ONCE)
    run.answer("do_again").signal("go")
    assert (run.status, run.asks, worked(ledger)) == ("waiting", "look", [*ONCE, *ONCE])


@pytest.mark.long
def test_nothing_starts_beside_a_child_on_which_a_fork_counts_by_the_time_of_the_answer(ledger: Path) -> None:
    run = Trial(Boss, ledger=str(ledger), starts=[Tells])
    made = forked(run)
    run.upgrade(OtherBoss)
    assert (run.asks, choices(run)) == ("fan_out", ["withdraw", "stop"])
    made.known = registry.of_classes([Boss, Tells])
    made.signal("go")
    run.answer("withdraw")
    assert (run.asks, choices(run), worked(ledger)) == ("fan_out", ["do_again", "stop"], ONCE)


def test_nothing_starts_beside_a_frozen_child(ledger: Path) -> None:
    run = Trial(Boss, ledger=str(ledger), starts=[Tells])
    row = run.children[0].row
    Run.objects.filter(pk=row.pk).update(status="failed", frozen_at=row.created_at)
    run.upgrade(OtherBoss)
    assert (run.asks, choices(run), worked(ledger)) == ("fan_out", ["do_again", "stop"], ONCE)


def test_a_fork_into_a_new_version_starts_nothing_beside_what_was_done_for_its_origin(ledger: Path) -> None:
    run = Trial(Boss, ledger=str(ledger), starts=[Tells]).signal("go")
    run.known = registry.of_classes([OtherBoss, Tells])
    made = forked(run)
    assert (made.version, made.asks, choices(made), worked(ledger)) == ("2", "fan_out", ["do_again", "stop"], ONCE)
