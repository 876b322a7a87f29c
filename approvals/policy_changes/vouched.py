"""Finds the versions of policies that a change is measured by: those that Holdpoint wrote, by their events.

Whoever has the application's role alone can put a version into the table or alter one, but writes no event that vouches
for it. No gate opens by it; were it a measure, or what a form begins with, one person who saves it put it in force.
"""

from __future__ import annotations

from approvals.models import Policy, versions
from checkpoints.audit import covered_rows


def policies_in_force(team: int, *names: str) -> list[Policy]:
    """Return the team's newest versions that are vouched for, of these names or of all; some may be altered since."""
    newest: dict[str, Policy] = {}
    stored = Policy.objects.filter(team=team, name__in=names) if names else Policy.objects.filter(team=team)
    for version in stored.select_related("team").order_by("name", "-version"):
        if version.name not in newest and _is_vouched(version):
            newest[version.name] = version
    return list(newest.values())


def in_force(policy: Policy) -> Policy | None:
    """Find the newest version of the same team and name that is vouched for."""
    return next(iter(policies_in_force(policy.team_id, policy.name)), None)


def opens_gates(policy: Policy) -> bool:
    """Tell whether gates open by this stored version: nothing newer is in the table, and it is as it was written."""
    return policy.proven and versions.newest(policy) == policy


def _is_vouched(policy: Policy) -> bool:
    """Tell whether Holdpoint wrote this version, though it may have been altered since."""
    return policy.proven or any(event.holds for event in covered_rows.covering_events(list(policy.rows)))
