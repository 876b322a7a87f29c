"""Somebody says that they are on a gate; nobody else decides over them unasked, and nobody waits for who left."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from django.contrib.auth.models import User
from django.db.models import F
from django.db.models.functions import Now

from agents.serving.sweeper import Sweeper
from approvals.assignments import claims
from approvals.assignments.errors import AlreadyClaimed, ClaimedByOther, GateClosed, MayNot, NotClaimed
from approvals.gates import closing
from approvals.models import Decision, Gate, GateClaim, Looking
from checkpoints.models import Event
from checkpoints.values.canonical_json import decode_canonical
from tests.factories import READER, ann, bob, decide, eve, make_gate, make_policy, make_team, make_user
from tests.harness.racing_threads import race


def told(gate: Gate, kind: str) -> list[tuple[str, dict[str, object]]]:
    """The actor and the data of the gate's events of this kind."""
    found = Event.objects.filter(subject=gate.subject, kind=kind).order_by("pk")
    return [(each.actor, decode_canonical(bytes(each.data))) for each in found]


def age(gate: Gate) -> None:
    """Let the holder's page be out of sight for longer than a claim lasts."""
    GateClaim.objects.filter(gate=gate).update(until=Now() - timedelta(seconds=1))


def holder(gate: Gate) -> User | None:
    found = GateClaim.objects.live().select_related("user").filter(gate=gate).first()
    return found.user if found else None


def test_a_claim_keeps_others_from_deciding_until_they_take_it_over() -> None:
    team = make_team()
    gate, one, other = make_gate(team=team), ann(team), bob(team)
    claims.claim(gate, by=one)
    with pytest.raises(ClaimedByOther, match="Ann Okafor has this gate"):
        decide(gate, other)
    assert Gate.objects.get(pk=gate.pk).status == "open"
    assert told(gate, "decision.refused")[0][1] == {"kind": "claimed", "verdict": "approve", "holder": f"user:{one.pk}"}
    claims.take_over(gate, by=other)
    assert told(gate, "gate.claimed")[1][1]["taken_from"] == f"user:{one.pk}"
    decide(gate, other)
    assert Gate.objects.get(pk=gate.pk).status == "decided"
    assert holder(gate) is None


def test_deciding_releases_the_voters_own_claim_where_others_have_to_agree() -> None:
    team = make_team()
    gate, one = make_gate(policy=make_policy(team, quorum=2)), ann(team)
    claims.claim(gate, by=one)
    decide(gate, one)
    assert holder(gate) is None
    decide(gate, bob(team))
    assert Gate.objects.get(pk=gate.pk).status == "decided"


def test_a_claim_lapses_by_the_databases_clock_and_is_told_once() -> None:
    while Sweeper().lapse_claims():  # those that other tests have left
        pass
    team = make_team()
    gate, one = make_gate(team=team), ann(team)
    claims.claim(gate, by=one)
    assert not claims.lapse(gate.pk)
    version = Gate.objects.get(pk=gate.pk).version
    age(gate)
    assert holder(gate) is None
    assert Sweeper().lapse_claims() == 1
    assert Sweeper().lapse_claims() == 0
    assert Gate.objects.get(pk=gate.pk).version == version + 1
    assert [data["kind"] for _, data in told(gate, "gate.released")] == ["lapsed"]
    decide(gate, bob(team))


def test_a_lapsed_claim_stops_nobody_before_the_sweeper_comes() -> None:
    team = make_team()
    gate = make_gate(team=team)
    claims.claim(gate, by=ann(team))
    age(gate)
    other = bob(team)
    claims.claim(gate, by=other)
    assert holder(gate) == other
    decide(gate, other)


def test_a_claim_goes_on_while_its_holder_has_the_page_in_sight() -> None:
    team = make_team()
    gate, one, other = make_gate(team=team), ann(team), bob(team)
    claims.claim(gate, by=one)
    GateClaim.objects.filter(gate=gate).update(until=Now() + timedelta(seconds=30))
    Looking.objects.look(gate.pk, by=other, socket="b")
    assert GateClaim.objects.get(gate=gate).until < GateClaim.objects.get(gate=gate).since + timedelta(minutes=5)
    Looking.objects.look(gate.pk, by=one, socket="a")
    assert GateClaim.objects.filter(gate=gate, until__gt=Now() + timedelta(minutes=5)).exists()
    age(gate)
    Looking.objects.look(gate.pk, by=one, socket="a")
    assert holder(gate) is None  # it lapsed: to come back is to claim again


def test_only_people_who_may_decide_claim_and_only_ones_own_claim_is_released() -> None:
    team = make_team()
    gate, one = make_gate(team=team), ann(team)
    for person in (eve(), make_user("Rita", make_team(may=READER))):
        with pytest.raises(MayNot):
            claims.claim(gate, by=person)
    with pytest.raises(NotClaimed):
        claims.take_over(gate, by=one)
    claims.claim(gate, by=one)
    with pytest.raises(AlreadyClaimed):
        claims.claim(gate, by=bob(team))
    with pytest.raises(NotClaimed):
        claims.release(gate, by=bob(team))
    claims.claim(gate, by=one)
    claims.release(gate, by=one)
    assert [data["kind"] for _, data in told(gate, "gate.released")] == ["released"]


def test_a_closed_gate_is_claimed_by_nobody() -> None:
    team = make_team()
    gate, one = make_gate(policy=make_policy(team, deadline=timedelta(hours=1))), ann(team)
    closing.pass_deadline(gate)
    with pytest.raises(GateClosed):
        claims.claim(gate, by=one)
    closing.expire(gate)
    with pytest.raises(GateClosed):
        claims.claim(gate, by=one)


def test_of_many_who_claim_at_once_one_has_it_and_the_others_are_told_who() -> None:
    team = make_team()
    gate = make_gate(team=team)
    people = [make_user(f"Reviewer {number}", team) for number in range(8)]
    results = race([partial(claims.claim, gate, by=person) for person in people])
    assert sum(result is None for result in results) == 1
    named = holder(gate)
    assert named is not None
    losers = {str(result) for result in results if result is not None}
    assert losers == {f"{named.get_full_name()} has this gate already. You can take it over."}


def test_a_decision_that_races_a_takeover_is_recorded_or_refused_never_both_ways() -> None:
    team = make_team()
    one, other = ann(team), bob(team)
    for _ in range(8):
        gate = make_gate(team=team)
        claims.claim(gate, by=one)
        decided, taken = race([partial(decide, gate, one), partial(claims.take_over, gate, by=other)])
        status = Gate.objects.get(pk=gate.pk).status
        if isinstance(decided, Decision):
            assert status == "decided"
            assert isinstance(taken, GateClosed)
        else:
            assert isinstance(decided, ClaimedByOther), decided
            assert (status, holder(gate)) == ("open", other)


def test_the_row_still_verifies_after_each_change_of_a_claim() -> None:
    team = make_team()
    gate, one, other = make_gate(team=team), ann(team), bob(team)
    claims.claim(gate, by=one)
    claims.take_over(gate, by=other)
    claims.release(gate, by=other)
    decide(gate, one)
    assert Gate.objects.filter(pk=gate.pk, version__gt=F("proposal")).exists()
