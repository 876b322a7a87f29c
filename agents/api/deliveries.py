"""The delivery log over the API: each message to a webhook with its attempts, and sending it again."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from ninja import P, PathEx, Query, Router
from pydantic import Field

from agents.api.protocol import (
    ApiSchema,
    Key,
    Page,
    Paging,
    actor_of,
    answer_json,
    answer_problem,
    do_once,
    one_of,
    optional_one_of,
    refuse_unknown,
    require_scope,
)
from agents.models import TokenScope
from approvals.models import Attempt, Delivery
from approvals.webhooks import outbox

from .webhooks import WebhookId, webhook_or_404

router = Router(tags=["webhooks"], auth=require_scope(TokenScope.HOOKS))
DISABLED = "The webhook is disabled: enable it first by POST to its enablings"
DeliveryId = PathEx[int, P(title="Delivery", description="The delivery's number.", example=12)]


class DeliverySummary(ApiSchema):
    """One message to a webhook."""

    example: ClassVar = {
        "id": 12, "message": "msg_0190b2c46f3e7c1a9d2b5e8f7a6c4d10", "kind": "gate.closed", "gate": 42,
        "status": "delivered", "result": "delivered", "attempts": 1, "next_attempt_at": None,
        "created_at": "2026-03-02T09:15:04.120931Z", "finished_at": "2026-03-02T09:15:05.004211Z",
    }  # fmt: skip

    id: int
    """The delivery's number."""
    message: str
    """The message's id, `webhook-id`: the same at each attempt."""
    kind: str
    """The event: gate.opened, gate.closed, gate.expired, gate.withdrawn, webhook.test."""
    gate: int | None = Field(validation_alias="gate_id")
    """The gate; null for a test."""
    status: Annotated[str, one_of(Delivery.Status)]
    """Whether it was delivered."""
    result: str
    """The result of the last attempt: delivered, gone, http_503, timeout and the like; empty: none yet."""
    attempts: int
    """How often it was sent."""
    next_attempt_at: datetime | None
    """When it is sent next; null if it is not sent again."""
    created_at: datetime
    """When the event happened."""
    finished_at: datetime | None
    """When it was delivered or given up."""


class AttemptAnswer(ApiSchema):
    """One attempt to send a message."""

    example: ClassVar = {
        "number": 1, "at": "2026-03-02T09:15:04.880210Z", "result": "http_503", "status": 503, "seconds": 0.21,
    }  # fmt: skip

    number: int
    """Its number, from 1."""
    at: datetime
    """When it was begun."""
    result: str
    """Its result; lost: the worker died, and nobody knows whether the message arrived. Empty: on its way."""
    status: int | None
    """The status of the answer; null: none came."""
    seconds: float | None
    """How long it took."""

    @staticmethod
    def resolve_seconds(attempt: Attempt) -> float | None:
        return attempt.duration.total_seconds() if attempt.duration is not None else None


class DeliveryHead(DeliverySummary):
    """One message to a webhook, with each attempt."""

    log: list[AttemptAnswer]
    """Each attempt, the newest first."""

    @staticmethod
    def resolve_log(delivery: Delivery) -> QuerySet[Attempt]:
        return delivery.log.order_by("-number")


class DeliveryAnswer(DeliveryHead):
    """One message to a webhook, with each attempt and its body."""

    example: ClassVar = {
        "body": {"type": "webhook.test", "timestamp": "2026-03-02T09:15:04.120931+00:00", "data": {"webhook": 3}},
    }  # fmt: skip

    body: dict[str, Any]
    """The message, byte for byte as it is sent."""


class DeliveryPage(Page):
    """Some deliveries, newest first."""

    items: list[DeliverySummary]
    """The deliveries."""


class DeliveryFilter(Paging):
    """A filter of deliveries."""

    example: ClassVar = {"status": "failed"}

    status: Annotated[str, refuse_unknown("", *Delivery.Status.values)] = Field(
        "", json_schema_extra=optional_one_of(*Delivery.Status.values)
    )
    """Only those with this status."""


@router.get("/{int:webhook_id}/deliveries", response=DeliveryPage, summary="List deliveries")
def list_deliveries(request: HttpRequest, webhook_id: WebhookId, asked: Query[DeliveryFilter]) -> HttpResponse:
    """Return the messages of a webhook, sent and queued, newest first."""
    found = Delivery.objects.filter(webhook=webhook_or_404(request, webhook_id)).order_by("-pk")
    if asked.status:
        found = found.filter(status=asked.status)
    if asked.cursor:
        found = found.filter(pk__lt=asked.place)
    return DeliveryPage.answer_rows(found, asked)


@router.get("/{int:webhook_id}/deliveries/{int:delivery_id}", response=DeliveryAnswer, summary="Read a delivery")
def get_delivery(request: HttpRequest, webhook_id: WebhookId, delivery_id: DeliveryId) -> HttpResponse:
    """Return one message, with each attempt to send it."""
    return _answer_delivery(_delivery_or_404(request, webhook_id, delivery_id))


@router.post(
    "/{int:webhook_id}/deliveries/{int:delivery_id}/sendings", response=DeliveryAnswer, summary="Send a message again"
)
def send_delivery_again(request: HttpRequest, webhook_id: WebhookId, delivery_id: DeliveryId, key: Key) -> HttpResponse:
    """Send a message that arrived or failed once more, under its id, with as many attempts as a new one."""
    delivery = _delivery_or_404(request, webhook_id, delivery_id)

    def do() -> HttpResponse:
        delivery.send_again(by=actor_of(request))
        delivery.refresh_from_db()
        return _answer_delivery(delivery)

    if delivery.webhook.status != delivery.webhook.Status.ENABLED:
        return answer_problem(request, 409, f"{DISABLED}, then send this again.")
    return do_once(request, key, do)


@router.post("/{int:webhook_id}/tests", response={201: DeliveryAnswer}, summary="Send a test message")
def test_webhook(request: HttpRequest, webhook_id: WebhookId, key: Key) -> HttpResponse:
    """Send the message `webhook.test`, which reports nothing, to try out the receiver."""
    webhook = webhook_or_404(request, webhook_id)
    if webhook.status != webhook.Status.ENABLED:
        return answer_problem(request, 409, f"{DISABLED}, then test it.")

    def do() -> HttpResponse:
        made = outbox.test(webhook, by=actor_of(request))
        if made is None:
            return answer_problem(request, 409, f"{DISABLED}, then test it.")
        location = f"/api/webhooks/{webhook.pk}/deliveries/{made.pk}"
        return _answer_delivery(Delivery.objects.get(pk=made.pk), http_status=201, location=location)

    return do_once(request, key, do)


def _delivery_or_404(request: HttpRequest, webhook: int, number: int) -> Delivery:
    found = Delivery.objects.filter(webhook=webhook_or_404(request, webhook), pk=min(number, 2**63 - 1))
    delivery = found.select_related("webhook").first()
    if delivery is None:
        raise Http404("No such delivery")
    return delivery


def _answer_delivery(delivery: Delivery, **how: Any) -> HttpResponse:
    return answer_json(DeliveryHead.from_orm(delivery), body=bytes(delivery.body), **how)
