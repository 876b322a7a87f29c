"""Gates that offer preconditions, opened without an agent: their plan names an observation that nobody makes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from approvals.cards.card import Card
from approvals.cards.precondition import Precondition
from approvals.models import Gate, Policy
from checkpoints.models import Event, Run
from checkpoints.values.canonical_json import decode_canonical
from tests.factories import make_card, make_gate, make_team
from tests.factories.runs import STEPS, make_plan, make_spec
from tests.factories.runs import make_run as make_any_run

OBSERVING = tuple(replace(step, observes=("balance", "mood")) if step.name == "review" else step for step in STEPS)


def make_precondition(id: str = "balance", **fields: Any) -> Precondition:
    """The balance of the charge, as it was observed."""
    given = {"label": "the balance is still {value}", "observes": "balance", "value": "0.00 EUR"}
    return Precondition(id=id, **{**given, **fields})


def make_observing_run(policy: Policy | None = None) -> Run:
    return make_any_run(team=policy.team if policy else make_team(), plan=make_plan(make_spec(steps=OBSERVING)))


def make_observing_gate(
    *offered: Precondition, policy: Policy | None = None, card: Card | None = None, **fields: Any
) -> Gate:
    """An open gate that offers these preconditions, or one of each kind."""
    some = offered or (make_precondition(), make_precondition("mood", observes="mood", value="calm", required=True))
    whole = replace(card or make_card(), preconditions=some, **fields)
    return make_gate(run=make_observing_run(policy), policy=policy, card=whole)


def said_of(gate: Gate) -> dict[str, Any]:
    event = Event.objects.filter(subject=gate.subject, kind="gate.decided").latest("pk")
    data: dict[str, Any] = decode_canonical(bytes(event.data))
    return data
