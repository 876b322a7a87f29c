"""Checks who may decide a gate: when somebody decides, and again for every voter when a quorum closes."""

from __future__ import annotations

from collections.abc import Collection

from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from approvals.models import Gate
from checkpoints.access.permissions import DECIDE_GATE, holders, members_where

from .separation import apart_from, why_apart

SWITCHED_OFF = gettext_lazy("This account is switched off; ask an administrator.")


def why_not(user: User, gate: Gate) -> str:
    """Say why this person may not decide this gate, as a sentence; "" where they may. See `reasons`."""
    return reasons([user.pk], gate)[user.pk]


def reasons(people: Collection[int], gate: Gate) -> dict[int, str]:
    """Say for each of these people, by id, why they may not decide this gate; "" where they may. One statement.

    A superuser has no authority here without being in the teams. Teams, permissions and the account's state are read
    from the database, whatever the caller's objects say.
    """
    found = holders(DECIDE_GATE, teams=gate.policy.reviewer_ids, among=people)
    return {person: reason(person, found.get(person), gate) for person in people}


def reason(person: int, may: bool | None, gate: Gate) -> str:
    """Say why this person may not decide; `may`: whether they are a reviewer, None for an account switched off."""
    if may is None:
        return str(SWITCHED_OFF)
    if not may:
        names = _(" or ").join(group.name for group in gate.policy.reviewers)
        return _("Only people in %(teams)s who may decide gates can decide this one.") % {"teams": names}
    return why_apart(person, gate)


def may_decide(gates: Collection[Gate]) -> dict[int, set[int]]:
    """Return, by gate, the ids of all the people who may decide it now. One statement; the gates need their runs."""
    there = members_where(DECIDE_GATE, teams={team for gate in gates for team in gate.policy.reviewer_ids})
    return {
        gate.pk: set().union(*(there[team] for team in gate.policy.reviewer_ids)) - apart_from(gate) for gate in gates
    }
