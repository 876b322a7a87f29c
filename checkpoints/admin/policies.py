"""Retention policies: each save is the next version, and the newest counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.db import models
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from checkpoints import actors
from checkpoints.models import Plan, RetentionPolicy
from checkpoints.retention import policies

from .base import ALL, OfAllTeams, Versioned

if TYPE_CHECKING:
    OfPolicy = admin.ModelAdmin[RetentionPolicy]
    PolicyModelForm = forms.ModelForm[RetentionPolicy]
else:  # at run time Django's classes take no parameter
    OfPolicy, PolicyModelForm = admin.ModelAdmin, forms.ModelForm


class PolicyForm(PolicyModelForm):
    """What is kept. The agent has to be one that there is."""

    def clean_agent(self) -> str:
        """An agent of which a version was ever registered, and that has no policy yet where this is a new one."""
        agent = str(self.cleaned_data["agent"]).strip()
        known = sorted(set(Plan.objects.values_list("agent", flat=True)))
        if agent and agent not in known:
            raise forms.ValidationError(f"There is no agent of that name. Known are: {', '.join(known) or 'none'}.")
        if self.instance._state.adding and RetentionPolicy.objects.filter(agent=agent).exists():
            whose = agent or "all agents without one of their own"
            raise forms.ValidationError(f"There is a policy for {whose} already; change that one.")
        return agent


@admin.register(RetentionPolicy)
class RetentionPolicyAdmin(OfAllTeams, Versioned, OfPolicy):
    """What stays if any rule keeps it. Nothing is removed before a dry run is applied, or the night comes."""

    form = PolicyForm
    actions = None
    list_display = ("whose", "version", "keep_days", "keep_last", "milestones", "enabled")
    fieldsets = (
        (None, {"fields": ("agent", "enabled")}),
        (
            "A checkpoint stays if any of these keeps it",
            {
                "fields": ("keep_days", "keep_last", "keep_gates", "keep_decisions", "keep_finals"),
                "description": (
                    "With neither an age nor a count everything stays. Above all rules stays what is held (named "
                    "checkpoints, open gates, forks' origins, unsettled effects, legal holds), a run's newest "
                    "checkpoint, the states from which effects are undone, and what people changed."
                ),
            },
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[RetentionPolicy]:
        """The versions that count."""
        return RetentionPolicy.objects.current().order_by("agent")

    @admin.display(description="Agent")
    def whose(self, policy: RetentionPolicy) -> str:
        """Whose runs it is about."""
        return policy.agent or "all others (default)"

    @admin.display(description="Milestones kept")
    def milestones(self, policy: RetentionPolicy) -> str:
        """The kinds that stay whatever their age, beside what is named."""
        kinds = {"gates": policy.keep_gates, "decisions": policy.keep_decisions, "finals": policy.keep_finals}
        return ", ".join(["named", *(kind for kind, kept in kinds.items() if kept)])

    def get_readonly_fields(self, request: HttpRequest, obj: RetentionPolicy | None = None) -> tuple[str, ...]:
        """A version of a policy stays the policy of the same agent."""
        return ("agent",) if obj else ()

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Django's own rule, of those who see everything."""
        return request.user.has_perm(ALL) and super().has_add_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """The same."""
        return request.user.has_perm(ALL) and super().has_change_permission(request, obj)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """With the button of a dry run, for those who may."""
        may = {"may_look": request.user.has_perm("checkpoints.prune_checkpoints")}
        return super().changelist_view(request, (extra_context or {}) | may)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Gaps name versions, so these stay; one that is switched off removes nothing."""
        return False

    def save_model(self, request: HttpRequest, obj: RetentionPolicy, form: Any, change: bool) -> None:
        """Write what was entered as the next version, with its event."""
        policies.write(obj, by=actors.of_user(request.user))
        if obj.keep_days is None and obj.keep_last is None:
            messages.info(request, "With neither an age nor a count this policy keeps everything.")
