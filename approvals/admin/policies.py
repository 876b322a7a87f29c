"""Policies: saving makes the next version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.db import models, transaction
from django.forms import ModelForm
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from approvals.models import Policy
from checkpoints import actors, ledger

if TYPE_CHECKING:
    OfPolicy = admin.ModelAdmin[Policy]
else:  # at run time Django's class takes no parameter
    OfPolicy = admin.ModelAdmin


@admin.register(Policy)
class PolicyAdmin(OfPolicy):
    """Saving makes the next version; gates keep the version they were opened under."""

    list_display = (
        "name",
        "version",
        "team",
        "quorum",
        "reviewing",
        "separation",
        "deadline",
        "on_expiry",
        "whole_state",
        "gates",
    )
    list_filter = ("team", "name")
    list_select_related = ("team",)
    search_fields = ("name", "team__name")
    ordering = ("team__name", "name", "-version")
    filter_horizontal = ("groups",)
    fields = ("team", "name", "groups", "quorum", "separation", "deadline", "on_expiry", "whole_state")
    actions = None

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Policy]:
        """With the groups that decide, read at once."""
        return super().get_queryset(request).prefetch_related("groups")

    @admin.display(description="Decided by")
    def reviewing(self, policy: Policy) -> str:
        """The groups whose members may decide."""
        return ", ".join(group.name for group in policy.reviewers)

    @admin.display(description="Gates")
    def gates(self, policy: Policy) -> SafeString:
        """Those that were opened under this version."""
        address = reverse("admin:approvals_gate_changelist")
        return format_html('<a href="{}?policy__id__exact={}">gates</a>', address, policy.pk)

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
            data = {
                "name": obj.name, "version": obj.version, "quorum": obj.quorum, "on_expiry": obj.on_expiry,
                "whole_state": obj.whole_state,
            }  # fmt: skip
            ledger.record(
                "policy.changed",
                subject=f"policy:{obj.pk}",
                by=actors.of_user(request.user),
                team_id=obj.team_id,
                version=obj.version,
                data=data,
            )
