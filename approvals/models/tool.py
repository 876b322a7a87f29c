"""A registered tool: how actions of its name are drawn, and the schema that they have to fit."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.contrib.auth.models import Group
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from approvals.cards.card import IDENTIFIER
from approvals.schema.walk import Schema
from checkpoints.postgresql.prepared_rows import OneOf, prepared_statement
from checkpoints.values import digests

from .gate import Gate


class ToolQuerySet(models.QuerySet["Tool"]):
    """Queries of tools."""

    def current(self) -> ToolQuerySet:
        """Select the newest version of each."""
        return self.order_by("team", "name", "-version").distinct("team", "name")

    def in_use(self) -> ToolQuerySet:
        """Select the version of each that counts, where that one is in use."""
        return self.filter(pk__in=self.filter(counts=True).current().values("pk"), used=True)

    def registered(self, names: Collection[str], *, team: Group) -> dict[str, Tool]:
        """Return the team's tools of these names, by name; one statement, none where nothing is named."""
        if not names:
            return {}
        return {tool.name: tool for tool in _newest(team.pk, sorted(set(names))) if tool.used}


class Tool(models.Model):
    """One version of a tool. A change is a new version; a gate keeps the one that it was opened under."""

    team = models.ForeignKey(Group, on_delete=models.PROTECT, related_name="tools", db_index=False)
    name = models.CharField(
        max_length=100,
        validators=[RegexValidator(rf"\A(?:{IDENTIFIER.pattern})\Z", "Write plain letters, digits and . : _ -")],
        help_text="The name that agents use, such as bank.wire. If the team has it, saving makes its next version.",
    )
    version = models.PositiveIntegerField(default=1)
    title = models.CharField(max_length=200, help_text="What it does, as reviewers read it, such as “Wire money”.")
    schema: models.JSONField[Schema, Schema] = models.JSONField("arguments")  # checked by approvals.tools
    pinned: models.JSONField[list[str], list[str]] = models.JSONField(default=list, blank=True)
    risk = models.CharField(
        max_length=8,
        choices=Gate.Risk.choices,
        default=Gate.Risk.HIGH,
        help_text="The lowest risk of a gate with this tool. An agent can state a higher risk, but not a lower one.",
    )
    irreversible = models.BooleanField("cannot be undone", default=False)
    undo = models.CharField(
        "undone by",
        max_length=100,
        blank=True,
        help_text="What undoes it, as reviewers read it, such as bank.recall. Empty: unknown.",
    )
    used = models.BooleanField(
        "in use",
        default=True,
        help_text="When off, the tool counts as not registered from this version on.",
    )
    # False: milder than the version before, until a second person saves the same; see policy_changes.tool_changes.
    counts = models.BooleanField(default=True, db_default=True, editable=False)
    created_at = models.DateTimeField(db_default=Now())

    objects = ToolQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["team", "name", "version"], name="tool_version_is_taken_once"),
            models.CheckConstraint(condition=Q(irreversible=False) | Q(undo=""), name="tool_is_undone_or_cannot_be"),
        ]

    def __str__(self) -> str:
        return f"{self.name}, version {self.version}"

    @property
    def facts(self) -> dict[str, Any]:
        """Return the version's settings, for its event; the schema as its digest in hex, since it may be long."""
        names = ("name", "version", "title", "pinned", "risk", "irreversible", "undo", "used", "counts")
        return {name: getattr(self, name) for name in names} | {"schema": digests.of_value(self.schema).hex()}


@prepared_statement
def _newest(team: Any, names: Any) -> models.QuerySet[Tool]:
    found = Tool.objects.filter(OneOf(models.F("name"), names), team=team, counts=True)
    return found.order_by("name", "-version").distinct("name")
