"""Whether enough people may decide for a policy's quorum. Who they are changes, so it is queried and not stored."""

from __future__ import annotations

from collections.abc import Sequence, Set

from django.contrib.auth.models import Group, User

from approvals.models import Gate, Policy
from approvals.models.policy import DECIDE
from checkpoints.access.permissions import members_where
from checkpoints.actors import of_user

from . import separation


def people(*asked: Sequence[Group]) -> list[set[int]]:
    """Return the ids of those who may decide now, for each of these lists of teams. One statement for all."""
    there = members_where(DECIDE, teams={team.pk for teams in asked for team in teams})
    return [set().union(*(there[team.pk] for team in teams)) for teams in asked]


def too_few(quorum: int, teams: Sequence[Group]) -> str:
    """Say why a quorum of these teams' people cannot be met now, and what to do; "" where it can."""
    [there] = people(teams)
    if len(there) >= quorum:
        return ""
    return (
        f"Now {_count(len(there))} may decide in {_names(teams)}, and {quorum} must agree: no gate of this policy "
        "could be approved. Ask for fewer, name more teams, or first let more people decide on the teams' pages."
    )


def tight(policy: Policy, teams: Sequence[Group]) -> str:
    """Warn where everybody who may decide has to agree and whoever started the run may not; "" elsewhere."""
    if not policy.separation or len(people(teams)[0]) > policy.quorum:
        return ""
    only = "There is only 1 reviewer. If they start"
    every = f"All {policy.quorum} reviewers must approve. If one of them starts"
    return f"{only if policy.quorum == 1 else every} a run, its requests cannot be approved. Add reviewers."


def lacking(gate: Gate, there: Set[int]) -> str:
    """Say why an open gate cannot be approved by those who may decide now, `there`; "" where it can."""
    policy = gate.policy
    apart = separation.apart_from(gate) & there
    besides = " besides whoever started the run or has it asked" if apart else ""
    return _short(policy, there - apart, besides, "nothing here")


def lacking_besides(owner: User, policy: Policy) -> str:
    """Warn where those who may decide now are too few for what `owner`'s program asks; "" elsewhere."""
    [there] = people(policy.reviewers)
    apart = separation.apart(policy, owner.pk)
    besides = f" besides {of_user(owner).name}" if apart else ""
    return _short(policy, there - apart, besides, "nothing that it asks")


def _short(policy: Policy, there: Set[int], besides: str, what: str) -> str:
    if len(there) >= policy.quorum:
        return ""
    return (
        f"{_count(len(there)).capitalize()} may decide in {_names(policy.reviewers)} now{besides}, and {policy.quorum} "
        f"must agree: {what} can be approved until an administrator lets more people decide."
    )


def _count(number: int) -> str:
    return {0: "nobody", 1: "1 person"}.get(number, f"{number} people")


def _names(teams: Sequence[Group]) -> str:
    return " or ".join(sorted(team.name for team in teams))
