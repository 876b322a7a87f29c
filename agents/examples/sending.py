"""The outside world of several examples: the provider at SANDBOX_URL, and the mail server.

Each call returns when the effect is done, else raises EffectFailed (provably not done) or EffectUnknown.
"""

from __future__ import annotations

import smtplib
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import httpx
from django.conf import settings
from django.core.mail import EmailMessage
from pydantic import BaseModel

from agents import EffectFailed, EffectUnknown
from agents.effects.classify_failure import send, trusted

Noun = TypeVar("Noun", bound=BaseModel)
NEVER_ACCEPTED = (
    smtplib.SMTPRecipientsRefused, smtplib.SMTPSenderRefused, smtplib.SMTPHeloError,
    smtplib.SMTPAuthenticationError, smtplib.SMTPNotSupportedError,
)  # fmt: skip
TIMEOUT = httpx.Timeout(15.0, connect=5.0)  # seconds


def open_provider() -> httpx.Client:
    """Return a client of the provider."""
    return httpx.Client(base_url=settings.SANDBOX_URL, timeout=TIMEOUT, trust_env=False, verify=trusted())


def ask_provider(path: str, body: Mapping[str, Any], takes: type[Noun], *, key: str = "") -> Noun:
    """Post to the provider, and return what it made of it; the same key does it once."""
    headers = {"Idempotency-Key": key} if key else {}
    with open_provider() as client:
        return read_facts(send(client, client.build_request("POST", path, json=body, headers=headers)), takes)


def read_facts(answer: httpx.Response, takes: type[Noun]) -> Noun:
    """Return the fields of a noun that an answer holds. Raises EffectUnknown: it was taken, and what came of it?"""
    try:
        facts = answer.json()
        return takes.model_validate({name: facts[name] for name in takes.model_fields})
    except (KeyError, TypeError, ValueError) as error:
        raise EffectUnknown(f"The provider's answer cannot be read: {error!r}") from error


def send_mail(subject: str, text: str, *, key: str, to: Sequence[str] = (), bcc: Sequence[str] = ()) -> str:
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


def fix_values(noun: type[BaseModel], **values: str) -> dict[str, Any]:
    """Return the noun's JSON Schema with some values that cannot be others."""
    schema = noun.model_json_schema(mode="serialization")
    for name, value in values.items():
        schema["properties"][name] |= {"const": value}
    return schema
