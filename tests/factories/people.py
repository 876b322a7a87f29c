"""The cast: ann reviews, bob is on the team, mira is from Finance, eve is an outsider."""

from __future__ import annotations

import secrets
from functools import cache

from django.contrib.auth.models import Group, Permission, User
from django.db import connection

REVIEWER = ("checkpoints.view_run", "approvals.decide_gate")
MEMBER = (*REVIEWER, "checkpoints.start_run", "checkpoints.rewind_run")
READER = ("checkpoints.view_run",)
EVERYTHING = (
    *MEMBER, "approvals.reveal_secret", "approvals.manage_webhooks", "checkpoints.view_audit", "checkpoints.erase_text",
)  # fmt: skip


def unique(name: str) -> str:
    return f"{name}-{secrets.token_hex(4)}"


def permissions(names: tuple[str, ...]) -> list[Permission]:
    return [_permission(name, connection.settings_dict["NAME"]) for name in names]


@cache
def _permission(name: str, database: str) -> Permission:
    """Find one, once in each database: asking for them took a fifth of making a team."""
    app, codename = name.split(".")
    return Permission.objects.get(content_type__app_label=app, codename=codename)


def make_team(name: str = "Support", *, may: tuple[str, ...] = MEMBER) -> Group:
    team = Group.objects.create(name=unique(name))
    team.permissions.add(*permissions(may))
    return team


def make_user(
    name: str = "Somebody",
    *teams: Group,
    may: tuple[str, ...] = (),
    superuser: bool = False,
    staff: bool = False,
    password: str = "",
) -> User:
    """Make a person in these teams, with permissions of their own; signs in with `password` where one is given."""
    first, _, last = name.partition(" ")
    user = User.objects.create_user(
        unique(first.lower()),
        f"{first.lower()}@example.org",
        password or None,
        first_name=first,
        last_name=last,
        is_superuser=superuser,
        is_staff=superuser or staff,
    )
    user.groups.add(*teams)
    user.user_permissions.add(*permissions(may))
    return user


def ann(*teams: Group) -> User:
    return make_user("Ann Okafor", *teams)


def bob(*teams: Group) -> User:
    return make_user("Bob Lindqvist", *teams)


def mira(*teams: Group) -> User:
    return make_user("Mira Sandoval", *teams)


def eve() -> User:
    return make_user("Eve Marlow")
