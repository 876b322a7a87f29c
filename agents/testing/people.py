"""The team of a trial and its people: each name is one person, created when the test first uses it."""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from django.contrib.auth.models import Group, Permission, User

from approvals.models import Policy, versions
from checkpoints.access.permissions import DECIDE_GATE, REWIND_RUN, START_RUN, VIEW_RUN
from checkpoints.actors import SYSTEM
from checkpoints.runs.plans import PlanSpec

MAY = (VIEW_RUN, START_RUN, REWIND_RUN, DECIDE_GATE)


def make_team(name: str, specs: Iterable[PlanSpec], *, quorum: int) -> Group:
    """Create a new team, with each policy that the agents' gates name."""
    team = Group.objects.create(name=f"{name or 'Trial'} {secrets.token_hex(4)}")
    for word in MAY:
        app, _, codename = word.partition(".")
        team.permissions.add(Permission.objects.get(content_type__app_label=app, codename=codename))
    asked = {step.policy or "default" for spec in specs for step in spec.steps if step.kind == "gate"}
    for policy in asked | {"default"}:
        versions.write(Policy(team=team, name=policy, quorum=quorum, hourly=None, pause=None), by=SYSTEM)
    return team


def make_person(name: str, team: Group) -> User:
    """Return the member of the team with this name in the test; create it on first use."""
    username = f"{name}-{team.pk}"[:150]
    found = User.objects.filter(username=username).first()
    if found is None:
        found = User.objects.create_user(username, first_name=name.capitalize()[:150])
        found.groups.add(team)
    return found
