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
    assert 'href="/jump/"' in signed_in(reader).get("/").content.decode(), "a phone has no keys to open it by"
    for junk in ("\0", "' OR 1=1 --", "9" * 40, ":*"):
        assert "Server Error" not in found(reader, junk)


def test_by_keyboard_alone_to_a_gate_whatever_the_order_of_the_answers(new_page: NewPage) -> None:
    """A slow answer to the opened dialog and to the first letter took the place of the whole word's; where one was
    lost, Enter did nothing; and the arrows of an input method moved the focus in the middle of a word.
    """
    gate = make_gate(team=(team := make_team()), card=make_card(title="Wire to Brightwater"))
    page = new_page(ann(team))
    page.goto("/")
    slow: list[Route] = []
    # All but the whole word: what is found by the letters before it is the same, and would be drawn anew meanwhile.
    begun = "|".join("brightw"[:letters] for letters in range(7))
    page.route(re.compile(rf"/jump/\?q=({begun})$"), lambda route: slow.append(route))
    with page.expect_request("**/jump/?q="):
        page.keyboard.press("Control+k")
    expect(page.locator(".jump-sheet")).to_be_visible()
    with page.expect_request("**/jump/?q=b"):
        page.keyboard.type("b")
    page.keyboard.type("rightw")
    expect(page.locator("#places a")).to_have_count(2)  # the gate, and its run
    assert len(slow) >= 2
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/gates/{gate.pk}/")
    page.keyboard.press("Control+k")
    composing(page, "か")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#jump-q")).to_be_focused()
    page.route(
        "**/jump/?q=zzz", lambda route: route.abort() if "hx-request" in route.request.headers else route.continue_()
    )
    page.fill("#jump-q", "zzz")
    page.keyboard.press("Enter")
    page.wait_for_url("**/jump/?q=zzz")
