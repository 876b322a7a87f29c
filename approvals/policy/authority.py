"""Checks who may decide a gate: when somebody decides, and again for every voter when a quorum closes."""

from __future__ import annotations

from collections.abc import Collection

from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from approvals.models import Gate
from checkpoints.access.permissions import DECIDE_GATE, holders, members_where
from checkpoints.actors import of_user

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
    return {person: why for person, (why, _teams) in seats(people, gate).items()}


def seats(people: Collection[int], gate: Gate) -> dict[int, tuple[str, frozenset[int]]]:
    """Return for each of these people what `reasons` says, and the reviewing teams in which they may decide."""
    found = holders(DECIDE_GATE, teams=gate.policy.reviewer_ids, among=people)
    return {person: (reason(person, found.get(person), gate), found.get(person, frozenset())) for person in people}


def reason(person: int, teams: Collection[int] | None, gate: Gate) -> str:
    """Say why this person may not decide this gate at all; "" where they may, once their stage is reached.

    `teams`: the reviewing teams in which they may decide; None for an account that is switched off. People whom the
    policy names need no team.
    """
    if teams is None:
        return str(SWITCHED_OFF)
    if not teams and person not in gate.policy.person_ids:
        names = _(" or ").join(
            [*(group.name for group in gate.policy.reviewers), *(of_user(each).name for each in gate.policy.named)]
        )
        return _("Only people in %(teams)s who may decide gates can decide this one.") % {"teams": names}
    return why_apart(person, gate)


def may_decide(gates: Collection[Gate]) -> dict[int, set[int]]:
    """Return, by gate, the ids of all the people whose decision it waits for now; the gates need their runs.

    One statement, and another where policies name people.
    """
    there = members_where(DECIDE_GATE, teams={team for gate in gates for team in _teams(gate)})
    named = {person for gate in gates for person in _named(gate)}
    active = set(User.objects.filter(pk__in=named, is_active=True).values_list("pk", flat=True)) if named else set()
    return {
        gate.pk: set(active & _named(gate)).union(*(there[team] for team in _teams(gate))) - apart_from(gate)
        for gate in gates
    }


def _teams(gate: Gate) -> set[int]:
    return {each for each in gate.awaits if each > 0} if gate.awaits else set(gate.policy.reviewer_ids)


def _named(gate: Gate) -> set[int]:
    return {-each for each in gate.awaits if each < 0} if gate.awaits else set(gate.policy.person_ids)
