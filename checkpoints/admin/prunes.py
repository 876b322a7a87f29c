"""Retention: the policies, of which each save is the next version, and the prunes under them.

A prune's page shows what would be removed and why the rest stays; it takes the order to remove, and shows its progress.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.paginator import Paginator
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.defaultfilters import filesizeformat
from django.template.response import TemplateResponse

from checkpoints import actors, tasks
from checkpoints.access.permissions import PRUNE_CHECKPOINTS, VIEW_EVENT, may_everywhere
from checkpoints.models import Plan, Prune, RetentionPolicy
from checkpoints.retention import policies, prune_report, prunes
from checkpoints.retention.prunes import PruneRefused

from .base import (
    ModelAdmin,
    NewestVersionsFilter,
    NothingByHand,
    OfAllTeams,
    TakesOrders,
    VersionedAdmin,
    VersionedForm,
    make_column,
)
from .durations import Days, spell_duration

AT_ONCE = 1.5  # seconds of work inside the request; a worker does the rest
PAGE = 50  # runs


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
            raise forms.ValidationError(f"There is no agent of that name. Known are: {', '.join(known) or 'none'}.")
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


@admin.register(Prune)
class PruneAdmin(OfAllTeams, NothingByHand, TakesOrders, ModelAdmin[Prune]):
    """All dry runs and prunes."""

    list_display = ("__str__", "status", "at", "by_name", "shown", "deleted", "not_deleted", "freed_", "finished_at")
    sortable_by = ()
    list_filter = ("status", "nightly")
    shown = make_column("checkpoints", "In the dry run")

    @admin.display(description="Deleted")
    def deleted(self, prune: Prune) -> int | str:
        """Count the checkpoints of the dry run that are deleted."""
        return prune.removed if prune.started_at else "-"

    @admin.display(description="Kept")
    def not_deleted(self, prune: Prune) -> int | str:
        """Count the checkpoints of the dry run that are not deleted."""
        return prune.kept_after_all if prune.started_at else "-"

    @admin.display(description="Freed")
    def freed_(self, prune: Prune) -> str:
        """Show how much space the prune freed."""
        return filesizeformat(prune.freed) if prune.started_at else "-"

    def orders(self) -> Mapping[str, Callable[..., HttpResponse]]:
        """Accept the order to start a dry run, and for one dry run the orders to apply it and to stop."""
        return {"dry-runs": self.look, "<int:prune>/applications": self.apply, "<int:prune>/stops": self.stop}

    def may_order(self, request: HttpRequest) -> bool:
        """Allow those who may prune and see everything."""
        return may_everywhere(request.user, PRUNE_CHECKPOINTS, VIEW_EVENT)

    def look(self, request: HttpRequest) -> HttpResponse:
        """Begin a dry run."""
        prune = prunes.begin(by=actors.of_user(request.user))
        if not prunes.look(prune, seconds=AT_ONCE):
            tasks.ring()
        return redirect("admin:checkpoints_prune_change", prune.pk)

    def apply(self, request: HttpRequest, prune: int) -> HttpResponse:
        """Order the removal of what the dry run showed; refuse if the policies have changed since."""
        found = get_object_or_404(Prune, pk=prune)
        try:
            prunes.order(found, seen=_digest(request.POST.get("seen", "")), by=actors.of_user(request.user))
        except PruneRefused as refused:
            messages.error(request, str(refused))
        else:
            if not prunes.apply(found, seconds=AT_ONCE):
                tasks.ring()
        return redirect("admin:checkpoints_prune_change", found.pk)

    def stop(self, request: HttpRequest, prune: int) -> HttpResponse:
        """Stop the prune; what it has removed stays removed."""
        found = get_object_or_404(Prune, pk=prune)
        try:
            prunes.stop(found, by=actors.of_user(request.user))
        except PruneRefused as refused:
            messages.error(request, str(refused))
        return redirect("admin:checkpoints_prune_change", found.pk)

    def change_view(self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None) -> Any:
        """Show the dry run, or the prune that it became."""
        prune = self.get_object(request, object_id)
        if prune is None or not self.has_view_permission(request, prune):
            return super().change_view(request, object_id, form_url, extra_context)
        pages = Paginator(prune.lines.order_by("-checkpoints", "run_id"), PAGE)
        page = pages.get_page(request.GET.get("p"))
        agents = list(prune_report.by_agent(prune))
        context = self.admin_site.each_context(request) | {
            "opts": self.opts,
            "title": str(prune.get_status_display()),
            "prune": prune,
            "agents": agents,
            "held": prune_report.count_by_hold_kind(prune),
            "stayed": list(prune_report.kept_after_all(prune)),
            "freed": prune_report.freed(prune),
            "files": prune_report.files(prune),
            "waits": prune.signals_and_waits,
            "page": page,
            "lines": list(prune_report.lines(prune, start=max(page.start_index() - 1, 0), limit=PAGE)),
            "runs": sum(agent["runs"] for agent in agents),
            "seen": bytes(prune.digest).hex(),
            "may_apply": may_everywhere(request.user, PRUNE_CHECKPOINTS),
            "changed": changed(prune),
            "since": prune_report.made_since(prune).count() if prune.status == Prune.Status.SHOWN else 0,
            "faults": prune.lines.exclude(fault="").order_by("run_id")[:PAGE],
            "moving": prune.status in (Prune.Status.LOOKING, Prune.Status.APPLYING),
            "share": _share(prune),
        }
        return TemplateResponse(request, "admin/checkpoints/prune/page.html", context)


def changed(prune: Prune) -> bool:
    """Tell whether the policies have changed since the dry run, so that it cannot be applied."""
    now = {agent: policy.pk for agent, policy in policies.current().items()}
    return prune.status == Prune.Status.SHOWN and now != prune.policies


def _share(prune: Prune) -> int:
    """Compute the progress of the dry run or the prune, in percent."""
    if prune.status == Prune.Status.LOOKING:
        return 100 * prune.cursor // max(prune.upto, 1)
    rows = prune.signals_and_waits
    return 100 * (prune.removed + rows["gone"]) // max(prune.checkpoints + rows["shown"], 1)


def _digest(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""
