"""Messages to people, and their channels: read-only. They hold who was told and when, not what was said."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db import models
from django.http import HttpRequest

from approvals.models import ChannelState, Notice
from approvals.notifications import log
from approvals.notifications.message import NoticeKind
from checkpoints.admin.base import ReadOnlyAdmin, make_page_link, make_since_filter, make_value_filter, number_of


@admin.register(Notice)
class NoticeAdmin(ReadOnlyAdmin):
    """The log of messages to people."""

    list_display = ("id", "kind_name", "channel", "to", "status", "result", "attempts", "created_at", "next_attempt_at")
    list_filter = (
        "channel",
        "status",
        make_value_filter("kind", "kind", lambda: NoticeKind),
        make_since_filter("created_at"),
    )
    list_select_related = ("user", "address")
    search_fields = ("user__username",)
    search_help_text = "A username, or gate:42"
    readonly_fields = ("page", "kind_name", "to", "result")
    page = make_page_link("gate", "gate", "gate_id")

    @admin.display(description="Kind")
    def kind_name(self, notice: Notice) -> str:
        """Return the kind in words."""
        return log.kind_words(notice.kind)

    @admin.display(description="To")
    def to(self, notice: Notice) -> str:
        """Return the person's username, or the name of the team's address."""
        return notice.user.get_username() if notice.user else notice.address.label if notice.address else "-"

    @admin.display(description="Result")
    def result(self, notice: Notice) -> str:
        """Return the last result in words."""
        return log.words(notice.word) or "-"

    def get_search_results(
        self, request: HttpRequest, queryset: models.QuerySet[Notice], term: str
    ) -> tuple[models.QuerySet[Notice], bool]:
        """Find by the person, or the gate."""
        gate = number_of(term, "gate:") if term else None
        return (queryset.filter(gate=gate), False) if gate else super().get_search_results(request, queryset, term)

    def get_fields(self, request: HttpRequest, obj: models.Model | None = None) -> list[Any]:
        """Return every field of one notice but its references."""
        lines = ["kind_name", "channel", "to", "page", "status", "result", "attempts", "next_attempt_at"]
        return [*lines, "created_at", "finished_at", "opened_at"]


@admin.register(ChannelState)
class ChannelStateAdmin(ReadOnlyAdmin):
    """The state of each channel."""

    list_display = ("channel", "failing_since", "why", "failures", "paused_until")
    readonly_fields = ("why",)

    @admin.display(description="Why")
    def why(self, state: ChannelState) -> str:
        """Return the last failure in words."""
        return log.words(state.word) or "-"

    def get_fields(self, request: HttpRequest, obj: models.Model | None = None) -> list[Any]:
        """Return what an operator needs."""
        return ["channel", "failing_since", "why", "failures", "paused_until", "busy_until"]
