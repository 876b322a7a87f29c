"""Helpers of several examples: clients for the provider and the mail server, and schemas with read-only values."""

from __future__ import annotations

import smtplib
from collections.abc import Sequence
from typing import Any

import httpx
from django.conf import settings
from django.core.mail import EmailMessage
from pydantic import BaseModel

from agents import EffectFailed, EffectUnknown
from agents.effects.http import trusted

NEVER_ACCEPTED = (
    smtplib.SMTPRecipientsRefused,
    smtplib.SMTPSenderRefused,
    smtplib.SMTPHeloError,
    smtplib.SMTPAuthenticationError,
    smtplib.SMTPNotSupportedError,
)
TIMEOUT = httpx.Timeout(15.0, connect=5.0)  # seconds


def provider() -> httpx.Client:
    """Return a client of the provider at SANDBOX_URL."""
    return httpx.Client(base_url=settings.SANDBOX_URL, timeout=TIMEOUT, trust_env=False, verify=trusted())


def deliver(subject: str, text: str, *, key: str, to: Sequence[str] = (), bcc: Sequence[str] = ()) -> str:
    """Hand a mail to the mail server; return its Message-ID, which the key gives: a second copy can be told as one."""
    message_id = f"<{key[:32]}@holdpoint.invalid>"  # a longer one would be folded
    try:
        EmailMessage(subject, text, to=to, bcc=bcc, headers={"Message-ID": message_id}).send()
    except NEVER_ACCEPTED as error:
        raise EffectFailed(f"The mail server refused it: {error}") from error
    except (ConnectionRefusedError, smtplib.SMTPConnectError) as error:
        raise EffectFailed(f"The mail server cannot be reached: {error}", retry=True) from error
    except (OSError, smtplib.SMTPException) as error:
        raise EffectUnknown(f"The mail may have been sent: {error!r}") from error
    return message_id


def fixed(noun: type[BaseModel], **values: str) -> dict[str, Any]:
    """Return the noun's JSON Schema with some values that cannot be others."""
    schema = noun.model_json_schema(mode="serialization")
    for name, value in values.items():
        schema["properties"][name] |= {"const": value}
    return schema
