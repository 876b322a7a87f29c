"""Retention policies: each save is the next version, and the newest is in force."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin
from django.db import models
from django.http import HttpRequest, HttpResponse

from checkpoints import actors
from checkpoints.access.permissions import PRUNE_CHECKPOINTS, VIEW_EVENT, may_everywhere
from checkpoints.models import Plan, RetentionPolicy
from checkpoints.retention import policies

from .base import OfAllTeams, make_column
from .durations import Days, spell_duration
from .versions import NewestVersionsFilter, VersionedAdmin, VersionedForm


class RetentionPolicyForm(VersionedForm[RetentionPolicy]):
    """The form of a retention policy. The agent has to exist, and an age or a count has to be set."""

    OF = ("agent",)
    keep_days = Days(
        label="Keep checkpoints newer than",
        help_text="For example 90 days. Empty: no age rule.",
        least=timedelta(days=1),
        too_short="The shortest age is 1 day.",
    )

    class Meta:
        model = RetentionPolicy
        fields = ("agent", "enabled", "keep_days", "keep_last", "keep_gates", "keep_decisions", "keep_finals")
        labels = {
            "enabled": "Delete by this policy",
            "keep_last": "Always keep the newest checkpoints of each run",
            "keep_gates": "Keep the states that gates showed",
            "keep_decisions": "Keep decisions and the first checkpoint",
            "keep_finals": "Keep the last checkpoint of every branch",
        }
        help_texts = {
            "enabled": "When off, these runs are never pruned.",
            "keep_last": "How many, on all branches together. Empty: no limit by count.",
            "keep_finals": "The newest checkpoint of a run is always kept.",
        }

    def clean_agent(self) -> str:
        """Accept an agent of which a version was ever registered; empty means all others.

        A new policy is refused if the agent has one already.
        """
        agent = str(self.cleaned_data["agent"]).strip()
        known = sorted(set(Plan.objects.values_list("agent", flat=True)))
        if agent and agent not in known:
            words = f"There is no agent of that name. Known are: {', '.join(known) or 'none'}."
            raise forms.ValidationError(words)
        policies.lock(agent)
        if self.instance._state.adding and RetentionPolicy.objects.filter(agent=agent).exists():
            whose = agent or "all agents without one of their own"
            raise forms.ValidationError(f"There is a policy for {whose} already; change that one.")
        return agent

    def lock(self) -> None:
        """Take the lock of the agent's policies."""
        policies.lock(self.instance.agent)

    def clean(self) -> dict[str, Any]:
        """Refuse to overwrite a version that the user has not seen, and a policy that would delete nothing."""
        data = super().clean()
        limits = [data.get(name) for name in ("keep_days", "keep_last")]
        if data.get("enabled") and not any(limits) and not self.errors:
            raise forms.ValidationError(
                "Set an age, a count, or both: without a limit nothing would ever be deleted. To keep everything "
                "of these runs, switch “Delete by this policy” off."
            )
        return data


@admin.register(RetentionPolicy)
class RetentionPolicyAdmin(OfAllTeams, VersionedAdmin[RetentionPolicy]):
    """Policies: a checkpoint stays if any rule keeps it. Removal waits for an applied dry run, or for the night."""

    form = RetentionPolicyForm
    list_display = ("whose", "version", "deletes", "age", "count", "milestones")
    list_filter = (NewestVersionsFilter,)
    ordering = ("agent", "-version")
    deletes = make_column("enabled", "Deletes", boolean=True)
    fieldsets = (
        (None, {"fields": ("agent", "enabled")}),
        (
            "A checkpoint stays if any of these keeps it",
            {
                "fields": ("keep_days", "keep_last", "keep_gates", "keep_decisions", "keep_finals"),
                "description": (
                    "Set an age, a count, or both. Held items are never deleted (named checkpoints, open gates, "
                    "forks' origins, unsettled effects, legal holds), nor a run's newest checkpoint, the states "
                    "that are needed to undo effects, and what people changed."
                ),
            },
        ),
    )

    @admin.display(description="Newer than")
    def age(self, policy: RetentionPolicy) -> str:
        """Show the age up to which checkpoints are kept."""
        return "no age rule" if policy.keep_days is None else spell_duration(timedelta(days=policy.keep_days))

    @admin.display(description="Newest")
    def count(self, policy: RetentionPolicy) -> int | str:
        """Show how many of a run's newest checkpoints are kept."""
        return "no limit by count" if policy.keep_last is None else policy.keep_last

    @admin.display(description="Agent")
    def whose(self, policy: RetentionPolicy) -> str:
        """Name the agent that the policy applies to."""
        return policy.agent or "all others (default)"

    @admin.display(description="Also kept")
    def milestones(self, policy: RetentionPolicy) -> str:
        """List the kinds of checkpoint that stay whatever their age; named ones always do."""
        kinds = {"gates": policy.keep_gates, "decisions": policy.keep_decisions, "finals": policy.keep_finals}
        return ", ".join(["named", *(kind for kind, kept in kinds.items() if kept)])

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Apply Django's own rule to those who see everything."""
        return may_everywhere(request.user, VIEW_EVENT) and super().has_add_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """Apply Django's own rule to those who see everything."""
        return may_everywhere(request.user, VIEW_EVENT) and super().has_change_permission(request, obj)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Add the button that starts a dry run, for those who may."""
        may = {"may_look": may_everywhere(request.user, PRUNE_CHECKPOINTS)}
        return super().changelist_view(request, (extra_context or {}) | may)

    def save_model(self, request: HttpRequest, obj: RetentionPolicy, form: Any, change: bool) -> None:
        """Store the form as the next version, with its event."""
        policies.write(obj, by=actors.of_user(request.user))
