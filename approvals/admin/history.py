"""Gates, proposals, decisions, outcomes and grants: to look at."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from approvals.models import Decision, Gate, Grant, Outcome, Proposal
from checkpoints.admin.base import (
    ReadOnlyAdmin,
    make_list_link,
    make_page_link,
    make_since_filter,
    number_of,
    words_of,
)


@admin.register(Gate)
class GateAdmin(ReadOnlyAdmin):
    """Gates; found by number, by run, or by the beginning of the title."""

    list_display = ("id", "title_words", "in_run", "team", "step", "status", "risk", "opened_at", "closed_at", "page")
    list_filter = ("status", "kind", "risk", make_since_filter("opened_at"), "team")
    list_select_related = ("team", "run__plan")
    search_fields = ("title",)
    search_help_text = "A gate's number, R-7 for those of a run, or the beginning of a title"
    by_program = {"title": "title_words", "resource": "resource_words", "terms": "term_words"}
    title_words, resource_words, term_words = map(words_of, by_program)
    readonly_fields = (
        "title_words", "resource_words", "term_words", "page", "proposals", "decisions", "outcome_of",
    )  # fmt: skip
    page = make_page_link("gate", "page")
    proposals = make_list_link("approvals_proposal", "its proposals", gate__id__exact="pk")
    decisions = make_list_link("approvals_decision", "its decisions", gate__id__exact="pk")
    outcome_of = make_list_link("approvals_outcome", "its outcome", gate__id__exact="pk")

    def get_search_results(self, request: HttpRequest, queryset: QuerySet[Gate], term: str) -> tuple[Any, bool]:
        """Find by number, run or title."""
        if not term:
            return queryset, False
        run, gate = number_of(term[2:]) if term[:2].upper() == "R-" else None, number_of(term, "gate:")
        if run or gate:
            return queryset.filter(**({"run_id": run} if run else {"pk": gate})), False
        return queryset.filter(title__startswith=term), False


@admin.register(Proposal)
class ProposalAdmin(ReadOnlyAdmin):
    """Proposals: the versions of what a gate asked."""

    list_display = ("id", "gate", "number", "by", "created_at", "page")
    list_filter = (make_since_filter("created_at"),)
    list_select_related = ("gate", "by")
    search_fields = ("=gate__id",)
    search_help_text = "A gate's number"
    page = make_page_link("gate", "page", "gate_id")


@admin.register(Decision)
class DecisionAdmin(ReadOnlyAdmin):
    """Reviewers' decisions; their comments are on the gate's page."""

    list_display = ("id", "gate", "user", "verdict", "counts", "created_at", "page")
    list_filter = ("verdict", "counts", make_since_filter("created_at"))
    list_select_related = ("gate", "user")
    search_fields = ("=gate__id", "=user__username")
    search_help_text = "A gate's number, or a username"
    page = make_page_link("gate", "page", "gate_id")


@admin.register(Outcome)
class OutcomeAdmin(ReadOnlyAdmin):
    """Outcomes of gates."""

    list_display = ("id", "gate", "kind", "by_name", "created_at", "page", "rights")
    list_filter = ("kind", make_since_filter("created_at"))
    list_select_related = ("gate",)
    search_fields = ("=gate__id",)
    search_help_text = "A gate's number"
    readonly_fields = ("page", "rights")
    page = make_page_link("gate", "page", "gate_id")
    rights = make_list_link("approvals_grant", "grants", outcome__id__exact="pk")


@admin.register(Grant)
class GrantAdmin(ReadOnlyAdmin):
    """Rights to perform an effect."""

    list_display = ("id", "outcome", "action", "effect", "used")
    list_select_related = ("outcome__gate",)
    search_fields = ("=effect",)
    search_help_text = "An effect's name"
    readonly_fields = ("used",)
    used = make_list_link("agents_effect", "the effect", grant__id__exact="pk")
