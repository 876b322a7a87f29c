"""Makes the people of a benchmark: reviewers with their permissions, their sessions, and agents' tokens."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django.contrib.auth.models import Group, User

REVIEWS = ("view_run", "start_run", "rewind_run", "decide_gate")


def make_team(name: str = "Bench") -> Group:
    """Return the team of that name, whose members may review and whose agents may ask as often as they like."""
    from django.contrib.auth.models import Group, Permission

    from approvals.models import Policy, versions
    from checkpoints.actors import SYSTEM

    team, _ = Group.objects.get_or_create(name=name)
    team.permissions.set(Permission.objects.filter(codename__in=REVIEWS))
    if not Policy.objects.filter(team=team, name="default").exists():
        versions.write(Policy(team=team, name="default", hourly=None, pause=None), by=SYSTEM)
    return team


def make_person(name: str, team: Group) -> User:
    """Return the person of that name, in that team."""
    from django.contrib.auth.models import User

    person, _ = User.objects.get_or_create(username=name)
    person.groups.add(team)
    return person


def session_of(person: User) -> str:
    """Make a session of the person and return its key."""
    from django.conf import settings
    from django.test import Client

    client = Client()
    client.force_login(person, backend=settings.AUTHENTICATION_BACKENDS[0])
    return client.cookies[settings.SESSION_COOKIE_NAME].value


def make_token(owner: User, agent: str) -> str:
    """Return a new token of an agent of the owner's team."""
    from agents import tokens
    from agents.models.token import FOR_AGENTS
    from checkpoints.actors import SYSTEM

    _, sent = tokens.issue(
        owner=owner, name="bench", scopes=[str(each) for each in FOR_AGENTS], lasts=timedelta(days=1),
        team=owner.groups.get(), agent=agent, by=SYSTEM,
    )  # fmt: skip
    return sent


def make_readers(teams: int) -> tuple[dict[str, User], list[int]]:
    """Make Ann in the first team, Mira in the sixth, Eve in one that the crowd is not in; return the crowd's teams."""
    every = [make_team(f"Bench {number}") for number in range(teams + 1)]
    people = {name: make_person(name, every[at]) for name, at in (("ann", 0), ("mira", 5), ("eve", -1))}
    return people, [team.pk for team in every[:-1]]
