"""The administration: policies are written here, as new versions; history is read, never changed.

Users and groups are Django's own pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db import models, transaction
from django.forms import ModelForm
from django.http import HttpRequest

from checkpoints import actors, ledger
from checkpoints.models import Event, Plan, Run, Seal

from .models import Decision, Gate, Grant, Outcome, Policy, Proposal

if TYPE_CHECKING:
    AnyAdmin = admin.ModelAdmin[Any]
    OfPolicy = admin.ModelAdmin[Policy]
else:  # at run time Django's class takes no parameter
    AnyAdmin = OfPolicy = admin.ModelAdmin


class ReadOnlyAdmin(AnyAdmin):
    """History: looked at, never written. Binary columns are left out, pages show what is in them."""

    actions = None
    list_per_page = 50
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody adds history by hand."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """Nobody changes it."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """Nobody deletes it."""
        return False

    def get_fields(self, request: HttpRequest, obj: models.Model | None = None) -> list[Any]:
        """Every column that can be read as text."""
        return [f.name for f in self.opts.fields if not isinstance(f, models.BinaryField)]


@admin.register(Policy)
class PolicyAdmin(OfPolicy):
    """Saving makes the next version; gates keep the version they were opened under."""

    list_display = ("name", "version", "team", "quorum", "reviewing", "separation", "deadline", "on_expiry")
    list_filter = ("team", "name")
    list_select_related = ("team",)
    filter_horizontal = ("groups",)
    fields = ("team", "name", "groups", "quorum", "separation", "deadline", "on_expiry")
    actions = None

    @admin.display(description="Decided by")
    def reviewing(self, policy: Policy) -> str:
        """The groups whose members may decide."""
        return ", ".join(group.name for group in policy.reviewers)

    def get_readonly_fields(self, request: HttpRequest, obj: Policy | None = None) -> tuple[str, ...]:
        """A version of a policy stays the same policy of the same team."""
        return ("team", "name") if obj else ()

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """A gate's policy can be read for as long as the gate."""
        return False

    def save_model(self, request: HttpRequest, obj: Policy, form: ModelForm[Policy], change: bool) -> None:
        """Write what was entered as the next version, and say so in the audit."""
        with transaction.atomic():
            obj.pk, obj.version = None, Policy.objects.next_version(obj.name, team=obj.team)
            obj._state.adding = True
            obj.save(force_insert=True)
            data = {"name": obj.name, "version": obj.version, "quorum": obj.quorum, "on_expiry": obj.on_expiry}
            ledger.record(
                "policy.changed",
                subject=f"policy:{obj.pk}",
                by=actors.of_user(request.user),
                team_id=obj.team_id,
                version=obj.version,
                data=data,
            )


@admin.register(Gate)
class GateAdmin(ReadOnlyAdmin):
    """Gates."""

    list_display = ("id", "title", "team", "status", "risk", "opened_at", "closed_at")
    list_filter = ("status", "kind", "risk", "team")
    list_select_related = ("team",)


@admin.register(Proposal)
class ProposalAdmin(ReadOnlyAdmin):
    """Versions of what was asked."""

    list_display = ("id", "gate", "number", "by", "created_at")
    list_select_related = ("gate", "by")


@admin.register(Decision)
class DecisionAdmin(ReadOnlyAdmin):
    """What reviewers said."""

    list_display = ("id", "gate", "user", "verdict", "counts", "created_at")
    list_filter = ("verdict",)
    list_select_related = ("gate", "user")


@admin.register(Outcome)
class OutcomeAdmin(ReadOnlyAdmin):
    """How gates ended."""

    list_display = ("id", "gate", "kind", "by_name", "created_at")
    list_filter = ("kind",)
    list_select_related = ("gate",)


@admin.register(Grant)
class GrantAdmin(ReadOnlyAdmin):
    """Rights to perform an effect."""

    list_display = ("id", "outcome", "action", "effect")
    list_select_related = ("outcome",)


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    """Runs."""

    list_display = ("id", "title", "team", "status", "next_step", "created_at")
    list_filter = ("status", "team")
    list_select_related = ("team",)


@admin.register(Plan)
class PlanAdmin(ReadOnlyAdmin):
    """Agents' versions."""

    list_display = ("agent", "version", "created_at")


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    """What happened."""

    list_display = ("id", "at", "kind", "subject", "actor_name")


@admin.register(Seal)
class SealAdmin(ReadOnlyAdmin):
    """What makes a rewritten past show."""

    list_display = ("id", "at", "count", "first_id", "last_id")
