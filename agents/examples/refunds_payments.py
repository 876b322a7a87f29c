"""The payment provider's client, and the mail's: the two ways in which the refunds example touches the world.

Both say what their end means for the effect: done, EffectFailed (provably not done), EffectUnknown.
"""

from __future__ import annotations

import smtplib

import httpx
from django.conf import settings
from django.core.mail import EmailMessage

from agents import EffectFailed, EffectUnknown
from agents.http import send

from .refunds_state import Payment, Refund, Sent

TIMEOUT = httpx.Timeout(15.0, connect=5.0)  # seconds
NEVER_ACCEPTED = (
    smtplib.SMTPRecipientsRefused,
    smtplib.SMTPSenderRefused,
    smtplib.SMTPHeloError,
    smtplib.SMTPAuthenticationError,
    smtplib.SMTPNotSupportedError,
)


def refund(wanted: Refund, key: str) -> Payment:
    """Pay a refund; the same key pays it once, however often it is called."""
    body = wanted.model_dump(mode="json", include={"charge", "amount", "currency", "reason"})
    paid = _ask("POST", "/refunds", body, {"Idempotency-Key": key})
    if paid.status != "succeeded":
        raise EffectFailed(f"The refund {paid.id} was {paid.status} after it had been made.")
    return paid


def cancel(refund_id: str) -> Payment:
    """Take a refund back; as often as it is asked."""
    return _ask("POST", f"/refunds/{refund_id}/cancel", {}, {})


def mail(to: str, subject: str, text: str, key: str) -> Sent:
    """Send a mail through Django. Its Message-ID comes from the key, so that a second copy can be told as one."""
    message_id = f"<{key[:32]}@holdpoint.invalid>"  # a longer one would be folded
    message = EmailMessage(subject, text, to=[to], headers={"Message-ID": message_id})
    try:
        message.send()
    except NEVER_ACCEPTED as error:
        raise EffectFailed(f"The mail server refused it: {error}") from error
    except (ConnectionRefusedError, smtplib.SMTPConnectError) as error:
        raise EffectFailed(f"The mail server cannot be reached: {error}", retry=True) from error
    except (OSError, smtplib.SMTPException) as error:
        raise EffectUnknown(f"The mail may have been sent: {error!r}") from error
    return Sent(to=to, message_id=message_id)


def _ask(method: str, path: str, body: dict[str, object], headers: dict[str, str]) -> Payment:
    with httpx.Client(base_url=settings.SANDBOX_URL, timeout=TIMEOUT, trust_env=False) as client:
        answer = send(client, client.build_request(method, path, json=body, headers=headers))
    try:
        facts = answer.json()
        return Payment.model_validate({name: facts[name] for name in Payment.model_fields})
    except (KeyError, TypeError, ValueError) as error:  # it was taken, but nobody can say what came of it
        raise EffectUnknown(f"The provider's answer cannot be read: {error!r}") from error
