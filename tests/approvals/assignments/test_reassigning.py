"""A gate is handed over with a reason: that asks somebody to act, and gives rights only where it says so."""

from __future__ import annotations

from functools import partial

import pytest
from django.contrib.auth.models import User

from approvals.assignments import claims, reassigning
from approvals.assignments.errors import GateClosed, MayNot, NotAsked
from approvals.errors import NotAllowed
from approvals.models import AddedTeam, Assignee, Gate, GateClaim
from checkpoints.models import Event, EventText
from checkpoints.values.canonical_json import decode_canonical
from tests.factories import MEMBER, READER, ann, bob, decide, eve, make_gate, make_policy, make_team, make_user, waiting
from tests.harness.racing_threads import race
from tests.harness.signed_in_clients import signed_in

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


@pytest.mark.parametrize("who", ["outsider", "reader", "starter", "switched off"])
def test_only_somebody_who_may_decide_is_named(who: str) -> None:
    team = make_team()
    starter = bob(team)
    gate, one = make_gate(team=team, started_by=starter), ann(team)
    off = make_user("Olaf Off", team)
    User.objects.filter(pk=off.pk).update(is_active=False)
    reader = make_user("Rita", make_team(may=READER))
    people = {"outsider": eve(), "reader": reader, "starter": starter, "switched off": off}
    with pytest.raises(NotAsked, match="may not decide this gate"):
        reassigning.reassign(gate, to=people[who], reason="Please", by=one)
    assert asked(gate) is None


def test_who_may_not_decide_hands_nothing_over() -> None:
    team = make_team()
    gate, one = make_gate(team=team), ann(team)
    for person in (eve(), make_user("Rita", make_team(may=READER))):
        with pytest.raises(MayNot):
            reassigning.reassign(gate, to=one, reason="Please", by=person)
    with pytest.raises(NotAsked, match="reason"):
        reassigning.reassign(gate, to=one, reason=" ", by=one)


def test_another_team_is_added_by_those_who_may_alone() -> None:
    team, directors = make_team(may=ADDS), make_team("Directors")
    plain = make_team("Plain")
    gate, one, boss = make_gate(team=team), ann(team), make_user("Dora Director", directors)
    other = make_gate(team=plain)
    with pytest.raises(MayNot):
        reassigning.reassign(other, to=directors, reason="Please", by=bob(plain))
    with pytest.raises(MayNot):  # the permission is of the gate's team, not of one's own
        reassigning.reassign(other, to=directors, reason="Please", by=one)
    with pytest.raises(NotAllowed):
        decide(gate, boss)
    reassigning.reassign(gate, to=directors, reason="Too large for us", by=one)
    assert waiting(boss) == [gate.pk]
    assert decide(gate, boss)
    assert not AddedTeam.objects.filter(gate=other).exists()


def test_whoever_started_a_run_chooses_no_reviewers_for_it() -> None:
    """They could not decide, but a team of theirs was added by them and approved."""
    team, friends = make_team(may=ADDS), make_team("Friends")
    starter = ann(team)
    make_user("Fritz Friend", friends)
    gate = make_gate(team=team, started_by=starter)
    with pytest.raises(MayNot, match="You started this run"):
        reassigning.reassign(gate, to=friends, reason="Please", by=starter)
    assert not AddedTeam.objects.filter(gate=gate).exists()


def test_a_team_in_which_nobody_decides_is_not_added() -> None:
    team, readers = make_team(may=ADDS), make_team("Readers", may=READER)
    make_user("Rita", readers)
    gate = make_gate(team=team)
    with pytest.raises(NotAsked, match="Nobody in"):
        reassigning.reassign(gate, to=readers, reason="Please", by=ann(team))


def test_two_hand_overs_at_once_leave_one_and_both_are_told() -> None:
    team, directors = make_team(may=ADDS), make_team("Directors")
    make_user("Dora Director", directors)
    gate, one, other = make_gate(team=team), ann(team), bob(team)
    results = race(
        [
            partial(reassigning.reassign, gate, to=directors, reason="Please", by=one),
            partial(reassigning.reassign, gate, to=directors, reason="Please", by=other),
        ]
    )
    assert results == [None, None]
    assert AddedTeam.objects.filter(gate=gate).count() == 1
    assert Event.objects.filter(subject=gate.subject, kind="gate.reassigned").count() == 2


def test_a_decision_at_the_same_time_leaves_one_truth() -> None:
    team = make_team()
    one, other = ann(team), bob(team)
    for number in range(6):
        gate = make_gate(policy=make_policy(team, name=f"p{number}"))
        decided, handed = race(
            [partial(decide, gate, one), partial(reassigning.reassign, gate, to=one, reason="Please", by=other)]
        )
        assert Gate.objects.get(pk=gate.pk).status == "decided", decided
        assert handed is None or isinstance(handed, GateClosed)


def test_the_form_offers_those_who_may_and_keeps_what_was_typed() -> None:
    team, directors = make_team(), make_team("Directors")
    make_user("Dora Director", directors)
    starter = make_user("Stan Starter", team)
    gate, one, other = make_gate(team=team, started_by=starter), ann(team), bob(team)
    browser, there = signed_in(one), f"/gates/{gate.pk}/hand-over/"
    page = browser.get(there).content.decode()
    assert "Bob Lindqvist" in page
    assert "Stan Starter" not in page
    assert directors.name not in page
    send = partial(browser.post, f"/gates/{gate.pk}/reassignments/")
    nobody = {"to": f"user:{10**8}", "reason": "Why not"}
    for wrong in ({"to": f"user:{other.pk}", "reason": ""}, nobody, {"to": "team:x"}, {}):
        assert send(wrong).status_code == 422, wrong
    assert "Why not" in send(nobody).content.decode()
    assert send({"to": f"user:{other.pk}", "reason": "Yes"}).status_code == 303
    assert asked(gate) == other


def test_people_whom_the_policy_names_are_in_the_list() -> None:
    """They could be named by the API alone."""
    team, named, gone = make_team(), make_user("Nora Named"), make_user("Olaf Off")
    gate, one = make_gate(policy=make_policy(team, groups=(team,), people=(named, gone))), ann(team)
    User.objects.filter(pk=gone.pk).update(is_active=False)
    assert reassigning.choices(gate, by=one).people == [named]
    assert reassigning.choices(gate, by=named).people == [one]


def test_whoever_may_add_reviewers_and_not_decide_finds_the_page_too() -> None:
    team, directors = make_team(may=(*READER, "approvals.add_reviewers")), make_team("Directors")
    gate = make_gate(policy=make_policy(team, groups=(directors,)))
    lead = make_user("Lea Lead", team)
    assert "Hand over…" in signed_in(lead).get(f"/gates/{gate.pk}/").content.decode()
    assert signed_in(lead).get(f"/gates/{gate.pk}/hand-over/").status_code == 200
