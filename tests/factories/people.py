"""The cast: ann reviews, bob is on the team, mira is from Finance, eve is an outsider."""

from __future__ import annotations

import secrets

from django.contrib.auth.models import Group, Permission, User

REVIEWER = ("checkpoints.view_run", "approvals.decide_gate")
MEMBER = (*REVIEWER, "checkpoints.start_run", "checkpoints.rewind_run")
READER = ("checkpoints.view_run",)
EVERYTHING = (
    *MEMBER, "approvals.reveal_secret", "approvals.manage_webhooks", "checkpoints.view_audit", "checkpoints.erase_text",
)  # fmt: skip


def unique(name: str) -> str:
    """Return the name with a tail that no other call gives."""
    return f"{name}-{secrets.token_hex(4)}"


def permissions(names: tuple[str, ...]) -> list[Permission]:
    """Find the permissions of these "app.codename" names."""
    found = []
    for name in names:
        app, codename = name.split(".")
        found.append(Permission.objects.get(content_type__app_label=app, codename=codename))
    return found


def make_team(name: str = "Support", *, may: tuple[str, ...] = MEMBER) -> Group:
    """Make a team whose members hold these permissions."""
    team = Group.objects.create(name=unique(name))
    team.permissions.set(permissions(may))
    return team


def make_user(
    name: str = "Somebody", *teams: Group, may: tuple[str, ...] = (), superuser: bool = False, password: str = ""
) -> User:
    """Make a person in these teams, with permissions of their own; signs in with `password` where one is given."""
    first, _, last = name.partition(" ")
    user = User.objects.create_user(
        unique(first.lower()), f"{first.lower()}@example.org", password or None, first_name=first, last_name=last
    )
    if superuser:
        User.objects.filter(pk=user.pk).update(is_superuser=True, is_staff=True)
        user.refresh_from_db()
    user.groups.set(teams)
    user.user_permissions.set(permissions(may))
    return user


def ann(*teams: Group) -> User:
    """Make Ann Okafor, who reviews."""
    return make_user("Ann Okafor", *teams)


def bob(*teams: Group) -> User:
    """Make Bob Lindqvist, on the team."""
    return make_user("Bob Lindqvist", *teams)


def mira(*teams: Group) -> User:
    """Make Mira Sandoval, from Finance."""
    return make_user("Mira Sandoval", *teams)


def eve() -> User:
    """Make an outsider, in no team."""
    return make_user("Eve Marlow")
