"""A gate on a phone: the decision within the first screen; the bar at the bottom is the button and hides no field."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from approvals.models import Gate
from tests.factories import ann, decide, make_card, make_gate, make_policy, make_team, make_user

NewPage = Callable[..., Page]
PHONE = {"width": 390, "height": 844}
AMOUNT = "[name='args.refund/amount']"
BAR = ".commits"


def opened(new_page: NewPage, gate: Gate, **viewport: int) -> Page:
    page = new_page(ann(gate.team), viewport=PHONE | viewport)
    page.goto(f"/gates/{gate.pk}/")
    return page


def at_the_bottom(page: Page) -> bool:
    """Whether the bar is in sight, at the lower edge of the window."""
    box = page.locator(BAR).bounding_box()
    return box is not None and abs(box["y"] + box["height"] - page.evaluate("innerHeight")) < 1


def test_the_decision_begins_within_the_first_screen(new_page: NewPage) -> None:
    """It stood below everything else, five screens down."""
    card = make_card(risk="high", reasons=[f"{n} reason to look closely" for n in range(9)])
    page = opened(new_page, make_gate(policy=make_policy(make_team(), quorum=2), card=card))
    box = page.get_by_role("heading", name="Your decision").bounding_box()
    assert box is not None
    dock = page.locator(".decide-dock").bounding_box()
    assert dock is not None
    assert box["y"] + box["height"] <= dock["y"]
    first = page.locator(".action").first.bounding_box()
    assert first is not None
    assert first["y"] > box["y"]


def test_the_line_that_says_who_decided_wraps_within_the_page(new_page: NewPage) -> None:
    """Two long names ran out of it."""
    gate = make_gate(policy=make_policy(team := make_team(), quorum=2))
    for name in ("Maximiliane Featherstonehaugh-Cholmondeley", "Bartholomew Wriothesley-Fotheringham"):
        decide(gate, make_user(name, team))
    page = opened(new_page, gate)
    status = page.locator("#gate-line .status[data-status=approved]")
    expect(status).to_contain_text("Maximiliane")
    wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide[0] <= wide[1]
    box = status.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= PHONE["width"]
    assert box["height"] > 30, "it takes more than one line"


def test_the_bar_is_the_button_and_follows_the_choice(new_page: NewPage) -> None:
    """It said "Run 2" while somebody rejected, and pressing it only scrolled."""
    gate = make_gate(team=make_team())
    page = opened(new_page, gate)
    dock, button = page.locator(".decide-dock"), page.locator(f"{BAR} [data-commit]:visible")
    expect(dock).to_be_visible()
    dock.get_by_role("link", name="Approve").click()
    expect(dock).to_be_hidden()
    expect(button).to_contain_text("Approve: pay €120.00, reply")
    assert at_the_bottom(page)
    page.locator("#decide label[data-choice=edit]").click()
    page.fill(AMOUNT, "30.00")
    expect(button).to_contain_text("Approve with edit")
    assert at_the_bottom(page)
    page.locator("#decide label[data-choice=reject]").click()
    expect(button).to_contain_text("Write a reason to reject")
    assert at_the_bottom(page)
    button.click()
    page.keyboard.type("Wrong customer.")
    expect(button).to_contain_text("Reject and ask the agent to try again")
    expect(page.locator("body")).not_to_contain_text("Run 2", use_inner_text=True)
    button.click()
    expect(page.locator("#gate-news")).to_contain_text("Rejected by Ann Okafor")


@pytest.mark.parametrize("height", [844, 600, 400])
def test_no_field_that_has_the_focus_is_under_the_bar(new_page: NewPage, height: int) -> None:
    """Also with a keyboard on the screen, which leaves less than half of it."""
    page = opened(new_page, make_gate(team=make_team()), height=height)
    page.fill(AMOUNT, "30.00")
    page.evaluate("scrollTo(0, 0)")
    fields = page.locator("hp-gate-form :is(input:not([type=hidden], .sr), textarea, select):visible")
    assert fields.count() > 3
    for at in range(fields.count()):
        page.evaluate("scrollTo(0, 0)")
        fields.nth(at).focus()
        over = page.evaluate(
            """() => {
              const bar = document.querySelector(".commits");
              const [field, over] = [document.activeElement, bar].map((each) => each.getBoundingClientRect());
              const covers = field.bottom > over.top + 1 && field.top < over.bottom;
              return getComputedStyle(bar).position === "fixed" && covers;
            }"""
        )
        assert not over, fields.nth(at).get_attribute("name")


def test_beside_the_facts_on_a_wide_screen_nothing_is_fixed(new_page: NewPage) -> None:
    page = opened(new_page, make_gate(team=make_team()), width=1440)
    page.keyboard.press("a")
    assert page.evaluate("getComputedStyle(document.querySelector('.commits')).position") == "static"
    top, facts = (page.locator(part).first.bounding_box() for part in ("#decide", ".action"))
    assert top is not None
    assert facts is not None
    assert top["x"] > facts["x"] + facts["width"]
    assert top["y"] < facts["y"]
