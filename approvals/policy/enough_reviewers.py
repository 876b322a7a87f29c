"""Checks that enough people may decide for a policy's quorum. They change, so this is queried and not stored."""

from __future__ import annotations

from collections.abc import Sequence, Set

from django.contrib.auth.models import Group, User
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from approvals.models import Gate, Policy
from checkpoints.access.permissions import DECIDE_GATE, members_where
from checkpoints.actors import of_user

from . import separation


def people(*asked: Sequence[Group]) -> list[set[int]]:
    """Return the ids of the people who may decide now, for each of these lists of teams. One statement."""
    there = members_where(DECIDE_GATE, teams={team.pk for teams in asked for team in teams})
    return [set().union(*(there[team.pk] for team in teams)) for teams in asked]


def too_few(quorum: int, teams: Sequence[Group]) -> str:
    """Say why these teams' people are too few for a quorum now, and what to do; "" where they are enough."""
    [there] = people(teams)
    if len(there) >= quorum:
        return ""
    said = _(
        "Now %(people)s may decide in %(teams)s, and %(quorum)s must agree: no gate of this policy could be approved. "
        "Ask for fewer, name more teams, or first let more people decide on the teams' pages."
    )
    return said % {"people": _count(len(there)), "teams": _names(teams), "quorum": quorum}


def tight(policy: Policy, teams: Sequence[Group]) -> str:
    """Warn where every reviewer has to approve and the person who started the run may not; "" elsewhere."""
    if not policy.separation or len(people(teams)[0]) > policy.quorum:
        return ""
    if policy.quorum == 1:
        return _("There is only 1 reviewer. If they start a run, its gates cannot be approved. Add reviewers.")
    every = _(
        "All %(count)s reviewers must approve. If one of them starts a run, its gates cannot be approved. Add "
        "reviewers."
    )
    return every % {"count": policy.quorum}


def lacking(gate: Gate, there: Set[int]) -> str:
    """Say why the people who may decide now, `there`, are too few for an open gate; "" where they are enough."""
    apart = separation.apart_from(gate) & there
    said = _(
        "%(people)s may decide in %(teams)s now, and %(quorum)s must agree: this cannot be approved. "
        "Ask an administrator to add reviewers."
    )
    if apart:
        said = _(
            "%(people)s may decide in %(teams)s now, not counting the requester, and %(quorum)s must agree: "
            "this cannot be approved. Ask an administrator to add reviewers."
        )
    return _short(said, gate.policy, there - apart)


def lacking_besides(owner: User, policy: Policy) -> str:
    """Warn where the people who may decide now are too few for gates of `owner`'s program; "" elsewhere."""
    [there] = people(policy.reviewers)
    apart = separation.apart(policy, owner.pk)
    said = _(
        "%(people)s may decide in %(teams)s now, and %(quorum)s must agree: its gates cannot be approved. "
        "Ask an administrator to add reviewers."
    )
    if apart:
        said = _(
            "%(people)s may decide in %(teams)s now besides %(owner)s, and %(quorum)s must agree: its gates "
            "cannot be approved. Ask an administrator to add reviewers."
        )
    return _short(said, policy, there - apart, owner=of_user(owner).name)


def _short(said: str, policy: Policy, there: Set[int], **names: str) -> str:
    if len(there) >= policy.quorum:
        return ""
    people = _count(len(there)).capitalize()
    return said % {"people": people, "teams": _names(policy.reviewers), "quorum": policy.quorum, **names}


def _count(number: int) -> str:
    if number == 0:
        return _("nobody")
    return ngettext("%(count)s person", "%(count)s people", number) % {"count": number}


def _names(teams: Sequence[Group]) -> str:
    return _(" or ").join(sorted(team.name for team in teams))
