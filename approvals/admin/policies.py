"""Policies: saving makes the next version. A milder one waits until somebody other than its author confirms it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.widgets import FilteredSelectMultiple
from django.db import models
from django.forms.utils import ErrorDict
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.html import format_html_join
from django.utils.safestring import mark_safe

from approvals.models import Policy, PolicyChange
from approvals.policy import enough_reviewers, pacing, required
from approvals.policy.rules import stage_words
from approvals.policy.rules.stage_words import Names
from approvals.policy.rules.written import Directory
from approvals.policy_changes import changes
from approvals.policy_changes.changes import ChangeRefused
from approvals.policy_changes.simulation import simulate
from checkpoints.access.permissions import may_everywhere
from checkpoints.admin.base import (
    Mixed,
    ModelAdmin,
    NewestVersionsFilter,
    NothingByHand,
    TakesOrders,
    VersionedAdmin,
    address_of,
    make_column,
    make_list_link,
    make_value_filter,
)
from checkpoints.admin.durations import spell_duration

from .policy_form import PolicyForm

FIELDS = {
    None: ("in_words", "team", "name"),
    "Who decides": ("groups", "people", "quorum", "stages", "separation", "rules", "auto_sample"),
    "How they decide": ("reason_required", "step_up", "step_up_method", "tokens_decide", "bulk_risk", "undo_window"),
    "Until when": (
        "deadline", "on_expiry", "escalation", "calendar", "remind_before", "remind_share", "withdraw_after",
    ),
    "What agents may ask, and what leaves the house": ("whole_state", "registered_only", "hourly", "pause", "leaves"),
}  # fmt: skip


class ForPolicyWriters(Mixed):
    """Pages for those who may write policies."""

    def has_view_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return may_everywhere(request.user, changes.MAY)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return may_everywhere(request.user, changes.MAY)


@admin.register(Policy)
class PolicyAdmin(VersionedAdmin[Policy]):
    """Saving makes the next version; gates keep the version they were opened under, and older ones are only read."""

    list_display = (
        "name", "version", "team", "needed", "reviewing", "may_decide", "four_eyes", "confirmed", "by_token", "within",
        "then", "state_edits", "gates",
    )  # fmt: skip
    list_filter = (NewestVersionsFilter, "team", "name")
    list_select_related = ("team",)
    search_fields = ("name", "team__name")
    ordering = ("team__name", "name", "-version")
    filter_horizontal = ("groups",)
    COUNTS = "New gates use {}."
    form = PolicyForm
    change_form_template = "admin/approvals/policy/change_form.html"
    fieldsets = tuple((title, {"fields": fields}) for title, fields in FIELDS.items())
    needed = make_column("quorum", "Approvals")
    four_eyes = make_column("separation", "Four-eyes", boolean=True)
    confirmed = make_column("step_up", "Confirmed", boolean=True)
    by_token = make_column("tokens_decide", "Tokens", boolean=True)
    state_edits = make_column("whole_state", "Whole state", boolean=True)
    gates = make_list_link("approvals_gate", "gates", policy__id__exact="pk")

    def get_autocomplete_fields(self, request: HttpRequest) -> tuple[str, ...]:
        """Look people up while their name is typed, where the user may see accounts: there may be many thousands."""
        return ("people",) if may_everywhere(request.user, "auth.view_user") else ()

    def get_readonly_fields(self, request: HttpRequest, obj: Policy | None = None) -> tuple[str, ...]:
        """Show the policy in words above its form."""
        return ("in_words", *super().get_readonly_fields(request, obj))

    @admin.display(description="In words")
    def in_words(self, policy: Policy) -> str:
        """Describe what this version asks."""
        if not policy.pk:
            return "Shown here once it is saved."
        return format_html_join(mark_safe("<br>"), "{}", [(line,) for line in policy_lines(policy, Names.of(policy))])

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Policy]:
        """Prefetch the teams that decide."""
        return super().get_queryset(request).prefetch_related("reviewing", "people")

    @admin.display(description="Decided by")
    def reviewing(self, policy: Policy) -> str:
        """Return the teams whose members may decide, and the people who are named."""
        people = (str(person) for person in policy.people.all())
        return ", ".join([*(group.name for group in policy.reviewers), *people])

    @admin.display(description="May decide now")
    def may_decide(self, policy: Policy) -> str:
        """Say how many people may decide, and whether they are too few for the quorum."""
        people: int = getattr(policy, "there", 0)
        return f"{people}, too few" if people < policy.quorum else str(people)

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Count for each policy of the page the people who may decide."""
        page: Any = super().get_changelist_instance(request)
        policies = list(page.result_list)
        for policy, people in zip(
            policies, enough_reviewers.people(*(policy.reviewers for policy in policies)), strict=True
        ):
            policy.there = len(people | {person.pk for person in policy.people.all() if person.is_active})
        page.result_list = policies
        return page

    @admin.display(description="Deadline")
    def within(self, policy: Policy) -> str:
        """Say how long its gates wait for an answer."""
        return "none" if policy.deadline is None else spell_duration(policy.deadline)

    @admin.display(description="Then")
    def then(self, policy: Policy) -> str:
        """Return what happens once the deadline has passed, in one word."""
        return "-" if policy.deadline is None else str(policy.on_expiry)

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Call a group a team, as everywhere."""
        if db_field.name == "groups":
            kwargs["widget"] = FilteredSelectMultiple("teams", is_stacked=False)
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def change_view(self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None) -> Any:
        """Lead from a version that nobody vouches for to the newest one that is."""
        row = self.get_object(request, object_id)
        if row is not None and request.method != "POST":
            newest = self.form.newest_of(row)
            if newest.version < row.version:
                return redirect(address_of(newest))
        return super().change_view(request, object_id, form_url, extra_context)

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        """Say why no gate opens by a policy, and what the entered one would have asked of the last gates."""
        policy = context.get("original")
        context["doubts"] = changes.doubts(policy) if policy else []
        form: Any = context["adminform"].form
        if getattr(form, "simulated", None):
            form._errors = ErrorDict()
            context |= {"errors": None, "simulated": form.simulated, "milder": form.milder}
        return super().render_change_form(request, context, *args, **kwargs)

    def save_model(self, request: HttpRequest, obj: Policy, form: forms.ModelForm[Policy], change: bool) -> None:
        """Write what was entered as the next version, or as a change that waits for a second person."""
        chosen, people = list(form.cleaned_data["groups"]), list(form.cleaned_data["people"])
        written = changes.save(obj, groups=chosen, people=people, by=request.user)  # type: ignore[arg-type]
        if isinstance(written, PolicyChange):
            request.waiting = written  # type: ignore[attr-defined]
            warn_about_policy(request, changes.decided_by(obj, chosen, people))
            obj.pk = written.base_id
            return
        warn_about_policy(request, obj)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Leave the teams and people as they were written with the version: all that its stages and rules may ask."""

    # Nothing is logged of a version that is not written.
    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        return None if hasattr(request, "waiting") else super().log_change(request, obj, message)

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        return None if hasattr(request, "waiting") else super().log_addition(request, obj, message)

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: str | None = None) -> HttpResponse:
        """Lead to the change that waits, where one does: the name may be of a policy that is there."""
        return self._waiting(request) or super().response_add(request, obj, post_url_continue)

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        """Lead to the change that waits, where one does."""
        return self._waiting(request) or super().response_change(request, obj)

    def _waiting(self, request: HttpRequest) -> HttpResponse | None:
        if not hasattr(request, "waiting"):
            return None
        words = f"Not in force yet: it is milder than {request.waiting.base}, so a second person has to confirm it."
        messages.warning(request, words)
        return redirect("admin:approvals_policychange_change", request.waiting.pk)


def warn_about_policy(request: HttpRequest, policy: Policy) -> None:
    """Warn of too few people for a version that was written, and of rules that will stay unclear."""
    own, names = required.own(policy), Names.of(policy)
    rules = required.rules_of(policy.rules)
    lines = [enough_reviewers.tight(policy, needs, names) for needs in [own, *(rule.applied(own) for rule in rules)]]
    lines += pacing.warnings(policy)
    for words in dict.fromkeys(filter(None, lines)):
        messages.warning(request, words)


@admin.register(PolicyChange)
class PolicyChangeAdmin(ForPolicyWriters, NothingByHand, TakesOrders, ModelAdmin[PolicyChange]):
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

    def may_order(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def change_view(self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None) -> Any:
        """Show the change; its author may only take it back."""
        row: Any = self.get_object(request, object_id)
        mine = row is not None and row.proposed_by_id == request.user.pk
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), "row": row, "mine": mine})

    @admin.display(description="How it is milder")
    def less(self, change: PolicyChange) -> str:
        return _paragraphs(change.reasons)

    @admin.display(description="Version that it changes")
    def now(self, change: PolicyChange) -> str:
        """Say in words what the version asks that it is based on."""
        return _paragraphs(policy_lines(change.base, Names.of(change.base)))

    @admin.display(description="Proposed version")
    def then(self, change: PolicyChange) -> str:
        """Say in words what it would ask."""
        draft = changes.decided_by(self._draft(change), change.teams(), change.people())
        return _paragraphs(policy_lines(draft, Directory.now().names))

    @admin.display(description="On the last gates")
    def simulated(self, change: PolicyChange) -> str:
        """Say what it would have asked of the last gates."""
        found = simulate(self._draft(change), groups=change.teams(), people=change.people())
        return _paragraphs(found.sentences)

    def _draft(self, change: PolicyChange) -> Policy:
        return Policy(team=change.team, name=change.name, **change.values)

    def orders(self) -> Mapping[str, Callable[..., HttpResponse]]:
        """Return the addresses that the buttons post to."""
        return {"<int:change>/confirmations": self.confirm, "<int:change>/refusals": self.refuse}

    def confirm(self, request: HttpRequest, change: int) -> HttpResponse:
        """Write the version, for somebody other than its author."""
        found = get_object_or_404(PolicyChange, pk=change)
        try:
            made = changes.confirm(found, by=request.user)  # type: ignore[arg-type]
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
            changes.refuse(found, by=request.user)  # type: ignore[arg-type]
            messages.success(request, "The change was refused. The version in force stays.")
        except ChangeRefused as why:
            messages.error(request, str(why))
        return redirect("admin:approvals_policychange_change", found.pk)


def policy_lines(policy: Policy, names: Names) -> list[str]:
    """List what a version asks, in words."""
    return stage_words.policy_lines(required.own(policy), required.rules_of(policy.rules), names)


def _paragraphs(sentences: list[str]) -> str:
    return format_html_join("", "<p>{}</p>", [(sentence,) for sentence in sentences])
