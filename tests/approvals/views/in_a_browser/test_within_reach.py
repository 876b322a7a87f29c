"""On a phone a decision is made with the thumb: from anywhere in a long page, without scrolling, consequences first."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, ViewportSize, expect

from approvals.gates import remarks
from approvals.models import Gate
from tests.agents.serving.test_unrun import begin
from tests.approvals.decisions.undoing.windows import make_held, now
from tests.factories import ann, bob, decide, make_card, make_gate, make_policy, make_team
from tests.harness.browser_checks import check, composing, is_live, watched
from tests.harness.examples import first_alone

NewPage = Callable[..., Page]
UPRIGHT: ViewportSize = {"width": 390, "height": 844}
ON_ITS_SIDE: ViewportSize = {"width": 844, "height": 390}
AMOUNT = "[name='args.refund/amount']"
BAR = ".commits"
UNDER_THE_BAR = """() => {
  const bar = document.querySelector(".commits");
  const [field, over] = [document.activeElement, bar].map((each) => each.getBoundingClientRect());
  const covers = field.bottom > over.top + 1 && field.top < over.bottom;
  return getComputedStyle(bar).position === "fixed" && covers;
}"""
each_way = pytest.mark.parametrize("phone", first_alone([UPRIGHT, ON_ITS_SIDE]), ids=["upright", "on its side"])


def opened(new_page: NewPage, gate: Gate, phone: ViewportSize, reader: User | None = None) -> Page:
    page = new_page(reader or ann(gate.team), viewport=phone, has_touch=True)
    page.goto(f"/gates/{gate.pk}/")
    is_live(page)
    return page


def lower_third(page: Page, selector: str) -> bool:
    box = page.locator(selector).first.bounding_box()
    height = page.evaluate("innerHeight")
    return box is not None and box["y"] >= height * 0.6 and box["y"] + box["height"] <= height + 1


@each_way
def test_a_sheet_that_is_open_is_all_there_is_and_takes_a_whole_approval_in_the_middle_of_a_long_page(
    new_page: NewPage, phone: ViewportSize
) -> None:
    """An input method takes Escape for itself, which closed the sheet. A key pressed what it covers all the same."""
    reasons = [f"{n} reason to look closely" for n in range(40)]
    card = make_card(risk="high", reasons=reasons, summary="A word. " * 2000)
    gate, other = [make_gate(policy=policy, card=card) for policy in [make_policy(make_team())] * 2]
    page = opened(new_page, gate, phone)
    said = watched(page)
    assert page.evaluate("document.documentElement.scrollHeight") > phone["height"] * 3
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight / 2)")
    at = page.evaluate("scrollY")
    dock, sheet = page.locator(".decide-dock"), page.locator("#decide")
    reject = dock.get_by_role("link", name="Reject")
    ways: list[Callable[[], None]] = [
        lambda: page.keyboard.press("Escape"),
        lambda: page.get_by_role("button", name="Close").click(),
    ]
    for leave in ways:
        reject.click()
        expect(sheet).to_be_in_viewport()
        leave()
        expect(dock).to_be_visible()
        assert page.locator("[name=verdict]:checked").count() == 0
        assert page.locator("[inert]").count() == 0
        assert abs(page.evaluate("scrollY") - at) < 2
        expect(reject).to_be_focused()
    reject.click()
    assert check(page, "", said) == []
    page.locator("#decide [name=then]").first.focus()
    page.evaluate("addEventListener('click', ({ target }) => (window.pressed = target.dataset.hotkey), true)")
    page.keyboard.press("g")
    assert page.evaluate("window.pressed") is None
    remarks.remark(gate, by=bob(gate.team), text="Look at this.", key="1")
    expect(page.locator("#gate-remarks")).to_contain_text("Look at this.")
    assert page.evaluate("document.querySelector('#gate-agreement').inert"), "though it was drawn again"
    page.locator("#feedback").focus()
    composing(page, "か")
    page.keyboard.press("Escape")
    expect(page.locator("[data-sheet] #feedback")).to_be_visible()
    expect(page.locator("[name=verdict][value=reject]")).to_be_checked()
    page.locator("#decide label[data-choice=edit]").click()
    expect(page.locator("body")).not_to_have_attribute("data-sheet", "")
    assert page.locator("[inert]").count() == 0
    expect(page.locator(AMOUNT)).to_be_focused()

    page.goto(f"/gates/{other.pk}/")
    decide(gate, bob(gate.team))
    is_live(page)
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight / 2)")
    at = page.evaluate("scrollY")
    assert lower_third(page, ".decide-dock .button")
    dock.get_by_role("link", name="Approve").tap()
    button = sheet.locator("[data-commit]:visible")
    expect(button).to_contain_text("Approve: pay €120.00, reply")
    assert lower_third(page, "#decide [data-commit]:visible")
    expect(sheet.locator(".impact:visible").first).to_be_visible()
    assert page.evaluate(
        """() => {
          const [seen, button] = ["#decide .impact", "#decide [data-commit]"].map((each) =>
            document.querySelector(each));
          return Boolean(seen.compareDocumentPosition(button) & Node.DOCUMENT_POSITION_FOLLOWING);
        }"""
    )
    assert abs(page.evaluate("scrollY") - at) < 2
    with page.expect_event("load"):  # a live update says it before
        button.tap()
    expect(page.locator("#gate-news")).to_contain_text("Approved by Ann Okafor")
    receipt = page.locator("#gate-receipt")
    expect(receipt).to_contain_text("Not yet")
    begin(now(other))
    expect(receipt).to_contain_text("pay_7")
    assert check(page, f"/gates/{other.pk}/receipt/", said) == []


@each_way
def test_a_decision_is_seen_as_it_happens_with_its_undo_within_reach_that_counts_down_and_is_sent_once(
    new_page: NewPage, phone: ViewportSize
) -> None:
    """Pressed twice, the second undo said that there was nothing to undo, and went into the audit as refused."""
    gate = make_held(make_team())
    page = opened(new_page, gate, phone, person := ann(gate.team))
    said = watched(page)
    decide(gate, person)
    expect(page.locator("#held")).to_contain_text("Approved by you.")
    page.reload()
    is_live(page)
    clock = page.locator(".decide-dock [role=timer]")
    before = clock.inner_text()
    expect(clock).not_to_have_text(before)  # to the second
    assert lower_third(page, ".decide-dock .undo button")
    assert check(page, "", said) == []
    undo = page.locator(".decide-dock").get_by_role("button", name="Undo")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.url.endswith("/undos/") else None)
    undo.dblclick()
    expect(page.locator(".decide-dock").get_by_role("link", name="Approve")).to_be_visible()
    expect(page.locator("#held")).to_have_count(0)
    assert now(gate).settles_at is None
    assert len(sent) == 1


def test_the_bar_is_the_button_follows_the_choice_and_hides_no_field(new_page: NewPage) -> None:
    """It said "Run 2" while somebody rejected, and pressing it only scrolled."""
    card = make_card(risk="high", reasons=[f"{n} reason to look closely" for n in range(9)])
    page = opened(new_page, make_gate(team=make_team(), card=card), UPRIGHT)
    dock, button = page.locator(".decide-dock"), page.locator(f"{BAR} [data-commit]:visible")
    [title, bar, first] = (
        each.bounding_box()
        for each in (page.get_by_role("heading", name="Your decision"), dock, page.locator(".action").first)
    )
    assert title is not None
    assert bar is not None
    assert first is not None
    assert title["y"] + title["height"] <= bar["y"], "the decision begins within the first screen"
    assert first["y"] > title["y"]
    dock.get_by_role("link", name="With edits").click()
    expect(page.locator("[name=verdict][value=edit]")).to_be_checked()
    expect(page.locator(AMOUNT)).to_be_focused()
    expect(page.locator(AMOUNT)).to_be_in_viewport()
    page.fill(AMOUNT, "30.00")
    expect(button).to_contain_text("Approve with edit")
    fields = page.locator("hp-gate-form :is(input:not([type=hidden], .sr), textarea, select):visible")
    assert fields.count() > 3
    for height in (844, 400):  # also with a keyboard on the screen, which leaves less than half of it
        page.set_viewport_size({"width": 390, "height": height})
        for at in range(fields.count()):
            page.evaluate("scrollTo(0, 0)")
            fields.nth(at).focus()
            assert not page.evaluate(UNDER_THE_BAR), fields.nth(at).get_attribute("name")
    page.set_viewport_size(UPRIGHT)
    box = page.locator(BAR).bounding_box()
    assert box is not None
    assert abs(box["y"] + box["height"] - UPRIGHT["height"]) < 1, "at the lower edge of the window"
    page.locator("#decide label[data-choice=reject]").click()
    expect(button).to_contain_text("Write a reason to reject")
    button.click()
    page.keyboard.type("Wrong customer.")
    expect(button).to_contain_text("Reject and ask the agent to try again")
    expect(page.locator("body")).not_to_contain_text("Run 2", use_inner_text=True)
    button.click()
    expect(page.locator("#gate-news")).to_contain_text("Rejected by Ann Okafor")
