"""What more than one example uses: mail that is handed to the mail server, and schemas with values that stay."""

from __future__ import annotations

import smtplib
from typing import Any

from django.core.mail import EmailMessage
from pydantic import BaseModel

from agents import EffectFailed, EffectUnknown

NEVER_ACCEPTED = (
    smtplib.SMTPRecipientsRefused,
    smtplib.SMTPSenderRefused,
    smtplib.SMTPHeloError,
    smtplib.SMTPAuthenticationError,
    smtplib.SMTPNotSupportedError,
)


def message_id_of(key: str) -> str:
    """Return the Message-ID of the mail that is sent under this key."""
    return f"<{key[:32]}@holdpoint.invalid>"  # a longer one would be folded


def deliver(message: EmailMessage) -> None:
    """Hand a mail to the mail server."""
    try:
        message.send()
    except NEVER_ACCEPTED as error:
        raise EffectFailed(f"The mail server refused it: {error}") from error
    except (ConnectionRefusedError, smtplib.SMTPConnectError) as error:
        raise EffectFailed(f"The mail server cannot be reached: {error}", retry=True) from error
    except (OSError, smtplib.SMTPException) as error:
        raise EffectUnknown(f"The mail may have been sent: {error!r}") from error


def fixed(noun: type[BaseModel], **values: str) -> dict[str, Any]:
    """Return the noun's JSON Schema with some values that cannot be others."""
    schema = noun.model_json_schema(mode="serialization")
    for name, value in values.items():
        schema["properties"][name] |= {"const": value}
    return schema
