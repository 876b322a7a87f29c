"""Web Push (RFC 8030): a message to a browser by its maker's push service, which cannot read it (RFC 8291)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

from django.conf import settings

from approvals.accounts import pushed
from approvals.notifications.building import NoticeKind, NoticeMessage, Urgency
from approvals.notifications.channel import NoticeAddress, NoticeChannel, Receipt, Result
from approvals.outbound import sending

from . import vapid
from .texts import facts, heading, receipt, shortened, zone_of

NAME = pushed.CHANNEL
GONE = frozenset({404, 410})  # RFC 8030, 7.3: the subscription has expired or was removed
UNKNOWN = "push_gone"  # the word of a receipt
LONGEST_LIFE = 7 * 24 * 3600  # seconds that a push service keeps a message for a browser that is not there
SHORTEST_LIFE = 60
TITLE, BODY = 120, 400  # characters; a push service takes 4,096 bytes, encrypted
URGENCY = {Urgency.LOW: "low", Urgency.NORMAL: "normal", Urgency.HIGH: "high"}  # RFC 8030, 5.3


class WebPush(NoticeChannel):
    """The channel."""

    name = NAME
    label = "Browser"
    updates = True
    at_once = 20

    @property
    def personal(self) -> bool:
        return True

    def unfit(self) -> str:
        """Say why this installation cannot push."""
        return "" if settings.HOLDPOINT_VAPID_KEY else "HOLDPOINT_VAPID_KEY is not set: `manage.py vapid` makes one."

    def addresses(self, *, people: Collection[int] = (), teams: Collection[int] = ()) -> list[NoticeAddress]:
        """List the browsers that these people subscribed. A team has none."""
        if not people:
            return []
        found = pushed.reachable().of(people=people).order_by("pk")
        return [
            NoticeAddress(
                channel=NAME, value=each.value, label=each.label, id=each.pk, person=each.user_id,
                zone=getattr(each, "zone", "") or "UTC", signed_in=each.signed_in,
            )
            for each in found.annotate(zone=zone_of("user"))
        ]  # fmt: skip

    def send(self, message: NoticeMessage, to: NoticeAddress, *, key: str, earlier: str = "") -> Receipt:
        """Encrypt one message for one browser, and hand it to its push service."""
        subscription: dict[str, Any] = json.loads(to.value)
        if subscription.get("by") != vapid.public_key():
            return Receipt(Result.GONE, "key_changed")
        endpoint = subscription["endpoint"]
        told = payload(message, to.zone)
        body = encrypted(told if to.signed_in else {**told, **without_facts()}, subscription)
        headers = {
            "content-type": "application/octet-stream", "content-encoding": "aes128gcm",
            "ttl": str(life(message, now=datetime.now(UTC))), "urgency": URGENCY[message.urgency],
            **({"topic": message.thread} if message.thread else {}), **vapid.headers(endpoint),
        }  # fmt: skip
        came = receipt(sending.send(endpoint, body, headers), gone=GONE, reference=message.thread)
        return Receipt(Result.GONE, UNKNOWN) if came.result == Result.GONE else came


def payload(message: NoticeMessage, zone: str) -> dict[str, Any]:
    """Return what the service worker reads: static/js/service-worker.js. Pure."""
    told = [message.ended] if message.ended else [f"{each.label}: {each.value}" for each in facts(message, zone)]
    told += [each.subject for each in message.items]
    return {
        "title": shortened(heading(message), TITLE),
        "body": shortened("\n".join(told) or message.reason, BODY),
        "tag": message.thread,
        "link": message.link,
        "ended": bool(message.ended) or message.kind == NoticeKind.DECIDED,
        "urgent": message.urgency == Urgency.HIGH,
    }


def without_facts() -> dict[str, str]:
    """Return what is shown in a browser whose session has expired, where anybody may sit now."""
    return {"title": "Holdpoint has a message for you", "body": "Sign in to read it."}


def life(message: NoticeMessage, *, now: datetime) -> int:
    """Return the seconds for which a message is worth showing: until the gate's deadline, a week at most. Pure."""
    if message.deadline is None or message.ended:
        return LONGEST_LIFE
    return min(max(int((message.deadline - now).total_seconds()), SHORTEST_LIFE), LONGEST_LIFE)


def encrypted(told: Mapping[str, Any], subscription: Mapping[str, Any]) -> bytes:
    """Encrypt for the browser that subscribed."""
    from pywebpush import WebPusher  # noqa: PLC0415 - with aiohttp and requests, which only senders need

    body = json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()
    return bytes(WebPusher(subscription).encode(body)["body"])
