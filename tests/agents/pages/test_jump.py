"""Jumping anywhere, and only to what one may see."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.db import connection
from playwright.sync_api import Page, Route, expect

from checkpoints.postgresql.text_search import prefix_query
from tests.factories import ann, eve, make_card, make_gate, make_team
from tests.harness.browser_checks import composing
from tests.harness.signed_in_clients import signed_in

NewPage = Callable[..., Page]


def found(user: object, q: str) -> str:
    return signed_in(user).get("/jump/", {"q": q}, HTTP_HX_REQUEST="true").content.decode()  # type: ignore[arg-type]


def next_id(table: str, ahead: int = 1) -> int:
    """Use up so many ids of a table, and return the last."""
    with connection.cursor() as cursor:
        taken = "SELECT max(nextval(pg_get_serial_sequence(%s, 'id'))) FROM generate_series(1, %s)"
        cursor.execute(taken, [table, ahead])
        return int(cursor.fetchone()[0] or 0)


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


def test_a_gate_that_has_its_runs_number_is_found_by_either_name() -> None:
    """By "R-7" gate 7 of run 7 was left out as if it were listed first, and "G-7" was no number."""
    lower, higher = sorted((next_id(table), table) for table in ("approvals_gate", "checkpoints_run"))
    next_id(lower[1], higher[0] - lower[0])
    gate = make_gate(team=(team := make_team()))
    assert gate.pk == gate.run_id
    reader, links = ann(team), [f'href="/gates/{gate.pk}/"', f'href="/runs/{gate.run_id}/"']
    for q in (f"R-{gate.pk}", f"G-{gate.pk}", f"g{gate.pk}", f"gate {gate.pk}", str(gate.pk)):
        assert [found(reader, q).count(link) for link in links] == [1, 1], q


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


def test_the_arrows_choose_among_the_words_of_an_input_method_first(new_page: NewPage) -> None:
    """They moved the focus to a result, in the middle of a word."""
    page = new_page(ann(make_team()))
    page.goto("/")
    page.keyboard.press("Control+k")
    expect(page.locator("#places a").first).to_be_visible()
    composing(page, "か")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#jump-q")).to_be_focused()


def test_what_is_typed_last_is_looked_for_however_slow_the_answers_before_it_are(new_page: NewPage) -> None:
    """A slow answer to the opened dialog and to the first letter took the place of the whole word's."""
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


def test_where_its_answer_is_lost_enter_opens_the_search_as_a_page(new_page: NewPage) -> None:
    """Nothing happened, and nothing was said."""
    page = new_page(ann(make_team()))
    page.goto("/")
    page.keyboard.press("Control+k")
    page.route(
        "**/jump/?q=*", lambda route: route.abort() if "hx-request" in route.request.headers else route.continue_()
    )
    page.keyboard.type("zzz")
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


def test_without_script_it_is_a_page(new_page: NewPage) -> None:
    gate = make_gate(team=(team := make_team()), card=make_card(title="Wire to Brightwater"))
    page = new_page(ann(team), java_script_enabled=False)
    page.goto("/")
    page.locator("[data-jump-open]").click()
    page.fill("[name=q]", "brightwater")
    page.keyboard.press("Enter")
    page.locator(".places a").first.click()
    page.wait_for_url(f"**/gates/{gate.pk}/")
    expect(page.locator("h1")).to_contain_text("Wire to Brightwater")
