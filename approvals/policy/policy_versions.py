"""Writing a policy: each change is the next version, and gates keep the one that they were opened under."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import Group
from django.db import transaction

from approvals.models import Policy
from checkpoints.actors import Actor
from checkpoints.events import event_log


def write(policy: Policy, groups: Iterable[Group], *, by: Actor) -> None:
    """Store a policy that has no row yet as the next version of its name, decided by `groups`, with its event.

    The event is written from what is stored, read again: what was entered is not proof of what counts.
    """
    with transaction.atomic():
        Group.objects.select_for_update(no_key=True).get(pk=policy.team_id)  # two new ones at once: 1 and 2
        policy.version = Policy.objects.next_version(policy.name, team=policy.team)
        policy.save(force_insert=True)
        policy.groups.set(groups)
        stored = Policy.objects.get(pk=policy.pk)
        event_log.record(
            "policy.changed", subject=f"policy:{stored.pk}", by=by, team_id=stored.team_id, version=stored.version,
            data=facts(stored),
        )  # fmt: skip


def facts(policy: Policy) -> dict[str, Any]:
    """Return a version's settings, for its event. `deadline` is in seconds; empty `groups`: the team's own people."""
    return {
        "name": policy.name,
        "version": policy.version,
        "groups": sorted(policy.groups.values_list("name", flat=True)),
        "quorum": policy.quorum,
        "separation": policy.separation,
        "reason_required": policy.reason_required,
        "step_up": policy.step_up,
        "deadline": None if policy.deadline is None else int(policy.deadline.total_seconds()),
        "on_expiry": policy.on_expiry,
        "withdraw_after": None if policy.withdraw_after is None else int(policy.withdraw_after.total_seconds()),
        "whole_state": policy.whole_state,
        "registered_only": policy.registered_only,
        "hourly": policy.hourly,
        "pause": None if policy.pause is None else int(policy.pause.total_seconds()),
    }
