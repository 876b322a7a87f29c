"""The count of votes: places of roles in stages, each vote where it helps most. Pure."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.policy.requirements import Requirements, Role, Stage
from approvals.policy.tally import APPROVED, OPEN, REJECTED, CountedVote, Tally, asked_now, first_stage, tally

FINANCE, LEGAL, SUPPORT = 1, 2, 3


def needs(*stages: list[tuple[int, set[int]]], denials: int = 1) -> Requirements:
    return Requirements(
        stages=tuple(
            Stage(roles=tuple(Role(quorum=quorum, teams=tuple(sorted(groups))) for quorum, groups in roles))
            for roles in stages
        ),
        denials=denials,
    )


def yes(person: int, *teams: int) -> CountedVote:
    return CountedVote(person=person, teams=frozenset(teams))


def no(person: int, *teams: int) -> CountedVote:
    return CountedVote(person=person, approves=False, teams=frozenset(teams))


ONE = needs([(1, {FINANCE})])
TWO_THEN_ONE = needs([(2, {FINANCE})], [(1, {LEGAL})])
BOTH = needs([(1, {FINANCE}), (1, {LEGAL})])


@pytest.mark.parametrize(
    ("asked", "votes", "status", "stage", "left"),
    [
        (ONE, [], OPEN, 0, 1),
        (ONE, [yes(1, FINANCE)], APPROVED, 0, 0),
        (ONE, [yes(1, LEGAL)], OPEN, 0, 1),
        (ONE, [no(1, FINANCE)], REJECTED, 0, 1),
        (needs([(1, {FINANCE})], denials=2), [no(1, FINANCE)], OPEN, 0, 1),
        (needs([(1, {FINANCE})], denials=2), [no(1, FINANCE), no(2, FINANCE)], REJECTED, 0, 1),
        (needs([(2, {FINANCE})], denials=2), [no(1, FINANCE), yes(2, FINANCE), yes(3, FINANCE)], APPROVED, 0, 0),
        (TWO_THEN_ONE, [yes(1, FINANCE)], OPEN, 0, 2),
        (TWO_THEN_ONE, [yes(1, FINANCE), yes(2, FINANCE)], OPEN, 1, 1),
        (TWO_THEN_ONE, [yes(1, FINANCE), yes(2, FINANCE), yes(3, LEGAL)], APPROVED, 1, 0),
        (TWO_THEN_ONE, [yes(1, FINANCE), yes(3, LEGAL)], OPEN, 0, 1),
        (BOTH, [yes(1, FINANCE), yes(2, FINANCE)], OPEN, 0, 1),
        # Whoever is in both moves to where they help.
        (BOTH, [yes(1, FINANCE, LEGAL), yes(2, FINANCE)], APPROVED, 0, 0),
        (BOTH, [yes(1, FINANCE, LEGAL)], OPEN, 0, 1),
        (TWO_THEN_ONE, [yes(1, FINANCE, LEGAL), yes(2, FINANCE), yes(3, FINANCE)], APPROVED, 1, 0),
        (needs([(1, {FINANCE, LEGAL}), (1, {FINANCE})]), [yes(1, FINANCE), yes(2, LEGAL)], APPROVED, 0, 0),
    ],
)
def test_the_count_of_votes(asked: Requirements, votes: list[CountedVote], status: str, stage: int, left: int) -> None:
    for order in permutations(votes):
        found = tally(asked, order)
        assert (found.status, found.stage, found.left) == (status, stage, left)


def test_who_is_asked_now_and_later() -> None:
    found = tally(TWO_THEN_ONE, [yes(1, FINANCE)])
    assert [(role.quorum, role.teams) for role in found.needed] == [(1, (FINANCE,))]
    assert [[(role.quorum, role.teams) for role in stage.roles] for stage in found.later] == [[(1, (LEGAL,))]]
    assert asked_now(found) == [FINANCE]
    first = [first_stage(found.requirements, 9, [team]) for team in (LEGAL, FINANCE, SUPPORT)]
    assert (found.stage, first) == (0, [1, 0, None])
    assert tally(TWO_THEN_ONE, [yes(1, FINANCE), yes(2, FINANCE)]).stage == 1


def test_a_named_person_needs_no_team() -> None:
    asked = Requirements(stages=(Stage(roles=(Role(people=(5,)),)),))
    assert tally(asked, [yes(5)]).status == APPROVED
    assert tally(asked, [yes(6)]).status == OPEN
    assert asked_now(tally(asked, [])) == [-5]


ROLES = st.lists(
    st.tuples(st.integers(1, 2), st.sets(st.sampled_from([FINANCE, LEGAL, SUPPORT]), min_size=1)),
    min_size=1,
    max_size=2,
)
TEAMS = st.sets(st.sampled_from([FINANCE, LEGAL, SUPPORT]))


def best(asked: Requirements, votes: list[CountedVote]) -> tuple[int, ...]:
    """The most places of each stage that can be filled, the first stage first: every assignment is tried."""
    places = [(at, role) for at, stage in enumerate(asked.stages) for role in stage.roles for _ in range(role.quorum)]

    def filled(voters: tuple[CountedVote, ...], at: int) -> list[tuple[int, ...]]:
        if at == len(places):
            return [(0,) * len(asked.stages)]
        stage, role = places[at]
        found = filled(voters, at + 1)
        for vote in voters:
            if role.fits(vote.person, vote.teams):
                rest = tuple(each for each in voters if each is not vote)
                found += [
                    tuple(count + (number == stage) for number, count in enumerate(each))
                    for each in filled(rest, at + 1)
                ]
        return found

    return max(filled(tuple(votes), 0))


def by_stage(found: Tally) -> tuple[int, ...]:
    return tuple(
        sum(place.stage == at and person is not None for place, person in found.places)
        for at in range(len(found.requirements.stages))
    )


@pytest.mark.examples
@given(stages=st.lists(ROLES, min_size=1, max_size=2), teams=st.lists(TEAMS, max_size=4), data=st.data())
def test_no_assignment_is_better_and_the_order_of_votes_does_not_matter(
    stages: list[list[tuple[int, set[int]]]], teams: list[set[int]], data: st.DataObject
) -> None:
    asked, votes = needs(*stages), [yes(at, *each) for at, each in enumerate(teams)]
    found = tally(asked, data.draw(st.permutations(votes)))
    assert by_stage(found) == best(asked, votes)
    people = [person for _, person in found.places if person is not None]
    assert len(people) == len(set(people))
    assert all(person is None or place.asks.fits(person, teams[person]) for place, person in found.places)


@pytest.mark.examples
@given(stages=st.lists(ROLES, min_size=1, max_size=2), teams=st.lists(TEAMS, min_size=1, max_size=4))
def test_another_vote_never_unfills_a_place_and_a_lapsed_one_costs_one_at_most(
    stages: list[list[tuple[int, set[int]]]], teams: list[set[int]]
) -> None:
    asked, votes = needs(*stages), [yes(at, *each) for at, each in enumerate(teams)]
    without, with_all = tally(asked, votes[:-1]), tally(asked, votes)
    assert without.agreed <= with_all.agreed <= without.agreed + 1
    assert without.stage <= with_all.stage


def test_people_of_a_team_that_was_added_to_one_gate_may_fill_any_role() -> None:
    asked = TWO_THEN_ONE.widened([SUPPORT])
    assert tally(asked, [yes(1, SUPPORT), yes(2, FINANCE), yes(3, SUPPORT)]).status == APPROVED
    assert tally(TWO_THEN_ONE, [yes(1, SUPPORT)]).agreed == 0
