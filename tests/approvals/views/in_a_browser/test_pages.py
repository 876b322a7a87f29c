"""The pages in a real browser against a real server: live, by keyboard, without script, under the strict policy."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import BrowserContext, Page, Request, WebSocket, expect

from approvals.models import Gate
from tests.approvals.views.test_decisions import fresh, make_final
from tests.approvals.views.test_files import random, sha, with_file, with_order
from tests.approvals.views.test_gate_page import make_lacking
from tests.factories import ann, bob, decide, make_action, make_card, make_gate, make_policy, make_team, make_user
from tests.harness.browser_checks import check, check_each_look, is_kept, is_live, watched
from tests.harness.examples import first_alone
from tests.harness.waiting import until

NewPage = Callable[..., Page]
AsUser = Callable[[BrowserContext, User], None]
AMOUNT = "[name='args.refund/amount']"


def test_a_gate_that_opens_appears_and_one_that_somebody_decides_says_so_and_leaves(new_page: NewPage) -> None:
    team = make_team()
    page = new_page(ann(team))
    page.clock.install()
    page.goto("/")
    is_live(page)
    expect(page.locator("#inbox-list")).to_contain_text("You are all caught up")
    preview = page.locator("#preview")
    expect(preview).to_be_hidden()
    first = make_gate(team=team, card=make_card(title="The first gate"))
    expect(preview).to_contain_text("Hover over a row")
    link = page.locator(f"#gate-{first.pk} a").first
    link.focus()
    second = make_gate(team=team, card=make_card(title="The second gate"))
    row = page.locator(f"#gate-{second.pk}")
    expect(row).to_contain_text("Just arrived")
    expect(link).to_be_focused()
    expect(page.locator(".topbar [data-inbox-link] .count")).to_contain_text("2")
    decide(first, bob(team))
    expect(page.locator(f"#gate-{first.pk}")).to_contain_text("Approved by Bob Lindqvist")
    Gate.objects.filter(pk=first.pk).update(closed_at=first.opened_at - timedelta(minutes=1))
    page.clock.fast_forward(9_000)
    expect(page.locator(f"#gate-{first.pk}")).to_have_count(0)
    expect(row).to_be_visible()


def test_what_is_typed_is_shown_in_all_places_and_kept_and_where_somebody_is_faster_nothing_else_is(
    new_page: NewPage,
) -> None:
    """The field said 30.00 and the button "Approve €120.00"; a listener on the form heard nothing of its fields.

    The deadline, what a yes would do, and the keys stood until the page was loaded again.
    """
    gate = make_gate(policy=make_policy(team := make_team(), deadline=timedelta(days=2)))
    page = new_page(ann(team))
    page.goto(f"/gates/{gate.pk}/")
    is_live(page)
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.url.endswith("/decisions/") else None)
    pin, button = page.locator("[data-pin='args.refund/amount']"), page.locator("[data-commit]:visible")
    edits = page.locator("[name=verdict][value=edit]")
    before = pin.inner_text()
    page.keyboard.press("a")
    expect(button).to_contain_text("Approve: pay €120.00, reply")
    impacts = f"/gates/{gate.pk}/impacts/"  # the draft has the amount too, and may be answered first
    with page.expect_response(lambda it: it.url.endswith(impacts) and "30.00" in str(it.request.post_data)):
        page.fill(AMOUNT, "30.00")
    expect(page.locator("#edit-impact .impact:visible")).to_contain_text("If you approve with your edit")
    expect(page.locator(AMOUNT)).to_be_focused()
    expect(pin.locator("del")).to_have_text("120.00")
    expect(pin.locator("ins")).to_have_text("30.00")
    expect(button).to_contain_text("Approve with edit")
    page.press(AMOUNT, "Enter")
    page.locator("label[data-choice=approve]").click()
    expect(edits).to_be_checked()
    is_kept(page)
    page.reload()
    is_live(page)
    expect(page.locator(AMOUNT)).to_have_value("30.00")
    page.get_by_role("button", name="Reset").first.click()
    expect(pin).to_have_text(before)
    expect(button).to_have_count(0)
    assert sent == []

    cells, keys = page.locator("#gate-head .cells"), page.locator(".gate-side > .keys, .action .key")
    expect(cells.locator("dt")).to_have_text(["Risk", "Deadline", "If approved", "Policy"])
    expect(keys.filter(visible=True)).to_have_count(1)
    page.fill(AMOUNT, "99.5")
    decide(gate, bob(team))
    for part in ("#gate-news", "#gate-line", "#decide"):
        expect(page.locator(part)).to_contain_text("Approved by Bob Lindqvist")
    expect(page.locator(AMOUNT)).to_have_value("99.5")
    expect(page.locator(AMOUNT)).to_be_focused()
    expect(page.locator("[data-commit]:visible")).to_be_disabled()
    expect(page.locator("#ask-back")).to_contain_text("the gate is closed")
    expect(page.locator("#decide .impact:visible")).to_have_count(0)
    expect(page.locator(".snooze, .ask-form > .hint").filter(visible=True)).to_have_count(0)
    expect(page.locator("#gate-place")).not_to_contain_text("1 of 1")
    expect(page.locator(".topbar [data-inbox-link] .count")).to_be_hidden()
    expect(cells.locator("dt")).to_have_text(["Risk", "Policy"])
    expect(keys.filter(visible=True)).to_have_count(0)
    [grid, last] = (each.bounding_box() for each in (cells, cells.locator("> div").last))
    assert grid is not None
    assert last is not None
    assert abs(grid["x"] + grid["width"] - last["x"] - last["width"]) < 2


def note(loaded: list[str], path: str, request: Request) -> None:
    if request.url.split("?")[0].endswith(path):
        loaded.append(request.resource_type)


def test_gates_are_found_edited_spoken_of_and_decided_one_after_the_other_by_keyboard_alone(new_page: NewPage) -> None:
    """A key typed itself into the field to which it leads; `r` and Control-Enter ended the run without a word.

    After each decision one went back to the list and looked for the next.
    """
    gate, mate = make_final(), make_user("Žofie Nováková")
    following = make_gate(policy=gate.policy)
    mate.groups.add(gate.team)
    page = new_page(ann(gate.team))
    said = watched(page)
    page.goto("/")
    is_live(page)
    page.keyboard.press("/")
    page.keyboard.type("refund")
    expect(page.locator("#q")).to_have_value("refund")
    page.goto("/")
    is_live(page)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"/gates/{gate.pk}/$"))
    is_live(page)  # its scripts listen by now
    page.keyboard.press("e")
    expect(page.locator("[name=verdict][value=edit]")).to_be_checked()
    page.keyboard.type("g i")  # which are keys elsewhere, and led away
    expect(page.locator(".action .item :focus")).to_have_value(re.compile("g i"))
    page.keyboard.press("Control+z")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("c")
    page.keyboard.type("Two frames ar? @žof")
    expect(page.locator("#mentions [role=option]")).to_have_count(1)
    assert check(page, "", said) == []
    page.keyboard.press("Enter")
    expect(page.locator("#ask")).to_have_value(f"Two frames ar? @{mate.username} ")
    page.keyboard.press("Control+Enter")  # sends that box, and no decision
    expect(page.locator("#gate-remarks")).to_contain_text("Two frames ar?")
    page.evaluate("document.activeElement.blur()")
    for _ in range(3):
        page.keyboard.down("r")  # held, so that the keyboard repeats it
    page.keyboard.up("r")
    expect(page.locator("#feedback")).to_be_focused()
    button = page.locator("[data-commit]:visible")
    page.keyboard.press("Control+Enter")
    expect(button).to_contain_text("Write a reason to reject")
    page.keyboard.type("refund rests")
    expect(page.locator("#feedback")).to_have_value("refund rests")
    expect(button).to_contain_text("Choose what happens next")
    page.keyboard.press("Control+Enter")
    expect(page.locator("[name=then]").first).to_be_focused()
    assert fresh(gate).status == "open"
    page.keyboard.press("ArrowDown")
    expect(page.locator("[name=then][value=stop]")).to_be_checked()
    expect(button).to_contain_text("Reject and close this gate")
    loaded: list[str] = []
    page.on("request", partial(note, loaded, f"/gates/{following.pk}/"))
    page.keyboard.press("Control+Enter")
    page.wait_for_url(f"**/gates/{following.pk}/?decided={gate.pk}")
    expect(page.locator("#followed")).to_contain_text("Your decision was recorded. Rejected by Ann Okafor")
    expect(page.locator("h1")).to_be_focused()
    assert loaded == ["document"], "once, and not for the script that asked first"
    assert bytes(fresh(gate).outcome.feedback).decode() == "refund rests"
    is_live(page)
    page.keyboard.press("a")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#gate-line")).to_contain_text("Approved by Ann Okafor")
    assert fresh(following).status == "decided"


def test_neither_a_key_that_is_held_down_nor_enter_in_a_choice_or_a_date_sends_a_decision(new_page: NewPage) -> None:
    """Held on from the decision before, it sent the next gate's too where a draft had chosen one.

    In a choice or a date Chromium presses the first button that is not disabled, which was the one to approve.
    """
    gate = with_order({"due": "2026-12-01"}, due={"type": "string", "format": "date"})
    make_gate(policy=gate.policy)
    page = new_page(ann(gate.team))
    page.goto(f"/gates/{gate.pk}/")
    is_live(page)
    page.keyboard.press("a")
    page.evaluate("document.activeElement.blur()")
    for key in ("Enter", "Control", "Enter"):
        page.keyboard.down(key)
    for key in ("Enter", "Control"):
        page.keyboard.up(key)
    assert page.locator(".sending").count() == 0
    for field in ("[name=verdict][value=approve]", "[name=follow]", "[type=date]"):
        page.press(field, "Enter")
        assert page.locator(".sending").count() == 0
    assert fresh(gate).status == "open"
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.get_by_label("Enable single-key shortcuts").uncheck()
    page.get_by_role("button", name="Close").click()
    page.reload()
    is_live(page)
    page.keyboard.press("r")
    expect(page.locator("[name=verdict][value=reject]")).not_to_be_checked()


def test_a_page_goes_on_for_nobody_but_its_reader(new_page: NewPage, as_user: AsUser) -> None:
    """Somebody else signed in beside it, and it went on with what they may see, under the name of the one before."""
    gate = make_gate(team=make_team())
    page = new_page(ann(gate.team))
    page.goto(f"/gates/{gate.pk}/")
    is_live(page)
    as_user(page.context, bob(gate.team))
    page.evaluate("document.querySelector('hp-live').socket.close()")
    expect(page.locator("hp-live")).to_contain_text("Signed out")


def test_control_enter_at_a_gate_that_lacks_something_goes_where_it_is_filled_in(new_page: NewPage) -> None:
    """It was sent, and refused with the advice to choose an approval that is not offered there."""
    card = make_card(actions=[make_action(), make_action(id="letter", pointer="/order", effect="reply", pinned=[])])
    gate = make_gate(team=make_team(), card=card)
    page = new_page(ann(gate.team))
    page.goto(f"/gates/{gate.pk}/")
    is_live(page)
    button = page.locator("[data-commit]:visible")
    page.locator("#action-refund label[data-choice=approve]").click()
    expect(button).to_contain_text("1 action still needs a verdict")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#action-letter [data-ballot]").first).to_be_focused()
    expect(page.locator("#action-letter")).to_be_in_viewport()
    page.keyboard.press("a")
    expect(button).to_contain_text("Approve: pay")
    page.locator("#decide label[data-choice=reject]").click()
    expect(page.locator("#feedback")).to_be_visible()
    expect(page.locator("[name^='reason.']").filter(visible=True)).to_have_count(0)  # one for all
    assert fresh(gate).status == "open"
    page.goto(f"/gates/{make_lacking(gate.team).pk}/")
    is_live(page)
    expect(button).to_contain_text("Fill in: Order number")
    page.keyboard.press("Control+Enter")
    page.keyboard.type("4417")
    expect(page.locator("[name$='/order']")).to_have_value("4417")
    expect(button).to_contain_text("Approve with edit")


def test_without_script_a_gate_is_edited_refused_and_decided(new_page: NewPage) -> None:
    gate = make_gate(team=(team := make_team()))
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
    root = new_page(make_user("Root", superuser=True))
    faults += check(root, "/admin/approvals/policy/add/", watched(root))
    faults += check_each_look(page, "/", said)
    for address in (f"/gates/{recovery.pk}/", f"/gates/{closed.pk}/"):
        faults += check(page, address, said)
    page.goto(f"/gates/{gate.pk}/")
    page.fill(AMOUNT, "7.00")
    page.locator("label[data-choice=reject]").click()
    faults += check_each_look(page, "", said)
    assert faults == []


PASSWORD = "open sesame again"
ASKS_AGAIN = """(({ socket }) => {
  if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ watch: ["gate:1"], looking: 0 }));
})(document.querySelector("hp-live"))"""
COMMIT = "[data-for='approve'][data-commit]"


@pytest.mark.parametrize("scripts", first_alone([True, False]))
@pytest.mark.examples
def test_sent_asked_confirmed_and_sent(new_page: NewPage, scripts: bool) -> None:
    """Another tab said that somebody had signed out, who had only given the password again."""
    gate = make_gate(policy=make_policy(make_team(), step_up=True))
    page = new_page(make_user("Ann Okafor", gate.team, password=PASSWORD), java_script_enabled=scripts)
    said = watched(page)
    other = page.context.new_page()
    other.goto("/")
    if scripts:
        is_live(other)
    page.goto(f"/gates/{gate.pk}/")
    expect(page.locator("#step-up")).to_contain_text("You will confirm who you are")
    page.locator(".segments label", has_text="Approve").click()
    page.locator(".comment summary").click()
    page.fill("#comment", "As agreed by telephone")
    page.locator(COMMIT).click()
    expect(page.get_by_role("heading", name="Confirm who you are")).to_be_visible()
    if scripts:
        assert check(page, "", said) == []
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    sockets: list[WebSocket] = []
    other.on("websocket", lambda socket: sockets.append(socket))
    page.get_by_role("button", name="Confirm", exact=True).click()
    expect(page.locator("#step-up")).to_contain_text("You confirmed who you are")
    expect(page.locator("#comment")).to_have_value("As agreed by telephone")
    assert Gate.objects.get(pk=gate.pk).status == "open"
    if scripts:
        # The server finds that the old key is nobody's, and ends the socket; a heartbeat may have found it before.
        until(lambda: sockets or other.evaluate(ASKS_AGAIN), what="the other tab is connected anew")
        second = make_gate(policy=gate.policy)
        expect(other.locator(f"#gate-{second.pk}")).to_be_visible()
    page.locator(COMMIT).click()
    expect(page.locator("#gate-head")).not_to_have_attribute("data-status", "open")
    [decision] = gate.decisions.all()
    assert (decision.verdict, decision.words) == ("approve", "As agreed by telephone")


def test_a_chosen_file_is_uploaded_and_said_and_survives_a_reload(new_page: NewPage, tmp_path: Path) -> None:
    old, new = random(), random()
    gate = with_file(old, team=(team := make_team()), name="old.png")
    chosen = tmp_path / "new.png"
    chosen.write_bytes(new)
    page = new_page(ann(team))
    page.goto(f"/gates/{gate.pk}/")
    is_live(page)
    page.set_input_files("[type=file]", chosen)
    expect(page.locator("[data-file]")).to_have_value(re.compile(sha(new)))
    expect(page.locator(".my-edit ins")).to_contain_text("new.png")
    expect(page.locator('[name="verdict"][value="edit"]')).to_be_checked()
    struck = page.locator(".file-ref").first
    expect(struck).to_have_css("text-decoration-line", "line-through")
    expect(page.locator("[data-draft-note]")).to_contain_text("Draft saved")
    is_kept(page)  # it may have been saved before the file was there
    page.reload()
    expect(page.locator(".item .was ins")).to_contain_text("new.png")
    page.click("[data-put-back]:visible")
    expect(struck).to_have_css("text-decoration-line", "none")
    expect(page.locator("[data-file]")).to_have_value(re.compile(sha(old)))
