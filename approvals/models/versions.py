"""Writes versions of policies and tools: each change is a new one, and gates keep the one they were opened under."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import Max

from checkpoints.actors import Actor
from checkpoints.events import event_log

from .policy import Policy
from .tool import Tool

Row = TypeVar("Row", Policy, Tool)


def newest(row: Row) -> Row:
    """Find the newest version of the same policy or tool, which counts for new gates."""
    return type(row).objects.filter(team=row.team_id, name=row.name).latest("version")


def write(row: Policy | Tool, *, by: Actor, groups: Iterable[Group] = ()) -> None:
    """Store an unsaved policy (decided by `groups`) or tool as the next version of its name, with its event.

    The event is written from the stored row, read again, as the entered values are no proof of what counts.
    """
    with transaction.atomic():
        Group.objects.select_for_update(no_key=True).get(pk=row.team_id)  # the second of two at once is version 2
        versions = type(row).objects.filter(team=row.team_id, name=row.name)
        row.version = (versions.aggregate(newest=Max("version"))["newest"] or 0) + 1
        row.save(force_insert=True)
        if isinstance(row, Policy):
            row.groups.set(groups)
        stored = type(row).objects.get(pk=row.pk)
        event_log.record(
            "policy.changed" if isinstance(row, Policy) else "tool.changed",
            subject=f"{row._meta.model_name}:{stored.pk}",
            by=by,
            team_id=stored.team_id,
            version=stored.version,
            data=stored.facts,
        )
