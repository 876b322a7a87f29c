"""Jumping anywhere, and only to what one may see."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, Route, expect

from checkpoints.postgresql.text_search import prefix_query
from tests.factories import ann, eve, make_card, make_gate, make_team
from tests.harness.browser_checks import composing
from tests.harness.signed_in_clients import signed_in

NewPage = Callable[..., Page]


def found(user: object, q: str) -> str:
    return signed_in(user).get("/jump/", {"q": q}, HTTP_HX_REQUEST="true").content.decode()  # type: ignore[arg-type]


def test_words_are_looked_for_by_their_beginnings_and_never_as_operators() -> None:
    assert prefix_query("Refund 204") == "'Refund':* & ('204':* | '-204':*)"
    assert prefix_query("a' | !b:* & (c) <-> \\d_e") == "'a':* & 'b':* & 'c':* & 'd':* & 'e':*"
    assert prefix_query(" :*!&|() ") == ""
    assert prefix_query("x " * 40).count("'x':*") == 8


def test_a_gate_is_found_by_its_number_and_by_the_beginning_of_a_word_of_its_title() -> None:
    gate = make_gate(team=(team := make_team()), card=make_card(title="Wire to Brightwater <b>Marine</b>"))
    reader = ann(team)
    for q in ("bright", "MARI wire", str(gate.pk), f"gate {gate.pk}"):
        answer = found(reader, q)
        assert f'href="/gates/{gate.pk}/"' in answer
        assert "&lt;b&gt;" in answer
        assert f'href="/gates/{gate.pk}/"' not in found(eve(), q)
    assert f'href="/runs/{gate.run_id}/"' in found(reader, f"R-{gate.run_id}")
    assert f'href="/runs/{gate.run_id}/"' in found(reader, gate.run.title)
    assert f'href="/runs/{gate.run_id}/"' not in found(eve(), gate.run.title)
    assert "No results. You can also search by the number of a gate or a run." in found(reader, "zzz")
    assert 'href="/runs/"' in found(reader, "run")
    for junk in ("\0", "' OR 1=1 --", "9" * 40, ":*"):
        assert "Server Error" not in found(reader, junk)


def test_by_keyboard_alone_from_the_inbox_to_a_gate(new_page: NewPage) -> None:
    gate = make_gate(team=(team := make_team()), card=make_card(title="Wire to Brightwater"))
    page = new_page(ann(team))
    page.goto("/")
    page.keyboard.press("Control+k")
    expect(page.locator(".jump-sheet")).to_be_visible()
    page.keyboard.type("brightw")
    expect(page.locator("#places a")).to_have_count(2)  # the gate, and its run
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/gates/{gate.pk}/")
    page.keyboard.press("Control+k")
    page.keyboard.type(f"R-{gate.run_id}")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/runs/{gate.run_id}/")


def test_what_is_typed_last_is_looked_for_however_the_answers_before_it_come(new_page: NewPage) -> None:
    """A slow answer to the opened dialog and to the first letter took the place of the whole word's; where one was
    lost, Enter did nothing; and the arrows of an input method moved the focus in the middle of a word.
    """
    team = make_team()
    make_gate(team=team, card=make_card(title="Wire to Brightwater"))
    page = new_page(ann(team))
    page.goto("/")
    slow: list[Route] = []
    page.route(re.compile(r"/jump/\?q=b?$"), lambda route: slow.append(route))
    with page.expect_request("**/jump/?q="):
        page.keyboard.press("Control+k")
    with page.expect_request("**/jump/?q=b"):
        page.keyboard.type("b")
    page.keyboard.type("rightw")
    expect(page.locator("#places a")).to_have_count(2)
    assert len(slow) == 2
    page.fill("#jump-q", "")
    composing(page, "か")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#jump-q")).to_be_focused()
    page.route(
        "**/jump/?q=zzz", lambda route: route.abort() if "hx-request" in route.request.headers else route.continue_()
    )
    page.fill("#jump-q", "zzz")
    page.keyboard.press("Enter")
    page.wait_for_url("**/jump/?q=zzz")


def test_on_a_phone_a_button_of_a_fingers_size_opens_it(new_page: NewPage) -> None:
    """It could be opened by the keyboard alone, which a phone has not."""
    gate = make_gate(team=(team := make_team()), card=make_card(title="Wire to Brightwater"))
    page = new_page(ann(team), viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page.goto("/")
    opener = page.get_by_role("link", name="Jump to")
    box = opener.bounding_box()
    assert box is not None
    assert min(box["width"], box["height"]) >= 44
    expect(opener.locator("kbd")).to_be_hidden()
    opener.tap()
    page.get_by_role("searchbox", name="A page, a title, or a number").fill("brightw")
    page.locator("#places a", has_text="Brightwater").tap()
    page.wait_for_url(f"**/gates/{gate.pk}/")
