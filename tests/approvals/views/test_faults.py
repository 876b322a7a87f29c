"""What does not hold in a form is said to whoever would send it, and to nobody who refuses what is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from approvals.models import Gate
from tests.approvals.cards.verdicts.conftest import known_agents, ledger
from tests.approvals.cards.verdicts.verdict_forms import make_three
from tests.factories import ann, make_gate, make_team
from tests.factories.driven_runs import open_gate
from tests.harness.signed_in_clients import form_of, post, signed_in

__all__ = ["known_agents", "ledger"]


def told(gate: Gate, **form: str) -> str:
    """The parts of the page that are fetched while somebody types."""
    sent = form_of(gate) | {name.replace("__", "."): text for name, text in form.items()}
    answer = signed_in(ann(gate.team)).post(f"/gates/{gate.pk}/impacts/", sent, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_whoever_rejects_is_not_told_what_does_not_hold_in_a_form_that_is_not_sent() -> None:
    """A rejection said that a value does not hold, which read as if it could not be sent."""
    gate = make_gate(team=make_team())
    wrong = {"args__refund/amount": "much"}
    assert "1 field to correct" in told(gate, verdict="edit", **wrong)
    for then in ("stop", "back", "override"):
        shown = told(gate, verdict="reject", then=then, **wrong)
        assert "to correct" not in shown
        assert "data-fault" not in shown


@pytest.mark.parametrize("refusal", ["reject", "respond"])
def test_an_action_that_is_refused_is_not_told_of_where_others_are_edited(ledger: Path, refusal: str) -> None:
    gate = open_gate(make_three(ledger))
    wrong = {"args__b/amount": "much", "args__c/amount": "more"}
    each = {"verdict": "each", "verdict__a": "approve", "verdict__b": "edit"}
    assert "2 fields to correct" in told(gate, **each, verdict__c="edit", **wrong)
    assert "1 field to correct" in told(gate, **each, verdict__c=refusal, **wrong)


def test_all_rejected_is_taken_whatever_stands_in_the_fields(ledger: Path) -> None:
    gate = open_gate(make_three(ledger))
    wrong = {"args.a/amount": "much", "args.b/amount": "-1"}
    each = {"verdict": "each"} | {f"verdict.{name}": "reject" for name in "abc"} | {"reason.a": "No."}
    each |= {"reason.b": "No.", "reason.c": "No.", "then": "stop"}
    assert "to correct" not in told(gate, **{k.replace(".", "__"): v for k, v in (each | wrong).items()})
    assert post(ann(gate.team), gate, form_of(gate) | each | wrong).status_code == 303
