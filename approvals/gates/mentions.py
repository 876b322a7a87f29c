"""Finds who is named in words at a gate, as `@username`, among those who may see it; others' names are plain text.

Whoever is mentioned is told by the notifications, which read the event. Only people's words mention: an agent's do not.
"""

from __future__ import annotations

import re

from django.contrib.auth.models import User
from django.db.models import Q

from approvals.models import Gate
from approvals.models.gate import WAYS
from checkpoints import actors
from checkpoints.access import permissions

NAMED = re.compile(r"(?<![\w@.+-])@([\w.@+-]+)")  # the characters of a username
MOST = 20  # people whom one comment mentions
OFFERED = 8


def people(gate: Gate) -> set[int]:
    """Return the ids of those who may see the gate: through a team, or as the policy names them or they stand in."""
    teams: dict[str, list[int]] = {}
    for permission, team in permissions.shown_in(Gate.objects.filter(pk=gate.pk), WAYS)[gate.pk]:
        teams.setdefault(permission, []).append(team)
    named = {person for person in teams.pop(permissions.NAMED, ()) if person}  # None where there are none
    found = [permissions.members_where(permission, teams=of).values() for permission, of in teams.items()]
    return named.union(*(members for by_team in found for members in by_team))


def offered(gate: Gate, start: str, *, to: User) -> list[User]:
    """List the people whose name or username begins with `start`, for completion; never the reader."""
    begins = Q(username__istartswith=start) | Q(first_name__istartswith=start) | Q(last_name__istartswith=start)
    known = User.objects.filter(begins, pk__in=people(gate), is_active=True).exclude(pk=to.pk)
    return list(known.order_by("first_name", "last_name", "pk")[:OFFERED])


def tell(gate: Gate, words: str, *, by: User) -> list[int]:
    """Record whom these words mention, in the caller's transaction; return their ids."""
    names = {each.rstrip(".,-+@").lower() for each in NAMED.findall(words)} - {""} if "@" in words else set()
    if not names:
        return []
    known = User.objects.filter(pk__in=people(gate), is_active=True).exclude(pk=by.pk).order_by("pk")
    found = [person.pk for person in known if person.get_username().lower() in names][:MOST]
    if found:
        gate.say("gate.mentioned", by=actors.of_user(by), data={"users": found})
    return found
