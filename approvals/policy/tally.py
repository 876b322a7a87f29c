"""Counts the approvals of a proposal: which stage is reached, who is still needed, whether that is all. Pure.

A person's approval fills one place of one role. Places are filled in the order of their stages, and who has a place
already moves to another of their roles where that makes room: each counts where it helps most, whatever the order in
which people approve. (Augmenting paths, Kuhn 1955; a place that is filled once stays filled.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from django.utils.functional import cached_property

from .requirements import Requirements, Role, Stage


@dataclass(frozen=True, kw_only=True)
class CountedVote:
    """One person's approval, with the teams in which they may decide now."""

    person: int
    teams: frozenset[int] = frozenset()


@dataclass(frozen=True)
class RolePlace:
    """One approval that is needed."""

    stage: int
    role: int
    asks: Role


@dataclass(frozen=True, kw_only=True)
class Tally:
    """The count of the approvals of one proposal."""

    requirements: Requirements
    places: tuple[tuple[RolePlace, int | None], ...]  # each with the person who fills it
    votes: Mapping[int, CountedVote] = field(default_factory=dict)  # by person

    @property
    def agreed(self) -> int:
        """Return how many places are filled."""
        return sum(person is not None for _, person in self.places)

    @property
    def left(self) -> int:
        """Return how many more people have to approve."""
        return len(self.places) - self.agreed

    @cached_property
    def stage(self) -> int:
        """Return the number of the stage that is reached, from 0: the first that is not filled, or else the last."""
        open_ones = [place.stage for place, person in self.places if person is None]
        return min(open_ones, default=len(self.requirements.stages) - 1)

    @property
    def needed(self) -> list[Role]:
        """List the roles of the reached stage that need people, each with as many as are still needed."""
        return self.lacking(self.stage)

    def lacking(self, stage: int) -> list[Role]:
        """List the roles of a stage that need people, each with as many as are still needed."""
        found: dict[int, int] = {}
        for place, person in self.places:
            if place.stage == stage and person is None:
                found[place.role] = found.get(place.role, 0) + 1
        roles = self.requirements.stages[stage].roles
        return [
            Role(quorum=count, teams=roles[at].teams, people=roles[at].people) for at, count in sorted(found.items())
        ]

    @property
    def later(self) -> list[Stage]:
        """List the stages after the one that is reached, as far as they need people."""
        stages = self.requirements.stages
        after = [self.lacking(at) for at in range(self.stage + 1, len(stages))]
        return [Stage(roles=tuple(roles)) for roles in after if roles]

    @cached_property
    def asked(self) -> list[tuple[int, Role]]:
        """List the roles, each with its stage, whose people complete one more place of the reached stage by approving.

        Those that lack somebody, and those whose place is held by somebody who could move to one of these.
        """
        upto = {(place.stage, place.role): place.asks for place, _ in self.places if place.stage <= self.stage}
        held = [(place, self.votes[by]) for place, by in self.places if by is not None and place.stage <= self.stage]
        found = {(place.stage, place.role) for place, by in self.places if by is None and place.stage == self.stage}
        while more := {
            (place.stage, place.role)
            for place, vote in held
            if (place.stage, place.role) not in found
            and any(upto[each].fits(vote.person, vote.teams) for each in found)
        }:
            found |= more
        return [(at, upto[at, number]) for at, number in sorted(found)]

    def asks(self, person: int, teams: Iterable[int]) -> bool:
        """Tell whether the approval of somebody who may decide in these teams would complete one more place now."""
        there = set(teams)
        return any(role.fits(person, there) for _, role in self.asked)

    def distance(self, person: int, teams: Iterable[int]) -> int:
        """Tell how far somebody is from a say: 0 where their approval is asked for, 1 where they may reject or edit."""
        first = first_stage(self.requirements, person, teams)
        return 0 if self.asks(person, teams) else 1 if first is not None and first <= self.stage else 2

    @property
    def awaits(self) -> list[int]:
        """Return the ids of the teams, and the negated ids of the people, who are asked now, for a queue."""
        roles = [role for _, role in self.asked]
        return sorted({*(id for role in roles for id in role.teams), *(-id for role in roles for id in role.people)})


def tally(requirements: Requirements, votes: Sequence[CountedVote]) -> Tally:
    """Count approvals; each person has one at most."""
    places = [
        RolePlace(at, number, role)
        for at, stage in enumerate(requirements.stages)
        for number, role in enumerate(stage.roles)
        for _ in range(role.quorum)
    ]
    voters = {vote.person: vote for vote in votes}
    filled: dict[int, int] = {}  # place -> person
    for at in range(len(places)):
        _fill(at, places, list(voters.values()), filled, set())
    seated = tuple((place, filled.get(at)) for at, place in enumerate(places))
    return Tally(requirements=requirements, places=seated, votes=voters)


def _fill(
    at: int, places: Sequence[RolePlace], voters: Sequence[CountedVote], filled: dict[int, int], tried: set[int]
) -> bool:
    """Fill a place, moving people who have one to others of their roles where needed."""
    seated = {person: place for place, person in filled.items()}
    fitting = [vote for vote in voters if places[at].asks.fits(vote.person, vote.teams)]
    for vote in sorted(fitting, key=lambda vote: vote.person in seated):  # whoever has no place first
        if vote.person in tried:
            continue
        tried.add(vote.person)
        held = seated.get(vote.person)
        if held is not None:  # then somebody else has to fill that place
            del filled[held]
            if not _fill(held, places, voters, filled, tried):
                filled[held] = vote.person
                continue
        filled[at] = vote.person
        return True
    return False


def first_stage(requirements: Requirements, person: int, teams: Iterable[int]) -> int | None:
    """Return the first stage in which somebody has a role, from 0; None where they have none."""
    teams = set(teams)
    fitting = (
        at for at, stage in enumerate(requirements.stages) if any(role.fits(person, teams) for role in stage.roles)
    )
    return next(fitting, None)
