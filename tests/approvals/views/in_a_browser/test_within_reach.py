"""On a phone a decision is made with the thumb: from anywhere in a long page, without scrolling, consequences first."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from approvals.gates import remarks
from approvals.models import Gate
from tests.agents.serving.test_unrun import begin
from tests.approvals.decisions.undoing.windows import make_held, now
from tests.factories import ann, bob, decide, make_card, make_gate, make_policy, make_team, make_user
from tests.harness.browser_checks import check, composing, is_live, watched
from tests.harness.examples import first_alone

NewPage = Callable[..., Page]
UPRIGHT, ON_ITS_SIDE = {"width": 390, "height": 844}, {"width": 844, "height": 390}
each_way = pytest.mark.parametrize("phone", first_alone([UPRIGHT, ON_ITS_SIDE]), ids=["upright", "on its side"])


def long_gate() -> Gate:
    """A gate whose page is many screens long."""
    card = make_card(risk="high", reasons=[f"{n} reason to look closely" for n in range(40)], summary="A word. " * 2000)
    return make_gate(team=make_team(), card=card)


def opened(new_page: NewPage, gate: Gate, phone: dict[str, int]) -> Page:
    page = new_page(ann(gate.team), viewport=phone, has_touch=True)
    page.goto(f"/gates/{gate.pk}/")
    return page


def lower_third(page: Page, selector: str) -> bool:
    box = page.locator(selector).first.bounding_box()
    height = page.evaluate("innerHeight")
    return box is not None and box["y"] >= height * 0.6 and box["y"] + box["height"] <= height + 1


@each_way
def test_a_whole_approval_is_made_in_the_middle_of_a_long_page_without_scrolling(
    new_page: NewPage, phone: dict[str, int]
) -> None:
    gate = long_gate()
    page = opened(new_page, gate, phone)
    assert page.evaluate("document.documentElement.scrollHeight") > phone["height"] * 3
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight / 2)")
    at = page.evaluate("scrollY")
    assert lower_third(page, ".decide-dock .button")
    page.locator(".decide-dock").get_by_role("link", name="Approve").tap()
    sheet = page.locator("#decide")
    button = sheet.locator("[data-commit]:visible")
    expect(button).to_contain_text("Approve: pay €120.00, reply")
    assert lower_third(page, "#decide [data-commit]:visible")
    impact = sheet.locator(".impact:visible").first
    expect(impact).to_be_visible()
    assert page.evaluate(
        """() => {
          const [seen, button] = ["#decide .impact", "#decide [data-commit]"].map((each) =>
            document.querySelector(each));
          return Boolean(seen.compareDocumentPosition(button) & Node.DOCUMENT_POSITION_FOLLOWING);
        }"""
    )
    assert abs(page.evaluate("scrollY") - at) < 2
    button.tap()
    expect(page.locator("#gate-news")).to_contain_text("Approved by Ann Okafor")
    assert now(gate).status == "decided"


@each_way
def test_a_sheet_that_is_open_is_all_there_is_and_is_left_with_nothing_chosen_or_for_the_fields(
    new_page: NewPage, phone: dict[str, int]
) -> None:
    """An input method takes Escape for itself, which closed the sheet. A key pressed what it covers all the same."""
    gate = long_gate()
    page = opened(new_page, gate, phone)
    is_live(page)
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight / 2)")
    at = page.evaluate("scrollY")
    dock = page.locator(".decide-dock")
    ways: list[Callable[[], None]] = [
        lambda: page.keyboard.press("Escape"),
        lambda: page.get_by_role("button", name="Close").click(),
    ]
    for leave in ways:
        dock.get_by_role("link", name="Reject").click()
        expect(page.locator("#decide")).to_be_in_viewport()
        leave()
        expect(dock).to_be_visible()
        assert page.locator("[name=verdict]:checked").count() == 0
        assert page.locator("[inert]").count() == 0
        assert abs(page.evaluate("scrollY") - at) < 2
        expect(dock.get_by_role("link", name="Reject")).to_be_focused()
    dock.get_by_role("link", name="Reject").click()
    said = watched(page)
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
    expect(page.locator("[name='args.refund/amount']")).to_be_focused()


@each_way
def test_a_decision_is_seen_as_it_happens_with_its_undo_within_reach_that_counts_down(
    new_page: NewPage, phone: dict[str, int]
) -> None:
    gate = make_held(make_team())
    page = opened(new_page, gate, phone)
    is_live(page)
    decide(gate, person := ann(gate.team))
    expect(page.locator("#held")).to_contain_text("Approved by Ann Okafor.")
    page = new_page(person, viewport=phone, has_touch=True)
    said = watched(page)
    page.goto(f"/gates/{gate.pk}/")
    is_live(page)
    clock = page.locator(".decide-dock [role=timer]")
    before = clock.inner_text()
    expect(clock).not_to_have_text(before)  # to the second
    assert lower_third(page, ".decide-dock .undo button")
    assert check(page, "", said) == []
    page.locator(".decide-dock").get_by_role("button", name="Undo").tap()
    expect(page.locator(".decide-dock").get_by_role("link", name="Approve")).to_be_visible()
    expect(page.locator("#held")).to_have_count(0)
    assert now(gate).settles_at is None


def test_the_receipt_fills_in_by_itself_as_its_effects_finish(new_page: NewPage) -> None:
    gate = make_gate(team=make_team())
    page = opened(new_page, gate, UPRIGHT)
    is_live(page)
    decide(gate, ann(gate.team))
    receipt = page.locator("#gate-receipt")
    expect(receipt).to_contain_text("Not yet")
    begin(now(gate))
    expect(receipt).to_contain_text("pay_7")
    said = watched(page)
    assert check(page, f"/gates/{gate.pk}/receipt/", said) == []


PHONE = {"width": 390, "height": 844}
AMOUNT = "[name='args.refund/amount']"
BAR = ".commits"
UNDER_THE_BAR = """() => {
  const bar = document.querySelector(".commits");
  const [field, over] = [document.activeElement, bar].map((each) => each.getBoundingClientRect());
  const covers = field.bottom > over.top + 1 && field.top < over.bottom;
  return getComputedStyle(bar).position === "fixed" && covers;
}"""


def phone_at(new_page: NewPage, gate: Gate, **viewport: int) -> Page:
    page = new_page(ann(gate.team), viewport=PHONE | viewport)
    page.goto(f"/gates/{gate.pk}/")
    return page


@pytest.mark.long
def test_the_line_that_says_who_decided_wraps_within_the_page(new_page: NewPage) -> None:
    """Two long names ran out of it."""
    gate = make_gate(policy=make_policy(team := make_team(), quorum=2))
    for name in ("Maximiliane Featherstonehaugh-Cholmondeley", "Bartholomew Wriothesley-Fotheringham"):
        decide(gate, make_user(name, team))
    page = phone_at(new_page, gate)
    status = page.locator("#gate-line .status[data-status=approved]")
    expect(status).to_contain_text("Maximiliane")
    wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide[0] <= wide[1]
    box = status.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= PHONE["width"]
    assert box["height"] > 30, "it takes more than one line"


def test_the_bar_is_the_button_follows_the_choice_and_hides_no_field(new_page: NewPage) -> None:
    """It said "Run 2" while somebody rejected, and pressing it only scrolled."""
    card = make_card(risk="high", reasons=[f"{n} reason to look closely" for n in range(9)])
    page = phone_at(new_page, make_gate(team=make_team(), card=card))
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
    page.set_viewport_size({"width": 390, "height": 844})
    box = page.locator(BAR).bounding_box()
    assert box is not None
    assert abs(box["y"] + box["height"] - PHONE["height"]) < 1, "at the lower edge of the window"
    page.locator("#decide label[data-choice=reject]").click()
    expect(button).to_contain_text("Write a reason to reject")
    button.click()
    page.keyboard.type("Wrong customer.")
    expect(button).to_contain_text("Reject and ask the agent to try again")
    expect(page.locator("body")).not_to_contain_text("Run 2", use_inner_text=True)
    button.click()
    expect(page.locator("#gate-news")).to_contain_text("Rejected by Ann Okafor")
