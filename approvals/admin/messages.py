"""The log of messages, to people and to webhooks, with each attempt to send one; and how the channels fare.

What people were told is not in it, only who and when. A message to a webhook is shown to those who manage the webhooks
of its team, who may have it sent again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from django.contrib import admin, messages
from django.db import models
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect

from approvals.models import ChannelState, Message, Webhook
from approvals.models.notifications.channel_state import number_in
from approvals.notifications import channel, log
from approvals.notifications.building import NoticeKind
from checkpoints import actors
from checkpoints.admin.base import (
    ReadOnlyAdmin,
    TakesOrders,
    make_page_link,
    make_since_filter,
    make_value_filter,
    number_of,
)

from .webhooks import OfOwnTeams, manages_webhooks, teams_of


class OfWebhook(admin.SimpleListFilter):
    """A filter by webhook."""

    title = "webhook"
    parameter_name = "webhook"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the webhooks of one's teams, removed ones too."""
        known = Webhook.objects.filter(team__in=teams_of(request)).order_by("pk")
        return [(str(webhook.pk), f"{webhook.pk}, {webhook.host}") for webhook in known]

    def queryset(self, request: HttpRequest, queryset: models.QuerySet[Message]) -> models.QuerySet[Message]:
        """Return the messages to the chosen webhook."""
        wanted = number_of(self.value() or "")
        return queryset if wanted is None else queryset.filter(webhook=wanted)


@admin.register(Message)
class MessageAdmin(OfOwnTeams, TakesOrders, ReadOnlyAdmin):
    """Each message with its result."""

    list_display = ("id", "kind_name", "by", "to", "status", "result", "attempts", "created_at", "next_attempt_at")
    list_filter = (
        make_value_filter("channel", "channel", lambda: [known.name for known in channel.channels()]),
        OfWebhook,
        "status",
        make_value_filter("kind", "kind", lambda: NoticeKind),
        make_since_filter("created_at"),
    )
    list_select_related = ("user", "address", "webhook")
    search_fields = ("user__username", "=name")
    search_help_text = "A username, the id of a webhook's message, or gate:42"
    readonly_fields = ("page", "kind_name", "by", "to", "result", "body_text")
    change_form_template = "admin/approvals/message/change_form.html"
    page = make_page_link("gate", "gate", "gate_id")

    @admin.display(description="Kind")
    def kind_name(self, message: Message) -> str:
        """Return the kind in words."""
        return log.kind_words(message.kind)

    @admin.display(description="Channel")
    def by(self, message: Message) -> str:
        """Return the name of the channel; webhooks are channels of their own."""
        return "webhook" if message.webhook_id else message.channel

    @admin.display(description="To")
    def to(self, message: Message) -> str:
        """Return the webhook's host, the person's username, or the name of the team's address."""
        if message.webhook:
            return message.webhook.host
        return message.user.get_username() if message.user else message.address.label if message.address else "-"

    @admin.display(description="Result")
    def result(self, message: Message) -> str:
        """Return the last result in words."""
        return log.words(message.word) or "-"

    @admin.display(description="The message")
    def body_text(self, message: Message) -> str:
        """Return a webhook's body, indented; it is sent without the spaces."""
        return json.dumps(json.loads(bytes(message.body or b"null")), indent=2)

    def has_view_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """Admit those who may see the log of messages to people, and those who manage webhooks."""
        return ReadOnlyAdmin.has_view_permission(self, request, obj) or manages_webhooks(request)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return ReadOnlyAdmin.has_module_permission(self, request) or manages_webhooks(request)

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Message]:
        """Return the messages to webhooks of one's own teams, and those to people where one may see them."""
        found: models.QuerySet[Message] = super().get_queryset(request)
        own = Q(webhook__team__in=teams_of(request))
        return found.filter(own | Q(webhook=None) if ReadOnlyAdmin.has_view_permission(self, request) else own)

    def get_search_results(
        self, request: HttpRequest, queryset: models.QuerySet[Message], term: str
    ) -> tuple[models.QuerySet[Message], bool]:
        """Find by the person, the message's id, or the gate."""
        gate = number_of(term, "gate:") if term else None
        return (queryset.filter(gate=gate), False) if gate else super().get_search_results(request, queryset, term)

    def get_fields(self, request: HttpRequest, obj: models.Model | None = None) -> list[Any]:
        """Return every field of one message but its references."""
        lines = ["kind_name", "by", "to", "page", "status", "result", "attempts", "next_attempt_at", "created_at"]
        if isinstance(obj, Message) and number_in(obj.channel):
            return ["name", *lines, "finished_at", "body_text"]
        return [*lines, "finished_at", "opened_at"]

    def orders(self) -> Mapping[str, Callable[..., HttpResponse]]:
        """Take the order to send a webhook's message again."""
        return {"<int:message>/sendings": self.send_again}

    def send_again(self, request: HttpRequest, message: int) -> HttpResponse:
        """Have a message sent once more, under its id."""
        own = self.get_queryset(request).to_webhooks()  # type: ignore[attr-defined]
        found = get_object_or_404(own.select_related("webhook"), pk=message)
        if found.send_again(by=actors.of_user(request.user)):
            messages.success(request, "It is sent again, under the same id.")
        else:
            messages.warning(request, "Not sent again: it is already being sent, or its webhook is disabled.")
        return redirect("admin:approvals_message_change", found.pk)

    def change_view(self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None) -> Any:
        """Add the message's attempts."""
        found = self.get_object(request, object_id)
        rows = found.log.order_by("-number") if found else ()
        attempts = [(row, log.words(row.result)) for row in rows]
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), "attempts": attempts})


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
