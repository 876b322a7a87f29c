"""What a gate's events keep for good is no personal text: they are never erased, and seals cover them."""

from __future__ import annotations

import contextlib

import pytest

from approvals.errors import DecisionRefused
from approvals.gates import closing
from approvals.models import Gate
from checkpoints import actors
from checkpoints.models import Event, EventText
from checkpoints.values import canonical_json
from tests.factories import ann, bob, decide, edit_amount, eve, make_card, make_gate, make_policy, make_team

PERSONAL = ("Marit", "Ellery", "1,284", "Okafor", "Lindqvist", "Marlow", "patience", "lenses", "refund her")


def data_of(gate: Gate) -> dict[str, str]:
    """Kind -> the data of each of the run's events."""
    events = Event.objects.filter(run_id=gate.run_id)
    return {event.kind: str(canonical_json.decode_canonical(bytes(event.data))) for event in events}


def personal_in(gate: Gate) -> list[tuple[str, str]]:
    return [(kind, word) for kind, data in data_of(gate).items() for word in PERSONAL if word in data]


def test_no_event_of_a_gate_keeps_its_title_or_what_people_wrote() -> None:
    team = make_team()
    card = make_card(title="Refund €1,284.00 and reply to Marit Ellery", summary="refund her")
    gate = make_gate(policy=make_policy(team, quorum=2), card=card)
    decide(gate, ann(team), "edit", arguments=edit_amount(gate, "80.00"), comment="Thank you for your patience")
    with contextlib.suppress(DecisionRefused):
        decide(gate, eve(), comment="patience")
    with contextlib.suppress(DecisionRefused):
        decide(gate, bob(team), "Marit Ellery")
    decide(gate, bob(team), "reject", comment="Not the lenses")
    kinds = {"gate.opened", "gate.edited", "gate.decided", "gate.closed", "decision.refused", "run.queued"}
    assert kinds <= set(data_of(gate))
    assert personal_in(gate) == []


@pytest.mark.parametrize("end", ["expire", "withdraw"])
def test_nor_does_one_that_nobody_decided(end: str) -> None:
    gate = make_gate(card=make_card(title="Refund €1,284.00 and reply to Marit Ellery"))
    if end == "withdraw":
        closing.withdraw(gate, by=actors.SYSTEM, reason="Marit Ellery wrote again")
    else:
        closing.pass_deadline(gate)
        closing.expire(gate)
    assert Gate.objects.get(pk=gate.pk).status in ("expired", "withdrawn")
    assert personal_in(gate) == []


def test_who_did_it_stays_in_the_column_for_it_and_their_words_in_a_row_that_can_be_erased() -> None:
    team = make_team()
    gate = make_gate(team=team)
    decide(gate, ann(team), comment="Thank you for your patience")
    event = Event.objects.get(subject=gate.subject, kind="gate.decided")
    assert event.actor_name == "Ann Okafor"
    assert bytes(EventText.objects.get(event=event).text) == b"Thank you for your patience"
    assert event.text_digest is not None
