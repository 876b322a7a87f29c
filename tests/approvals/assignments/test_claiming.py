"""Somebody says that they are on a gate, or hands it over with a reason: nobody else decides over them unasked."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now

from agents.serving.sweeper import Sweeper
from approvals.assignments import claims, reassigning
from approvals.assignments.errors import ClaimedByOther, GateClosed, MayNot, NotAsked, NotClaimed
from approvals.errors import NotAllowed
from approvals.gates import closing
from approvals.models import AddedTeam, Assignee, Decision, Gate, GateClaim, Looking
from checkpoints.models import Event, EventText
from checkpoints.values.canonical_json import decode_canonical
from tests.factories import MEMBER, READER, ann, bob, decide, eve, make_gate, make_policy, make_team, make_user, waiting
from tests.harness.racing_threads import race
from tests.harness.signed_in_clients import signed_in


def told(gate: Gate, kind: str) -> list[tuple[str, dict[str, object]]]:
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


def test_a_claim_lapses_by_the_databases_clock_told_once_and_stops_nobody_before() -> None:
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


def test_only_people_who_may_decide_claim_and_what_nobody_has_is_not_taken_over() -> None:
    gate = make_gate(team=make_team())
    for person in (eve(), make_user("Rita", make_team(may=READER))):
        with pytest.raises(MayNot):
            claims.claim(gate, by=person)
    with pytest.raises(NotClaimed):
        claims.take_over(gate, by=ann(gate.team))


def test_where_a_policy_names_people_alone_its_team_claims_nothing() -> None:
    """The team that has the policy counted as asked beside them, and held the claim over their heads."""
    team, named = make_team(), make_user("Mira Sandoval")
    gate = make_gate(policy=make_policy(team, people=(named,)))
    with pytest.raises(MayNot, match=r"^Only Mira Sandoval can decide this\.$"):
        claims.claim(gate, by=ann(team))
    claims.claim(gate, by=named)
    assert holder(gate) == named


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
    for _ in range(3):
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


ADDS = (*MEMBER, "approvals.add_reviewers")


def asked(gate: Gate) -> User | None:
    found = Assignee.objects.select_related("user").filter(gate=gate).first()
    return found.user if found else None


def test_it_names_who_should_act_and_takes_nothing_from_anybody() -> None:
    team = make_team()
    gate, one, other = make_gate(team=team), ann(team), bob(team)
    claims.claim(gate, by=one)
    reassigning.reassign(gate, to=other, reason="  Bob knows \n the customer. ", by=one)
    assert asked(gate) == other
    assert not GateClaim.objects.filter(gate=gate).exists()
    event = Event.objects.get(subject=gate.subject, kind="gate.reassigned")
    said = decode_canonical(bytes(event.data))
    assert (said["to"], said["added"], event.actor) == (f"user:{other.pk}", False, f"user:{one.pk}")
    assert bytes(EventText.objects.get(event=event).text) == b"Bob knows the customer."
    decide(gate, one)


def test_only_somebody_who_may_decide_is_named() -> None:
    team = make_team()
    starter = bob(team)
    gate, one = make_gate(team=team, started_by=starter), ann(team)
    off = make_user("Olaf Off", team)
    User.objects.filter(pk=off.pk).update(is_active=False)
    reader = make_user("Rita", make_team(may=READER))
    for person in (eve(), reader, starter, off):
        with pytest.raises(NotAsked, match="may not decide this gate"):
            reassigning.reassign(gate, to=person, reason="Please", by=one)
    assert asked(gate) is None
    for person in (eve(), reader):
        with pytest.raises(MayNot):
            reassigning.reassign(gate, to=one, reason="Please", by=person)
    with pytest.raises(NotAsked, match="reason"):
        reassigning.reassign(gate, to=one, reason=" ", by=one)


def test_a_team_is_added_by_those_who_may_and_only_where_somebody_decides() -> None:
    team, directors = make_team(may=ADDS), make_team("Directors")
    plain, starter = make_team("Plain"), bob(team)
    gate, one, boss = make_gate(team=team, started_by=starter), ann(team), make_user("Dora Director", directors)
    other = make_gate(team=plain)
    with pytest.raises(MayNot):
        reassigning.reassign(other, to=directors, reason="Please", by=bob(plain))
    with pytest.raises(MayNot):  # the permission is of the gate's team, not of one's own
        reassigning.reassign(other, to=directors, reason="Please", by=one)
    # They could not decide, but a team of theirs was added by them and approved.
    with pytest.raises(MayNot, match="You started this run"):
        reassigning.reassign(gate, to=directors, reason="Please", by=starter)
    with pytest.raises(NotAllowed):
        decide(gate, boss)
    reassigning.reassign(gate, to=directors, reason="Too large for us", by=one)
    assert waiting(boss) == [gate.pk]
    assert decide(gate, boss)
    assert not AddedTeam.objects.filter(gate=other).exists()
    make_user("Rita", readers := make_team("Readers", may=READER))
    with pytest.raises(NotAsked, match="Nobody in"):
        reassigning.reassign(make_gate(team=team), to=readers, reason="Please", by=one)


def test_the_form_offers_those_who_may_and_keeps_what_was_typed() -> None:
    team, directors = make_team(), make_team("Directors")
    make_user("Dora Director", directors)
    starter = make_user("Stan Starter", team)
    gate, one, other = make_gate(team=team, started_by=starter), ann(team), bob(team)
    browser, there = signed_in(one), f"/gates/{gate.pk}/hand-over/"
    page = browser.get(there).content.decode()
    assert [each in page for each in ("Bob Lindqvist", "Stan Starter", directors.name)] == [True, False, False]
    send = partial(browser.post, f"/gates/{gate.pk}/reassignments/")
    nobody = {"to": f"user:{10**8}", "reason": "Why not"}
    for wrong in ({"to": f"user:{other.pk}", "reason": ""}, nobody, {"to": "team:x"}, {}):
        assert send(wrong).status_code == 422, wrong
    assert "Why not" in send(nobody).content.decode()
    assert send({"to": f"user:{other.pk}", "reason": "Yes"}).status_code == 303
    assert asked(gate) == other
    team, directors = make_team(may=(*READER, "approvals.add_reviewers")), make_team("Directors")
    gate = make_gate(policy=make_policy(team, groups=(directors,)))
    lead = make_user("Lea Lead", team)
    assert "Hand over…" in signed_in(lead).get(f"/gates/{gate.pk}/").content.decode()
    assert signed_in(lead).get(f"/gates/{gate.pk}/hand-over/").status_code == 200
