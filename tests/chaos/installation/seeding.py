"""`python -m tests.chaos.installation.seeding`: the people, their policies and tokens, printed as one JSON object."""

from __future__ import annotations

import json
import os
import sys
from datetime import timedelta
from typing import Any

import django

PERSONAL = ("runs:read", "runs:start", "runs:signal", "gates:read", "gates:decide", "runs:order")
PEOPLE = ("ann", "mira", "bob")  # ann and mira decide, bob starts runs and owns the program's token


def seed() -> dict[str, dict[str, object]]:
    """Make them; return {name: {"user": id, "token": text}}, "program" is its token, "session" ann's."""
    from django.contrib.auth.models import Group, User

    from agents import tokens
    from agents.models.token import FOR_AGENTS
    from approvals.models import Policy, versions
    from checkpoints.actors import SYSTEM
    from config.local.seed import DECIDE, REWIND, START, VIEW, permission

    team, _ = Group.objects.get_or_create(name="Support")
    team.permissions.set(map(permission, (VIEW, DECIDE, START, REWIND)))
    for name, quorum in (("default", 1), ("refunds", 2)):
        if not Policy.objects.filter(team=team, name=name).exists():
            versions.write(
                Policy(team=team, name=name, hourly=None, pause=None, quorum=quorum), by=SYSTEM, groups=[team]
            )
    made: dict[str, dict[str, object]] = {}
    day = timedelta(days=1)
    for name in PEOPLE:
        user, _ = User.objects.get_or_create(username=name)
        user.groups.set([team])
        _, sent = tokens.issue(owner=user, name=name, scopes=list(PERSONAL), lasts=day, team=team, by=SYSTEM)
        made[name] = {"user": user.pk, "token": sent}
    ann, bob = User.objects.get(username="ann"), User.objects.get(username="bob")
    made["ann"]["session"] = session_of(ann)
    scopes = [str(scope) for scope in FOR_AGENTS]
    _, sent = tokens.issue(owner=bob, name="teller", scopes=scopes, lasts=day, team=team, agent="teller", by=SYSTEM)
    made["program"] = {"user": bob.pk, "token": sent}
    return made


def session_of(user: Any) -> str:
    from django.conf import settings
    from django.test import Client

    client = Client()
    client.force_login(user, backend=settings.AUTHENTICATION_BACKENDS[0])
    return client.cookies[settings.SESSION_COOKIE_NAME].value


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    sys.stdout.write(json.dumps(seed()) + "\n")
