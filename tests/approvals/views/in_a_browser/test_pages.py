"""The pages in a real browser against a real server: live, by keyboard, without script, under the strict policy."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now
from playwright.sync_api import BrowserContext, Page, Route, expect

from approvals.models import Draft, Gate
from checkpoints.values.canonical_json import encode_canonical
from tests.approvals.views.test_files import plan
from tests.factories import (
    ann,
    bob,
    decide,
    edit_amount,
    make_action,
    make_card,
    make_gate,
    make_policy,
    make_run,
    make_state,
    make_team,
    make_user,
)
from tests.harness.browser_checks import check_each_look, is_live, watched
from tests.harness.examples import first_alone

NewPage = Callable[..., Page]
AsUser = Callable[[BrowserContext, User], None]
WIDE = (".gate-row-ask", ".gate-row-meta", ".gate-row-due")
AMOUNT = "[name='args.refund/amount']"


def fresh(gate: Gate) -> Gate:
    return Gate.objects.get(pk=gate.pk)


def test_a_gate_that_opens_appears_and_one_that_somebody_decides_says_so_and_leaves(new_page: NewPage) -> None:
    team = make_team()
    first = make_gate(team=team, card=make_card(title="The first gate"))
    page = new_page(ann(team))
    page.goto("/")
    is_live(page)
    second = make_gate(team=team, card=make_card(title="The second gate"))
    row = page.locator(f"#gate-{second.pk}")
    expect(row).to_contain_text("Just arrived")
    expect(page.locator(".topbar [data-inbox-link] .count")).to_contain_text("2")
    decide(first, bob(team))
    expect(page.locator(f"#gate-{first.pk}")).to_contain_text("Approved by Bob Lindqvist")
    expect(page.locator(f"#gate-{first.pk}")).to_have_count(0)
    expect(row).to_be_visible()


@pytest.mark.long
def test_an_inbox_without_a_row_does_not_say_how_to_preview_one(new_page: NewPage) -> None:
    team = make_team()
    page = new_page(ann(team))
    page.goto("/")
    is_live(page)
    expect(page.locator("#inbox-list")).to_contain_text("You are all caught up")
    preview = page.locator("#preview")
    expect(preview).to_be_hidden()
    make_gate(team=team)
    expect(preview).to_contain_text("Hover over a row")
    expect(preview).to_be_visible()


@pytest.mark.long
def test_the_place_in_the_list_is_kept_while_gates_come(new_page: NewPage) -> None:
    team = make_team()
    for number in range(30):
        make_gate(team=team, card=make_card(title=f"Gate {number}"))
    page = new_page(ann(team))
    page.goto("/")
    is_live(page)
    link = page.locator(".gate-row a").nth(20)
    link.focus()
    link.scroll_into_view_if_needed()
    before, title = page.evaluate("scrollY"), link.inner_text()
    assert before > 0
    arrived = make_gate(team=team, card=make_card(title="Newcomer"))
    expect(page.locator(f"#gate-{arrived.pk}")).to_have_count(1)
    assert page.evaluate("document.activeElement.textContent") == title
    assert abs(page.evaluate("scrollY") - before) < 2


@pytest.mark.long
def test_the_preview_is_of_the_row_where_the_cursor_came_to_rest(new_page: NewPage) -> None:
    """While an answer was on its way only the next row's was asked for, and the last row's never."""
    team = make_team()
    for number in range(8):
        make_gate(team=team, card=make_card(title=f"Gate {number}"))
    page = new_page(ann(team))
    page.goto("/")
    is_live(page)
    held: list[Route] = []
    page.route("**/gates/*/preview/", lambda route: route.continue_() if held else held.append(route))
    for _ in range(8):
        page.keyboard.press("j")
    expect(page.locator(".gate-row[data-cursor-here]")).to_contain_text("Gate 7")
    held[0].continue_()
    expect(page.locator("#preview h2")).to_have_text("Gate 7")


@pytest.mark.long
def test_on_a_wide_screen_a_row_has_two_lines(new_page: NewPage) -> None:
    """The column of what it is about was as wide as its words, and pressed the words beside it into three lines."""
    team = make_team()
    told = {"title": "Refund £12,480.00 and reply to Northgate Hostel", "amount": "£12,480.00"}
    for whom, resource in (
        ("Northgate Hostel and Baths, Loom & Lantern", "order 1"),
        ("Ann", "3 articles from Medline Wholesale Ltd"),
    ):
        gate = make_gate(team=team, card=make_card(**told, for_whom=whom, resource=resource))
        Gate.objects.filter(pk=gate.pk).update(opened_at=gate.opened_at - timedelta(minutes=1))
    page = new_page(ann(team), viewport={"width": 1440, "height": 900})
    page.goto("/")
    for row in page.locator(".gate-row").all():
        [ask, meta] = (row.locator(part).bounding_box() for part in (".gate-row-ask", ".gate-row-meta"))
        assert ask is not None
        assert meta is not None
        assert max(ask["height"], meta["height"]) < 24


def test_on_a_wide_screen_a_title_and_what_is_told_of_it_have_the_rows_width(new_page: NewPage) -> None:
    """A long title broke in its middle, and the marks below it ended where the deadline began."""
    team = make_team()
    title = "Refund £12,480.00 and reply to Northgate Hostel and Baths about the articles from Medline"
    make_gate(team=team, card=make_card(title=title, amount=""))
    page = new_page(ann(team), viewport={"width": 1440, "height": 900})
    page.goto("/")
    [ask, meta, due] = (page.locator(f".gate-row {part}").bounding_box() for part in WIDE)
    assert ask is not None
    assert meta is not None
    assert due is not None
    first = page.locator(".gate-row-ask a").evaluate("link => link.getClientRects()[0].width")
    assert first > ask["width"] * 0.8
    assert abs(ask["x"] + ask["width"] - due["x"]) <= 24, "there are two gaps, and no amount, between"
    assert abs(meta["x"] + meta["width"] - due["x"] - due["width"]) < 1


def test_somebody_is_faster_and_a_half_typed_edit_survives(new_page: NewPage) -> None:
    team = make_team()
    gate = make_gate(team=team)
    page = new_page(ann(team))
    page.goto(f"/gates/{gate.pk}/")
    is_live(page)
    page.fill(AMOUNT, "99.5")
    decide(gate, bob(team))
    expect(page.locator("#gate-news")).to_contain_text("Approved by Bob Lindqvist")
    expect(page.locator("#gate-line")).to_contain_text("Approved by Bob Lindqvist")
    expect(page.locator(AMOUNT)).to_have_value("99.5")
    expect(page.locator(AMOUNT)).to_be_focused()
    expect(page.locator("[data-commit]:visible")).to_be_disabled()
    expect(page.locator("#decide")).to_contain_text("Approved by Bob Lindqvist")
    expect(page.locator("#decide .impact:visible")).to_have_count(0)
    expect(page.locator("#ask-back")).to_contain_text("the gate is closed")
    expect(page.locator(".snooze, .ask-form > .hint").filter(visible=True)).to_have_count(0)
    expect(page.locator("#gate-place")).not_to_contain_text("1 of 1")
    expect(page.locator(".topbar [data-inbox-link] .count")).to_be_hidden()


@pytest.mark.parametrize("reloaded", first_alone([False, True]))
def test_what_can_no_longer_happen_goes_with_the_gate(new_page: NewPage, reloaded: bool) -> None:
    """The deadline, what a yes would do, and the keys stood until the page was loaded again."""
    team = make_team()
    card = make_card(actions=[make_action(), make_action(id="reply", effect="reply", pinned=[])])
    gate = make_gate(policy=make_policy(team, deadline=timedelta(days=2)), card=card)
    page = new_page(ann(team))
    page.goto(f"/gates/{gate.pk}/")
    is_live(page)
    cells, keys = page.locator("#gate-head .cells"), page.locator(".gate-side > .keys, .action .key")
    expect(cells.locator("dt")).to_have_text(["Risk", "Deadline", "If approved", "Policy"])
    assert keys.filter(visible=True).count() > len(["a", "e", "r"])
    decide(gate, bob(team))
    expect(page.locator("#gate-news")).to_contain_text("Approved by Bob Lindqvist")
    if reloaded:
        page.reload()
    expect(cells.locator("dt")).to_have_text(["Risk", "Policy"])
    expect(keys.filter(visible=True)).to_have_count(0)
    [grid, last] = (each.bounding_box() for each in (cells, cells.locator("> div").last))
    assert grid is not None
    assert last is not None
    assert abs(grid["x"] + grid["width"] - last["x"] - last["width"]) < 2


def test_another_version_is_announced_with_its_difference_and_the_edit_is_kept(new_page: NewPage) -> None:
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=2))
    page = new_page(ann(team))
    page.goto(f"/gates/{gate.pk}/")
    is_live(page)
    page.fill(AMOUNT, "99.50")
    decide(gate, bob(team), "edit", arguments=edit_amount(gate, "7.00"))
    news = page.locator("#gate-news")
    expect(news).to_contain_text("Bob Lindqvist edited this gate")
    expect(news.locator("ins")).to_have_text("7.00")
    expect(page.locator(AMOUNT)).to_have_value("99.50")
    page.locator("[data-commit]:visible").click()
    expect(page.locator("#refusal")).to_contain_text("your decision was not sent")
    expect(page.locator(AMOUNT)).to_have_value("99.50")
    assert fresh(gate).status == "open"


def test_a_draft_outlives_the_page_and_put_back_drops_it(new_page: NewPage) -> None:
    team = make_team()
    gate = make_gate(team=team)
    page = new_page(ann(team))
    page.goto(f"/gates/{gate.pk}/")
    page.fill(AMOUNT, "99.50")
    expect(page.locator("[name=verdict][value=edit]")).to_be_checked()
    page.reload()
    is_live(page)
    expect(page.locator(AMOUNT)).to_have_value("99.50")
    page.get_by_role("button", name="Reset").first.click()
    expect(page.locator(AMOUNT)).to_have_value("120.00")
    page.reload()
    expect(page.locator(AMOUNT)).to_have_value("120.00")


@pytest.mark.long
def test_a_page_drawn_before_the_newest_draft_was_kept_shows_it_nevertheless(new_page: NewPage) -> None:
    """Leaving a page sends its draft, and the next page may be drawn before that arrives."""
    gate = make_gate(team=(team := make_team()))
    reviewer = ann(team)
    page = new_page(reviewer)
    page.goto(f"/gates/{gate.pk}/")
    page.fill(AMOUNT, "99.50")
    expect(page.locator("[data-draft-note]")).to_contain_text("Draft saved")
    left = json.dumps({"seen": page.locator("[name=draft_seen]").input_value(), "fields": [["comment", "Hm"]]})
    stored = f"hp-draft:{reviewer.pk}:{gate.pk}"
    page.add_init_script(f"if (!sessionStorage.once) localStorage[{stored!r}] = {left!r}; sessionStorage.once = 1;")

    newer = Draft.objects.get(gate=gate).fields | {"args.refund/amount": "77.00", "key": "of-another-page"}

    def newer_first(route: Route) -> None:
        if "Hm" in (route.request.post_data or ""):
            Draft.objects.filter(gate=gate).update(kept_at=Now(), body=encode_canonical(newer))
        route.continue_()

    page.route("**/drafts/", newer_first)
    page.reload()
    expect(page.locator(AMOUNT)).to_have_value("77.00")


@pytest.mark.long
def test_a_draft_goes_on_being_kept_after_a_refused_send(new_page: NewPage) -> None:
    """ "Another page of yours keeps a newer draft", with one page open."""
    team = make_team()
    gate = make_gate(team=team)
    page = new_page(ann(team))
    note = page.locator("[data-draft-note]")
    page.goto(f"/gates/{gate.pk}/")
    page.fill(AMOUNT, "99.50")
    expect(note).to_contain_text("Draft saved")
    page.reload()
    page.fill(AMOUNT, "no amount")
    page.locator("[data-commit]:visible").click()
    expect(page.locator("#refusal")).to_be_visible()
    expect(note).to_contain_text("Draft saved")
    page.fill(AMOUNT, "88.25")
    with page.expect_response("**/drafts/") as kept:
        page.locator(AMOUNT).blur()
    assert kept.value.status == 200
    expect(note).to_contain_text("Draft saved")
    page.reload()
    expect(page.locator(AMOUNT)).to_have_value("88.25")


def test_control_enter_in_another_box_sends_that_box_and_no_decision(new_page: NewPage) -> None:
    """It sent the decision, and the question was lost."""
    team = make_team()
    gate = make_gate(team=team)
    page = new_page(ann(team))
    page.goto(f"/gates/{gate.pk}/")
    page.keyboard.press("a")
    page.keyboard.press("c")
    page.keyboard.type("Was it two frames?")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#gate-remarks")).to_contain_text("Was it two frames?")
    expect(page.locator("#ask")).to_have_value("")
    assert fresh(gate).status == "open"
    page.keyboard.press("Control+k")
    page.keyboard.type("nothing")
    page.keyboard.press("Control+Enter")
    assert fresh(gate).status == "open"


def test_the_key_to_edit_puts_the_caret_into_the_first_field(new_page: NewPage) -> None:
    """What was typed next were keys: a "g" and an "i" in it left the page."""
    gate = make_gate(team=make_team())
    page = new_page(ann(gate.team))
    page.goto(f"/gates/{gate.pk}/")
    page.keyboard.press("e")
    expect(page.locator("[name=verdict][value=edit]")).to_be_checked()
    expect(page.locator(".action .item :focus")).to_have_count(1)
    page.keyboard.type("g i")
    expect(page.locator(".action .item :focus")).to_have_value(re.compile("g i"))
    expect(page).to_have_url(re.compile(rf"/gates/{gate.pk}/$"))


def test_a_gate_is_decided_by_keyboard_alone(new_page: NewPage) -> None:
    team = make_team()
    gate = make_gate(team=team)
    page = new_page(ann(team))
    page.goto("/")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"/gates/{gate.pk}/$"))
    is_live(page)  # its scripts listen by now
    page.keyboard.press("r")
    expect(page.locator("#feedback")).to_be_focused()
    page.keyboard.type("a e r ? stay words")
    expect(page.locator("[name=verdict][value=reject]")).to_be_checked()
    page.keyboard.press("Tab")
    expect(page.locator("[name=then][value=back]")).to_be_focused()
    page.keyboard.press("Control+Enter")
    expect(page.locator("#gate-news")).to_contain_text("Rejected by Ann Okafor")
    assert bytes(fresh(gate).outcome.feedback).decode() == "a e r ? stay words"


def test_a_key_that_is_held_down_is_not_typed_into_the_field_to_which_it_leads(new_page: NewPage) -> None:
    """The reason of a rejection began with as many letters as the keyboard had repeated."""
    gate = make_gate(team=(team := make_team()))
    page = new_page(ann(team))
    page.goto(f"/gates/{gate.pk}/")
    is_live(page)
    page.keyboard.down("r")
    expect(page.locator("#feedback")).to_be_focused()
    for _ in range(3):
        page.keyboard.down("r")  # held, so that the keyboard repeats it
    page.keyboard.up("r")
    page.keyboard.type("refund rests")
    expect(page.locator("#feedback")).to_have_value("refund rests")


def test_a_key_that_is_held_down_sends_no_decision(new_page: NewPage) -> None:
    """Held on from the decision before, it sent the next gate's too where a draft had chosen one."""
    gate = make_gate(team=make_team())
    page = new_page(ann(gate.team))
    page.goto(f"/gates/{gate.pk}/")
    is_live(page)
    page.keyboard.press("a")
    page.evaluate("document.activeElement.blur()")
    for key in ("Enter", "Control", "Enter"):
        page.keyboard.down(key)
    assert page.locator(".sending").count() == 0
    assert fresh(gate).status == "open"


def test_single_keys_can_be_switched_off_and_are_listed(new_page: NewPage) -> None:
    team = make_team()
    gate = make_gate(team=team)
    page = new_page(ann(team))
    page.goto(f"/gates/{gate.pk}/")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.get_by_label("Enable single-key shortcuts").uncheck()
    page.get_by_role("button", name="Close").click()
    page.reload()
    page.keyboard.press("a")
    expect(page.locator("[name=verdict]:checked")).to_have_count(0)


def test_a_key_of_a_text_field_puts_the_cursor_into_it(new_page: NewPage) -> None:
    """`c` and `/` clicked the field, which a script's click does not focus: what was typed next were single keys."""
    team = make_team()
    gate = make_gate(team=team)
    page = new_page(ann(team))
    page.goto(f"/gates/{gate.pk}/")
    page.keyboard.press("c")
    page.keyboard.type("ar?")
    expect(page.locator("#ask")).to_have_value("ar?")
    page.goto("/")
    page.keyboard.press("/")
    page.keyboard.type("refund")
    expect(page.locator("#q")).to_have_value("refund")


def test_a_colleague_is_found_by_a_name_in_any_letters(new_page: NewPage) -> None:
    """The list closed at the first letter that is not English."""
    team = make_team()
    gate, mate = make_gate(team=team), make_user("Žofie Nováková", team)
    page = new_page(ann(team))
    page.goto(f"/gates/{gate.pk}/")
    page.locator("#ask").focus()
    page.keyboard.type("@žof")
    expect(page.locator("#mentions [role=option]")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.locator("#ask")).to_have_value(f"@{mate.username} ")


def test_enter_in_a_field_sends_no_decision(new_page: NewPage) -> None:
    team = make_team()
    gate = make_gate(team=team)
    page = new_page(ann(team))
    page.goto(f"/gates/{gate.pk}/")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.url.endswith("/decisions/") else None)
    page.fill(AMOUNT, "1.00")
    page.press(AMOUNT, "Enter")
    page.locator("label[data-choice=reject]").click()
    expect(page.locator("[name=verdict][value=reject]")).to_be_checked()
    assert sent == []


@pytest.mark.parametrize("field", ["[name=verdict][value=approve]", "[name=follow]", "[type=date]"])
def test_enter_in_a_choice_or_a_date_sends_no_decision(new_page: NewPage, field: str) -> None:
    """There Chromium presses the first button that is not disabled, which was the one to approve."""
    team = make_team()
    edited = plan(due={"type": "string", "format": "date"})
    run = make_run(team=team, plan=edited, state=make_state(order={"due": "2026-12-01"}))
    action = make_action(id="refund", pointer="/order", tool="mail.send", edits=True)
    gate = make_gate(run=run, team=team, card=make_card(actions=[action]))
    make_gate(team=team)
    page = new_page(ann(team))
    page.goto(f"/gates/{gate.pk}/")
    is_live(page)
    page.locator("label[data-choice=approve]").click()
    page.press(field, "Enter")
    assert page.locator(".sending").count() == 0
    assert fresh(gate).status == "open"


def test_without_script_a_gate_is_edited_refused_and_decided(new_page: NewPage) -> None:
    team = make_team()
    gate = make_gate(team=team)
    page = new_page(ann(team), java_script_enabled=False)
    page.goto("/")
    page.get_by_role("link", name="Refund €120.00 to Marit").click()
    expect(page.get_by_role("button", name="Approve: pay €120.00")).to_have_count(0)
    page.get_by_text("Reject", exact=False).first.click()
    expect(page.get_by_role("button", name="Reject and ask the agent to try again")).to_be_visible()
    page.fill(AMOUNT, "1.00")
    page.locator("label[data-choice=approve]").click()
    page.get_by_role("button", name="Approve: pay €120.00").click()
    expect(page.locator("#refusal")).to_contain_text("You changed a field but chose Approve.")
    expect(page.locator(AMOUNT)).to_have_value("1.00")
    page.fill(AMOUNT, "120.00")
    page.get_by_role("button", name="Approve: pay €120.00").click()
    expect(page.locator("#gate-news")).to_contain_text("Approved by Ann Okafor")
    assert fresh(gate).status == "decided"


def test_signing_in_and_out_by_the_form(new_page: NewPage) -> None:
    team = make_team()
    user = make_user("Ann Okafor", team, password="correct horse")
    page = new_page()
    page.goto("/gates/1/")
    page.fill("[name=login]", user.username)
    page.fill("[name=password]", "wrong")
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.fill("[name=password]", "correct horse")
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.goto("/")
    page.locator(".account summary").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_a_page_goes_on_for_nobody_but_its_reader(new_page: NewPage, as_user: AsUser) -> None:
    """Somebody else signed in beside it, and it went on with what they may see, under the name of the one before."""
    gate = make_gate(team=make_team())
    page = new_page(ann(gate.team))
    page.goto(f"/gates/{gate.pk}/")
    is_live(page)
    as_user(page.context, bob(gate.team))
    page.evaluate("document.querySelector('hp-live').socket.close()")
    expect(page.locator("hp-live")).to_contain_text("Signed out")


def test_the_live_mark_says_when_the_server_is_out_of_reach(new_page: NewPage) -> None:
    page = new_page(ann(make_team()))
    page.goto("/")
    is_live(page)
    page.context.set_offline(True)
    page.evaluate("document.querySelector('hp-live').socket.close()")
    expect(page.locator("hp-live")).to_contain_text("Offline")
    page.context.set_offline(False)
    is_live(page)


@pytest.mark.examples
def test_the_pages_have_no_fault_that_axe_can_find_and_break_no_policy(new_page: NewPage) -> None:
    team = make_team()
    card = make_card(risk="high", reasons=["Amount over 100"], summary="She\u202e is right.")
    gate = make_gate(policy=make_policy(team, quorum=2), card=card)
    recovery = make_gate(team=team, kind="recovery")
    closed = make_gate(policy=gate.policy)
    decide(closed, bob(team), "reject", then="back", back_to="propose")
    page, stranger = new_page(ann(team)), new_page()
    said, said_to_stranger = watched(page), watched(stranger)
    faults = check_each_look(stranger, "/accounts/login/", said_to_stranger)
    for address in ("/", "/?queue=decided", *(f"/gates/{each.pk}/" for each in (gate, recovery, closed))):
        faults += check_each_look(page, address, said)
    page.goto(f"/gates/{gate.pk}/")
    page.fill(AMOUNT, "7.00")
    page.locator("label[data-choice=reject]").click()
    faults += check_each_look(page, "", said)
    assert faults == []


def test_the_pinned_amount_and_the_button_follow_what_is_typed(new_page: NewPage) -> None:
    team = make_team()
    gate = make_gate(team=team)
    page = new_page(ann(team))
    page.goto(f"/gates/{gate.pk}/")
    pin = page.locator("[data-pin='args.refund/amount']")
    before = pin.inner_text()
    page.fill(AMOUNT, "30.00")
    expect(pin.locator("del")).to_have_text("120.00")
    expect(pin.locator("ins")).to_have_text("30.00")
    expect(page.locator("[data-commit]:visible")).to_contain_text("Approve with edit")
    page.get_by_role("button", name="Reset").first.click()
    expect(pin).to_have_text(before)


def test_on_a_small_screen_with_edits_goes_to_the_first_field(new_page: NewPage) -> None:
    team = make_team()
    gate = make_gate(team=team)
    page = new_page(ann(team))
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"/gates/{gate.pk}/")
    page.get_by_role("link", name="With edits").click()
    expect(page.locator("[name=verdict][value=edit]")).to_be_checked()
    expect(page.locator(AMOUNT)).to_be_focused()
    expect(page.locator(AMOUNT)).to_be_in_viewport()
