"""A gate that was asked a hundred times before is no dearer to show than the first."""

from __future__ import annotations

import pytest

from approvals.models import Gate
from tests.agents.pages.stored_histories import INPUT, PROPOSAL, Walk, begin
from tests.agents.pages.test_long_runs import LONG, MOST
from tests.factories import ann, bob, decide, make_team
from tests.harness.sent_statements import sent
from tests.harness.signed_in_clients import signed_in

CLOSED = MOST + 1  # as the run's page, and the votes of its receipt
OPEN = MOST + 3  # what becomes of the runs that it started, who is on the gate, and what others did before


def asked_again(turns: int, *, agreed: bool) -> Gate:
    """The gate of a run that was asked `turns` times before: people agreed and it was done, or they sent it back."""
    team = make_team()
    walk = begin(team, started_by=bob(team))
    walk.save("find_order", {"order": {"number": "A-1", "letter": LONG}}, "propose")
    for turn in range(turns + 1):
        walk.save("propose", {"proposal": PROPOSAL | {"note": f"turn {turn}"}}, "review")
        gate = walk.ask()
        if turn == turns:
            break
        answer(walk, gate, turn, agreed=agreed)
    return gate


def answer(walk: Walk, gate: Gate, turn: int, *, agreed: bool) -> None:
    reviewer = ann(walk.run.team)
    if not agreed:
        decide(gate, reviewer, "reject", then="back", back_to="propose", comment=f"Not {turn}.")
        walk.go_on()
        walk.save("review", {}, "propose", kind="gate")
        walk.rewind(2, "propose", {"feedback": [{"text": f"turn {turn}"}]})
        return
    decide(gate, reviewer)
    walk.go_on()
    walk.save("review", {}, "pay", kind="gate")
    for grant in Gate.objects.get(pk=gate.pk).outcome.grants.filter(effect="pay"):
        walk.effect("pay", grant=grant, input_digest=INPUT, occurrence=turn)
    walk.save("pay", {"payment": {"id": f"p{turn}"}}, "propose")


@pytest.mark.parametrize("agreed", [True, False])
def test_a_gates_page_asks_the_database_no_more_of_one_that_was_asked_often(agreed: bool) -> None:
    asked = []
    for turns in (2, 20):
        gate = asked_again(turns, agreed=agreed)
        client = signed_in(ann(gate.team))
        client.get(f"/gates/{gate.pk}/")  # a process reads once which agents it has
        with sent() as statements:
            page = client.get(f"/gates/{gate.pk}/").content.decode()
        assert "If you send it back to" in page
        asked.append(len(statements))
        most = OPEN if agreed else OPEN + 1  # what was rejected before is told of, with who did and why
        assert len(statements) <= most, "\n".join(each[:200] for each in statements)
    assert asked[0] == asked[1]


def test_a_gate_that_is_closed_asks_for_less() -> None:
    gate = asked_again(1, agreed=True)
    decide(gate, ann(gate.team))
    client = signed_in(ann(gate.team))
    client.cookies["hp-zone"] = "UTC"  # as a browser with scripts has it
    client.get(f"/gates/{gate.pk}/")
    with sent() as statements:
        assert client.get(f"/gates/{gate.pk}/").status_code == 200
    assert len(statements) <= CLOSED, "\n".join(each[:200] for each in statements)
