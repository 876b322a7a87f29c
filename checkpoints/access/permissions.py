"""Permissions: the one place that decides what a person may do, in the administration and in each team.

In a team the database view `checkpoints_right` decides: it lists the active members who have a permission, by the
team's permissions or by their own. Every query joins it. Superusers also see every team, by any permission called
"view_"; in a team they do only what its members may do, as one of them. In the administration, which shows all teams,
Django's own rule decides, for staff. A permission is named "app.codename"; nobody has one that does not exist.

It also says which permission somebody lacks and who can give it: the one sentence of every refusal for want of one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from django.contrib.auth.models import Group, Permission, User
from django.db import models
from django.db.models import Exists, Expression, OuterRef, Q, QuerySet, Value

from checkpoints.actors import of_user
from checkpoints.postgresql.prepared_rows import prepared_statement, type_numbers
from checkpoints.postgresql.sql import run_sql

from . import token_scope

# In a team. Each is declared by its model.
VIEW_RUN = "checkpoints.view_run"
START_RUN = "checkpoints.start_run"
REWIND_RUN = "checkpoints.rewind_run"
DECIDE_GATE = "approvals.decide_gate"
ADD_REVIEWERS = "approvals.add_reviewers"
NAMED = "being named"  # no permission of a team: a policy names the person, and "held" is who they are
REVEAL_SECRET = "approvals.reveal_secret"  # noqa: S105 - a name
MANAGE_WEBHOOKS = "approvals.manage_webhooks"
COMPARE_PEOPLE = "approvals.compare_people"
VIEW_AUDIT = "checkpoints.view_audit"
ERASE_TEXT = "checkpoints.erase_text"
# In the administration.
VIEW_EVENT = "checkpoints.view_event"
PRUNE_CHECKPOINTS = "checkpoints.prune_checkpoints"
SET_LEGAL_HOLD = "checkpoints.set_legal_hold"
CHANGE_TOKEN = "agents.change_token"  # noqa: S105 - a name

Ways = Sequence[tuple[str, str]]  # how rows are seen: paths to a team, each with the permission that it takes there

# Statements are written out: building one for each page and decision takes longer than answering it.
_HOLDERS = """
SELECT one.id, ARRAY(
  SELECT may.team_id FROM checkpoints_right may WHERE may.user_id = one.id AND may.team_id = ANY($3)
  AND may.app = $1 AND may.codename = $2)
FROM auth_user one WHERE one.is_active AND one.id = ANY($4)
"""
_MEMBERS = "SELECT team_id, user_id FROM checkpoints_right WHERE app = $1 AND codename = $2 AND team_id = ANY($3)"
_TEAMS = """
SELECT user_id, app || '.' || codename, team_id FROM checkpoints_right
WHERE user_id = ANY($1) AND app || '.' || codename = ANY($2)
UNION
SELECT one.id, kind.app_label || '.' || granted.codename, team.id
FROM auth_user one CROSS JOIN auth_group team
CROSS JOIN auth_permission granted JOIN django_content_type kind ON kind.id = granted.content_type_id
WHERE one.is_active AND one.is_superuser AND one.id = ANY($1)
AND kind.app_label || '.' || granted.codename = ANY($3)
"""


class Right(models.Model):
    """A row of the view: this person has this permission in this team."""

    pk = models.CompositePrimaryKey("team_id", "user_id", "app", "codename")
    team_id = models.IntegerField()
    user_id = models.IntegerField()
    app = models.CharField(max_length=100)  # two columns, as Django's own indexes of permissions have them
    codename = models.CharField(max_length=100)

    class Meta:
        managed = False
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.app}.{self.codename} of {self.user_id} in {self.team_id}"


class Person(NamedTuple):
    """The columns of a person that the rules read."""

    pk: int | Expression
    is_active: bool
    is_superuser: bool
    bounds: token_scope.TokenBounds


class PersonKind(NamedTuple):
    """The columns that the rules read, but for the id: a prepared statement has a variant for each kind of people."""

    is_active: bool
    is_superuser: bool
    bounds: token_scope.TokenBounds

    def person(self, pk: Expression) -> Person:
        """Return the person of this kind whose id stands in a place of the statement."""
        return Person(pk, *self)


def kind_of(user: Any) -> PersonKind:
    """Return the kind of this user."""
    return PersonKind(user.is_active, user.is_superuser, token_scope.bounds_of(user))


def teams_granting(user: Any, permission: str) -> QuerySet[Any, Any]:
    """Return the ids of the teams in which this person has a permission, whatever token they send."""
    if permission == NAMED:
        return User.objects.filter(pk=user.pk, is_active=True).values("pk")
    asked = _named(permission)
    if sees_all(user, permission):
        there = Permission.objects.filter(content_type__app_label=asked["app"], codename=asked["codename"])
        return Group.objects.filter(Exists(there)).values("pk")
    return Right.objects.filter(user_id=user.pk, **asked).values("team_id")


def sees_all(user: Any, permission: str) -> bool:
    """Tell whether this person sees every team by this permission."""
    return is_superuser(user) and _views(permission)


def visible(rows: token_scope.Rows, user: Any, ways: Ways, **bounds: str) -> token_scope.Rows:
    """Keep the rows that a person sees in one of these ways; by a token, those within its `bounds`, see `narrow`."""
    seen = Q()
    for way, permission in ways:
        seen |= _through(rows.model, way, teams_granting(user, permission))
    return token_scope.bounds_of(user).narrow(rows.filter(seen), **bounds)


def _through(model: type[models.Model], way: str, teams: QuerySet[Any, Any]) -> Q:
    """Select the rows from which `way` leads to one of the teams, by no join that would find a row twice."""
    first, _, onward = way.partition("__")
    if not onward:
        return Q(**{f"{first}__in": teams})
    field: Any = model._meta.get_field(first)
    there = field.related_model._default_manager.filter(_through(field.related_model, onward, teams))
    if field.many_to_one:
        return Q(**{f"{first}__in": there.values("pk")})
    return Q(Exists(there.filter(**{field.remote_field.name: OuterRef("pk")})))


def shown_in(rows: QuerySet[Any, Any], ways: Ways) -> dict[int, set[tuple[str, int]]]:
    """Return, by row, each (permission, team) that shows it: the rule of `visible`, for many people at once.

    One statement.
    """
    first, *others = (rows.order_by().values_list("pk", Value(needs), way) for way, needs in ways)
    found: dict[int, set[tuple[str, int]]] = {}
    for pk, needs, team in first.union(*others, all=True):
        found.setdefault(pk, set()).add((needs, team))
    return found


def teams_where(user: Any, permission: str) -> QuerySet[Group]:
    """Return the teams in which this person has a permission, "checkpoints.view_run", within their token's scope."""
    return token_scope.bounds_of(user).narrow(Group.objects.filter(pk__in=teams_granting(user, permission)), team="pk")


def teams_by_name(user: Any, permission: str) -> list[Group]:
    """List the teams of `teams_where` by name."""
    kind = kind_of(user)
    bounds = token_scope.TokenBounds(team=kind.bounds.team)  # an agent's name bounds no team: one variant for all
    return _teams_by_name(user.pk, kind=kind._replace(bounds=bounds), permission=permission)


@prepared_statement
def _teams_by_name(user: Any, *, kind: PersonKind, permission: str) -> QuerySet[Group]:
    return teams_where(kind.person(user), permission).order_by("name")


def may_in_team(user: Any, team_id: int, permission: str) -> bool:
    """Tell whether this person has the permission in this team."""
    return teams_where(user, permission).filter(pk=team_id).exists()


def holders(permission: str, *, teams: Collection[int], among: Collection[int]) -> dict[int, frozenset[int]]:
    """Return, by id, in which of the `teams` each of the people `among` has a permission, in one statement.

    Superusers get nothing extra here. A person missing in the answer has no account, or one that is switched off.
    """
    found = run_sql(_HOLDERS, [*_named(permission).values(), type_numbers(list(teams)), type_numbers(list(among))])
    return {item: frozenset(where) for item, where in found}


def right_in(team: str, permission: str) -> str:
    """Return SQL for the `user_id` of everybody who has a permission in a team; `team` is its id in SQL."""
    return f"(SELECT user_id FROM checkpoints_right WHERE team_id = {team} AND {_granting(permission)})"  # noqa: S608 - constants


def teams_with(person: str, permission: str) -> str:
    """Return SQL for the `team_id` of each team where a person has a permission; `person` is their id in SQL."""
    return f"(SELECT team_id FROM checkpoints_right WHERE user_id = {person} AND {_granting(permission)})"  # noqa: S608 - constants


def _granting(permission: str) -> str:
    return " AND ".join(f"{column} = '{value}'" for column, value in _named(permission).items())


def members_where(permission: str, *, teams: Collection[int]) -> dict[int, set[int]]:
    """Return, by team, the ids of the people who have a permission in it now, as `holders` does."""
    found: dict[int, set[int]] = {team: set() for team in teams}
    for team, item in run_sql(_MEMBERS, [*_named(permission).values(), type_numbers(list(teams))]):
        found[team].add(item)
    return found


def teams_of(people: Collection[int], *permissions: str) -> dict[tuple[int, str], frozenset[int]]:
    """Return the ids of `teams_granting` by person and permission, for many of both, in one statement."""
    found: dict[tuple[int, str], set[int]] = {(person, name): set() for person in people for name in permissions}
    viewing = list(filter(_views, permissions))
    for item, name, team in run_sql(_TEAMS, [type_numbers(list(people)), list(permissions), viewing]):
        found[item, name].add(team)
    if NAMED in permissions:
        found |= {(person, NAMED): {person} for person in people}
    return {key: frozenset(teams) for key, teams in found.items()}


def own_teams(user: Any) -> QuerySet[Group]:
    """Return the teams that this person is a member of, whatever they may do there."""
    teams: QuerySet[Group] = user.groups.all()
    return teams


def colleagues_of(user: Any) -> QuerySet[User]:
    """Return the active members of this person's teams, without this person, by name."""
    there = User.objects.filter(is_active=True, groups__in=own_teams(user)).exclude(pk=user.pk).distinct()
    return there.order_by("first_name", "last_name", "pk")


def may_everywhere(user: Any, *permissions: str) -> bool:
    """Tell whether this person has the permissions in the administration, where no row is of one team alone."""
    return bool(user.is_active and user.is_staff and user.has_perms(permissions))


def is_superuser(user: Any) -> bool:
    """Tell whether this person sees every team, and manages permissions in the administration."""
    return bool(user.is_active and user.is_superuser)


def _views(permission: str) -> bool:
    return permission.partition(".")[2].startswith("view_")


def _named(permission: str) -> dict[str, str]:
    app, _, codename = permission.partition(".")
    return {"app": app, "codename": codename}


# Permission -> what it allows in its holder's teams, as the box on a team's page says. See docs/run.md.
IN_TEAMS: dict[str, str] = {
    VIEW_RUN: "read the team's runs, their states and events",
    START_RUN: "start runs",
    REWIND_RUN: "rewind, edit, fork and cancel runs, and undo what they left behind",
    REVEAL_SECRET: "see secrets of the team's runs, one at a time",
    DECIDE_GATE: "decide at the gates of policies that name the team",
    COMPARE_PEOPLE: "see figures of the team by person",
    ADD_REVIEWERS: "add a team to the reviewers of a gate of the team",
    MANAGE_WEBHOOKS: "manage the team's webhooks",
    VIEW_AUDIT: "see the team's audit, have the seals verified, and export",
    ERASE_TEXT: "erase what people wrote from the audit",
}
ASK = "Ask your administrator, who can give it in the administration, under Teams."
MOST = 3  # people who are named


def say_missing_permission(user: Any, permission: str, team: Group | None = None) -> str:
    """Return the refusal for somebody without a permission in a team; without a team, in any of theirs.

    Named are only people whom they may see: members of their teams, and a superuser themselves.
    """
    if team is not None and Group.objects.filter(pk=team.pk).filter(pk__in=teams_granting(user, permission)).exists():
        return f"This token does not reach {team.name}. Use another one."
    words, where = IN_TEAMS[permission], team.name if team else "one of your teams"
    if team is None and teams_granting(user, permission).exists() and not teams_where(user, permission).exists():
        return f"This token reaches no team where you have the permission “{words}”. Use another one."
    needed = f"You need the permission “{words}” in {where}."
    if team is not None and not own_teams(user).filter(pk=team.pk).exists():
        needed = f"Only members of {where} with the permission “{words}” may do this."
    return f"{needed} {_who_gives(user)}"


def say_no_team(user: Any, permission: str, name: str) -> str:
    """Return the refusal where a team of this name, "" for any, is none in which somebody has a permission."""
    team = next((team for team in own_teams(user) if team.name == name), None)
    names = ", ".join(group.name for group in teams_by_name(user, permission))
    if name and team is None and names:
        return f"None of your teams has this name. Send one in which you have the permission: {names}."
    return say_missing_permission(user, permission, team)


def _who_gives(user: Any) -> str:
    if is_superuser(user) and user.is_staff:
        return "You can give it yourself in the administration, under Teams."
    names = [
        of_user(colleague).name for colleague in colleagues_of(user).filter(is_superuser=True, is_staff=True)[:MOST]
    ]
    return f"{' or '.join(names)} can give it in the administration, under Teams." if names else ASK
