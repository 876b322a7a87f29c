"""Lists the first steps of an installation on the inbox, which approvals shows: it knows no tokens of agents."""

from __future__ import annotations

from typing import Any, NamedTuple

from django import template
from django.contrib.auth.models import Group, User
from django.db.models import Exists
from django.template import Context
from django.urls import reverse

from agents.models import Token
from approvals.models import Policy
from checkpoints.access.permissions import DECIDE_GATE, Right, is_superuser
from checkpoints.models import Run

register = template.Library()


@register.simple_tag(takes_context=True)
def first_steps(context: Context) -> list[FirstStep]:
    """Return the steps for the page's reader; none once all are done."""
    return list_first_steps(context["user"])


class FirstStep(NamedTuple):
    title: str
    hint: str
    address: str
    done: bool


def list_first_steps(reader: Any) -> list[FirstStep]:
    """Return the steps for whoever may take them, a superuser; none once all are done. One statement, and one more."""
    if not is_superuser(reader):
        return []
    app, _dot, codename = DECIDE_GATE.partition(".")
    there = {
        "team": Group.objects.all(),
        "people": Right.objects.filter(app=app, codename=codename),
        "policy": Policy.objects.all(),
        "agent": Token.objects.valid().exclude(agent=""),
        "run": Run.objects.all(),
    }
    found: Any = User.objects.filter(pk=reader.pk).values(**{name: Exists(rows) for name, rows in there.items()})
    done: dict[str, bool] = found.get()
    done["agent"] |= done.pop("run")  # an agent on this server needs no token
    if all(done.values()):
        return []
    team = Group.objects.order_by("pk").first()
    add_team = reverse("admin:auth_group_add")
    return [
        FirstStep(
            "Make a team",
            "Runs and policies belong to a team. Say there what its members may do.",
            add_team,
            done["team"],
        ),
        FirstStep(
            "Say who may decide",
            "Make accounts, add them to the team, and tick “decide at the gates of policies that name the team”.",
            reverse("admin:auth_group_change", args=[team.pk]) if team else add_team,
            done["people"],
        ),
        FirstStep(
            "Write a policy",
            "It says how many people approve, and by when. Agents ask for it by its name.",
            reverse("admin:approvals_policy_add"),
            done["policy"],
        ),
        FirstStep(
            "Make a token for an agent",
            (
                "An agent that runs elsewhere signs in by it. Members of a team with “start runs” make it: join one "
                "yourself. An agent on this server needs none: start a run of it."
            ),
            reverse("tokens"),
            done["agent"],
        ),
    ]
