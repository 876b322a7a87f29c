"""What raises somebody, makes asking milder or says what is kept takes a confirmation, whichever page orders it.

Setting a password took one, and changing the address to which the link for a new one is sent took none; nor did making
a policy milder, pruning, legal holds, tools and retention. Whoever came upon an open session could do it all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client
from django.urls import NoReverseMatch, resolve, reverse
from playwright.sync_api import Page, expect

from checkpoints.admin.base import NothingByHand
from checkpoints.models import Hold
from config.administration import CONFIRMED, CONFIRMED_FIRST
from tests.approvals.admin.test_people_admin import account_form
from tests.factories import make_run, make_team, make_user
from tests.harness.browser_checks import too_wide, watched
from tests.harness.signed_in_clients import confirmed, signed_in

PASSWORD = "the phrase of the root"
# What is written in the administration without a confirmation, and why.
FREE = {
    "checkpoints_prune_dry_runs": "deletes nothing",
    "checkpoints_prune_stops": "ends a deletion",
    "approvals_policychange_refusals": "keeps what is asked",
    "approvals_policy_add": "what is milder waits for a second person, who confirms",
    "approvals_policy_change": "the same",
    "approvals_calendar_add": "says when people work",
    "approvals_calendar_change": "the same",
    "approvals_webhook_disablings": "its own page says who may; messages decide nothing",
    "approvals_webhook_enablings": "the same",
    "approvals_webhook_removals": "the same",
    "approvals_webhook_tests": "the same",
    "approvals_webhook_rotations": "the same",
    "approvals_webhook_add": "the same",
    "approvals_channeladdress_tests": "the same",
    "approvals_channeladdress_removals": "the same",
    "approvals_channeladdress_add": "the same",
    "approvals_message_sendings": "sends a message again",
    "agents_token_revocations": "ends what a token may",
}


def root() -> User:
    return make_user("Root", superuser=True, password=PASSWORD)


def takes_orders() -> set[str]:
    """Return the names of all addresses of the administration that some superuser may write to."""
    found: set[str] = set()
    request: Any = type("Request", (), {"user": User(is_superuser=True, is_staff=True, is_active=True)})
    for model, page in admin.site._registry.items():
        table = f"{model._meta.app_label}_{model._meta.model_name}"
        names = {str(pattern.name) for pattern in page.get_urls() if getattr(pattern, "name", None)}
        found |= names - {f"{table}_{each}" for each in ("changelist", "history", "add", "change", "delete")}
        if not isinstance(page, NothingByHand):
            found |= {f"{table}_change"} | ({f"{table}_delete"} if page.has_delete_permission(request) else set())
        if type(page).has_add_permission is not NothingByHand.has_add_permission:
            found.add(f"{table}_add")
    return found


def test_every_order_takes_a_confirmation_or_says_why_not() -> None:
    assert takes_orders() == CONFIRMED | CONFIRMED_FIRST | FREE.keys()


def test_each_takes_a_confirmation() -> None:
    client = signed_in(root())
    for name in CONFIRMED:
        try:
            address = reverse(f"admin:{name}")
        except NoReverseMatch:  # most are about a row, which need not be there: nothing is read before
            address = reverse(f"admin:{name}", args=[1])
        assert resolve(address).url_name == name
        answer = client.post(address, {"reason": "<b>typed</b>"})
        said = answer.content.decode()
        assert (answer.status_code, "Nothing was done yet" in said) == (403, True), name
        assert '<input type="hidden" name="reason" value="&lt;b&gt;typed&lt;/b&gt;">' in said
        assert "next=/admin/confirmed/" in said.replace("%2F", "/")


def test_an_address_is_changed_only_by_whoever_confirmed_who_they_are() -> None:
    """The link for a new password is sent there: an open session of a superuser opened every account."""
    user, boss = make_user("Vic Victim", make_team()), root()
    page = reverse("admin:auth_user_change", args=[user.pk])
    form = account_form(user, email="thief@example.net")
    client = signed_in(boss)
    assert client.get(page).status_code == 200, "to look takes none"
    client.post(page, form)
    assert User.objects.get(pk=user.pk).email == user.email
    assert confirmed(boss).post(page, form).status_code == 302
    assert User.objects.get(pk=user.pk).email == "thief@example.net"


def test_what_was_entered_is_sent_again_once_its_author_confirmed() -> None:
    boss, run = root(), make_run()
    client = signed_in(boss)
    refused = client.post(reverse("admin:checkpoints_hold_add"), {"run_number": run.pk, "reason": "a lawsuit"})
    assert not Hold.objects.filter(run=run).exists()
    assert client.post("/accounts/reauthenticate/?next=/admin/confirmed/", {"password": PASSWORD})["Location"] == (
        "/admin/confirmed/"
    )
    assert "Go back to the tab" in client.get("/admin/confirmed/").content.decode()
    assert client.post(reverse("admin:checkpoints_hold_add"), dict(refused.context["entered"])).status_code == 302
    assert Hold.objects.get(run=run).reason == "a lawsuit"


def test_whoever_has_nothing_to_confirm_with_is_told_what_to_add() -> None:
    boss = make_user("Root", superuser=True)
    for answer in (
        signed_in(boss).post(reverse("admin:checkpoints_hold_add")), signed_in(boss).get(reverse("admin:auth_user_add"))
    ):  # fmt: skip
        assert answer.status_code == 403
        assert "Add a passkey</a> first" in answer.content.decode()
    no_staff: Client = signed_in(make_user("Ann", password=PASSWORD))
    assert no_staff.post(reverse("admin:checkpoints_hold_add"))["Location"].startswith("/admin/login/")


def test_in_a_browser_it_is_confirmed_in_a_tab_of_its_own_and_sent_again(new_page: Callable[..., Page]) -> None:
    boss, run = root(), make_run()
    page = new_page(boss, viewport={"width": 390, "height": 900})
    said = watched(page)
    page.goto(reverse("admin:checkpoints_hold_add"))
    page.locator("[name=run_number]").fill(str(run.pk))
    page.locator("[name=reason]").fill("a lawsuit")
    page.locator("[name=_save]").click()
    expect(page.get_by_role("heading", name="Confirm who you are")).to_be_visible()
    assert too_wide(page) == []
    expect(page.get_by_text("You have not confirmed yet")).to_be_hidden()
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_text("You have not confirmed yet")).to_be_visible()
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Confirm in a new tab").click()
    opened.value.get_by_label("Password", exact=True).fill(PASSWORD)
    opened.value.get_by_role("button", name="Confirm", exact=True).click()
    expect(opened.value.get_by_text("Go back to the tab")).to_be_visible()
    opened.value.close()
    page.get_by_role("button", name="Continue").click()
    expect(page.locator(".success")).to_be_visible()
    assert Hold.objects.get(run=run).reason == "a lawsuit"
    assert [each for each in said if "403" not in each] == []
