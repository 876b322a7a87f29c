"""Webhooks, for those who manage the team's: make, rotate, switch, test and remove them; their delivery log."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from ninja import P, PathEx, Query, Router
from pydantic import Field

from agents.api.protocol.answers import Page, Paging, answer_json
from agents.api.protocol.auth import actor_of, require_scope
from agents.api.protocol.idempotency_keys import Key, do_once
from agents.api.protocol.problems import Fault, answer_problem
from agents.api.protocol.schemas import ApiSchema, Order, one_of, optional_one_of, or_null, refuse_unknown
from agents.models import TokenScope
from approvals.models import Message, MessageAttempt, Webhook
from approvals.models.webhook import TooManyWebhooks, WebhookRefused
from approvals.outbound import targets
from approvals.views.access import reader_of
from approvals.webhooks import outbox
from checkpoints.access.permissions import MANAGE_WEBHOOKS, say_no_team, teams_where
from checkpoints.actors import Actor

NONE = "No such webhook"
router = Router(tags=["webhooks"], auth=require_scope(TokenScope.HOOKS))
WebhookId = PathEx[int, P(title="Webhook", description="The webhook's number.", example=3)]
DELIVERY = "/{int:webhook_id}/deliveries/{int:delivery_id}"
DELIVERED = "delivered"  # a message that was sent
STATUSES = (Message.Status.PENDING, DELIVERED, Message.Status.FAILED)
DISABLED = "The webhook is disabled: enable it first by POST to its enablings"


class NewWebhook(Order):
    """An address that is to get messages about a team's gates."""

    example: ClassVar = {
        "url": "https://hooks.example.com/holdpoint", "team": "Support", "agent": "refunds",
        "purpose": "The shop's chat",
    }  # fmt: skip

    url: str = Field(max_length=targets.LONGEST)
    """Where messages are sent, by POST: https, on the public internet."""
    team: str = Field("", max_length=150)
    """The team whose gates it reports; empty if you manage only one."""
    agent: str = Field("", max_length=100)
    """An agent's name, to report only its gates."""
    purpose: str = Field("", max_length=100)
    """What it is for."""


class WebhookAnswer(ApiSchema):
    """An outside address that gets messages about a team's gates."""

    example: ClassVar = {
        "id": 3, "url": "https://hooks.example.com/holdpoint", "team": "Support", "agent": "refunds",
        "purpose": "The shop's chat", "status": "enabled", "reason": None, "failing_since": None, "former_until": None,
        "created_by": "Ann Okafor", "created_at": "2026-03-02T09:15:04.120931Z",
    }  # fmt: skip

    id: int
    """The webhook's number."""
    url: str
    """Where messages are sent."""
    team: str = Field(validation_alias="team.name")
    """The team whose gates it reports."""
    agent: str
    """The agent whose gates it reports; empty: all."""
    purpose: str
    """What it is for."""
    status: Annotated[str, one_of(Webhook.Status)]
    """Whether it is enabled."""
    reason: Annotated[Literal["by_hand", "gone", "failing", "secret_lost"] | None, or_null]
    """Why it is disabled: by_hand, gone (it answered 410), failing (for days), secret_lost (rotate it). Null while it
    is enabled."""
    failing_since: datetime | None
    """The first failure since the last delivery; null: none."""
    former_until: datetime | None
    """Until when messages are also signed with the secret before the last rotation."""
    created_by: str
    """Who made it."""
    created_at: datetime
    """When it was made."""

    @staticmethod
    def resolve_created_by(webhook: Webhook) -> str:
        return webhook.by_name or webhook.by


class WebhookWithSecret(WebhookAnswer):
    """A webhook that has a new secret."""

    example: ClassVar = {"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="}

    secret: str
    """The secret with which the receiver checks signatures (Standard Webhooks). Shown only this once; empty in an
    answer that is repeated for its key. A rotation makes a new one."""

    @staticmethod
    def resolve_secret(webhook: Webhook, context: dict[str, str]) -> str:
        return context["secret"]


class WebhookPage(Page):
    """Some webhooks, in the order in which they were made."""

    items: list[WebhookAnswer]
    """The webhooks."""


@router.get("", response=WebhookPage, summary="List webhooks")
def list_webhooks(request: HttpRequest, asked: Query[Paging]) -> HttpResponse:
    """Return the webhooks of the teams in which you manage them, without removed ones."""
    found = Webhook.objects.managed_by(reader_of(request)).filter(pk__gt=asked.place).order_by("pk")
    return WebhookPage.answer_rows(found.select_related("team"), asked)


@router.post("", response={201: WebhookWithSecret}, summary="Make a webhook")
def create_webhook(request: HttpRequest, order: NewWebhook, key: Key) -> HttpResponse:
    """Send an address a message for each gate of a team that opens or ends, with numbers and names alone."""
    mine = teams_where(reader_of(request), MANAGE_WEBHOOKS).order_by("name")
    teams = [group for group in mine if order.team in ("", group.name)]
    if not teams:
        return answer_problem(request, 403, say_no_team(reader_of(request), MANAGE_WEBHOOKS, order.team))
    if len(teams) > 1:
        named = ", ".join(team.name for team in teams)
        words = f"Name the team whose gates you mean: {named}."
        return answer_problem(request, 422, words, [Fault(parameter="/team", detail="is missing")])

    def make(by: Actor) -> tuple[Webhook, str]:
        return Webhook.objects.make(team=teams[0], by=by, url=order.url, agent=order.agent, purpose=order.purpose)

    try:
        return _secret(request, key, make, status=201)
    except TooManyWebhooks as refused:
        fault = Fault(parameter="/team", detail="has as many webhooks as it may have")
        return answer_problem(request, 422, str(refused), [fault])
    except WebhookRefused as refused:
        return answer_problem(request, 422, str(refused), [Fault(parameter="/url", detail="is not an allowed address")])


@router.get("/{int:webhook_id}", response=WebhookAnswer, summary="Read a webhook")
def get_webhook(request: HttpRequest, webhook_id: WebhookId) -> HttpResponse:
    """Return one webhook of a team in which you manage them."""
    return answer_json(WebhookAnswer.from_orm(webhook_or_404(request, webhook_id)))


@router.post("/{int:webhook_id}/rotations", response={200: WebhookWithSecret}, summary="Rotate a webhook's secret")
def rotate_webhook(request: HttpRequest, webhook_id: WebhookId, key: Key) -> HttpResponse:
    """Give it another secret. For a day messages are signed with the old one, too."""
    webhook = webhook_or_404(request, webhook_id)

    def rotated(by: Actor) -> tuple[Webhook, str]:
        if not (secret := webhook.rotate(by=by)):
            raise Http404(NONE)
        return webhook, secret

    return _secret(request, key, rotated, status=200)


@router.post("/{int:webhook_id}/disablings", response=WebhookAnswer, summary="Disable a webhook")
def disable_webhook(request: HttpRequest, webhook_id: WebhookId, key: Key) -> HttpResponse:
    """Send nothing more; queued messages are kept. A disabled webhook stays as it is."""
    return _ordered(request, webhook_id, key, lambda hook, by: hook.disable(Webhook.Reason.BY_HAND, by=by))


@router.post("/{int:webhook_id}/enablings", response=WebhookAnswer, summary="Enable a webhook")
def enable_webhook(request: HttpRequest, webhook_id: WebhookId, key: Key) -> HttpResponse:
    """Send again, queued messages too. An enabled webhook stays as it is."""
    return _ordered(request, webhook_id, key, lambda hook, by: hook.enable(by=by))


@router.post("/{int:webhook_id}/removals", response=WebhookAnswer, summary="Remove a webhook")
def remove_webhook(request: HttpRequest, webhook_id: WebhookId, key: Key) -> HttpResponse:
    """Send nothing ever again; queued messages fail."""
    return _ordered(request, webhook_id, key, lambda hook, by: hook.remove(by=by))


def webhook_or_404(request: HttpRequest, number: int) -> Webhook:
    """Return the webhook, if the reader manages it."""
    found = Webhook.objects.managed_by(reader_of(request)).filter(pk=min(number, 2**63 - 1))
    webhook = found.select_related("team").first()
    if webhook is None:
        raise Http404(NONE)
    return webhook


def _ordered(request: HttpRequest, number: int, key: str, order: Callable[[Webhook, Actor], bool]) -> HttpResponse:
    webhook = webhook_or_404(request, number)

    def do() -> HttpResponse:
        order(webhook, actor_of(request))
        webhook.refresh_from_db()
        return answer_json(WebhookAnswer.from_orm(webhook))

    return do_once(request, key, do)


def _secret(
    request: HttpRequest, key: str, order: Callable[[Actor], tuple[Webhook, str]], *, status: int
) -> HttpResponse:
    """Answer with a secret. The answer kept for its key has none: a secret is in no table."""
    done: list[tuple[Webhook, str]] = []

    def do() -> HttpResponse:
        webhook, secret = order(actor_of(request))
        webhook.refresh_from_db()
        done.append((webhook, secret))
        return _answer_webhook(webhook, "", status)

    kept = do_once(request, key, do)
    return _answer_webhook(*done[0], status) if done else kept


def _answer_webhook(webhook: Webhook, secret: str, status: int) -> HttpResponse:
    answer = WebhookWithSecret.from_orm(webhook, context={"secret": secret})
    return answer_json(answer, http_status=status, location=f"/api/webhooks/{webhook.pk}" if status == 201 else "")


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
    message: str = Field(validation_alias="name")
    """The message's id, `webhook-id`: the same at each attempt."""
    kind: str
    """The event: gate.opened, gate.closed, gate.expired, gate.withdrawn, webhook.test."""
    gate: int | None = Field(validation_alias="gate_id")
    """The gate; null for a test."""
    status: Annotated[str, one_of(STATUSES)]
    """Whether it was delivered."""
    result: str = Field(validation_alias="word")
    """The result of the last attempt: delivered, gone, http_503, timeout and the like; empty: none yet."""
    attempts: int
    """How often it was sent."""
    next_attempt_at: datetime | None
    """When it is sent next; null if it is not sent again."""
    created_at: datetime
    """When the event happened."""
    finished_at: datetime | None
    """When it was delivered or given up."""

    @staticmethod
    def resolve_status(message: Message) -> str:
        return DELIVERED if message.status == Message.Status.SENT else message.status


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
    def resolve_seconds(attempt: MessageAttempt) -> float | None:
        return attempt.duration.total_seconds() if attempt.duration is not None else None


class DeliveryHead(DeliverySummary):
    """One message to a webhook, with each attempt."""

    log: list[AttemptAnswer]
    """Each attempt, the newest first."""

    @staticmethod
    def resolve_log(delivery: Message) -> QuerySet[MessageAttempt]:
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

    status: Annotated[str, refuse_unknown("", *STATUSES)] = Field("", json_schema_extra=optional_one_of(*STATUSES))
    """Only those with this status."""


@router.get("/{int:webhook_id}/deliveries", response=DeliveryPage, summary="List deliveries")
def list_deliveries(request: HttpRequest, webhook_id: WebhookId, asked: Query[DeliveryFilter]) -> HttpResponse:
    """Return the messages of a webhook, sent and queued, newest first."""
    webhook = webhook_or_404(request, webhook_id)
    found = Message.objects.filter(webhook=webhook, pk__lt=asked.before).order_by("-pk")
    if asked.status:
        found = found.filter(status=Message.Status.SENT if asked.status == DELIVERED else asked.status)
    return DeliveryPage.answer_rows(found, asked)


@router.get(DELIVERY, response=DeliveryAnswer, summary="Read a delivery")
def get_delivery(request: HttpRequest, webhook_id: WebhookId, delivery_id: DeliveryId) -> HttpResponse:
    """Return one message, with each attempt to send it."""
    return _answer_delivery(_delivery_or_404(request, webhook_id, delivery_id))


@router.post(DELIVERY + "/sendings", response=DeliveryAnswer, summary="Send a message again")
def send_delivery_again(request: HttpRequest, webhook_id: WebhookId, delivery_id: DeliveryId, key: Key) -> HttpResponse:
    """Send a message that arrived or failed once more, under its id, with as many attempts as a new one."""
    delivery = _delivery_or_404(request, webhook_id, delivery_id)

    def do() -> HttpResponse:
        delivery.send_again(by=actor_of(request))
        delivery.refresh_from_db()
        return _answer_delivery(delivery)

    if not Webhook.objects.enabled().filter(pk=webhook_id).exists():
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
        return _answer_delivery(Message.objects.get(pk=made.pk), http_status=201, location=location)

    return do_once(request, key, do)


def _delivery_or_404(request: HttpRequest, webhook: int, number: int) -> Message:
    found = Message.objects.filter(webhook=webhook_or_404(request, webhook), pk=min(number, 2**63 - 1))
    delivery = found.select_related("webhook").first()
    if delivery is None:
        raise Http404("No such delivery")
    return delivery


def _answer_delivery(delivery: Message, **how: Any) -> HttpResponse:
    return answer_json(DeliveryHead.from_orm(delivery), body=bytes(delivery.body or b""), **how)
