"""Webhooks in the administration, in a real browser under the strict policy: made, tried out, given up, sent again."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from approvals.models import Delivery, Webhook
from tests.factories import make_team, make_user
from tests.harness.browser_checks import each_width, watched

from .made_webhooks import make_webhook, sent
from .receiver import Receiver, status

NewPage = Callable[..., Page]


@each_width
def test_one_is_made_tested_refused_and_sent_again(new_page: NewPage, receiver: Receiver, width: int) -> None:
    team = make_team()
    operator = make_user("Olga Operator", team, may=("approvals.manage_webhooks",))
    User.objects.filter(pk=operator.pk).update(is_staff=True)
    page = new_page(operator, viewport={"width": width, "height": 900})
    said = watched(page)

    def fits() -> bool:
        return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))

    page.goto("/admin/approvals/webhook/add/")
    page.get_by_label("Team").select_option(label=team.name)
    page.get_by_label("Address").fill("https://hooks.example.com/holdpoint")
    page.get_by_role("button", name="Save", exact=True).click()
    made = Webhook.objects.get(team=team)
    expect(page.locator(".secret")).to_have_text(made.secrets()[0])
    assert fits()

    Webhook.objects.filter(pk=made.pk).update(url=receiver.url)  # this server sends to no loopback address
    page.get_by_role("link", name="Back to the webhook").click()
    page.get_by_role("button", name="Send a test message").click()
    expect(page.locator(".messagelist")).to_contain_text("is on its way")
    receiver.answers.append(status(410))
    test = Delivery.objects.get(webhook=made)
    assert sent(test) == "gone"
    page.get_by_role("link", name="Delivery log").first.click()
    page.locator("#result_list").get_by_role("link").first.click()
    expect(page.locator(".attempts")).to_contain_text("The receiver answered 410")
    assert fits()
    page.get_by_role("link", name="The webhook", exact=True).click()
    page.get_by_role("button", name="Enable").click()
    page.get_by_role("link", name="Delivery log").first.click()
    page.locator("#result_list").get_by_role("link").first.click()
    page.get_by_role("button", name="Send it again").click()
    expect(page.locator(".messagelist")).to_contain_text("sent again, under the same id")
    assert sent(test) == "delivered"
    assert len({got.id for got in receiver.got}) == 1
    assert said == []


def test_to_remove_one_takes_two_presses(new_page: NewPage) -> None:
    webhook, _ = make_webhook()
    page = new_page(make_user("Root Admin", superuser=True))
    page.goto(f"/admin/approvals/webhook/{webhook.pk}/change/")
    expect(page.get_by_role("button", name="Remove it for good")).to_be_hidden()
    page.get_by_text("Remove…").click()
    page.get_by_role("button", name="Remove it for good").click()
    expect(page.locator(".messagelist")).to_contain_text("is removed")
    webhook.refresh_from_db()
    assert webhook.status == Webhook.Status.REMOVED
