"""A phone in a whole Chromium, which shows notifications, takes pushes and has passkeys.

The one thing that is not there is the browser maker's push service: its end of a subscription is the fake browser's,
and what this installation sent there is handed to the worker as the browser would hand it on.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from django.contrib.auth.models import User
from playwright.sync_api import Browser, BrowserContext, CDPSession, Page, Worker, expect

from tests.conftest import sign_in
from tests.harness.waiting import PATIENCE, until

from .push_service import FakeBrowser

# The browser's end of a subscription, which its maker's push service would hold.
SUBSCRIBED = """(said) => {
  const subscription = {
    endpoint: said.endpoint, options: {},
    toJSON: () => ({ endpoint: said.endpoint, keys: { p256dh: said.p256dh, auth: said.auth } }),
    unsubscribe: async () => { localStorage.removeItem("subscribed"); return true; },
  };
  const key = () => Uint8Array.from(JSON.parse(localStorage.getItem("subscribed"))).buffer;
  PushManager.prototype.getSubscription = async () => {
    if (!localStorage.getItem("subscribed")) return null;
    subscription.options.applicationServerKey = key();
    return subscription;
  };
  PushManager.prototype.subscribe = async ({ applicationServerKey, userVisibleOnly }) => {
    if (!userVisibleOnly) throw new Error("silent");
    localStorage.setItem("subscribed", JSON.stringify([...applicationServerKey]));
    return subscription;
  };
}"""
PRESS = """async (title) => {
  const [notification] = (await registration.getNotifications()).filter((each) => each.title === title);
  const went = new Promise((done) => {
    clients.openWindow = async (url) => done(`opened ${url}`);
    WindowClient.prototype.focus = async function () { done(`focused ${this.url}`); };
  });
  dispatchEvent(new NotificationEvent("notificationclick", { notification }));
  return went;
}"""
READY = "navigator.serviceWorker.getRegistration('/').then((known) => Boolean(known?.active))"
SHOWN = "async () => (await registration.getNotifications()).map(({ title, body, tag }) => [title, body, tag])"


class Phone:
    """Ann's profile of the browser, in which notifications are allowed. Without a user nobody is signed in."""

    def __init__(self, browser: Browser, base: str, user: User | None, its: FakeBrowser) -> None:
        size: Any = {"width": 390, "height": 844}
        self.context: BrowserContext = browser.new_context(base_url=base, viewport=size, has_touch=True)
        self.context.grant_permissions(["notifications"], origin=base)
        self.context.set_default_timeout(PATIENCE * 1000)
        self.context.add_init_script(f"({SUBSCRIBED})({json.dumps(its.said)})")
        if user is not None:
            sign_in(self.context, user, base)
        self.base = base
        self.page: Page = self.context.new_page()
        self.devtools: CDPSession = self.context.new_cdp_session(self.page)
        self.registrations: list[dict[str, Any]] = []
        self.devtools.on(
            "ServiceWorker.workerRegistrationUpdated", lambda told: self.registrations.extend(told["registrations"])
        )
        self.devtools.send("ServiceWorker.enable")

    def turn_on(self) -> None:
        self.page.goto("/account/notifications/")
        self.page.get_by_role("button", name="Turn on in this browser").click()
        expect(self.page.locator(".reached-row[data-here]")).to_contain_text("this browser")
        expect(self.page.locator("[data-when=on]")).to_be_visible()

    @property
    def worker(self) -> Worker:
        [found] = self.context.service_workers
        return found

    def push(self, told: Any) -> None:
        """Hand a message to the worker, as the browser does when its push service sends one."""
        until(lambda: self.page.evaluate(READY), what="the worker is there")
        number = self.registrations[-1]["registrationId"]
        self.devtools.send(
            "ServiceWorker.deliverPushMessage",
            {
                "origin": self.base,
                "registrationId": number,
                "data": told if isinstance(told, str) else json.dumps(told),
            },
        )

    def push_until(self, told: Any, condition: Callable[[], bool]) -> None:
        """Push, again where the browser's protocol lost it, as it does before a worker runs; a push service waits."""
        for _attempt in range(20):
            self.push(told)
            with suppress(AssertionError):
                until(condition, within=1)
                return
        raise AssertionError(f"shown: {self.shown()}")

    def press(self, title: str) -> str:
        """Press a notification; return what that did: `opened` or `focused`, and the address."""
        went: str = self.worker.evaluate(PRESS, title)
        return went

    def shown(self) -> list[list[str]]:
        found: list[list[str]] = self.worker.evaluate(SHOWN)
        return found
