"""Runs, checkpoints, plans, events, seals and verifications: read only."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from checkpoints.audit import reading
from checkpoints.audit.filters import query_of
from checkpoints.events.event import EventTerms
from checkpoints.models import Checkpoint, Event, Plan, Run, Seal, Verification
from checkpoints.values import digests

from .base import (
    ReadOnlyAdmin,
    make_list_link,
    make_page_link,
    make_since_filter,
    make_value_filter,
    number_of,
    words_of,
)


@admin.display(description="digest")
def brief_digest(self: Any, row: Checkpoint | Plan | Seal) -> str:
    """Show the beginning of a row's digest."""
    return digests.shorten_digest(bytes(row.digest))


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    """Runs; found by number, key, or the beginning of the title."""

    list_display = ("number", "title_words", "agent", "team", "status", "next_step", "created_at", "page")
    list_filter = ("status", make_since_filter("created_at"), "team", "plan__agent")
    list_select_related = ("team", "plan")
    search_fields = ("title",)
    search_help_text = "R-7, a key, or the beginning of a title"
    by_program = {
        "title": "title_words", "thread": "thread_words", "reason": "reason_words", "ending_reason": "ending_words",
    }  # fmt: skip
    title_words, thread_words, reason_words, ending_words = map(words_of, by_program)
    readonly_fields = (
        "title_words", "thread_words", "reason_words", "ending_words", "page", "checkpoints", "gates", "effects",
        "events", "legal_holds", "holds",
    )  # fmt: skip
    page = make_page_link("run", "page")
    checkpoints = make_list_link("checkpoints_checkpoint", "its checkpoints", run__id__exact="pk")
    gates = make_list_link("approvals_gate", "its gates", run__id__exact="pk")
    effects = make_list_link("agents_effect", "its effects", run__id__exact="pk")
    legal_holds = make_list_link("checkpoints_hold", "its legal holds", run__id__exact="pk")
    holds = make_list_link("checkpoints_technicalhold", "its technical holds", run__id__exact="pk")
    events = make_list_link("checkpoints_event", "its events", run_id="pk")

    @admin.display(description="run")
    def number(self, run: Run) -> str:
        return f"R-{run.pk}"

    @admin.display(description="agent")
    def agent(self, run: Run) -> str:
        return f"{run.plan.agent} {run.plan.version}"

    def get_search_results(self, request: HttpRequest, queryset: QuerySet[Run], term: str) -> tuple[Any, bool]:
        """Search by number, key or title."""
        if not term:
            return queryset, False
        number = number_of(term, "R-", "r-", "run:")
        named = queryset.filter(pk=number) if number else queryset.filter(title__startswith=term)
        return named | queryset.filter(key=term), False


@admin.register(Checkpoint)
class CheckpointAdmin(ReadOnlyAdmin):
    """Checkpoints without their states, which the run's page shows."""

    list_display = ("seq", "in_run", "kind", "step", "next_step", "attempt", "at", "digest_brief", "id")
    list_filter = ("kind",)
    search_fields = ("id",)
    search_help_text = "A checkpoint's id, or R-7 for those of a run"
    readonly_fields = ("digest_brief",)
    digest_brief = brief_digest

    def get_queryset(self, request: HttpRequest) -> QuerySet[Checkpoint]:
        """Return the checkpoints without their payloads."""
        return super().get_queryset(request).defer("payload", "checksum")

    def get_search_results(self, request: HttpRequest, queryset: QuerySet[Checkpoint], term: str) -> tuple[Any, bool]:
        """Search by id or run."""
        number = number_of(term, "R-", "r-", "run:")
        if number:
            return queryset.filter(run_id=number).order_by("-seq"), False
        try:
            return (queryset.filter(pk=UUID(term)) if term else queryset), False
        except ValueError:
            return queryset.none(), False


@admin.register(Plan)
class PlanAdmin(ReadOnlyAdmin):
    """Agents' versions."""

    list_display = ("agent", "version", "digest_brief", "created_at", "runs")
    list_filter = ("agent",)
    search_fields = ("=agent",)
    readonly_fields = ("digest_brief", "runs")
    digest_brief = brief_digest
    runs = make_list_link("checkpoints_run", "its runs", plan__id__exact="pk")


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    """Events as rows; the audit's page writes them as sentences."""

    list_display = ("id", "at", "kind", "in_run", "subject", "actor_name", "page")
    list_filter = (make_value_filter("kind", "kind", reading.kinds), make_since_filter("at"))
    search_fields = ("subject",)
    search_help_text = "Words of the kind, the subject, the actor's name or the data"
    readonly_fields = ("page", "data_text")

    @admin.display(description="page")
    def page(self, event: Event) -> SafeString:
        return format_html('<a href="{}?subject={}">in the audit</a>', reverse("audit"), event.subject)

    @admin.display(description="data")
    def data_text(self, event: Event) -> str:
        return bytes(event.data).decode(errors="replace")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Event]:
        """Return all events but saved checkpoints, which have a list of their own."""
        queryset: Any = super().get_queryset(request)
        return queryset.sealable()  # type: ignore[no-any-return]

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Also allow filtering by run."""
        return lookup == "run_id" or super().lookup_allowed(lookup, value, request)  # type: ignore[arg-type]

    def get_search_results(self, request: HttpRequest, queryset: QuerySet[Event], term: str) -> tuple[Any, bool]:
        """Search by the events' terms, as the audit does."""
        query = query_of(term)
        return (queryset.annotate(terms=EventTerms()).filter(terms=query) if query else queryset), False


@admin.register(Seal)
class SealAdmin(ReadOnlyAdmin):
    """Seals, which reveal events that were altered, removed or inserted later."""

    list_display = ("id", "at", "count", "first_id", "last_id", "digest_brief")
    list_filter = (make_since_filter("at"),)
    search_fields = ("=id",)
    readonly_fields = ("digest_brief",)
    digest_brief = brief_digest

    def get_queryset(self, request: HttpRequest) -> QuerySet[Seal]:
        """Return the seals without their marks and heads."""
        return super().get_queryset(request).defer("marks", "heads")


@admin.register(Verification)
class VerificationAdmin(ReadOnlyAdmin):
    """Verifications of the seals, and their findings."""

    list_display = ("id", "status", "by_name", "created_at", "finished_at", "seals", "events", "faults")
    list_filter = ("status",)
    search_fields = ("=by",)
    readonly_fields = ("problems_text",)

    @admin.display(description="found")
    def problems_text(self, verification: Verification) -> str:
        return "\n".join(map(str, verification.problems())) or "nothing"
