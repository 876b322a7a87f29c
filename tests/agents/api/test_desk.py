"""Claims and hand-overs over the API: as on the page, by people's own tokens alone."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.test import Client

from agents.models import TokenScope
from approvals.models import Assignee, Gate, GateClaim
from tests.approvals.assignments.test_away import lend
from tests.factories import ann, bob, eve, make_gate, make_team, make_user
from tests.factories.tokens import make_token
from tests.harness.signed_in_clients import signed_in


def send(by: User, gate: Gate, noun: str, status: int = 201, /, **body: Any) -> dict[str, Any]:
    client = Client(headers={"Authorization": f"Bearer {make_token(by, TokenScope.SEE, TokenScope.DECIDE)[1]}"})
    answer = client.post(f"/api/gates/{gate.pk}/{noun}", body, content_type="application/json")
    assert answer.status_code == status, answer.content
    found: dict[str, Any] = answer.json()
    return found


def test_a_claim_is_made_taken_over_and_released() -> None:
    team = make_team()
    gate, one, other = make_gate(team=team), ann(team), bob(team)
    claim = send(one, gate, "claims")["desk"]["claim"]
    assert (claim["by"], claim["you"], claim["looking"]) == ("Ann Okafor", True, False)
    assert send(other, gate, "claims", 409)["code"] == "claimed"
    assert send(other, gate, "releases", 409)["code"] == "not_claimed"
    assert send(other, gate, "takeovers")["desk"]["claim"]["by"] == "Bob Lindqvist"
    read = signed_in(one).get(f"/api/gates/{gate.pk}").json()
    assert (read["desk"]["claim"]["by"], read["desk"]["claim"]["you"]) == ("Bob Lindqvist", False)
    assert send(other, gate, "releases")["desk"]["claim"] is None
    assert not GateClaim.objects.filter(gate=gate).exists()


def test_a_decision_over_a_claim_names_who_has_it() -> None:
    team = make_team()
    gate, one, other = make_gate(team=team), ann(team), bob(team)
    send(one, gate, "claims")
    sent = {"seen": bytes(gate.standing().digest).hex(), "verdict": "approve"}
    refused = send(other, gate, "decisions", 409, **sent)
    assert (refused["code"], "Ann Okafor" in refused["detail"]) == ("claimed", True)


def test_a_gate_is_handed_over_to_one_who_may() -> None:
    team = make_team()
    gate, one, other = make_gate(team=team), ann(team), bob(team)
    assert send(one, gate, "reassignments", person=other.username, reason="Please")["desk"]["asked"] == "Bob Lindqvist"
    for body in ({"person": "nobody"}, {}, {"person": other.username, "team": team.name}, {"person": "\0"}):
        assert send(one, gate, "reassignments", 422, reason="Please", **body)["code"] == "invalid"
    assert Assignee.objects.get(gate=gate).user == other


def test_it_names_for_whom_a_person_decides_who_is_no_reviewer_anyway_and_whom_nothing_bars() -> None:
    """It named those too for whom the person could not decide: a reviewer's, and whoever had started the run."""
    team = make_team()
    one, other, reviewer = ann(team), make_user("Bo Elsewhere"), bob(team)
    lend(one, other)
    lend(one, reviewer)
    named = [
        signed_in(by).get(f"/api/gates/{gate.pk}").json()["desk"]["for_whom"]
        for gate in (make_gate(team=team), make_gate(team=team, started_by=one))
        for by in (other, reviewer)
    ]
    assert named == [["Ann Okafor"], [], [], []]


def test_an_outsider_is_told_nothing() -> None:
    gate = make_gate()
    for noun in ("claims", "releases", "takeovers"):
        send(eve(), gate, noun, 404)
    send(eve(), gate, "reassignments", 404, person="x", reason="y")
