"""What a person is asked who is to say what became of an effect."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from agents.steps import recovery_gate
from approvals.cards.answer import answered
from approvals.cards.card import AnswerChoice, Card
from approvals.cards.recovery_answers import RecoveryAnswer
from approvals.errors import Invalid
from checkpoints.models import Run
from tests.factories.driven_runs import advance, advance_to_rest, answer, decide, effects, make_run, open_gate


def test_the_question_gives_its_reasons_and_reads_as_one(tmp_path: Path) -> None:
    run = advance(make_run("sender", ledger=str(tmp_path / "ledger"), ends=["unknown"]))
    card = open_gate(run).standing().card
    assert card.title == "Did “Send” happen?"  # "Did “Send” happen? sender", where the run has its agent's name alone
    assert card.reasons


@pytest.mark.parametrize(("title", "asked"), [("", "“Send” failed"), ("Order 7", "“Send” failed: Order 7")])
def test_a_question_names_the_run_where_it_has_a_title(title: str, asked: str, tmp_path: Path) -> None:
    run = make_run("sender", ledger=str(tmp_path / "ledger"), ends=["failed"] * 9)
    if title:
        Run.objects.filter(pk=run.pk).update(title=title)
    assert open_gate(advance_to_rest(run)).title == asked


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
