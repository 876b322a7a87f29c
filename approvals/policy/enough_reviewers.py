"""Checks that enough people may decide for what a policy asks. They change, so this is queried and not stored."""

from __future__ import annotations

from collections.abc import Sequence, Set

from django.contrib.auth.models import Group, User
from django.utils.text import capfirst

from approvals.english import count_of
from approvals.models import Gate, Policy
from checkpoints.access.permissions import DECIDE_GATE, members_where
from checkpoints.actors import of_user

from . import required, separation
from .requirements import Requirements, Stage
from .rules.stage_words import Names, stage
from .tally import CountedVote, Tally, tally

ADVICE = "Ask for fewer, name more teams, or first let more people decide on the teams' pages."


def people(*asked: Sequence[Group]) -> list[set[int]]:
    """Return the ids of the people who may decide now, for each of these lists of teams. One statement."""
    there = members_where(DECIDE_GATE, teams={team.pk for teams in asked for team in teams})
    return [set().union(*(there[team.pk] for team in teams)) for teams in asked]


def missing(needs: Requirements, *, apart: Set[int] = frozenset()) -> tuple[Tally, set[int]]:
    """Count as if everybody who may decide now approved, but for those `apart`, and return who that is.

    What is left then cannot be filled. Two statements, one where nobody is named.
    """
    there = members_where(DECIDE_GATE, teams=needs.teams)
    named = set(User.objects.filter(pk__in=needs.people, is_active=True).values_list("pk", flat=True))
    teams: dict[int, set[int]] = {person: set() for person in named}
    for team, members in there.items():
        for person in members:
            teams.setdefault(person, set()).add(team)
    votes = [CountedVote(person=each, teams=frozenset(teams[each])) for each in sorted(teams) if each not in apart]
    return tally(needs, votes), set(teams)


def too_few(needs: Requirements, names: Names) -> str:
    """Say why the people who may decide now are too few for these requirements, and what to do; "" elsewhere."""
    count, there = missing(needs)
    if not count.left:
        return ""
    if needs.staged:
        return f"Nobody could fill all of it now: {_lacking(count, names)} would be missing. {ADVICE}"
    [role] = needs.stages[0].roles
    return (
        f"Now {_count(len(there))} may decide in {names.any_of(role)}, and {needs.slots} must agree: "
        f"no gate of this policy could be approved. {ADVICE}"
    )


def tight(policy: Policy, needs: Requirements, names: Names) -> str:
    """Warn where the gates of somebody's runs could not be approved, as they may not decide there; "" elsewhere."""
    if not policy.separation:
        return ""
    if not needs.staged:
        there = missing(needs)[1]
        if len(there) > needs.slots:
            return ""
        if needs.slots == 1:
            return "There is only 1 reviewer. If they start a run, its gates cannot be approved. Add reviewers."
        return (
            f"All {needs.slots} reviewers must approve. If one of them starts a run, its gates cannot be "
            "approved. Add reviewers."
        )
    for person in sorted(missing(needs)[1]):
        count = missing(needs, apart={person})[0]
        if count.left:
            return (
                f"If one of the reviewers starts a run, {_lacking(count, names)} may be missing at its gates. "
                "Add reviewers."
            )
    return ""


def lacking(gate: Gate, needs: Requirements, there: Set[int] | None = None) -> str:
    """Say why the people who may decide now are too few for an open gate; "" where they are enough.

    `there`: those people, where the caller knows them and the policy is plain.
    """
    apart, needs = separation.apart_from(gate), required.at(gate, needs)
    if needs.staged:
        count, _there = missing(needs, apart=apart)
        said = (
            f"{capfirst(_lacking(count, Names.at(gate)))} may not be found now: this cannot be approved. "
            "Ask an administrator to add reviewers."
        )
        return said if count.left else ""
    if there is None or not gate.policy.plain:
        there = missing(needs)[1]
    apart &= there
    besides = ", not counting the requester or who changed the run before this was asked," if apart else ","
    return _short(Names.at(gate), needs, there - apart, besides=besides, so="this cannot be approved")


def lacking_besides(owner: User, policy: Policy) -> str:
    """Warn where the people who may decide now are too few for gates of `owner`'s program; "" elsewhere."""
    needs, apart = required.own(policy), separation.apart(policy, owner.pk)
    count, there = missing(needs, apart=apart)
    if needs.staged:
        said = (
            f"{capfirst(_lacking(count, Names.of(policy)))} would be missing: its gates cannot be "
            "approved. Ask an administrator to add reviewers."
        )
        return said if count.left else ""
    besides = f" besides {of_user(owner).name}," if apart else ","
    return _short(Names.of(policy), needs, there - apart, besides=besides, so="its gates cannot be approved")


def _short(who: Names, needs: Requirements, there: Set[int], *, besides: str, so: str) -> str:
    if len(there) >= needs.slots:
        return ""
    [role] = needs.stages[0].roles
    return (
        f"{capfirst(_count(len(there)))} may decide in {who.any_of(role)} now{besides} and {needs.slots} must agree: "
        f"{so}. Ask an administrator to add reviewers."
    )


def _lacking(count: Tally, names: Names) -> str:
    """Name everybody who is lacking: `one of Finance and one of Legal`."""
    stages = range(len(count.requirements.stages))
    return stage(Stage(roles=tuple(role for at in stages for role in count.lacking(at))), names)


def _count(number: int) -> str:
    if number == 0:
        return "nobody"
    return count_of(number, "person", "people")
