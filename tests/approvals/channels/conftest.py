"""Services on this machine that speak each channel's protocol, which the settings of these tests allow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from approvals.channels import vapid
from tests.approvals.webhooks.conftest import new_receiver, receiver
from tests.harness import chromium
from tests.harness.waiting import PATIENCE

from .push_service import FakeBrowser, PushService
from .slack_server import TOKEN, SlackServer

__all__ = ["new_receiver", "receiver"]


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
def whole_browser() -> Iterator[Browser]:
    """Return a Chromium that shows notifications; not for longer, as the shared one is driven from a loop too."""
    path = chromium.whole()
    assert path, chromium.MISSING
    with sync_playwright() as playwright:
        flags = [*chromium.flags(), "--headless=new"]
        running = playwright.chromium.launch(executable_path=path, args=flags)
        expect.set_options(timeout=PATIENCE * 1000)
        yield running
        running.close()


@pytest.fixture
def its(push_service: PushService) -> FakeBrowser:
    """Return the phone's end of a subscription."""
    return push_service.subscribe(vapid.public_key())
