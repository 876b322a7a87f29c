"""What an agent's declaration becomes, and what is refused before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import new_class
from typing import Any, cast

import pytest
from pydantic import BaseModel, ValidationError, field_validator

from agents import Agent, AgentError, Jump, effect, gate, step
from agents.definition import fields, registry
from agents.definition.inferred_writes import strip_title
from agents.definition.plan_builder import plan_of
from agents.definition.registered import RegisteredAgent
from agents.errors import UnknownAgent
from checkpoints.errors import PlanChanged
from checkpoints.models import Plan, Run
from tests.factories.driven_runs import make_run


class Money(BaseModel):
    amount: int = 0
    log: list[str] = []


def agent(**body: Any) -> type[Agent]:
    """An agent class with this body."""
    made: Any = new_class(
        "Made", (Agent,), exec_body=lambda names: names.update({"name": "made", "State": Money} | body)
    )
    return cast("type[Agent]", made)


@step
def reads_nothing_known(self: Any, price: int) -> None:
    """Read what is not there."""


@step
def takes_anything(self: Any, **fields: Any) -> None:
    """Read who knows what."""


@step
def writes_unknown(self: Any) -> dict[str, Any]:
    return {"price": 1}


@step
def writes_unreadably(self: Any, amount: int) -> dict[str, Any]:
    built = {"amount": amount}
    return built


def under(options: Any) -> Any:
    """A method that does nothing, under a decorator."""

    def method(self: Any) -> None:
        """Do nothing."""

    return options(method)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"one": reads_nothing_known}, "reads price, which is not a field"),
    ({"one": takes_anything}, r"takes \*fields"),
    ({"one": writes_unknown}, "writes price, which is not a field"),
    ({"one": writes_unreadably}, "cannot be read from `return built`"),
    ({"one": under(step(writes=["price"]))}, "writes price, which is not a field"),
    ({"one": under(effect(guarded=False))}, "has no undo and is not declared irreversible"),
    (
        {"one": under(effect(guarded=False, undo="undo_it", irreversible=True)), "undo_it": lambda self: None},
        "keep one of the two",
    ),
    ({"one": under(effect(guarded=False, undo="nowhere"))}, "undone by nowhere, which is not a method"),
    ({"one": under(effect(guarded=False, undo="plain")), "plain": under(step())}, "which is a step of the flow"),
    (
        {"one": under(effect(guarded=False, irreversible=True, then="nowhere"))},
        "goes on with nowhere, which is not a step",
    ),
    ({"one": under(effect(irreversible=True))}, "No gate allows the effect made.one"),
    ({"one": under(gate(allows=["nowhere"]))}, "allows nowhere, which is not an effect"),
    ({"one": under(gate(allows=["plain"])), "plain": under(step())}, "allows plain, which is not an effect"),
    ({"one": under(gate(on_reject="nowhere"))}, "unknown step nowhere in on_reject"),
    ({"one": under(gate(on_expire="nowhere"))}, "unknown step nowhere in on_expire"),
    ({"one": under(gate(edits=["price"]))}, "edit price, which is not a field"),
    ({"one": under(step(title="Two\nlines"))}, "one line of plain words"),
    ({"one": under(step(title="Pay \u202eyap"))}, "one line of plain words"),
    ({"one": under(step(title="plain")), "plain": under(step())}, "are both called"),
    ({"one": under(gate(feedback="amount"))}, "feedback into amount, which is not a list field"),
    ({}, "has no steps"),
    ({"name": "Not A Name", "one": under(step())}, "needs a `name`"),
    ({"version": "1 beta", "one": under(step())}, "needs a `version`"),
    ({"checkpoints": "never", "one": under(step())}, "checkpoints='never'"),
    ({"State": dict, "one": under(step())}, "needs a class State"),
]


@pytest.mark.parametrize(("body", "sentence"), REFUSED, ids=[sentence for _, sentence in REFUSED])
def test_a_declaration_that_cannot_work_is_refused_with_a_sentence(body: dict[str, Any], sentence: str) -> None:
    with pytest.raises(AgentError, match=sentence):
        plan_of(agent(**body))


def test_a_step_defined_twice_is_refused() -> None:
    with pytest.raises(AgentError, match="twice is defined twice in"):

        class Doubled(Agent):
            name = "doubled"

            @step
            def twice(self) -> None:
                """First."""

            @step  # type: ignore[no-redef]
            def twice(self) -> None:  # noqa: F811
                """Second."""


def test_of_two_agents_of_one_name_and_version_neither_is_used(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rivals.py").write_text("from tests.factories.sample_agents import Hopper\nclass Rival(Hopper): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    settings.HOLDPOINT_AGENTS = ["tests.factories.sample_agents", "rivals"]
    registry.forget()
    assert ("hopper", "1") not in registry.agents()
    assert ("payer", "1") in registry.agents()
    [fault] = registry.faults()
    assert "Rival and tests.factories.sample_agents.Hopper are both hopper 1, so neither is used; raise one's" in fault


class Untitled:
    @step
    def one(self: Any) -> None:
        """Do it."""


class Titled:
    @step(title="Do it")
    def one(self: Any) -> None:
        """Do it."""


def conditional(self: Any, amount: int) -> Any:
    if amount:
        return {"amount": 1, "log": []}
    if amount > 2:
        return Jump("one", {"log": ["x"]})

    def inner() -> dict[str, int]:
        return {"not_ours": 1}

    return dict(amount=inner()["not_ours"]) if amount < 0 else None  # noqa: C408 - one of the forms that is read


def test_writes_are_read_from_every_return_of_the_step_itself() -> None:
    assert plan_of(agent(one=step(conditional))).step("one").writes == ("amount", "log")


def test_the_plan_says_what_the_declaration_says() -> None:
    spec = registry.agent_named("payer").spec
    assert [each.name for each in spec.steps] == ["propose", "review", "read", "pay", "mail"]
    pay_spec, review = spec.step("pay"), spec.step("review")
    assert (pay_spec.kind, pay_spec.reads, pay_spec.writes) == ("effect", ("ledger", "proposal"), ("payment",))
    assert (pay_spec.undo, pay_spec.idempotent, pay_spec.guarded) == ("cancel", True, True)
    assert (review.allows, review.edits, review.on_reject, review.feedback) == (
        ("pay", "mail"), ("proposal",), "propose", "feedback",
    )  # fmt: skip
    assert spec.state_schema["$defs"]["Proposal"]["properties"]["amount"]["format"] == "decimal"


def test_the_code_hash_covers_the_step_and_its_declared_helpers_only() -> None:
    def made(method: Callable[..., Any], **options: Any) -> str:
        return plan_of(agent(one=step(**options)(method), two=under(step()))).step("one").code_hash

    assert made(conditional) == made(conditional)
    assert made(conditional) != made(conditional, uses=[inner_helper])


PAYS = '''
@effect(undo="cancel"{more}, idempotent=True)
def pay(self, amount: int, key: str) -> None:
    """Pay it."""
'''


@pytest.mark.parametrize("more", [', title="Pay"', ', title="Pay, (all) of it"', ",\n    title='Pay'\n    \"it\""])
def test_the_code_hash_covers_no_title(more: str) -> None:
    """Naming a step for people was a change of its code, and stopped the runs that were under way."""
    assert strip_title(PAYS.format(more=more)) == PAYS.format(more="")
    assert strip_title(PAYS.format(more=", retry=2")) == PAYS.format(more=", retry=2")
    assert strip_title("@step(title='A')\ndef one(self): ...") == "@step\ndef one(self): ..."
    assert strip_title("@chart(title='A')\n@step\ndef one(self): ...") == "@chart(title='A')\n@step\ndef one(self): ..."


def test_a_title_stands_in_the_plan_and_changes_no_code() -> None:
    bare, titled = (plan_of(agent(one=method, two=under(step()))) for method in (Untitled.one, Titled.one))
    assert (titled.step("one").title, bare.step("one").title, bare.step("two").title) == ("Do it", "One", "Two")
    assert titled.untitled() == bare.untitled()


def inner_helper() -> int:
    return 1


def test_a_plan_is_stored_once_and_an_unknown_name_lists_the_known_ones() -> None:
    registry.plans()
    registry.forget()
    registry.plans()
    assert Plan.objects.filter(agent="hopper", version="1").count() == 1
    with pytest.raises(UnknownAgent, match=r"no agent named nobody; known: asker, .*payer"):
        registry.agent_named("nobody")


def test_other_code_under_a_version_that_runs_wait_on_is_refused() -> None:
    run = make_run("hopper")
    known = registry.agent_named("hopper")
    other = RegisteredAgent(known.agent, plan_of(agent(name="hopper", one=under(step()))))
    with pytest.raises(PlanChanged, match="The code of hopper 1 changed while"):
        registry.register(other)
    Run.objects.filter(plan__agent="hopper").update(status="cancelled")
    registry.register(other)
    run.refresh_from_db()


class Refund(BaseModel):
    amount: int

    @field_validator("amount")
    @classmethod
    def left(cls, amount: int) -> int:
        if amount > 19:
            raise ValueError("only 19 is left of the payment")
        if not amount:
            raise AssertionError("nothing is to be paid")
        return amount


@pytest.mark.parametrize(("amount", "said"), [(40, "only 19 is left of the payment"), (0, "nothing is to be paid")])
def test_what_a_check_says_is_told_as_it_says_it(amount: int, said: str) -> None:
    """Reviewers read "Value error, only 19 is left"."""
    with pytest.raises(ValidationError) as refused:
        fields.normalised(Refund, {"amount": amount})
    assert [(each["pointer"], each["message"]) for each in fields.errors_of(refused.value)] == [("/amount", said)]
