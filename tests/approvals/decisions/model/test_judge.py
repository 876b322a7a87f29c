"""The pure judge, against every way of filling the places: who is asked, what ends a gate, and which votes lapse."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.gates.judge import Approval, Rejection, VoteStanding, judge
from approvals.gates.projection import judged
from approvals.policy import required
from approvals.policy.requirements import Requirements, Role, Stage
from tests.factories import ann, decide, make_gate, make_policy, make_team

from .expected import AskedRole, Facts, Vote

TEAMS = st.frozensets(st.sampled_from([1, 2, 3]), min_size=1, max_size=2)
ROLES = st.builds(AskedRole, st.sampled_from([1, 1, 2]), TEAMS)
STAGES = st.lists(st.lists(ROLES, min_size=1, max_size=2).map(tuple), min_size=1, max_size=3).map(tuple)
MEMBERS = st.lists(st.frozensets(st.sampled_from([1, 2, 3]), max_size=2), min_size=4, max_size=7)
ONE = Requirements(stages=(Stage(roles=(Role(teams=(1,)),)),))
TWO = Requirements(stages=(Stage(roles=(Role(quorum=2, teams=(1,)),)),))
HERE = VoteStanding(teams=frozenset({1}))


def needs_of(stages: tuple[tuple[AskedRole, ...], ...]) -> Requirements:
    made = [
        Stage(
            roles=tuple(Role(quorum=each.number, teams=tuple(each.teams), people=tuple(each.people)) for each in stage)
        )
        for stage in stages
    ]
    return Requirements(stages=tuple(made))


@pytest.mark.examples
@given(STAGES, MEMBERS, st.lists(st.integers(0, 6), max_size=10), st.frozensets(st.integers(0, 6), max_size=1))
def test_whoever_would_complete_one_more_place_of_the_reached_stage_is_asked(
    stages: tuple[tuple[AskedRole, ...], ...], teams: list[frozenset[int]], order: list[int], gone: frozenset[int]
) -> None:
    """In a quarter of such worlds somebody who would help was not asked, and some votes came ahead of their turn."""
    facts = Facts(team=1, policy="p", stages=stages, members=dict(enumerate(teams)))
    facts = replace(facts, together={person: frozenset({0}) for person in facts.members})
    needs = needs_of(stages)
    for turn, person in enumerate(order):
        if turn == len(order) - 1:  # somebody leaves
            facts = replace(facts, members={one: there for one, there in facts.members.items() if one not in gone})
            lapsed = {vote.person for vote in facts.votes} & gone
        approvals = [Approval(decision=at, person=v.person, authority=v.person) for at, v in enumerate(facts.votes)]
        standings = {
            vote.decision: VoteStanding(teams=facts.members[vote.person])
            if facts.standing(facts.votes[vote.decision])
            else VoteStanding(why_not="left")
            for vote in approvals
        }
        found = judge(needs, 1, approvals, [], standings)
        facts = facts.judged()
        assert {vote.person for vote, _ in found.lapsed} == (lapsed if turn == len(order) - 1 else set())
        assert (found.end is None) == (facts.ending is None)
        assert found.count.agreed == facts.filled(len(stages) - 1)
        if found.end is not None:
            assert [approvals[at].person for at in found.end.votes] == [vote.person for vote in facts.votes]
            return
        assert found.count.stage == facts.reached
        asked = {one for one, there in facts.members.items() if found.count.asks(one, there)} - facts.used()
        assert asked == {one for one in facts.members if facts.asked(one)}
        if asked:
            voter = sorted(asked)[person % len(asked)]
            facts = replace(facts, votes=(*facts.votes, Vote(voter, voter)))


def test_a_rejection_ends_whatever_is_approved_and_the_last_one_says_how() -> None:
    rejections = [
        Rejection(decision=2, person=2, authority=2, then="stop"),
        Rejection(decision=3, person=3, authority=3, then="back", back_to="propose"),
    ]
    approved = Approval(decision=1, person=1, authority=1)
    found = judge(ONE, 1, [approved], rejections, dict.fromkeys([1, 2, 3], HERE))
    assert found.end is not None
    assert (found.end.rejects, found.end.votes, found.end.back_to) == (True, (3,), "propose")
    without = judge(ONE, 1, [approved], rejections[:1], dict.fromkeys([1, 2], HERE))
    assert without.end is not None
    assert without.end.digest != found.end.digest
    gone = judge(
        ONE, 1, [approved], rejections, {1: HERE, 2: VoteStanding(why_not="left"), 3: VoteStanding(why_not="left")}
    )
    assert gone.end is not None
    assert not gone.end.rejects
    assert [(vote.decision, why) for vote, why in gone.lapsed] == [(2, "left"), (3, "left")]


def test_an_approval_that_allows_fewer_repeats_than_the_last_one_lapses_and_no_rejection_counts_for_that() -> None:
    first, last = (
        Approval(decision=1, person=1, authority=1),
        Approval(decision=2, person=2, authority=2, repeats=frozenset({7})),
    )
    found = judge(TWO, 1, [first, last], [], dict.fromkeys([1, 2], HERE))
    assert found.end is None
    assert [vote.decision for vote, _ in found.lapsed] == [1]
    enough = judge(ONE, 1, [first, last], [], dict.fromkeys([1, 2], HERE)).end
    assert enough is not None
    assert enough.votes == (2,)
    against = Rejection(decision=2, person=2, authority=2, repeats=frozenset({7}))
    assert judge(TWO, 1, [first], [against], dict.fromkeys([1, 2], HERE)).lapsed == ()


def test_the_same_end_by_somebody_else_is_the_same_and_another_proposal_is_another() -> None:
    ends = [
        judge(ONE, proposal, [Approval(decision=at, person=at, authority=at)], [], {at: HERE}).end
        for proposal, at in ((1, 1), (1, 2), (2, 1))
    ]
    digests = [each.digest for each in ends if each is not None]
    assert (digests[0] == digests[1], digests[0] == digests[2]) == (True, False)


def test_a_verdict_that_neither_approves_nor_rejects_counts_for_nothing() -> None:
    team = make_team()
    gate = make_gate(team=team, policy=make_policy(team, quorum=2))
    decide(gate, ann(team))
    vote, needs = gate.decisions.get(), required.of(gate.proposals.get(), gate.policy)
    assert judged(gate, needs, [vote]).count.agreed == 1
    vote.verdict = "deferred"
    found = judged(gate, needs, [vote])
    assert (found.count.agreed, found.end) == (0, None)
