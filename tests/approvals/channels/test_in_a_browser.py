"""The installed app and its service worker in a whole Chromium, and the number of gates that wait."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, BrowserContext, Page, expect

from approvals.channels import vapid
from approvals.models import ChannelAddress, Gate
from approvals.notifications import delivering
from tests.approvals.notifications.conftest import nothing_told_yet  # noqa: F401 - a fixture
from tests.conftest import SharedWeb
from tests.factories import ann, bob, decide, make_card, make_gate, make_policy, make_team
from tests.harness.browser_checks import check, is_live, watched
from tests.harness.waiting import until

from .phone import Phone
from .push_service import FakeBrowser, PushService

pytestmark = pytest.mark.usefixtures("nothing_told_yet")
MOVED = """([old, said]) => {
  registration.pushManager.__proto__.subscribe = async () => ({
    toJSON: () => ({ endpoint: said.endpoint, keys: { p256dh: said.p256dh, auth: said.auth } }),
  });
  const event = new ExtendableEvent("pushsubscriptionchange");
  dispatchEvent(Object.assign(event, { oldSubscription: { endpoint: old } }));
}"""
PUSHED = [("no JSON", "//evil.example/"), ("", "https://evil.example/"), ("null", "javascript:alert(1)"), ("[]", None)]
NewContext = Callable[..., BrowserContext]


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


def test_told_by_push_pressed_opened_and_told_of_the_end_in_its_place(
    phone: Phone, asked: tuple[Gate, User], its: FakeBrowser
) -> None:
    gate, reviewer = asked
    phone.turn_on()
    delivering.run_slice()
    [told] = its.read()
    title = "Decision needed: Refund €120.00 to Marit"
    phone.push_until(told, lambda: len(phone.shown()) == 1)
    assert phone.shown()[0][0] == title
    went = phone.press(title)
    assert went == f"opened {phone.base}/gates/{gate.pk}/"
    phone.page.goto(went.removeprefix("opened "))
    expect(phone.page.locator("h1")).to_contain_text("Refund €120.00 to Marit")
    assert Gate.objects.get(pk=gate.pk).status == Gate.Status.OPEN, "it was opened, and nothing was decided"
    until(lambda: phone.shown() == [], what="a page that shows the gate ends the notification")
    phone.push_until(told, lambda: len(phone.shown()) == 1)
    assert phone.press(title) == f"focused {phone.base}/gates/{gate.pk}/", "and comes to the front"
    phone.page.goto("/account/notifications/")
    phone.push_until(told, lambda: len(phone.shown()) == 1)
    decide(gate, reviewer)
    until(lambda: phone.shown() == [], what="any page that hears of the end ends the notification")
    delivering.run_slice()
    phone.push_until(told, lambda: len(phone.shown()) == 1)
    phone.push_until(its.read()[-1], lambda: "Approved by Ann Okafor." in str(phone.shown()))
    assert len(phone.shown()) == 1

    manifest = phone.devtools.send("Page.getAppManifest")
    assert manifest["errors"] == []
    told = json.loads(manifest["data"])
    assert (told["start_url"], told["scope"], told["display"]) == ("/", "/", "standalone")
    faults = phone.devtools.send("Page.getInstallabilityErrors")["installabilityErrors"]
    assert [each["errorId"] for each in faults if each["errorId"] != "in-incognito"] == [], "it can be installed"


@pytest.mark.long
@pytest.mark.parametrize(("unreadable", "link"), PUSHED)
def test_a_push_that_cannot_be_read_is_a_notification_all_the_same_and_none_leads_elsewhere(
    phone: Phone, unreadable: str, link: Any
) -> None:
    """A browser takes the permission away from a site that is pushed to and shows nothing."""
    phone.turn_on()
    phone.push_until(unreadable, lambda: {title for title, *_ in phone.shown()} == {"Holdpoint"})
    pushed = {"title": "Look", "body": "x" * 5000, "link": link}
    phone.push_until(pushed, lambda: "Look" in {title for title, *_ in phone.shown()})
    assert max(len(body) for _, body, _ in phone.shown()) <= 500
    phone.page.goto("about:blank")
    assert phone.press("Look") == f"opened {phone.base}/"


@pytest.mark.long
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
def test_a_new_address_is_told_at_once_and_one_that_came_without_a_connection_by_the_next_page(
    phone: Phone, asked: tuple[Gate, User], its: FakeBrowser, push_service: PushService
) -> None:
    """Nobody told the site of it: every message went to an address that the push service had ended."""
    phone.turn_on()
    first, moved = (push_service.subscribe(vapid.public_key()) for _ in range(2))
    usable = ChannelAddress.objects.usable("push").filter(user=asked[1])
    phone.worker.evaluate(MOVED, [its.endpoint, first.said])
    until(lambda: [json.loads(each.value)["endpoint"] for each in usable.all()] == [first.endpoint])
    before = [each.pk for each in usable.all()]
    phone.worker.evaluate("""() => {
      globalThis.lost = [];
      globalThis.connected = globalThis.fetch;
      globalThis.fetch = async (to) => { globalThis.lost.push(String(to)); throw new TypeError("no connection"); };
    }""")
    phone.worker.evaluate(MOVED, [first.endpoint, moved.said])
    until(lambda: bool(phone.worker.evaluate("globalThis.lost.length")))
    assert [each.pk for each in usable.all()] == before
    phone.worker.evaluate("() => { globalThis.fetch = globalThis.connected; }")
    phone.page.goto("/")
    until(lambda: [json.loads(each.value)["endpoint"] for each in usable.all()] == [moved.endpoint])


@pytest.mark.long
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
    assert check(phone.page, "", [each for each in said if "503" not in each]) == []
    phone.context.close()


# What the browser is asked to show on the app's icon, which only an installed one has.
BADGES = """
globalThis.badges = [];
navigator.setAppBadge = async (count) => { badges.push(count); };
navigator.clearAppBadge = async () => { badges.push(0); };
"""


def icon(page: Page) -> str:
    found: str = page.evaluate("document.querySelector('link[rel=icon]').href")
    return found.rpartition("/")[2].partition(".")[0]


def badge(page: Page) -> Any:
    return page.evaluate("badges.at(-1)")


def test_it_goes_with_the_gates_that_wait_and_whoever_signs_out_leaves_no_number(new_context: NewContext) -> None:
    team = make_team()
    reader = ann(team)
    policy = make_policy(team)
    context = new_context(reader)
    context.add_init_script(BADGES)
    page = context.new_page()
    said = watched(page)
    page.goto("/")
    expect(page).to_have_title("Inbox · Holdpoint")
    assert (icon(page), badge(page)) == ("mark", 0)
    is_live(page)
    first, _second = (make_gate(policy=policy, team=team, started_by=bob(team)) for _ in range(2))
    expect(page).to_have_title("(2) Inbox · Holdpoint")
    assert (icon(page), badge(page)) == ("mark-waiting", 2)
    page.goto(f"/gates/{first.pk}/")
    assert page.title().startswith("(2) ")
    page.goto("/agents/")
    is_live(page)
    decide(first, reader)
    expect(page).to_have_title("(1) Agents · Holdpoint")
    assert badge(page) == 1
    assert said == []
    context.clear_cookies()
    page.goto("/accounts/login/")
    until(lambda: page.evaluate("badges.length"), what="the number is taken from the icon")
    assert badge(page) == 0
