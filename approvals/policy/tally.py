"""Counts the votes on a proposal: which stage is reached, who is still needed, whether it is approved. Pure.

A person's vote fills one place of one role. Places are filled in the order of their stages, and who has a place already
moves to another of their roles where that makes room: each vote counts where it helps most, whatever the order in which
people vote. (Augmenting paths, Kuhn 1955; a place that is filled once stays filled.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from .requirements import Requirements, Role, Stage

OPEN, APPROVED, REJECTED = "open", "approved", "rejected"


@dataclass(frozen=True, kw_only=True)
class CountedVote:
    """One person's vote, with the teams in which they may decide now."""

    person: int
    approves: bool = True
    teams: frozenset[int] = frozenset()


@dataclass(frozen=True)
class RolePlace:
    """One approval that is needed."""

    stage: int
    role: int
    asks: Role


@dataclass(frozen=True, kw_only=True)
class Tally:
    """The count of the votes on one proposal."""

    requirements: Requirements
    places: tuple[tuple[RolePlace, int | None], ...]  # each with the person who fills it
    rejections: int = 0

    @property
    def agreed(self) -> int:
        """Return how many places are filled."""
        return sum(person is not None for _, person in self.places)

    @property
    def left(self) -> int:
        """Return how many more people have to approve."""
        return len(self.places) - self.agreed

    @property
    def status(self) -> str:
        """Return open, approved or rejected. Rejections win, as they end the gate at once."""
        if self.rejections >= self.requirements.denials:
            return REJECTED
        return OPEN if self.left else APPROVED

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

    def seat(self, person: int) -> RolePlace | None:
        """Return the place that a person fills; None where their vote fills none."""
        return next((place for place, by in self.places if by == person), None)


def tally(requirements: Requirements, votes: Sequence[CountedVote]) -> Tally:
    """Count votes; each person has one at most."""
    places = [
        RolePlace(at, number, role)
        for at, stage in enumerate(requirements.stages)
        for number, role in enumerate(stage.roles)
        for _ in range(role.quorum)
    ]
    voters = {vote.person: vote for vote in votes if vote.approves}
    filled: dict[int, int] = {}  # place -> person
    for at in range(len(places)):
        _fill(at, places, list(voters.values()), filled, set())
    rejecting = {vote.person for vote in votes if not vote.approves}
    return Tally(
        requirements=requirements,
        places=tuple((place, filled.get(at)) for at, place in enumerate(places)),
        rejections=len(rejecting),
    )


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
        if held is None or _moved(vote, held, places, voters, filled, tried):
            filled[at] = vote.person
            return True
    return False


def _moved(
    vote: CountedVote,
    held: int,
    places: Sequence[RolePlace],
    voters: Sequence[CountedVote],
    filled: dict[int, int],
    tried: set[int],
) -> bool:
    """Have somebody else fill the place that a person holds, so that they are free for another."""
    del filled[held]
    if _fill(held, places, voters, filled, tried):
        return True
    filled[held] = vote.person
    return False


def first_stage(requirements: Requirements, person: int, teams: Iterable[int]) -> int | None:
    """Return the first stage in which somebody has a role, from 0; None where they have none."""
    teams = set(teams)
    fitting = (
        at for at, stage in enumerate(requirements.stages) if any(role.fits(person, teams) for role in stage.roles)
    )
    return next(fitting, None)


def asked_now(count: Tally) -> list[int]:
    """Return the ids of the teams, and the negated ids of the people, whose approval is needed now, for a queue."""
    roles = count.needed
    return sorted(
        {*(each for role in roles for each in role.teams), *(-each for role in roles for each in role.people)}
    )
