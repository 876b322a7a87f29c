"""The audit and the administration in a real browser: filters, button, news, and nothing that the policy refuses."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import BrowserContext, Page, expect

from approvals.audit import seal_verification
from checkpoints.actors import Actor
from checkpoints.models import Verification
from tests.checkpoints.audit.sealed_events import say, seal_all
from tests.factories import ann, decide, make_gate, make_policy, make_team, make_user
from tests.harness.browser_checks import check_each_look, is_live, watched
from tests.harness.examples import first_alone

NewPage = Callable[..., Page]
AUDITOR = ("checkpoints.view_audit", "checkpoints.erase_text")


@pytest.fixture(autouse=True)
def alone() -> None:
    """No other verification is under way."""
    Verification.objects.underway().delete()


@pytest.mark.examples
def test_the_audit_has_no_fault_that_axe_can_find(new_page: NewPage) -> None:
    team = make_team()
    gate = make_gate(team=team)
    decide(gate, ann(team), comment="She\u202e is <b>right</b>")
    say("words " * 200, team=team.pk)
    seal_all()
    seal_verification.go_on(Verification.objects.ask(by=Actor("user:7", "Ann")).pk)
    page = new_page(make_user("Olga Auditor", team, may=AUDITOR))
    said = watched(page)
    faults = check_each_look(page, "/audit/", said)
    for row in page.locator(".audit-row > details > summary").all():
        row.click()
    page.locator(".audit-more summary").click()
    faults += check_each_look(page, "", said)
    faults += check_each_look(page, "/audit/?words=nothingfitsthis", said)
    assert faults == []


def test_the_button_verifies_and_the_page_says_how_it_went_by_itself(
    new_page: NewPage, celery_worker: Callable[..., object], sweeper: Callable[..., object]
) -> None:
    team = make_team()
    say(team=team.pk)
    seal_all()
    page = new_page(make_user("Olga Auditor", team, may=AUDITOR))
    page.goto("/audit/")
    page.get_by_role("button", name="Verify the seals").click()
    expect(page.locator("#seals")).to_contain_text("Verifying for Olga Auditor")
    celery_worker()
    sweeper()
    expect(page.locator("#seals")).to_contain_text("by Olga Auditor")
    expect(page.locator("#seals")).to_contain_text("are as they were written")
    page.goto("/audit/?kind=audit.verified")
    Verification.objects.underway().delete()


def test_news_are_counted_and_the_list_stays_where_it_is(new_page: NewPage) -> None:
    team = make_team()
    first = say(team=team.pk)
    page = new_page(ann(team))
    page.goto("/audit/")
    is_live(page)
    make_gate(team=team)
    expect(page.locator("#audit-news")).to_contain_text("new")
    expect(page.locator(".audit-row")).to_have_count(1)
    page.locator("#audit-news a").click()
    expect(page.locator(f"#event-{first.pk}")).to_be_visible()
    assert page.locator(".audit-row").count() > 1


@pytest.mark.long
def test_times_are_typed_in_the_readers_zone_and_the_address_holds_only_what_is_set(new_page: NewPage) -> None:
    team = make_team()
    event = say(team=team.pk)
    page = new_page(ann(team), timezone_id="Asia/Tokyo")
    page.goto("/audit/")
    page.locator(".audit-more summary").click()
    expect(page.locator("[data-zone]").first).to_have_text("(Asia/Tokyo)")
    there = event.at.astimezone(ZoneInfo("Asia/Tokyo"))
    page.locator("[name=since]").fill(there.strftime("%Y-%m-%dT%H:%M"))
    page.get_by_role("button", name="Show").click()
    expect(page.locator(f"#event-{event.pk}")).to_be_visible()
    assert "zone=Asia" in page.url
    assert "words=" not in page.url


def test_an_export_is_downloaded_by_the_button(new_page: NewPage) -> None:
    team = make_team()
    event = say(team=team.pk)
    seal_all()
    page = new_page(make_user("Olga Auditor", team, may=AUDITOR))
    page.goto(f"/audit/?subject={event.subject}")
    with page.expect_download() as started:
        page.get_by_role("button", name="CSV").click()
    data = started.value.path().read_bytes()
    assert event.subject.encode() in data
    assert data.count(b"\r\n") == 2
    assert started.value.suggested_filename.endswith(".csv")


@pytest.mark.long
def test_everything_works_without_script(new_context: Callable[..., BrowserContext]) -> None:
    team = make_team()
    word = "zz" + secrets.token_hex(6)
    say(f"about {word}", team=team.pk)
    say(team=team.pk)
    page = new_context(make_user("Olga Auditor", team, may=AUDITOR), java_script_enabled=False).new_page()
    page.goto("/audit/")
    page.locator("[name=words]").fill(word)
    page.get_by_role("button", name="Show").click()
    expect(page.locator(".audit-row")).to_have_count(1)
    page.locator(".audit-row > details > summary").click()
    page.locator(".audit-erase summary").click()
    page.locator("[name=reason]").fill("asked for")
    page.get_by_role("button", name="Erase it for good").click()
    page.goto("/audit/")
    page.get_by_role("button", name="Verify the seals").click()
    expect(page.locator("#seals")).to_contain_text("Verifying for")
    Verification.objects.underway().delete()


@pytest.mark.parametrize("scheme", first_alone(["light", "dark"]))
def test_the_administration_works_under_the_policy(new_page: NewPage, scheme: str) -> None:
    team = make_team()
    policy = make_policy(team)
    gate = make_gate(policy=policy)
    page = new_page(make_user("Root Admin", superuser=True), color_scheme=scheme)
    said = watched(page)
    addresses = ["", "checkpoints/run/", f"checkpoints/run/{gate.run_id}/change/", "checkpoints/event/", "auth/user/"]
    addresses += [
        f"auth/group/{team.pk}/change/",
        f"approvals/policy/{policy.pk}/change/",
        "approvals/gate/?status__exact=open",
    ]
    for address in addresses:
        page.goto(f"/admin/{address}")
        expect(page.locator("#site-name")).to_contain_text("Holdpoint")
    assert said == []


@pytest.mark.long
def test_a_member_is_added_in_the_administration_by_typing(new_page: NewPage) -> None:
    team, comes = make_team(), make_user("Zelda Newcomer")
    page = new_page(make_user("Root Admin", superuser=True))
    said = watched(page)
    page.goto(f"/admin/auth/group/{team.pk}/change/")
    page.locator(".select2-selection").first.click()
    page.locator(".select2-search__field").fill(comes.username)
    page.locator(".select2-results__option", has_text=comes.username).click()
    page.get_by_label("see the team's audit").check()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".messagelist")).to_contain_text("changed successfully")
    assert list(User.objects.filter(groups=team)) == [comes]
    assert said == []


@pytest.mark.long
def test_the_administration_is_as_dark_as_the_site(new_page: NewPage) -> None:
    """Its own style sheet won over the tokens: a white page in the dark."""
    page = new_page(make_user("Root Admin", superuser=True), color_scheme="dark")
    page.goto("/admin/")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Dark theme").click()
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert "hp-theme=light" in page.evaluate("document.cookie")
    page.goto("/")
    assert page.locator("html").get_attribute("data-theme") == "light"
    assert dark != light
