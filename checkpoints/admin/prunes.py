"""Dry runs and prunes: what would be removed and why the rest stays, the order to remove it, and its progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib import admin, messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.defaultfilters import filesizeformat
from django.template.response import TemplateResponse

from checkpoints import actors, tasks
from checkpoints.access.permissions import PRUNE_CHECKPOINTS, VIEW_EVENT, may_everywhere
from checkpoints.models import Prune
from checkpoints.retention import policies, prune_report, prunes
from checkpoints.retention.errors import PruneRefused

from .base import ModelAdmin, NothingByHand, OfAllTeams, TakesOrders, make_column

AT_ONCE = 1.5  # seconds of work inside the request; a worker does the rest
PAGE = 50  # runs


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
