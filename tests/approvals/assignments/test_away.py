"""Somebody is away, and another decides for them: what they could, once, and no longer than it lasts."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError
from django.db.models.functions import Now
from django.utils import timezone

from approvals.assignments import away
from approvals.assignments.errors import AwayRefused
from approvals.audit import evidence
from approvals.errors import AlreadySaid, NotAllowed, NotVerifiable
from approvals.gates.lists.queues import ALL, DECIDED, MINE, MINE_DECIDED, ReaderReach
from approvals.live import page_frame
from approvals.live.access import access_as
from approvals.live.replay import missed
from approvals.models import Decision, Delegation, Gate
from checkpoints.events.commit_order import newest_cursor
from checkpoints.models import Event
from checkpoints.values.canonical_json import decode_canonical
from tests.approvals.views.test_drafts import page_of
from tests.factories import add_team, ann, bob, decide, make_gate, make_policy, make_team, make_user, waiting
from tests.harness.altered_rows import altered
from tests.harness.examples import first_alone
from tests.harness.racing_threads import race


def lend(person: User, to: User, **scope: Any) -> Delegation:
    """A delegation that is so now, between people of one team, which has no permissions."""
    together = make_team("All hands", may=())
    person.groups.add(together)
    to.groups.add(together)
    now = timezone.now()
    return Delegation.objects.create(
        person=person, delegate=to, starts_at=now - timedelta(days=1), ends_at=now + timedelta(days=1), **scope
    )


def agrees(gate: Gate, person: User) -> bool:
    """Tell whether list, page and count show the gate to the person as one that they decide; all say the same."""
    mine = gate.pk in waiting(person)
    assert (gate.pk in page_frame.read(person).queue) is mine
    assert Gate.objects.visible_to(person).filter(pk=gate.pk).exists() >= mine
    return mine


def test_whom_a_policy_names_may_be_stood_in_for_under_that_policy_alone() -> None:
    """The form offered it, the delegate was told so, and could decide nothing: only teams were lent."""
    team, other = make_team(), make_user("Bo Elsewhere")
    named = make_user("Mira Sandoval")
    policy = make_policy(team, people=(named,), groups=())
    gate, second = make_gate(policy=policy), make_gate(policy=make_policy(team, name="second", people=(named,)))
    assert (agrees(gate, named), agrees(gate, other)) == (True, False)
    lend(named, other, policies=[policy.name])
    assert (agrees(gate, other), agrees(second, other)) == (True, False)
    heard = access_as(other).groups
    assert (f"named.{named.pk}..{policy.name}" in heard, f"named.{named.pk}" in heard) == (True, False)
    decide(gate, other)
    vote = Decision.objects.get(gate=gate)
    assert (vote.on_behalf_of, Gate.objects.get(pk=gate.pk).status) == (named, "decided")
    event = Event.objects.get(subject=gate.subject, kind="gate.decided")
    assert decode_canonical(bytes(event.data))["on_behalf_of"] == f"user:{named.pk}"


def test_evidence_covers_on_whose_behalf_it_was() -> None:
    team = make_team()
    gate, one, third = make_gate(policy=make_policy(team, quorum=2)), ann(team), bob(team)
    other = make_user("Bo Elsewhere")
    lend(one, other)
    vote = decide(gate, other)
    before = evidence.present([gate.pk])[gate.pk][f"decision:{vote.pk}"]
    with altered(vote, on_behalf_of_id=third.pk):
        assert evidence.present([gate.pk])[gate.pk][f"decision:{vote.pk}"] != before
        with pytest.raises(NotVerifiable):
            decide(gate, third)
    assert decide(gate, third)


def test_one_persons_authority_counts_once_whoever_uses_it() -> None:
    team = make_team()
    gate, one, third = make_gate(policy=make_policy(team, quorum=2)), ann(team), make_user("Cy Elsewhere")
    lend(one, other := make_user("Bo Elsewhere"))
    lend(one, third)
    decide(gate, other)
    for again in (other, third, one):
        with pytest.raises(AlreadySaid):
            decide(gate, again)
    twice = Decision(
        gate=gate, proposal=gate.standing(), user=third, on_behalf_of=one, verdict="approve", seen=b"", key="x",
        request=b"",
    )  # fmt: skip
    with pytest.raises(IntegrityError, match="authority_is_lent_once_per_proposal"):
        twice.save()


def test_a_gate_is_listed_once_however_many_ways_lead_to_it() -> None:
    team, directors = make_team(), make_team("Directors")
    gate, one, other = make_gate(team=team), ann(team, directors), bob(team)
    lend(one, other)
    assert ReaderReach.of(other).ids(MINE, most=10) == [gate.pk]
    add_team(gate, directors)
    for person in (one, make_user("Cy Third", team), make_user("Dora Director", directors)):
        lend(person, other)
    reach = ReaderReach.of(other)
    for queue in (MINE, ALL):
        assert reach.ids(queue, most=10) == [gate.pk], queue
    assert decide(gate, other).on_behalf_of_id is None
    for queue in (MINE_DECIDED, DECIDED):
        assert ReaderReach.of(other).ids(queue, most=10) == [gate.pk], queue


def test_a_delegate_of_two_waits_for_the_turn_of_the_one_whose_vote_is_not_used() -> None:
    """The turn was judged by the first of the two, and the vote counted for the other before its stage."""
    support, legal = make_team("Support"), make_team("Legal")
    one, lee, other = ann(support), make_user("Lee Legal", legal), make_user("Bo Elsewhere")
    asked = ((2, support), (1, legal))
    stages = [{"roles": [{"quorum": number, "groups": [team.pk], "people": []}]} for number, team in asked]
    gate = make_gate(policy=make_policy(support, stages=stages))
    lend(one, other)
    lend(lee, other)
    decide(gate, one)
    with pytest.raises(NotAllowed, match="must approve"):
        decide(gate, other)
    decide(gate, bob(support))
    assert decide(gate, other).on_behalf_of_id == lee.pk
    assert Gate.objects.get(pk=gate.pk).status == "decided"


def test_whoever_left_the_persons_teams_decides_for_them_no_more() -> None:
    """Taken out of all teams, they went on deciding the gates of the person who had named them, for up to a year."""
    team = make_team()
    gate, one, other = make_gate(policy=make_policy(team, quorum=2)), ann(team), make_user("Bo Elsewhere")
    lend(one, other)
    decide(gate, other)
    other.groups.clear()
    fresh = make_gate(policy=gate.policy)
    assert not agrees(fresh, other)
    with pytest.raises(NotAllowed):
        decide(fresh, other)
    decide(gate, bob(team))
    assert Gate.objects.get(pk=gate.pk).status == "open"  # the vote that they had has lapsed


def test_neither_of_the_two_may_have_started_the_run() -> None:
    team = make_team()
    lend(one := ann(team), other := make_user("Bo Elsewhere"))
    for starter in (one, other):
        gate = make_gate(team=team, started_by=starter)
        assert "You decide here for" not in page_of(other, gate)  # it did, to somebody who had started the run
        with pytest.raises(NotAllowed):
            decide(gate, other)
    lend(third := bob(team), other)
    assert decide(make_gate(team=team, started_by=one), other).on_behalf_of_id == third.pk


def test_a_vote_lapses_where_what_was_lent_is_over_by_the_clock_before_the_gate_closes() -> None:
    team = make_team()
    gate, one, third = make_gate(policy=make_policy(team, quorum=2)), ann(team), bob(team)
    other = make_user("Bo Elsewhere")
    made = lend(one, other)
    decide(gate, other)
    Delegation.objects.filter(pk=made.pk).update(ends_at=Now() - timedelta(seconds=1))
    decide(gate, third)
    assert Gate.objects.get(pk=gate.pk).status == "open"
    assert Event.objects.filter(subject=gate.subject, kind="gate.lapsed").count() == 1
    assert list(gate.decisions.filter(counts=True).values_list("user", flat=True)) == [third.pk]
    assert not agrees(gate, other)
    with pytest.raises(NotAllowed):
        decide(gate, other)


def test_before_its_time_it_gives_nothing() -> None:
    team = make_team()
    gate, one, other = make_gate(team=team), ann(team), make_user("Bo Elsewhere")
    made = lend(one, other)
    Delegation.objects.filter(pk=made.pk).update(starts_at=Now() + timedelta(hours=1))
    assert not agrees(gate, other)
    assert not Gate.objects.visible_to(other).filter(pk=gate.pk).exists()
    with pytest.raises(NotAllowed):
        decide(gate, other)


def test_delegates_who_vote_at_once_for_one_person_count_once() -> None:
    team = make_team()
    one = ann(team)
    people = [make_user(f"Bo {number}") for number in range(4)]
    for each in people:
        lend(one, each)
    gate = make_gate(policy=make_policy(team, quorum=2))
    results = race([partial(decide, gate, each) for each in people])
    assert sum(isinstance(result, Decision) for result in results) == 1, results
    assert Gate.objects.get(pk=gate.pk).status == "open"


def test_a_vote_and_its_end_at_once_leave_one_truth() -> None:
    team = make_team()
    one, other = ann(team), make_user("Bo Elsewhere")
    for number in range(2):
        gate = make_gate(policy=make_policy(team, name=f"q{number}"))
        made = lend(one, other)
        voted, ended = race([partial(decide, gate, other), partial(away.end, made, by=one)])
        assert ended is True
        status = Gate.objects.get(pk=gate.pk).status
        votes = gate.decisions.filter(counts=True).count()
        assert (status, votes) == (("decided", 1) if status == "decided" else ("open", 0)), voted


def plan(person: User, to: User | None, *, days: tuple[float, float] = (0, 2), **scope: Any) -> Delegation:
    now = timezone.now()
    return away.make(
        person, delegate=to, starts=now + timedelta(days=days[0]), ends=now + timedelta(days=days[1]), **scope
    )


def test_times_people_and_scopes_that_cannot_be_are_refused() -> None:
    team = make_team()
    one, other = ann(team), bob(team)
    for days, why in (
        ((2.0, 1.0), "after the beginning"), ((-2.0, -1.0), "still to come"), ((0.0, 400.0), "a year at most"),
        ((400.0, 800.0), "a year at most"),  # it was told to end within the coming year, which no other had to
    ):  # fmt: skip
        with pytest.raises(AwayRefused, match=why):
            plan(one, other, days=days)
    with pytest.raises(AwayRefused, match="your own gates"):
        plan(one, other, teams=[make_team().pk])
    make_policy(team, name="refunds")
    with pytest.raises(AwayRefused, match="your own gates"):
        plan(one, other, policies=["nowhere"])
    assert plan(one, None, teams=[team.pk], policies=["refunds"]).delegate is None
    team = make_team()
    one, other, third = ann(team), bob(team), make_user("Cy Third", team)
    with pytest.raises(AwayRefused, match="one of your teams"):
        plan(one, make_user("Eve Marlow"))
    plan(other, third, days=(1, 3))
    with pytest.raises(AwayRefused, match="away then, too"):
        plan(one, other)
    made = plan(one, other, days=(4, 6))
    kinds = Event.objects.filter(subject=f"delegation:{made.pk}").values_list("kind", "actor")
    assert list(kinds) == [("delegation.made", f"user:{one.pk}")]
    assert not away.end(made, by=other)
    assert away.end(made, by=one)
    assert not away.end(made, by=one)


def test_two_who_name_each_other_at_once_do_not_both_succeed() -> None:
    team = make_team()
    one, other = ann(team), bob(team)
    for number in range(2):
        days = (10.0 * number, 10.0 * number + 1)
        results = race([partial(plan, one, other, days=days), partial(plan, other, one, days=days)])
        assert sum(isinstance(each, Delegation) for each in results) == 1, results


@pytest.mark.parametrize("scope", first_alone(["both", "team", "policy"]))
def test_an_open_page_of_a_delegate_for_some_gates_hears_of_these_alone(scope: str) -> None:
    """Their inbox learnt of new gates only when it was loaded again."""
    team, second = make_team(), make_team()
    one, other = ann(team, second), make_user("Bo Elsewhere")
    limits = {"teams": [team.pk] if scope != "policy" else [], "policies": ["refunds"] if scope != "team" else []}
    lend(one, other, **limits)
    start = newest_cursor()
    gates = [
        make_gate(policy=make_policy(group, name=name))
        for name, group in (("refunds", team), ("credits", team), ("refunds", second), ("credits", second))
    ]
    [facts] = missed([(access_as(other), start)])
    heard = {fact["subject"] for fact in facts or ()}
    assert heard == {gate.subject for gate in gates if gate.pk in waiting(other)}
    assert heard == {gate.subject for gate in gates if gate in Gate.objects.visible_to(other)}
    with pytest.raises(NotAllowed):
        decide(gates[-1], other)
    assert len(heard) == {"team": 2, "policy": 2, "both": 1}[scope]
