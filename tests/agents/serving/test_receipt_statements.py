"""A gate's page costs no more statements for its undo window or its receipt than its budget gives."""

from __future__ import annotations

from approvals.models import Gate
from tests.approvals.decisions.undoing.windows import make_held
from tests.factories import ann, bob, decide, make_gate, make_policy, make_team, unique
from tests.harness.sent_statements import sent
from tests.harness.signed_in_clients import signed_in

from .test_unrun import approved, begin, look

MOST = 15


def statements(gate: Gate) -> list[str]:
    client = signed_in(bob(gate.team))
    client.cookies["hp-zone"] = "UTC"  # as a browser with scripts has it
    with sent() as found:
        assert client.get(f"/gates/{gate.pk}/").status_code == 200
    return list(found)


def test_a_gate_with_a_decision_that_may_be_undone_costs_what_an_open_one_does() -> None:
    team = make_team()
    held, plain = make_held(team), make_gate(policy=make_policy(team, name=unique("now")))
    before = statements(plain)
    decide(held, ann(team))
    found = statements(held)
    assert len(found) <= min(len(before) + 1, MOST), found


def test_a_closed_gate_with_its_receipt_is_within_the_budget() -> None:
    late, done = approved(), approved()
    begin(done)
    look()
    assert len(statements(done)) <= MOST, statements(done)
    assert len(statements(late)) <= MOST + 1, statements(late)  # why nothing runs takes some more, minutes later alone
