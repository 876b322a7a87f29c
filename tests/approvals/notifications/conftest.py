"""A real mail server, and an empty table of notices that begins at the newest event."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from .mail_server import MailServer


@pytest.fixture(autouse=True)
def nothing_told_yet() -> None:
    """What other tests did is told to nobody here."""
    from approvals.models import ChannelState, Message, NoticeCursor
    from tests.harness import horizon

    horizon.reached()
    Message.objects.all().delete()
    ChannelState.objects.all().delete()
    NoticeCursor.objects.all().delete()
    NoticeCursor.current()


@pytest.fixture(autouse=True)
def read_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice reads all events: other processes of this machine hold the horizon back."""
    from approvals.notifications import fan_out
    from tests.harness import horizon

    at_once = fan_out.fan_out

    def patient() -> int:
        horizon.reached()
        return at_once()

    monkeypatch.setattr(fan_out, "fan_out", patient)


@pytest.fixture
def mails(settings: Any) -> Iterator[MailServer]:
    logging.getLogger("mail.log").setLevel(logging.WARNING)
    server = MailServer()
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
    settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
    settings.EMAIL_HOST_USER = settings.EMAIL_HOST_PASSWORD = ""
    yield server
    server.stop()
