"""Services on this machine that speak each channel's protocol, which the settings of these tests allow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from approvals.channels import vapid
from tests.approvals.webhooks.receiver import Receiver

from .push_service import PushService
from .slack_server import TOKEN, SlackServer


@pytest.fixture(autouse=True)
def loopback(settings: Any) -> None:
    settings.HOLDPOINT_WEBHOOKS_PRIVATE = ["127.0.0.0/8"]
    settings.HOLDPOINT_WEBHOOKS_TIMEOUT = 5.0
    settings.HOLDPOINT_PUSH_SERVICES = ["127.0.0.1"]
    settings.HOLDPOINT_VAPID_KEY = vapid.make()


@pytest.fixture
def slack(settings: Any) -> Iterator[SlackServer]:
    """Return a Slack that knows the installation's token."""
    server = SlackServer()
    settings.HOLDPOINT_SLACK_TOKEN, settings.HOLDPOINT_SLACK_API = TOKEN, server.api
    yield server
    server.stop()


@pytest.fixture
def push_service() -> Iterator[PushService]:
    service = PushService()
    yield service
    service.stop()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.stop()
