"""Browsers that take pushed messages: subscribed by a signed-in person, one row for each.

A browser belongs to whoever subscribed in it last: a second person at the same computer takes it over, and the first is
told nothing there any more. One that its owner removed is not taken back by itself when it shows a page.
"""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from datetime import timedelta

from cryptography.hazmat.primitives.asymmetric import ec
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from approvals.accounts.pushed import SIGNED_OUT
from approvals.models import ChannelAddress
from approvals.outbound import targets
from checkpoints.postgresql.sql import run_sql

from . import vapid
from .web_push import NAME, UNKNOWN

MOST = 20  # browsers of one person; the oldest goes
REMOVED, TAKEN, TOO_MANY, MOVED = "removed", "another_person", "too_many", "moved"  # why one is told nothing more
SHOWN = timedelta(days=30)  # for which a browser that is told nothing more is listed
SECRET = 16  # bytes (RFC 8291, 3.2)
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))"


class SubscriptionRefused(Exception):
    """The browser's subscription cannot be used; the sentence says why."""


class BrowserRemoved(Exception):
    """The person removed this browser; it must be turned on again in it."""


def subscribe(
    user: User, said: Mapping[str, str], *, label: str, again: bool = False, old: str = "", number: int | None = None
) -> ChannelAddress:
    """Store a browser's subscription as this person's. `said`: endpoint, p256dh and auth, as the browser tells them.

    `again`: nobody asked for it; the browser tells what it has. `old`: the endpoint that its push service put this one
    in the place of, which many browsers do not tell; `number`: of the address that its session knows it by. Raises
    SubscriptionRefused and BrowserRemoved.
    """
    endpoint = said.get("endpoint", "")
    check(endpoint, said.get("p256dh", ""), said.get("auth", ""))
    keys = {"p256dh": said["p256dh"], "auth": said["auth"]}
    value = json.dumps({"endpoint": endpoint, "keys": keys, "by": vapid.public_key()}, sort_keys=True)
    mark, before = _mark(endpoint), _mark(old)
    with transaction.atomic():
        run_sql(_LOCK, [f"browser:{mark}"])  # two people at once in one browser: it is the second one's
        here = ChannelAddress.objects.filter(channel=NAME, mark=mark)
        earlier = Q(mark=before) | Q(pk=number if again else None)
        known = ChannelAddress.objects.filter(earlier | Q(mark=mark), channel=NAME, user=user)
        if again and not known.filter(Q(gone_at__isnull=True) | earlier & Q(gone_word=UNKNOWN)).exists():
            raise BrowserRemoved
        known.filter(earlier).exclude(mark=mark).update(gone_at=Now(), gone_word=MOVED)
        here.exclude(user=user).lose(TAKEN)
        made, _created = here.update_or_create(
            channel=NAME, user=user, team=None, mark=mark,
            defaults={"value": value, "label": label[:100], "gone_at": None, "gone_word": ""},
        )  # fmt: skip
        usable = ChannelAddress.objects.usable(NAME).filter(user=user).order_by("-pk").values_list("pk", flat=True)
        ChannelAddress.objects.filter(pk__in=list(usable[MOST:])).lose(TOO_MANY)
    return made


def remove(user: User, browser: int) -> bool:
    """Tell this browser of the person nothing more; False where it is not theirs, or was removed before."""
    return bool(ChannelAddress.objects.usable(NAME).filter(user=user, pk=browser).lose(REMOVED))


def listed(user: User) -> QuerySet[ChannelAddress]:
    """List the person's browsers, with those that were lost lately for a reason that they do not know."""
    known = (REMOVED, TAKEN, MOVED, SIGNED_OUT)
    lately = Q(gone_at__isnull=True) | Q(gone_at__gt=Now() - SHOWN) & ~Q(gone_word__in=known)
    return ChannelAddress.objects.filter(lately, channel=NAME, user=user).order_by(
        F("gone_at").desc(nulls_first=True), "-pk"
    )


def check(endpoint: str, p256dh: str, auth: str) -> None:
    """Raise SubscriptionRefused where nothing could be sent to this subscription."""
    host = targets.host_of(endpoint)
    known = any(host == name or host.endswith(f".{name}") for name in settings.HOLDPOINT_PUSH_SERVICES)
    if not known or targets.fault(endpoint):
        raise SubscriptionRefused(
            f"Nothing is sent to {host}, the push service of this browser. An operator can allow it."
        )
    try:
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), decoded(p256dh))
        if len(decoded(auth)) == SECRET:
            return
    except ValueError:
        pass
    raise SubscriptionRefused("The browser's keys cannot be read. Turn it off and on again.")


def _mark(endpoint: str) -> str:
    return hashlib.sha256(endpoint.encode()).hexdigest()


def decoded(text: str) -> bytes:
    """Decode base64url, with or without padding. Raises ValueError."""
    return urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4))
