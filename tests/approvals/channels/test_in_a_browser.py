"""The installed app and its service worker in a whole Chromium, which shows notifications and takes pushes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, expect

from approvals.channels import vapid
from approvals.models import ChannelAddress, Gate
from approvals.notifications import notifying
from tests.approvals.notifications.conftest import nothing_told_yet  # noqa: F401 - a fixture
from tests.conftest import SharedWeb
from tests.factories import ann, bob, decide, make_card, make_gate, make_policy, make_team
from tests.harness.browser_checks import check_each_look, watched
from tests.harness.examples import first_alone
from tests.harness.waiting import until

from .phone import Phone
from .push_service import FakeBrowser, PushService

pytestmark = pytest.mark.usefixtures("nothing_told_yet")
REGISTER = """async () => {
  await navigator.serviceWorker.register("/service-worker.js");
  await navigator.serviceWorker.ready;
}"""
MOVED = """([old, said]) => {
  registration.pushManager.__proto__.subscribe = async () => ({
    toJSON: () => ({ endpoint: said.endpoint, keys: { p256dh: said.p256dh, auth: said.auth } }),
  });
  const event = new ExtendableEvent("pushsubscriptionchange");
  dispatchEvent(Object.assign(event, { oldSubscription: { endpoint: old } }));
}"""


@pytest.fixture
def base(shared_web: SharedWeb, settings: Any) -> str:
    """Return the address of a web server that pushes by this process's key."""
    private = {"HOLDPOINT_PUSH_SERVICES": "127.0.0.1", "HOLDPOINT_WEBHOOKS_PRIVATE": "127.0.0.0/8"}
    found = shared_web({"HOLDPOINT_VAPID_KEY": settings.HOLDPOINT_VAPID_KEY, **private})
    settings.HOLDPOINT_ORIGINS = [found]
    return found


@pytest.fixture
def asked() -> tuple[Gate, User]:
    """A gate that is open, and Ann, who may decide it."""
    team = make_team()
    reviewer = ann(team)
    policy = make_policy(team, name="default")
    return make_gate(policy=policy, team=team, started_by=bob(team), card=make_card()), reviewer


@pytest.fixture
def phone(whole_browser: Browser, base: str, asked: tuple[Gate, User], its: FakeBrowser) -> Iterator[Phone]:
    made = Phone(whole_browser, base, asked[1], its)
    yield made
    made.context.close()


def test_told_by_push_pressed_and_opened(phone: Phone, asked: tuple[Gate, User], its: FakeBrowser) -> None:
    gate, _ = asked
    phone.turn_on()
    notifying.run_slice()
    [told] = its.read()
    title = "Decision needed: Refund €120.00 to Marit"
    phone.push_until(told, lambda: len(phone.shown()) == 1)
    assert phone.shown()[0][0] == title
    went = phone.press(title)
    assert went == f"opened {phone.base}/gates/{gate.pk}/"
    phone.page.goto(went.removeprefix("opened "))
    expect(phone.page.locator("h1")).to_contain_text("Refund €120.00 to Marit")
    assert Gate.objects.get(pk=gate.pk).status == Gate.Status.OPEN, "it was opened, and nothing was decided"


def test_a_page_that_shows_the_gate_comes_to_the_front_and_ends_the_notification(
    phone: Phone, asked: tuple[Gate, User], its: FakeBrowser
) -> None:
    gate, _ = asked
    phone.turn_on()
    notifying.run_slice()
    [told] = its.read()
    phone.push_until(told, lambda: len(phone.shown()) == 1)
    phone.page.goto(f"/gates/{gate.pk}/")
    until(lambda: phone.shown() == [])
    phone.push_until(told, lambda: len(phone.shown()) == 1)
    assert phone.press(told["title"]) == f"focused {phone.base}/gates/{gate.pk}/"


def test_the_end_takes_the_place_of_the_question(phone: Phone, asked: tuple[Gate, User], its: FakeBrowser) -> None:
    gate, reviewer = asked
    phone.turn_on()
    notifying.run_slice()
    decide(gate, reviewer)
    notifying.run_slice()
    asked_first, ended = its.read()
    phone.push_until(asked_first, lambda: len(phone.shown()) == 1)
    phone.push_until(ended, lambda: "Approved by Ann Okafor." in str(phone.shown()))
    assert len(phone.shown()) == 1


@pytest.mark.parametrize(
    "link", first_alone(["//evil.example/", "https://evil.example/", "javascript:alert(1)", None, 7])
)
def test_nothing_that_is_pushed_leads_elsewhere(phone: Phone, link: Any) -> None:
    phone.turn_on()
    phone.push_until({"title": "Look", "body": "x" * 5000, "link": link}, lambda: len(phone.shown()) >= 1)
    assert len(phone.shown()[0][1]) <= 500
    phone.page.goto("about:blank")
    assert phone.press("Look") == f"opened {phone.base}/"


@pytest.mark.parametrize("told", first_alone(["no JSON", "", "null", "[]"]))
def test_a_push_that_cannot_be_read_is_a_notification_all_the_same(phone: Phone, told: str) -> None:
    """A browser takes the permission away from a site that is pushed to and shows nothing."""
    phone.turn_on()
    phone.push_until(told, lambda: {title for title, *_ in phone.shown()} == {"Holdpoint"})


def test_it_is_turned_off_where_it_was_turned_on_and_when_its_owner_leaves(
    phone: Phone, asked: tuple[Gate, User]
) -> None:
    def on() -> bool:
        return ChannelAddress.objects.usable("push").filter(user=asked[1]).exists()

    phone.turn_on()
    phone.page.locator(".reached-row[data-here]").get_by_role("button", name="Turn off").click()
    expect(phone.page.get_by_role("button", name="Turn on in this browser")).to_be_visible()
    assert not on()
    assert phone.page.evaluate("localStorage.getItem('subscribed')") is None
    phone.turn_on()
    assert on()
    phone.push_until({"title": "Decision needed", "tag": "gate-7"}, lambda: len(phone.shown()) == 1)
    phone.page.locator(".account > summary").click()
    phone.page.get_by_role("button", name="Sign out").click()
    expect(phone.page).to_have_url(f"{phone.base}/accounts/login/")
    assert phone.page.evaluate("localStorage.getItem('subscribed')") is None
    assert phone.shown() == [], "nor does the next person read what is shown"


@pytest.mark.long
def test_what_was_removed_elsewhere_stays_off(phone: Phone, asked: tuple[Gate, User]) -> None:
    phone.turn_on()
    ChannelAddress.objects.filter(user=asked[1], channel="push").lose("removed")
    phone.page.reload()
    expect(phone.page.get_by_role("button", name="Turn on in this browser")).to_be_visible()
    assert not ChannelAddress.objects.usable("push").filter(user=asked[1]).exists()


@pytest.mark.long
def test_a_browser_whose_address_changes_tells_it(
    phone: Phone, asked: tuple[Gate, User], its: FakeBrowser, push_service: PushService
) -> None:
    phone.turn_on()
    moved = push_service.subscribe(vapid.public_key())
    phone.worker.evaluate(MOVED, [its.endpoint, moved.said])
    usable = ChannelAddress.objects.usable("push").filter(user=asked[1])
    until(lambda: [json.loads(each.value)["endpoint"] for each in usable.all()] == [moved.endpoint])


def test_a_new_address_that_came_without_a_connection_is_told_by_the_next_page(
    phone: Phone, asked: tuple[Gate, User], its: FakeBrowser, push_service: PushService
) -> None:
    """Nobody told the site of it: every message went to an address that the push service had ended."""
    phone.turn_on()
    moved = push_service.subscribe(vapid.public_key())
    usable = ChannelAddress.objects.usable("push").filter(user=asked[1])
    before = [each.pk for each in usable.all()]
    phone.worker.evaluate("""() => {
      globalThis.lost = [];
      globalThis.connected = globalThis.fetch;
      globalThis.fetch = async (to) => { globalThis.lost.push(String(to)); throw new TypeError("no connection"); };
    }""")
    phone.worker.evaluate(MOVED, [its.endpoint, moved.said])
    until(lambda: bool(phone.worker.evaluate("globalThis.lost.length")))
    assert [each.pk for each in usable.all()] == before
    phone.worker.evaluate("() => { globalThis.fetch = globalThis.connected; }")
    phone.page.goto("/")
    until(lambda: [json.loads(each.value)["endpoint"] for each in usable.all()] == [moved.endpoint])


def test_it_can_be_installed(phone: Phone) -> None:
    phone.page.goto("/")
    manifest = phone.devtools.send("Page.getAppManifest")
    assert manifest["errors"] == []
    told = json.loads(manifest["data"])
    assert (told["start_url"], told["scope"], told["display"]) == ("/", "/", "standalone")
    faults = phone.devtools.send("Page.getInstallabilityErrors")["installabilityErrors"]
    assert [each["errorId"] for each in faults if each["errorId"] != "in-incognito"] == []


def test_without_a_connection_it_says_so_and_shows_no_gate_as_it_was(
    whole_browser: Browser, start_web: Callable[..., Any], asked: tuple[Gate, User], its: FakeBrowser, settings: Any
) -> None:
    gate, reviewer = asked
    service, base = start_web({"HOLDPOINT_VAPID_KEY": settings.HOLDPOINT_VAPID_KEY})
    phone = Phone(whole_browser, base, reviewer, its)
    phone.page.goto(f"/gates/{gate.pk}/")
    phone.page.evaluate(
        "navigator.serviceWorker.register('/service-worker.js').then(() => navigator.serviceWorker.ready).then(() => 1)"
    )
    phone.page.reload()
    expect(phone.page.locator("h1")).to_contain_text("Refund")
    kept = phone.page.evaluate(
        """async () => (await Promise.all((await caches.keys()).map(async (name) =>
          (await (await caches.open(name)).keys()).map(({ url }) => new URL(url).pathname)))).flat()"""
    )
    assert "/offline/" in kept
    assert all(path == "/offline/" or path.startswith("/static/") for path in kept), kept
    service.kill()
    said = watched(phone.page)
    answer = phone.page.goto(f"/gates/{gate.pk}/")
    assert answer is not None
    assert answer.status == 503
    expect(phone.page.locator("h1")).to_have_text("No connection to Holdpoint")
    assert phone.page.locator("form, input, button").count() == 0, "nothing can be decided"
    assert phone.page.url.endswith(f"/gates/{gate.pk}/"), "to try again is to load the gate"
    assert check_each_look(phone.page, "", [each for each in said if "503" not in each]) == []
    phone.context.close()
