"""Milder versions of policies that wait: somebody other than their author confirms or refuses them here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.html import format_html_join

from approvals.models import Policy, PolicyChange
from approvals.policy import required
from approvals.policy.rules import stage_words
from approvals.policy.rules.stage_words import Names
from approvals.policy.rules.written import Directory
from approvals.policy_changes import changes
from approvals.policy_changes.changes import ChangeRefused
from approvals.policy_changes.simulation import simulate
from checkpoints.access.permissions import may_everywhere
from checkpoints.admin.base import ModelAdmin, NothingByHand, TakesOrders, make_value_filter

from .policies import warn_about_policy


@admin.register(PolicyChange)
class PolicyChangeAdmin(NothingByHand, TakesOrders, ModelAdmin[PolicyChange]):
    """Changes that make a policy milder. Whoever may write policies sees all of them."""

    list_display = ("name", "team", "status", "proposed_by", "proposed_at", "ended_by")
    list_filter = (make_value_filter("status", "status", lambda: PolicyChange.Status),)
    list_select_related = ("team", "proposed_by", "ended_by", "base")
    ordering = ("-pk",)
    fields = (
        "name", "team", "status", "proposed_by", "proposed_at", "less", "now", "then", "simulated", "ended_by",
        "ended_at",
    )  # fmt: skip
    readonly_fields = fields
    change_form_template = "admin/approvals/policychange/change_form.html"

    def has_view_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """Let those in who may write policies."""
        return may_everywhere(request.user, changes.MAY)

    def has_module_permission(self, request: HttpRequest) -> bool:
        """List it for those who may write policies."""
        return self.has_view_permission(request)

    def may_order(self, request: HttpRequest) -> bool:
        """Let those confirm and refuse who may write policies."""
        return self.has_view_permission(request)

    def change_view(self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None) -> Any:
        """Show the change; its author may only take it back."""
        row: Any = self.get_object(request, object_id)
        mine = row is not None and row.proposed_by_id == request.user.pk
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), "row": row, "mine": mine})

    @admin.display(description="How it is milder")
    def less(self, change: PolicyChange) -> str:
        """Say how it is milder."""
        return lines(change.reasons)

    @admin.display(description="Version that it changes")
    def now(self, change: PolicyChange) -> str:
        """Say in words what the version asks that it is based on."""
        return in_words(change.base, Names.of(change.base))

    @admin.display(description="Proposed version")
    def then(self, change: PolicyChange) -> str:
        """Say in words what it would ask."""
        return in_words(drafted(change), Directory.now().names)

    @admin.display(description="On the last gates")
    def simulated(self, change: PolicyChange) -> str:
        """Say what it would have asked of the last gates."""
        policy = Policy(team=change.team, name=change.name, **change.values)
        return lines(simulate(policy, groups=change.teams(), people=change.people()).sentences)

    def orders(self) -> Mapping[str, Callable[..., HttpResponse]]:
        """Return the addresses that the buttons post to."""
        return {"<int:change>/confirmations": self.confirm, "<int:change>/refusals": self.refuse}

    def confirm(self, request: HttpRequest, change: int) -> HttpResponse:
        """Write the version, for somebody other than its author."""
        found = get_object_or_404(PolicyChange, pk=change)
        try:
            made = changes.confirm(found, by=_user(request))
        except ChangeRefused as why:
            messages.error(request, str(why))
            return redirect("admin:approvals_policychange_change", found.pk)
        messages.success(request, f"Version {made.version} counts for new gates.")
        warn_about_policy(request, made)
        return redirect("admin:approvals_policy_change", made.pk)

    def refuse(self, request: HttpRequest, change: int) -> HttpResponse:
        """End it without writing a version."""
        found = get_object_or_404(PolicyChange, pk=change)
        try:
            changes.refuse(found, by=_user(request))
            messages.success(request, "The change was refused. The version in force stays.")
        except ChangeRefused as why:
            messages.error(request, str(why))
        return redirect("admin:approvals_policychange_change", found.pk)


def lines(sentences: list[str]) -> str:
    """Write sentences under each other."""
    return format_html_join("", "<p>{}</p>", [(word,) for word in sentences])


def in_words(policy: Policy, names: Names) -> str:
    """Write what a policy asks."""
    return lines(stage_words.policy_lines(required.own(policy), required.rules_of(policy.rules), names))


def drafted(change: PolicyChange) -> Policy:
    """Return the proposed version, unsaved."""
    policy = Policy(team=change.team, name=change.name, **change.values)
    return changes.decided_by(policy, change.teams(), change.people())


def _user(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # noqa: S101 - the administration lets nobody else in
    return request.user
