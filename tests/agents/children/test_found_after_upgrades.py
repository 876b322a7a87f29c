"""A step that goes on in another version finds what it started: under other names, with defaults, of other versions.

Two upgrades that each renamed the step, one that moved names along, and a model that got a field with a default each
started all children again. So did a rewind of the parent after the child alone got a new version.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel

from agents import Agent, Card, effect, gate, step, upcast
from agents.definition import registry
from agents.moves import rewind
from agents.moves.fork import fork
from agents.testing import Trial
from tests.factories import ann
from tests.factories.driven_runs import trail

from .families import worked


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """What was done outside, a line each."""
    return tmp_path / "ledger"


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


def asked(agent: Agent, given: list[Any]) -> list[str]:
    """Start a child for each, and return what was said."""
    children = [agent.spawn("asks_for_a_word", each) for each in given]
    return [each.state["word"] for each in agent.gather(*children) if each]


class One(Agent):
    """Starts a child for each word."""

    name = "renamed_twice"
    team = "Support"
    State: ClassVar[Any] = Words

    @step
    def fan_out(self, words: list[str]) -> dict[str, Any]:
        return {"said": asked(self, [{"word": word} for word in words])}


class Two(Agent):
    """Does so under another name."""

    name = "renamed_twice"
    version = "2"
    team = "Support"
    State: ClassVar[Any] = Words

    @upcast("1", steps={"fan_out": "spread"})
    @classmethod
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        return state

    @step
    def spread(self, words: list[str]) -> dict[str, Any]:
        return {"said": asked(self, [{"word": word} for word in words])}


class Three(Agent):
    """And under yet another."""

    name = "renamed_twice"
    version = "3"
    team = "Support"
    State: ClassVar[Any] = Words

    @upcast("2", steps={"spread": "scatter"})
    @classmethod
    def from_2(cls, state: dict[str, Any]) -> dict[str, Any]:
        return state

    @step
    def scatter(self, words: list[str]) -> dict[str, Any]:
        return {"said": asked(self, [{"word": word} for word in words])}


def test_a_step_that_two_versions_rename_in_turn_finds_its_children() -> None:
    run = Trial(One, words=["a", "b"], starts=[Asks]).upgrade(Two).upgrade(Three)
    assert (run.version, run.asks, len(run.children)) == ("3", "", 2)
    for each in run.children:
        each.approve()
    assert (run.status, run.state["said"]) == ("completed", ["a", "b"])


class Chain(Agent):
    """Starts its children in the first of two steps."""

    name = "names_move_along"
    team = "Support"
    State: ClassVar[Any] = Words

    @step
    def one(self, words: list[str]) -> dict[str, Any]:
        return {"said": asked(self, [{"word": word} for word in words])}

    @step
    def two(self, said: list[str]) -> dict[str, Any]:
        return {"end": len(said)}


class LongerChain(Agent):
    """Has a step before them, so that the first is now called as the second was."""

    name = "names_move_along"
    version = "2"
    team = "Support"
    State: ClassVar[Any] = Words

    @upcast("1", steps={"one": "two", "two": "three"})
    @classmethod
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        return state

    @step
    def one(self, words: list[str]) -> dict[str, Any]:
        return {"words": words}

    @step
    def two(self, words: list[str]) -> dict[str, Any]:
        return {"said": asked(self, [{"word": word} for word in words])}

    @step
    def three(self, said: list[str]) -> dict[str, Any]:
        return {"end": len(said)}


def test_names_that_move_along_are_each_changed_once() -> None:
    run = Trial(Chain, words=["a", "b"], starts=[Asks]).upgrade(LongerChain)
    assert (run.version, run.asks, len(run.children)) == ("2", "", 2)


class OldInput(BaseModel):
    """What a child is given."""

    word: str


class NewInput(OldInput):
    """The same, with the currency that a child had anyway."""

    currency: str = "EUR"


class ByModel(Agent):
    """Gives its children a model."""

    name = "gives_a_model"
    team = "Support"
    State: ClassVar[Any] = Words

    @step
    def fan_out(self, words: list[str]) -> dict[str, Any]:
        return {"said": asked(self, [OldInput(word=word) for word in words])}


class ByNewModel(Agent):
    """Gives them one with a default more, and what it started before without."""

    name = "gives_a_model"
    version = "2"
    team = "Support"
    State: ClassVar[Any] = Words

    @upcast("1")
    @classmethod
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        return state

    @step
    def fan_out(self, words: list[str]) -> dict[str, Any]:
        return {"said": asked(self, [NewInput(word=word) for word in words])}


def test_a_default_that_a_model_got_starts_no_child_again() -> None:
    run = Trial(ByModel, words=["a", "b"], starts=[Asks]).upgrade(ByNewModel)
    assert (run.version, run.asks, len(run.children)) == ("2", "", 2)


class ByBoth(Agent):
    """Gives one word in both ways, which are two children."""

    name = "gives_a_model"
    version = "3"
    team = "Support"
    State: ClassVar[Any] = Words

    @upcast("1")
    @classmethod
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        return state

    @step
    def fan_out(self, words: list[str]) -> dict[str, Any]:
        return {"said": asked(self, [each for word in words for each in (NewInput(word=word), OldInput(word=word))])}


def test_one_child_is_found_by_one_call_alone() -> None:
    run = Trial(ByModel, words=["a"], starts=[Asks]).upgrade(ByBoth)
    assert (run.asks, len(run.children)) == ("", 2)


class Pays(Agent):
    """A child that pays, and says so."""

    name = "pays_and_tells"
    team = "Support"

    class State(BaseModel):
        ledger: str
        memo: str = ""
        paid: bool = False

    @effect(guarded=False, undo="take_back")
    def pay(self, ledger: str) -> dict[str, Any]:
        with Path(ledger).open("a") as file:
            file.write("pay\n")
        return {"paid": True}

    def take_back(self, ledger: str) -> None:
        with Path(ledger).open("a") as file:
            file.write("take back\n")

    @effect(guarded=False, irreversible=True)
    def tell(self, ledger: str) -> dict[str, Any]:
        with Path(ledger).open("a") as file:
            file.write("tell\n")
        return {}


class LaterPays(Pays):
    """A new version of it, which says in its input what it is for."""

    name = "pays_and_tells"
    version = "2"
    team = "Support"

    class State(Pays.State):
        memo: str = "November"

    @upcast("1")
    @classmethod
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        return state


class Boss(Agent):
    """Has a child pay, and waits for a word."""

    name = "has_it_paid"
    team = "Support"
    signals = {"go": None}

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


@pytest.mark.parametrize("move", ["rewind", "fork"])
def test_a_new_version_of_the_child_alone_has_nothing_done_twice(ledger: Path, move: str) -> None:
    run = Trial(Boss, ledger=str(ledger), starts=[Pays]).signal("go")
    assert worked(ledger) == ["pay", "tell"]
    run.known = registry.of_classes([Boss, LaterPays])
    with run._world():
        if move == "rewind":
            rewind.rewind(run._fresh(), to=trail(run.row).index(("step", "fan_out")), by=ann(run.team))
        else:
            run = run._child(fork(run.row, at=2, by=ann(run.team)))
            run.parent = None
        run._go_on()
    run.signal("go")
    assert (run.status, run.asks, run.state["done"]) == ("waiting", "look", 1)
    assert worked(ledger) == ["pay", "tell"]


def test_a_new_version_of_the_child_alone_starts_no_other_beside_it(ledger: Path) -> None:
    """The parent is as it was, but gives what the child's new State makes of it."""
    run = Trial(Boss, ledger=str(ledger), by_model=True, starts=[Pays])
    run.known = registry.of_classes([Boss, LaterPays])
    run.signal("go")
    assert (run.asks, worked(ledger)) == ("fan_out", ["pay", "tell"])
    assert "It did “Pay” and “Tell”. “Tell” cannot be undone" in run.card.reasons[0]
    question = run.card.question
    assert question is not None
    assert [each["id"] for each in question["choices"]] == ["withdraw", "retry", "stop"]
    assert question["text"].endswith(
        "To keep them, serve the earlier version again, then let “Fan out” try again here."
    )
    run.known = registry.of_classes([Boss, Pays])
    run.answer("retry")
    assert (run.status, run.asks, worked(ledger)) == ("waiting", "look", ["pay", "tell"])


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
    signals = {"go": None}

    class State(BaseModel):
        ledger: str
        done: int = 0

    @step
    def fan_out(self, ledger: str) -> dict[str, Any]:
        child = self.spawn("has_a_child_pay", {"ledger": ledger})
        self.wait_for_signal("go")
        return {"done": len(self.gather(child))}


class LaterTop(Agent):
    """Gives the child a memo."""

    name = "three_generations"
    version = "2"
    team = "Support"
    signals = {"go": None}
    State: ClassVar[Any] = Top.State

    @upcast("1")
    @classmethod
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        return state

    @step
    def fan_out(self, ledger: str) -> dict[str, Any]:
        child = self.spawn("has_a_child_pay", {"ledger": ledger, "memo": "November"})
        self.wait_for_signal("go")
        return {"done": len(self.gather(child))}


def test_what_a_childs_own_child_did_is_named_and_undone(ledger: Path) -> None:
    """A child that had completed, with no effects of its own, counted as one that did nothing."""
    run = Trial(Top, ledger=str(ledger), starts=[Middle, Pays])
    assert ([each.status for each in run.children], worked(ledger)) == (["completed"], ["pay", "tell"])
    run.upgrade(LaterTop)
    assert (run.asks, len(run.children)) == ("fan_out", 1)
    assert run.card.reasons == (
        f"R-{run.children[0].row.pk} “has_a_child_pay” has completed. It did “Pay” and “Tell”. “Tell” cannot be undone",
    )
    run.answer("withdraw")
    assert [each.status for each in run.children] == ["cancelled", "completed"]
    assert worked(ledger) == ["pay", "tell", "take back", "pay", "tell"]


class OneOtherwise(Agent):
    """Gives the second child another word, and the first one what it was given, in other words."""

    name = "gives_a_model"
    version = "4"
    team = "Support"
    State: ClassVar[Any] = Words

    @upcast("1")
    @classmethod
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        return state

    @step
    def fan_out(self, words: list[str]) -> dict[str, Any]:
        return {"said": asked(self, [NewInput(word=words[0]), NewInput(word=f"{words[1]}!")])}


def test_what_was_found_stays_found_once_the_others_are_withdrawn() -> None:
    """The answer made a child that is only read alike look as if this version had started it: it started again."""
    run = Trial(ByModel, words=["a", "b"], starts=[Asks]).upgrade(OneOtherwise)
    first, second = run.children
    assert (run.asks, [line.split(" ")[0] for line in run.card.reasons]) == ("fan_out", [f"R-{second.row.pk}"])
    run.answer("withdraw")
    assert [(each.status, each.state["word"]) for each in run.children] == [
        ("waiting", "a"), ("cancelled", "b"), ("waiting", "b!"),
    ]  # fmt: skip
    assert run.children[0].row == first.row
