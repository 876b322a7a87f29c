"""`python -m config.local.seed`: the first accounts, teams and policies, and an inbox made by running the examples.

May be run again: accounts that are there keep their password, and the same keys give the same runs.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import django

ROOT = Path(__file__).resolve().parent.parent.parent
MAILS = ROOT / "agents" / "examples" / "refunds" / "mails"
SHOP = ROOT / "agents" / "examples" / "jobshop" / "instances" / "ta01.txt"
SHELVES = ROOT / "agents" / "examples" / "restock" / "shelves"
SETTLE_WITHIN = 60.0  # seconds for the workers to bring every run to its gate

# Written out: checkpoints.access.permissions, which names them, cannot be imported before Django is set up.
VIEW = "checkpoints.view_run"
START = "checkpoints.start_run"
REWIND = "checkpoints.rewind_run"
DECIDE = "approvals.decide_gate"
AUDIT = "checkpoints.view_audit"
REVEAL = "approvals.reveal_secret"
HOOKS = "approvals.manage_webhooks"

TEAMS = ("Support", "Finance", "Planning")  # each member may view its runs, and some may do more
# Policy, the team that it belongs to, and the teams whose members decide. Agents that are tried out name none.
POLICIES = (
    ("refunds", "Support", ["Support", "Finance"]),
    ("restock", "Support", ["Support", "Finance"]),
    ("rollout", "Support", ["Support"]),
    ("research", "Support", ["Support"]),
    ("assistant", "Support", ["Support"]),
    ("default", "Support", ["Support"]),
    ("schedules", "Planning", ["Planning"]),
    ("default", "Planning", ["Planning"]),
    ("default", "Finance", ["Finance"]),
)
PEOPLE: dict[str, tuple[str, str, list[str], list[str]]] = {
    "ann": ("Ann", "Okafor", ["Support", "Planning"], [DECIDE, START, REWIND, AUDIT, REVEAL, HOOKS]),
    "bob": ("Bob", "Lindqvist", ["Support", "Planning"], [START]),
    "mira": ("Mira", "Sandoval", ["Finance"], [DECIDE, START, REWIND]),
    "lena": ("Lena", "Hartmann", ["Finance"], [DECIDE]),
    "eve": ("Eve", "Marsh", [], []),
}


def main() -> int:
    """Create what is missing; return the exit code."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    make_people(os.environ["HOLDPOINT_DEMO_PASSWORD"])
    make_policies()
    make_runs()
    return 0


def make_people(password: str) -> None:
    """Make the teams, their people and an administrator."""
    from django.contrib.auth.models import Group, User

    for name in TEAMS:
        team, _ = Group.objects.get_or_create(name=name)
        team.permissions.add(permission(VIEW))
    for username, (first, last, teams, permissions) in PEOPLE.items():
        if User.objects.filter(username=username).exists():
            continue
        email = f"{username}@holdpoint.example"
        user = User.objects.create_user(username, email, password, first_name=first, last_name=last)
        user.groups.add(*Group.objects.filter(name__in=teams))
        user.user_permissions.add(*map(permission, permissions))
    if not User.objects.filter(username="admin").exists():
        User.objects.create_superuser("admin", "admin@holdpoint.example", password, first_name="Admin")


def permission(name: str) -> int:
    """Return the id of a permission such as "checkpoints.view_run"."""
    from django.contrib.auth.models import Permission

    app, _, codename = name.partition(".")
    return Permission.objects.get(content_type__app_label=app, codename=codename).pk


def make_policies() -> None:
    """Create policies: one approval within two days, and never by the person who started the run."""
    from datetime import timedelta

    from django.contrib.auth.models import Group

    from approvals.models import Policy, versions
    from checkpoints.actors import SYSTEM

    for name, team, deciding in POLICIES:
        policy = Policy(team=Group.objects.get(name=team), name=name, deadline=timedelta(days=2))
        if not Policy.objects.filter(team=policy.team, name=name).exists():
            versions.write(policy, by=SYSTEM, groups=Group.objects.filter(name__in=deciding))


def make_runs() -> None:
    """Run the served examples on their own inputs, and wait until every run asks somebody or has ended.

    The job shop comes first: it plans for some seconds, in which the mails are read.
    """
    from django.core.management import call_command

    from agents.definition import registry
    from checkpoints.models import Run

    for agent, source, team, key in (
        ("jobshop", SHOP, "Planning", "first-schedule"),
        ("refunds", MAILS, "Support", "first-inbox"),
        ("restock", SHELVES, "Support", "first-shelves"),
    ):
        if agent in registry.names():
            call_command("run_agent", agent, "--input", str(source), "--team", team, "--key", key)
    until = time.monotonic() + SETTLE_WITHIN
    moving = Run.objects.filter(status__in=[Run.Status.QUEUED, Run.Status.RUNNING])
    while moving.exists() and time.monotonic() < until:
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
