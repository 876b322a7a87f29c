"""The delivery log: each message to a webhook, and each attempt to send it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from django.contrib import admin, messages
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect

from approvals.models import Delivery, Webhook
from checkpoints import actors
from checkpoints.admin.base import ReadOnlyAdmin, TakesOrders, make_page_link, make_since_filter, number_of

from .webhooks import OfOwnTeams, teams_of


class OfWebhook(admin.SimpleListFilter):
    """A filter by webhook."""

    title = "webhook"
    parameter_name = "webhook"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the webhooks of one's teams, removed ones too."""
        known = Webhook.objects.filter(team__in=teams_of(request)).order_by("pk")
        return [(str(webhook.pk), f"{webhook.pk}, {webhook.host}") for webhook in known]

    def queryset(self, request: HttpRequest, queryset: models.QuerySet[Delivery]) -> models.QuerySet[Delivery]:
        """Return the deliveries to the chosen webhook."""
        wanted = number_of(self.value() or "")
        return queryset if wanted is None else queryset.filter(webhook=wanted)


@admin.register(Delivery)
class DeliveryAdmin(OfOwnTeams, TakesOrders, ReadOnlyAdmin):
    """The delivery log: each message with its result."""

    list_display = ("id", "kind", "to", "status", "result", "attempts", "created_at", "next_attempt_at")
    list_filter = (OfWebhook, "status", make_since_filter("created_at"))
    list_select_related = ("webhook",)
    search_fields = ("message",)
    search_help_text = "A message's id, or gate:42"
    readonly_fields = ("page", "last", "body_text")
    change_form_template = "admin/approvals/delivery/change_form.html"
    page = make_page_link("gate", "gate", "gate_id")

    @admin.display(description="To")
    def to(self, delivery: Delivery) -> str:
        """Return the webhook's host."""
        return delivery.webhook.host

    @admin.display(description="Result")
    def last(self, delivery: Delivery) -> str:
        """Return the last result in words."""
        return delivery.why or "-"

    @admin.display(description="The message")
    def body_text(self, delivery: Delivery) -> str:
        """Return the message's body, indented; it is sent without the spaces."""
        return json.dumps(json.loads(bytes(delivery.body)), indent=2)

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Delivery]:
        """Return the deliveries of one's own teams."""
        found: models.QuerySet[Delivery] = super().get_queryset(request)
        return found.filter(webhook__team__in=teams_of(request))

    def get_search_results(
        self, request: HttpRequest, queryset: models.QuerySet[Delivery], term: str
    ) -> tuple[models.QuerySet[Delivery], bool]:
        """Find by the message's id, or the gate."""
        if not term:
            return queryset, False
        gate = number_of(term, "gate:")
        return queryset.filter(**({"gate": gate} if gate else {"message": term})), False

    def get_fields(self, request: HttpRequest, obj: models.Model | None = None) -> list[Any]:
        """Return every field of one delivery."""
        lines = ["kind", "message", "webhook", "page", "status", "last", "attempts", "next_attempt_at"]
        return [*lines, "created_at", "finished_at", "body_text"]

    def orders(self) -> Mapping[str, Callable[..., HttpResponse]]:
        """Take the order to send a message again."""
        return {"<int:delivery>/sendings": self.send_again}

    def send_again(self, request: HttpRequest, delivery: int) -> HttpResponse:
        """Have a message sent once more, under its id."""
        found = get_object_or_404(self.get_queryset(request).select_related("webhook"), pk=delivery)
        if found.send_again(by=actors.of_user(request.user)):
            messages.success(request, "It is sent again, under the same id.")
        else:
            messages.warning(request, "Not sent again: it is already being sent, or its webhook is disabled.")
        return redirect("admin:approvals_delivery_change", found.pk)

    def change_view(self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None) -> Any:
        """Add the delivery's attempts."""
        found = self.get_object(request, object_id)
        attempts = found.log.order_by("-number") if found else ()
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), "attempts": attempts})
