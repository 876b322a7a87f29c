"""Says which permission somebody lacks and who can give it: the one sentence of every refusal for want of one."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Group

from checkpoints.actors import of_user

from . import permissions as may

# Permission -> what it allows in its holder's teams, as the box on a team's page says. See docs/run.md.
IN_TEAMS: dict[str, str] = {
    may.VIEW_RUN: "read the team's runs, their states and events",
    may.START_RUN: "start runs",
    may.REWIND_RUN: "rewind, edit, fork and cancel runs, and undo what they left behind",
    may.REVEAL_SECRET: "see secrets of the team's runs, one at a time",
    may.DECIDE_GATE: "decide at the gates of policies that name the team",
    may.COMPARE_PEOPLE: "see figures of the team by person",
    may.ADD_REVIEWERS: "add a team to the reviewers of a gate of the team",
    may.MANAGE_WEBHOOKS: "manage the team's webhooks",
    may.VIEW_AUDIT: "see the team's audit, have the seals verified, and export",
    may.ERASE_TEXT: "erase what people wrote from the audit",
}
ASK = "Ask your administrator, who can give it in the administration, under Teams."
MOST = 3  # people who are named


def say_missing_permission(user: Any, permission: str, team: Group | None = None) -> str:
    """Return the refusal for somebody without a permission in a team; without a team, in any of theirs.

    Named are only people whom they may see: members of their teams, and a superuser themselves.
    """
    if (
        team is not None
        and Group.objects.filter(pk=team.pk).filter(pk__in=may.teams_granting(user, permission)).exists()
    ):
        return f"This token does not reach {team.name}. Use another one."
    words, where = IN_TEAMS[permission], team.name if team else "one of your teams"
    if (
        team is None
        and may.teams_granting(user, permission).exists()
        and not may.teams_where(user, permission).exists()
    ):
        return f"This token reaches no team where you have the permission “{words}”. Use another one."
    needed = f"You need the permission “{words}” in {where}."
    if team is not None and not may.own_teams(user).filter(pk=team.pk).exists():
        needed = f"Only members of {where} with the permission “{words}” may do this."
    return f"{needed} {_who_gives(user)}"


def say_no_team(user: Any, permission: str, name: str) -> str:
    """Return the refusal where a team of this name, "" for any, is none in which somebody has a permission."""
    team = next((team for team in may.own_teams(user) if team.name == name), None)
    names = ", ".join(group.name for group in may.teams_by_name(user, permission))
    if name and team is None and names:
        return f"None of your teams has this name. Send one in which you have the permission: {names}."
    return say_missing_permission(user, permission, team)


def _who_gives(user: Any) -> str:
    if may.is_superuser(user) and user.is_staff:
        return "You can give it yourself in the administration, under Teams."
    names = [
        of_user(colleague).name for colleague in may.colleagues_of(user).filter(is_superuser=True, is_staff=True)[:MOST]
    ]
    return f"{' or '.join(names)} can give it in the administration, under Teams." if names else ASK
