"""What an agent of this server asks: when it may, under tools that people registered, and about an effect in doubt."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db.models import F

from agents.runner import engine
from agents.steps import recovery_gate
from approvals import tools
from approvals.cards.answer import RecoveryAnswer, answered
from approvals.cards.card import AnswerChoice, Card
from approvals.errors import Invalid
from approvals.models import Gate, Policy
from checkpoints.models import Run
from tests.agents.moves.moved_runs import before, rewind
from tests.approvals.tools.registered_tools import make_tool
from tests.factories import make_policy, make_team
from tests.factories.driven_runs import advance, advance_to_rest, answer, decide, effects, failures, make_run, open_gate

PAYMENT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "to": {"type": "string", "title": "Paid to"},
        "amount": {"type": "string", "format": "decimal", "title": "Paid", "pattern": "^[0-9]{1,2}([.][0-9]+)?$"},
    },
    "required": ["to", "amount"],
}


def registered(team: Group, **said: Any) -> None:
    make_tool(team, **{"name": "pay", "title": "Pay somebody", "schema": tools.closed(PAYMENT), "pinned": ["/to"],
                       "undo": "cancel", **said})  # fmt: skip


@pytest.fixture
def team() -> Group:
    team = make_team()
    make_policy(team, name="payments", registered_only=True)
    return team


def test_it_is_held_until_its_tool_is_registered_and_asks_then(team: Group) -> None:
    run = advance_to_rest(make_run("payer", team=team))
    gate = open_gate(run)
    assert gate.kind == "recovery"
    said = gate.standing().card.summary
    assert f"pay is no tool that {team.name} has registered" in said
    assert "its policy payments takes registered tools only" in said
    assert "Have it registered in the administration, and try again." in said
    registered(team)
    answer(run, "retry")
    gate = open_gate(advance_to_rest(run))
    [action] = gate.standing().card.actions
    assert (gate.kind, gate.risk, action.title) == ("review", "high", "Pay somebody")
    assert list(action.pinned) == ["/to"], "the pins are those that people registered"


def test_an_earlier_agreement_stands_while_the_tool_is_the_same(team: Group, tmp_path: Path) -> None:
    registered(team)
    run = advance_to_rest(make_run("payer", team=team, ledger=str(tmp_path / "ledger")))
    decide(run)
    assert advance_to_rest(run).status == "completed"
    for changed in (False, True):
        if changed:
            registered(team, title="Send somebody money")
        rewind(run, before(run, "propose"))
        assert advance_to_rest(run).status == ("waiting" if changed else "completed")
    assert open_gate(run).standing().card.actions[0].title == "Send somebody money"


def test_a_run_beyond_the_cap_waits_with_a_reason_and_asks_when_it_may() -> None:
    policy = make_policy(team := make_team(), name="default")
    Policy.objects.filter(pk=policy.pk).update(hourly=1)
    first, second = (make_run("payer", team=team, amount="5.00") for _ in range(2))
    assert advance(first).status == Run.Status.WAITING
    for _ in range(6):  # more often than a step may fail
        assert advance(second).status == Run.Status.QUEUED
    assert "has asked 1 gates within an hour" in second.reason
    assert second.wake_at is not None
    assert second.wake_at - open_gate(first).opened_at == timedelta(hours=1)
    assert not engine.advance(second.pk), "it is not woken before that"
    assert second.attempts == 0
    assert failures(second) == []
    Gate.objects.filter(run=first).update(opened_at=F("opened_at") - timedelta(hours=1))
    assert advance(second).status == Run.Status.WAITING
    assert open_gate(second).kind == Gate.Kind.REVIEW


def test_it_happened_is_not_said_with_nothing_in_hand() -> None:
    """The field's default, null, stood in the form and was sent along unread: a payment without a payment."""
    state = {"properties": {"payment": {"anyOf": [{"$ref": "#/$defs/Payment"}, {"type": "null"}], "default": None}}}
    plan = SimpleNamespace(state_schema=state | {"$defs": {"Payment": {"type": "object", "properties": {}}}})
    spec = SimpleNamespace(writes=("payment",))
    schema = recovery_gate.result_schema(SimpleNamespace(plan=plan), spec)  # type: ignore[arg-type]
    choice: AnswerChoice = {"id": "happened", "label": "It happened", "needs_value": True, "schema": schema}
    card = Card(title="Did it?", question={"text": "Did it?", "choices": [choice]})
    with pytest.raises(Invalid):
        answered(card, {"choice": "happened", "value": {"payment": None}})
    assert answered(card, {"choice": "happened", "value": {"payment": {"id": "re_1"}}})


def test_whoever_may_let_an_effect_run_again_sees_with_what(tmp_path: Path) -> None:
    """The card asked "do it again?" and showed no arguments, though the answer is a permission."""
    run = advance(make_run("payer", ledger=str(tmp_path / "ledger"), mode="unknown mail"))
    decide(run)
    card = open_gate(advance(run)).standing().card
    assert card.question is not None
    assert [(action.tool, action.arguments, action.edits) for action in card.actions] == [
        ("pay", {"to": "ann", "amount": "10.00"}, False)
    ]
    answer(run, RecoveryAnswer.AGAIN)
    assert effects(advance(run), "mail")[0].status == "abandoned"
