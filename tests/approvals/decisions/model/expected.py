"""What the docs promise of a gate's votes, said as slowly and plainly as possible. Pure.

Nothing here is taken from the product: places are matched by trying every way, and each rule stands as its sentence in
docs/policies.md and docs/desk.md has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple


class AskedRole(NamedTuple):
    """So many people out of these teams and people."""

    number: int
    teams: frozenset[int]
    people: frozenset[int] = frozenset()


class Lend(NamedTuple):
    """A person is away, and somebody decides for them: at gates of all teams and policies, or only of these."""

    person: int
    delegate: int
    teams: frozenset[int] = frozenset()
    policies: frozenset[str] = frozenset()


class Vote(NamedTuple):
    """A vote that counts, by the authority of the voter or of somebody who is away."""

    person: int
    authority: int
    rejects: bool = False
    then: str = ""


class Ending(NamedTuple):
    """How a gate ends, and what then becomes of the run."""

    kind: str
    then: str = ""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """A gate, and everybody who may have to do with it."""

    team: int
    policy: str
    stages: tuple[tuple[AskedRole, ...], ...]
    added: frozenset[int] = frozenset()  # teams that were added to the gate
    members: dict[int, frozenset[int]] = field(default_factory=dict)  # active person -> teams in which they may decide
    together: dict[int, frozenset[int]] = field(default_factory=dict)  # person -> the groups that they are in besides
    lends: tuple[Lend, ...] = ()
    apart: frozenset[int] = frozenset()  # who may not decide, by separation of duties
    votes: tuple[Vote, ...] = ()

    def fits(self, role: AskedRole, authority: int) -> bool:
        """An added team's people may fill any role."""
        return authority in role.people or bool(self.members.get(authority, frozenset()) & (role.teams | self.added))

    def has_a_role(self, authority: int, upto: int | None = None) -> bool:
        stages = self.stages if upto is None else self.stages[: upto + 1]
        return authority in self.members and any(self.fits(role, authority) for stage in stages for role in stage)

    def groups(self, person: int) -> frozenset[int]:
        return self.together.get(person, frozenset()) | self.members.get(person, frozenset())

    def lenders(self, person: int) -> set[int]:
        """For whom a person decides: who named them, is away now, shares a group, and might decide this themselves."""
        return {
            lend.person
            for lend in self.lends
            if lend.delegate == person
            and person in self.members
            and self.groups(person) & self.groups(lend.person)
            and (not lend.teams or self.team in lend.teams)
            and (not lend.policies or self.policy in lend.policies)
            and self.has_a_role(lend.person)
            and lend.person not in self.apart
        }

    def authorities(self, person: int) -> set[int]:
        """In their own name comes first: then nobody's authority is used up."""
        if person in self.apart or person not in self.members:
            return set()
        return {person} if self.has_a_role(person) else self.lenders(person)

    def standing(self, vote: Vote) -> bool:
        """A vote counts only while its sender may decide, by the authority that it used."""
        if vote.person in self.apart or vote.person not in self.members:
            return False
        if vote.authority == vote.person:
            return self.has_a_role(vote.person)
        return vote.authority in self.lenders(vote.person)

    def judged(self) -> Facts:
        """The same with the votes that count now."""
        return replace(self, votes=tuple(vote for vote in self.votes if self.standing(vote)))

    @property
    def places(self) -> list[tuple[int, AskedRole]]:
        return [(at, role) for at, stage in enumerate(self.stages) for role in stage for _ in range(role.number)]

    def filled(self, upto: int, extra: int | None = None) -> int:
        """How many places of these stages the approvals can fill at most, each person one."""
        free = [role for at, role in self.places if at <= upto]
        people = [vote.authority for vote in self.votes if not vote.rejects] + ([] if extra is None else [extra])
        return _most(people, free, self)

    @property
    def reached(self) -> int | None:
        """The first stage that is not complete; None where all are."""
        for at in range(len(self.stages)):
            if self.filled(at) < sum(1 for stage, _ in self.places if stage <= at):
                return at
        return None

    @property
    def ending(self) -> Ending | None:
        """A rejection rejects; the last one says what becomes of the run."""
        against = [vote for vote in self.votes if vote.rejects]
        if against:
            return Ending("rejected", against[-1].then)
        return Ending("approved") if self.reached is None else None

    def helps(self, authority: int) -> bool:
        """Whoever's approval would complete one more place of the reached stage is asked for it."""
        at = self.reached
        return at is not None and self.filled(at, authority) > self.filled(at)

    def used(self, *, but: int | None = None) -> set[int]:
        return {each for vote in self.votes if vote.person != but for each in (vote.person, vote.authority)}

    def asked(self, person: int) -> bool:
        """Tell whether the gate waits for this person's approval now."""
        if self.ending or person in self.used():
            return False
        return any(self.helps(each) for each in self.authorities(person) - self.used())

    def may_say(self, person: int) -> bool:
        """Tell whether this person may reject or edit: they have a role in a stage that is reached or passed."""
        at = self.reached
        upto = len(self.stages) - 1 if at is None else at
        return any(self.has_a_role(each, upto) for each in self.authorities(person) - self.used(but=person))


def _most(people: Sequence[int], roles: Sequence[AskedRole], facts: Facts) -> int:
    if not people:
        return 0
    first, others = people[0], people[1:]
    found = _most(others, roles, facts)
    for rest in _without_one(first, roles, facts):
        found = max(found, 1 + _most(others, rest, facts))
        if found == min(len(people), len(roles)):
            break
    return found


def _without_one(person: int, roles: Sequence[AskedRole], facts: Facts) -> Iterator[list[AskedRole]]:
    tried = set()
    for at, role in enumerate(roles):
        if role not in tried and facts.fits(role, person):
            tried.add(role)
            yield [*roles[:at], *roles[at + 1 :]]
