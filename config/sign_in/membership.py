"""Applies what a provider's claims say to an account: teams, and the marks of staff and superusers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import Group, User
from django.db import transaction
from structlog import get_logger

from checkpoints import actors
from checkpoints.events import event_log

from .claims import rights_from_claims
from .providers import Provider

log = get_logger()


@transaction.atomic
def apply(user: User, claims: Mapping[str, Any], provider: Provider) -> None:
    """Give and take the teams and marks that the settings map, with one event where anything changes."""
    wanted = rights_from_claims(claims, provider)
    locked = User.objects.select_for_update().get(pk=user.pk)
    managed = {group.name: group for group in Group.objects.filter(name__in=wanted.managed)}
    for missing in sorted(wanted.managed - set(managed)):
        log.warning("provider.unknown_team", provider=provider.name, team=missing)
    mine = set(locked.groups.values_list("pk", flat=True))
    joined = {group.pk for name, group in managed.items() if name in wanted.teams} - mine
    left = {group.pk for name, group in managed.items() if name not in wanted.teams} & mine
    marks = {"is_staff": wanted.staff, "is_superuser": wanted.superuser}
    fields = [name for name, value in marks.items() if value is not None and getattr(locked, name) is not value]
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
