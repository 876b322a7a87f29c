"""Policies: saving makes the next version."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.contrib.auth.models import Group
from django.db import models, transaction
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from approvals.models import Policy
from checkpoints import actors, ledger

if TYPE_CHECKING:
    OfPolicy = admin.ModelAdmin[Policy]
    PolicyModelForm = forms.ModelForm[Policy]
else:  # at run time Django's classes take no parameter
    OfPolicy = admin.ModelAdmin
    PolicyModelForm = forms.ModelForm
SHORTEST = timedelta(minutes=1)


class PolicyForm(PolicyModelForm):
    """What a version says, each in words that tell what it does."""

    class Meta:
        model = Policy
        fields = ("team", "name", "groups", "quorum", "separation", "deadline", "on_expiry", "whole_state")
        labels = {
            "groups": "Decided by",
            "quorum": "People who must agree",
            "separation": "Not by whoever started the run",
            "on_expiry": "When it has passed",
        }
        help_texts = {
            "name": "The name that agents' gates ask for. One named “default” serves the gates that name none. A name "
            "that the team has already gets its next version.",
            "groups": "The teams whose members may decide. None chosen: the policy's own team.",
            "quorum": "So many different people have to agree on the same version of what is asked.",
            "separation": "Whoever started a run, or owns the token that did, cannot approve at its gates.",
            "deadline": "Days, then hours:minutes:seconds. “2 00:00:00” is two days, “04:00:00” four hours. Empty: a "
            "gate waits for as long as it takes.",
        }

    def clean_deadline(self) -> timedelta | None:
        """A bare number counts seconds, which nobody means: 48 would close a gate before it is read."""
        deadline: timedelta | None = self.cleaned_data["deadline"]
        if deadline is not None and deadline < SHORTEST:
            raise forms.ValidationError(
                "That is less than a minute: a bare number counts seconds. Write 04:00:00 for four hours."
            )
        return deadline


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
    form = PolicyForm
    fields = PolicyForm.Meta.fields
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

    def save_model(self, request: HttpRequest, obj: Policy, form: forms.ModelForm[Policy], change: bool) -> None:
        """Write what was entered as the next version, and say so in the audit."""
        with transaction.atomic():
            Group.objects.select_for_update(no_key=True).get(
                pk=obj.team_id
            )  # two at once: the second becomes the version after
            obj.pk, obj.version = None, Policy.objects.next_version(obj.name, team=obj.team)
            obj._state.adding = True
            obj.save(force_insert=True)
            ledger.record(
                "policy.changed",
                subject=f"policy:{obj.pk}",
                by=actors.of_user(request.user),
                team_id=obj.team_id,
                version=obj.version,
                data=said(obj, form.cleaned_data["groups"]),
            )


def said(policy: Policy, groups: models.QuerySet[Group]) -> dict[str, Any]:
    """All that a version says, for its event. `deadline` is in seconds; empty `groups` are the team's own people."""
    return {
        "name": policy.name,
        "version": policy.version,
        "groups": sorted(group.name for group in groups),
        "quorum": policy.quorum,
        "separation": policy.separation,
        "deadline": None if policy.deadline is None else int(policy.deadline.total_seconds()),
        "on_expiry": policy.on_expiry,
        "whole_state": policy.whole_state,
    }
