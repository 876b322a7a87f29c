"""On a phone a decision is made with the thumb: from anywhere in a long page, without scrolling, consequences first."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from approvals.decisions.undoing.take_back import take_back
from approvals.gates import remarks
from approvals.models import Gate
from tests.agents.serving.test_unrun import begin
from tests.approvals.decisions.undoing.windows import make_held, now
from tests.factories import ann, bob, decide, make_card, make_gate, make_team
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
def test_escape_and_close_put_the_reader_back_where_they_were_with_nothing_chosen(
    new_page: NewPage, phone: dict[str, int]
) -> None:
    page = opened(new_page, long_gate(), phone)
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


def test_what_the_sheet_covers_is_out_of_reach(new_page: NewPage) -> None:
    """A key pressed it all the same, and a part of it that was drawn again could have the focus."""
    gate = long_gate()
    page = opened(new_page, gate, UPRIGHT)
    is_live(page)
    page.locator(".decide-dock").get_by_role("link", name="Reject").click()
    page.locator("#decide [name=then]").first.focus()
    page.evaluate("addEventListener('click', ({ target }) => (window.pressed = target.dataset.hotkey), true)")
    page.keyboard.press("g")
    assert page.evaluate("window.pressed") is None
    remarks.remark(gate, by=bob(gate.team), text="Look at this.", key="1")
    expect(page.locator("#gate-remarks")).to_contain_text("Look at this.")
    assert page.evaluate("document.querySelector('#gate-agreement').inert")


def test_escape_out_of_a_half_composed_word_leaves_the_sheet_open(new_page: NewPage) -> None:
    """It closed the sheet and took the choice back; an input method takes Escape for itself."""
    page = opened(new_page, long_gate(), UPRIGHT)
    page.locator(".decide-dock").get_by_role("link", name="Reject").click()
    page.locator("#feedback").focus()
    composing(page, "か")
    page.keyboard.press("Escape")
    expect(page.locator("[data-sheet] #feedback")).to_be_visible()
    expect(page.locator("[name=verdict][value=reject]")).to_be_checked()


@pytest.mark.long
def test_what_has_the_focus_in_the_sheet_is_not_under_its_button(new_page: NewPage) -> None:
    page = opened(new_page, long_gate(), UPRIGHT)
    page.locator(".decide-dock").get_by_role("link", name="Reject").click()
    for _ in range(12):
        page.keyboard.press("Tab")
        over = page.evaluate(
            """() => {
              const [field, bar] = [document.activeElement, document.querySelector("#decide .commits")];
              if (!document.querySelector("#decide").contains(field)) return "left";
              if (bar.contains(field) || field.classList.contains("sr")) return false;
              const [a, b] = [field, bar].map((each) => each.getBoundingClientRect());
              return a.bottom > b.top + 1 && a.top < b.bottom;
            }"""
        )
        assert over in (False, "left")


@pytest.mark.long
def test_an_edit_leads_from_the_sheet_to_the_fields(new_page: NewPage) -> None:
    page = opened(new_page, long_gate(), UPRIGHT)
    page.locator(".decide-dock").get_by_role("link", name="Approve").click()
    page.locator("#decide label[data-choice=edit]").click()
    expect(page.locator("body")).not_to_have_attribute("data-sheet", "")
    assert page.locator("[inert]").count() == 0
    expect(page.locator("[name='args.refund/amount']")).to_be_focused()
    page.keyboard.type("3")
    expect(page.locator(".commits [data-commit]:visible")).to_contain_text("Approve with edit")


@each_way
def test_the_sheet_has_no_fault_of_access(new_page: NewPage, phone: dict[str, int]) -> None:
    page = opened(new_page, long_gate(), phone)
    said = watched(page)
    page.locator(".decide-dock").get_by_role("link", name="Approve").click()
    assert check(page, "", said) == []


@pytest.mark.long
def test_without_a_script_the_bar_leads_to_the_form(new_page: NewPage) -> None:
    gate = long_gate()
    page = new_page(ann(gate.team), viewport=UPRIGHT, java_script_enabled=False)
    page.goto(f"/gates/{gate.pk}/")
    page.locator(".decide-dock").get_by_role("link", name="Approve").click()
    expect(page.locator("#decide label[data-choice=approve]")).to_be_in_viewport()
    page.locator("#decide label[data-choice=approve]").click()
    page.locator(".commits [data-commit]:visible").click()
    expect(page.locator("#gate-news")).to_contain_text("Approved by Ann Okafor")


@each_way
def test_the_undo_is_within_reach_too_and_counts_down(new_page: NewPage, phone: dict[str, int]) -> None:
    team = make_team()
    gate = make_held(team)
    person = ann(team)
    decide(gate, person)
    page = new_page(person, viewport=phone, has_touch=True)
    said = watched(page)
    page.goto(f"/gates/{gate.pk}/")
    clock = page.locator(".decide-dock [role=timer]")
    before = clock.inner_text()
    expect(clock).not_to_have_text(before)  # to the second
    assert lower_third(page, ".decide-dock .undo button")
    assert check(page, "", said) == []
    page.locator(".decide-dock").get_by_role("button", name="Undo").tap()
    expect(page.locator(".decide-dock").get_by_role("link", name="Approve")).to_be_visible()
    assert now(gate).settles_at is None


def test_a_colleague_sees_the_decision_and_its_undo_as_they_happen(new_page: NewPage) -> None:
    team = make_team()
    gate, person = make_held(team), ann(team)
    page = opened(new_page, gate, UPRIGHT)
    decide(gate, person)
    expect(page.locator("#held")).to_contain_text("Approved by Ann Okafor.")
    take_back(now(gate), by=person)
    expect(page.locator("#held")).to_have_count(0)


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
    assert check(page, "", said) == []
    assert check(page, f"/gates/{gate.pk}/receipt/", said) == []
