"""Who may do what to a team's runs: members of the team, by the team's permissions or by their own."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.contrib.auth.models import Group
from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet

from . import token_scope

# Statements are written out: putting one together for each page and decision takes longer than to answer it.

# Whether the permission `granted` is held by whom a row `member` of auth_user_groups puts in a team, there.
HELD = """(
  EXISTS (SELECT FROM auth_group_permissions of_team
    WHERE of_team.group_id = member.group_id AND of_team.permission_id = granted.id)
  OR EXISTS (SELECT FROM auth_user_user_permissions own
    WHERE own.user_id = member.user_id AND own.permission_id = granted.id)
)"""
_GRANTED = """
SELECT permission.id FROM auth_permission permission
JOIN django_content_type kind ON kind.id = permission.content_type_id
WHERE permission.codename = %(name)s AND %(app)s IN ('', kind.app_label)
"""

_HOLDERS = f"""
WITH granted AS ({_GRANTED})
SELECT one.id, EXISTS (
  SELECT FROM auth_user_groups member CROSS JOIN granted
  WHERE member.user_id = one.id AND member.group_id = ANY(%(teams)s) AND {HELD}
) FROM auth_user one WHERE one.is_active AND one.id = ANY(%(people)s)
"""  # noqa: S608 - constants

_MEMBERS = f"""
WITH granted AS ({_GRANTED})
SELECT member.group_id, member.user_id
FROM auth_user_groups member JOIN auth_user one ON one.id = member.user_id CROSS JOIN granted
WHERE one.is_active AND member.group_id = ANY(%(teams)s) AND {HELD}
"""  # noqa: S608 - constants

_TEAMS = f"""
WITH granted AS (
  SELECT asked.name, permission.id
  FROM unnest(%(names)s::text[]) asked(name)
  JOIN django_content_type kind ON kind.app_label = split_part(asked.name, '.', 1)
  JOIN auth_permission permission
    ON permission.content_type_id = kind.id AND permission.codename = split_part(asked.name, '.', 2)
)
SELECT one.id, granted.name, member.group_id
FROM auth_user one JOIN auth_user_groups member ON member.user_id = one.id CROSS JOIN granted
WHERE one.is_active AND one.id = ANY(%(people)s) AND {HELD}
UNION
SELECT one.id, asked.name, team.id
FROM auth_user one CROSS JOIN unnest(%(names)s::text[]) asked(name) CROSS JOIN auth_group team
WHERE one.is_active AND one.is_superuser AND one.id = ANY(%(people)s)
  AND starts_with(split_part(asked.name, '.', 2), 'view_')
"""  # noqa: S608 - constants


def teams_where(user: Any, codename: str) -> QuerySet[Group]:
    """Return the teams in which this person has a permission, "view_run" or "checkpoints.view_run".

    A superuser sees every team, and does in a team only what its members may do, as one of them. A token for one
    team reaches no other.
    """
    if not user.is_authenticated or not user.is_active:
        return Group.objects.none()
    bound = token_scope.of(user).team
    within = Group.objects.all() if bound is None else Group.objects.filter(pk=bound)
    if user.is_superuser and codename.rpartition(".")[2].startswith("view_"):
        return within
    through = Group.permissions.through.objects.filter(group_id=OuterRef("pk"))
    own = user.user_permissions.filter(_named(codename))
    mine = within.filter(pk__in=user.groups.values("pk"))
    return mine.filter(Exists(through.filter(_named(codename, "permission__"))) | Exists(own))


def may(user: Any, team_id: int, codename: str) -> bool:
    """Tell whether this person has the permission in this team."""
    return teams_where(user, codename).filter(pk=team_id).exists()


def holders(codename: str, *, teams: Collection[int], among: Collection[int]) -> dict[int, bool]:
    """Tell, by id, which of the people `among` have a permission in one of the `teams`, in one statement.

    The rule is that of `teams_where`, except that a superuser sees nothing more by it. A person missing in the
    answer has no account, or one that is switched off.
    """
    with connection.cursor() as cursor:
        cursor.execute(_HOLDERS, {**_asked(codename), "teams": list(teams), "people": list(among)})
        return dict(cursor.fetchall())


def members_where(codename: str, *, teams: Collection[int]) -> dict[int, set[int]]:
    """Return, by team, the ids of the people who have a permission in it now, by the rule of `holders`."""
    found: dict[int, set[int]] = {team: set() for team in teams}
    with connection.cursor() as cursor:
        cursor.execute(_MEMBERS, {**_asked(codename), "teams": list(teams)})
        for team, person in cursor.fetchall():
            found[team].add(person)
    return found


def teams_of(people: Collection[int], *codenames: str) -> dict[tuple[int, str], frozenset[int]]:
    """Apply the rule of `teams_where` to many people and permissions, "checkpoints.view_run", in one statement."""
    found: dict[tuple[int, str], set[int]] = {(one, name): set() for one in people for name in codenames}
    with connection.cursor() as cursor:
        cursor.execute(_TEAMS, {"names": list(codenames), "people": list(people)})
        for one, name, team in cursor.fetchall():
            found[one, name].add(team)
    return {key: frozenset(teams) for key, teams in found.items()}


def _asked(codename: str) -> dict[str, str]:
    app, _, name = codename.rpartition(".")
    return {"app": app, "name": name}


def _named(codename: str, path: str = "") -> Q:
    """Match the permissions named "view_run" or "checkpoints.view_run", from a table that reaches them by `path`."""
    app, _, name = codename.rpartition(".")
    of_app = Q(**{f"{path}content_type__app_label": app}) if app else Q()
    return Q(**{f"{path}codename": name}) & of_app
