"""Writing a tool: each change is the next version, and gates keep the one that they were opened under."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Group
from django.db import transaction

from approvals.models import Tool
from checkpoints.actors import Actor
from checkpoints.events import event_log
from checkpoints.values import digests


def write(tool: Tool, *, by: Actor) -> None:
    """Store a tool that has no row yet as the next version of its name, with its event.

    The event is written from what is stored, read again.
    """
    with transaction.atomic():
        Group.objects.select_for_update(no_key=True).get(pk=tool.team_id)  # two new ones at once: 1 and 2
        tool.version = Tool.objects.next_version(tool.name, team=tool.team)
        tool.save(force_insert=True)
        stored = Tool.objects.get(pk=tool.pk)
        event_log.record(
            "tool.changed", subject=f"tool:{stored.pk}", by=by, team_id=stored.team_id, version=stored.version,
            data=facts(stored),
        )  # fmt: skip


def facts(tool: Tool) -> dict[str, Any]:
    """Return all that a version says, for its event; of the schema its digest in hex, since it may be long."""
    return {
        "name": tool.name,
        "version": tool.version,
        "title": tool.title,
        "schema": digests.of_value(tool.schema).hex(),
        "pinned": tool.pinned,
        "risk": tool.risk,
        "irreversible": tool.irreversible,
        "undo": tool.undo,
        "used": tool.used,
    }
