"""Teams and marks by a provider's claims: what they give to a person, and applying it to the account.

Only teams that the settings name are given and taken; any other membership is an administrator's and stays. Claims
that say nothing of groups take all of those away: silence is no membership. Staff and superusers are made and unmade
only where the settings say by which value.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from django.contrib.auth.models import Group, User
from django.db import transaction
from structlog import get_logger

from checkpoints import actors
from checkpoints.events import event_log

from .providers import Provider

log = get_logger()


def values(claim: Any) -> Set[str]:
    """Return the values of a claim: a list of texts, or one text; anything else says nothing."""
    if isinstance(claim, str):
        return {claim}
    return {word for word in claim if isinstance(word, str)} if isinstance(claim, list) else set()


def verified_email(claims: Mapping[str, Any]) -> str:
    """Return the e-mail address that the provider says it verified; "" for any other.

    Only the boolean counts: a text "false" is true to Python.
    """
    email = claims.get("email")
    return email if isinstance(email, str) and claims.get("email_verified") is True else ""


@transaction.atomic
def apply_claims(user: User, claims: Mapping[str, Any], provider: Provider) -> None:
    """Give and take the teams and marks that the settings map, with one event where anything changes."""
    names, managed_names = values(claims.get(provider.claim)), frozenset(provider.groups.values())
    wanted = {team for value, team in provider.groups.items() if value in names}
    locked = User.objects.select_for_update().get(pk=user.pk)
    managed = {group.name: group for group in Group.objects.filter(name__in=managed_names)}
    for missing in sorted(managed_names - set(managed)):
        log.warning("provider.unknown_team", provider=provider.name, team=missing)
    mine = set(locked.groups.values_list("pk", flat=True))
    joined = {group.pk for name, group in managed.items() if name in wanted} - mine
    left = {group.pk for name, group in managed.items() if name not in wanted} & mine
    mapped = {"is_staff": provider.staff, "is_superuser": provider.superusers}  # without values a mark is not managed
    marks = {name: bool(names & theirs) for name, theirs in mapped.items() if theirs}
    fields = [name for name, value in marks.items() if getattr(locked, name) is not value]
    if not (joined or left or fields):
        return
    locked.groups.add(*joined)
    locked.groups.remove(*left)
    for name in fields:
        setattr(locked, name, marks[name])
        setattr(user, name, marks[name])
    locked.save(update_fields=fields)
    data = {
        "fields": fields, "joined": sorted(joined), "left": sorted(left), "granted": [], "revoked": [],
        "provider": provider.name,
    }  # fmt: skip
    event_log.record("user.changed", subject=f"user:{user.pk}", by=actors.SYSTEM, data=data)
