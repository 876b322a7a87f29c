"""Signing in by a device code (RFC 8628): a person gives a program a token without typing one.

The program gets two codes. It keeps the long one, and shows the short one with the address of a page. The person, who
is signed in there, enters the short code, sees what would be granted to whom, and confirms it with their password. The
program polls meanwhile with the long code, and gets the token once.

Only digests of the codes are kept. The short one is keyed, since it could be found from a plain digest. A person may
enter five wrong codes in five minutes. They are counted by their events, under the lock of the person's row, so that
many guesses at once count as many. Each move of a request is one guarded UPDATE by the database's clock: it decides
races.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection
from datetime import timedelta

from allauth.core.internal.cryptokit import generate_user_code, normalize_user_code
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Greatest, Now
from django.utils.crypto import constant_time_compare, salted_hmac

from checkpoints import actors
from checkpoints.events import event_log
from checkpoints.models import Event

from . import tokens
from .errors import DeviceRefused, TokenRefused, TooManyGuesses, WrongCode
from .models import DeviceRequest, Token

LASTS = timedelta(minutes=10)  # a request
INTERVAL = timedelta(seconds=5)  # between polls, and what a poll that comes too soon adds (RFC 8628, 3.5)
COLLECTED_WITHIN = timedelta(minutes=1)  # after the confirmation, at least
KEPT = timedelta(days=1)  # after a request expired
GUESSES, GUESSED_WITHIN = 5, timedelta(minutes=5)
Status = DeviceRequest.Status


def begin(
    *, program: str, machine: str, scopes: Collection[str], lasts: timedelta, address: str
) -> tuple[DeviceRequest, str, str]:
    """Store a program's request; return it with the code for the program and the one for the person.

    Requests that expired long ago are removed.
    """
    DeviceRequest.objects.filter(expires_at__lt=Now() - KEPT).delete()
    device, user = secrets.token_urlsafe(32), generate_user_code()
    made = DeviceRequest.objects.create(
        device_digest=_digest(device), user_digest=_keyed(user), program=program, machine=machine, address=address,
        scopes=sorted(set(scopes)), lasts=lasts, interval=INTERVAL, expires_at=Now() + LASTS,
    )  # fmt: skip
    return made, device, user


def find(typed: str, *, by: User) -> DeviceRequest:
    """Find the pending request with this code. Raises WrongCode, and TooManyGuesses, which looks at no code."""
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=by.pk)
        actor = actors.of_user(by)
        wrong = Event.objects.sealable().filter(subject=actor.id, kind="device.mistyped", at__gt=Now() - GUESSED_WITHIN)
        if wrong.count() >= GUESSES:
            raise TooManyGuesses
        digest = _keyed(typed)
        found = _open().filter(user_digest=digest, status=Status.PENDING).first()
        if found is not None and constant_time_compare(bytes(found.user_digest), digest):
            return found
        event_log.record("device.mistyped", subject=actor.id, by=actor)
    raise WrongCode


def pending(number: object) -> DeviceRequest | None:
    """Return the request of this number while a person may still confirm it."""
    if not isinstance(number, int):
        return None
    return _open().filter(pk=number, status=Status.PENDING).first()


def confirm(request: DeviceRequest, *, by: User) -> bool:
    """Let the program have a token of this person; False where it expired, or somebody confirmed or refused it.

    The token is made when the program collects it, so that it is nowhere until then. Raises TokenRefused.
    """
    tokens.check(owner=by, name=str(request), scopes=request.scopes, lasts=request.lasts)
    soon = Greatest(F("expires_at"), Now() + COLLECTED_WITHIN)
    return _settle(request, Status.CONFIRMED, by=by, user=by, expires_at=soon)


def refuse(request: DeviceRequest, *, by: User) -> bool:
    """Refuse the request; False where it expired, or somebody confirmed or refused it."""
    return _settle(request, Status.REFUSED, by=by)


def collect(device: str) -> tuple[Token, str]:
    """Return the token of a confirmed request, made now, and the token itself, which is not kept: once.

    Raises DeviceRefused, whose `code` is the RFC's word for the program.
    """
    digest = _digest(device)
    found = DeviceRequest.objects.select_related("user").filter(device_digest=digest).first()
    if found is None or not constant_time_compare(bytes(found.device_digest), digest):
        raise DeviceRefused("invalid_grant")
    if found.status == Status.CONFIRMED and found.user is not None:
        owner, mine = found.user, _open().filter(pk=found.pk, status=Status.CONFIRMED)
        with transaction.atomic():
            if mine.update(status=Status.USED):
                try:
                    return tokens.issue(
                        owner=owner, name=str(found), scopes=found.scopes, lasts=found.lasts, by=actors.of_user(owner)
                    )
                except TokenRefused as error:  # the account was switched off meanwhile
                    raise DeviceRefused("access_denied", str(error)) from error
    raise DeviceRefused(_why_not(found))


def _why_not(request: DeviceRequest) -> str:
    """Return the RFC's word for a poll that gets no token, and count the poll."""
    waits = _open().filter(pk=request.pk, status=Status.PENDING)
    due = Q(polled_at__isnull=True) | Q(polled_at__lte=Now() - F("interval"))
    if waits.filter(due).update(polled_at=Now()):
        return "authorization_pending"
    if waits.update(polled_at=Now(), interval=F("interval") + INTERVAL):
        return "slow_down"
    request.refresh_from_db(fields=["status"])
    if request.status == Status.CONFIRMED and _open().filter(pk=request.pk).exists():
        return "authorization_pending"  # confirmed since this poll began: the next one gets it
    return {Status.REFUSED: "access_denied", Status.USED: "invalid_grant"}.get(Status(request.status), "expired_token")


def _settle(request: DeviceRequest, status: str, *, by: User, **more: object) -> bool:
    with transaction.atomic():
        if not _open().filter(pk=request.pk, status=Status.PENDING).update(status=status, **more):
            return False
        event_log.record(
            "device.confirmed" if status == Status.CONFIRMED else "device.refused",
            subject=request.subject,
            by=actors.of_user(by),
            data={"scopes": request.scopes, "address": request.address},
        )
    return True


def _open() -> QuerySet[DeviceRequest]:
    return DeviceRequest.objects.filter(expires_at__gt=Now())


def _digest(device: str) -> bytes:
    return hashlib.sha256(device.encode(errors="surrogatepass")).digest()


def _keyed(typed: str) -> bytes:
    """Return the digest of a person's code, however it was typed."""
    plain = normalize_user_code(typed[:40])
    return salted_hmac("holdpoint.device_code", plain.encode(errors="replace"), algorithm="sha256").digest()
