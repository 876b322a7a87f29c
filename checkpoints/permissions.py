"""Who may do what to a team's runs: members of the team, by the team's permissions or by their own."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Group
from django.db.models import Exists, OuterRef, Q, QuerySet


def teams_where(user: Any, codename: str) -> QuerySet[Group]:
    """The teams in which this person has a permission, "view_run" or "checkpoints.view_run".

    A superuser sees every team, and does in a team only what its members may do, as one of them.
    """
    if not user.is_authenticated or not user.is_active:
        return Group.objects.none()
    app, _, name = codename.rpartition(".")
    if user.is_superuser and name.startswith("view_"):
        return Group.objects.all()
    wanted = Q(codename=name) & (Q(content_type__app_label=app) if app else Q())
    mine = Group.objects.filter(pk__in=user.groups.values("pk"))
    if user.user_permissions.filter(wanted).exists():
        return mine
    through = Group.permissions.through.objects.filter(group_id=OuterRef("pk"))
    given = Q(permission__codename=name) & (Q(permission__content_type__app_label=app) if app else Q())
    return mine.filter(Exists(through.filter(given)))


def may(user: Any, team_id: int, codename: str) -> bool:
    """Whether this person has the permission in this team."""
    return teams_where(user, codename).filter(pk=team_id).exists()
