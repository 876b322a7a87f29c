"""Cut off, the page says so and moves nothing, nothing entered vanishes, and what is sent again counts once."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, WebSocketRoute, expect

from approvals.models import Draft, Gate
from checkpoints.events.commit_order import Cursor
from checkpoints.models import Event
from tests.approvals.views.test_decisions import fresh
from tests.approvals.views.test_files import RECIPIENTS, with_order
from tests.factories import ann, bob, decide, make_card, make_gate, make_policy, make_team, mira
from tests.harness.browser_checks import check, is_live
from tests.harness.waiting import until

NewPage = Callable[..., Page]
AMOUNT = "[name='args.refund/amount']"
AT_ONCE = 30_000  # milliseconds, half of those in which the page waits for an answer
LEFT = """(amount) => {
  document.querySelector(amount).value = "99.50";
  const form = document.querySelector("#decision");
  const name = `hp-draft:${document.querySelector("hp-draft").dataset.gate}`;
  localStorage.setItem(name, JSON.stringify({ seen: form.elements.draft_seen.value, fields: [...new FormData(form)] }));
}"""


def cut(page: Page) -> None:
    """Take the network away; a browser that does so for real ends the socket too."""
    page.context.set_offline(True)
    page.evaluate("document.querySelector('hp-live').socket.close()")


def again(page: Page) -> None:
    page.context.set_offline(False)
    is_live(page)


def bottom(page: Page, part: str) -> float:
    box = page.locator(part).bounding_box()
    assert box is not None
    return box["y"] + box["height"]


def opened(new_page: NewPage, gate: Gate) -> Page:
    page = new_page(ann(gate.team))
    page.goto(f"/gates/{gate.pk}/")
    is_live(page)
    return page


def test_a_page_that_is_cut_off_says_so_and_catches_up(new_page: NewPage) -> None:
    first = make_gate(team=(team := make_team()))
    page = new_page(ann(team), color_scheme="dark", viewport={"width": 390, "height": 900})
    page.goto("/")
    is_live(page)
    cut(page)
    line = page.locator("hp-offline")
    told = re.compile(r"You are offline\. This page may be out of date since ")
    expect(line.get_by_role("status")).to_contain_text(told)
    expect(page.locator("hp-live")).to_contain_text("Offline")
    assert bottom(page, "hp-offline") <= page.locator("#main").bounding_box()["y"]  # type: ignore[index]
    assert bottom(page, "hp-offline") <= bottom(page, ".topbar")
    assert check(page, "", []) == []
    decide(first, bob(team))
    second = make_gate(team=team, card=make_card(title="Asked meanwhile"))
    again(page)
    expect(line).not_to_have_attribute("data-shown", "")
    expect(line.get_by_role("status")).to_be_empty()
    expect(page.locator(f"#gate-{second.pk}")).to_contain_text("Asked meanwhile")
    expect(page.locator(f"#gate-{first.pk}")).to_contain_text("Approved by Bob Lindqvist")
    # A page that missed too much to be told of it draws all of itself again; it said that it was live.
    cut(page)
    third = make_gate(team=team)
    page.evaluate("(cursor) => (document.querySelector('hp-live').cursor = cursor)", str(Cursor(2**60, 1)))
    page.context.set_offline(False)
    expect(page.locator(f"#gate-{third.pk}")).to_be_visible()


def test_where_every_socket_is_ended_drafts_are_kept_and_the_page_looks_by_itself_until_there_is_one_again(
    new_page: NewPage,
) -> None:
    """A proxy that lets no socket through left the page as it was when it was loaded.

    And two drafts were on their way at a time, so that the older one could arrive last and stay.
    """
    gate = make_gate(policy=make_policy(make_team(), quorum=3))
    page = new_page(ann(gate.team))
    ended = [True]

    def connect(socket: WebSocketRoute) -> None:
        socket.close() if ended else socket.connect_to_server()

    page.route_web_socket(re.compile("/ws/"), connect)
    looks: list[str] = []
    page.on("request", lambda request: looks.append(request.url) if "/status/" in request.url else None)
    page.add_init_script("Math.random = () => 0.5")  # it polls every 20 s; the clock goes on by itself besides
    page.clock.install()
    page.goto(f"/gates/{gate.pk}/")
    expect(page.locator("hp-live")).to_contain_text("Paused")
    held: list[Route] = []
    page.route("**/drafts/", lambda route: held.append(route))
    page.fill(AMOUNT, "99.50")
    page.clock.run_for(1_000)
    until(lambda: page.evaluate("1") and held, what="the first is on its way")
    page.fill(AMOUNT, "98.00")
    page.clock.run_for(5_000)
    assert len(held) == 1
    held.pop().continue_()
    page.unroute("**/drafts/")
    page.clock.run_for(1_000)
    mine = Draft.objects.filter(gate=gate)
    until(lambda: page.evaluate("1") and [each.fields.get("args.refund/amount") for each in mine.all()] == ["98.00"])
    decide(gate, bob(gate.team))
    assert looks == []
    page.clock.run_for(13_000)
    expect(page.locator("#gate-agreement")).to_contain_text("Bob Lindqvist")
    assert len(looks) == 1
    page.clock.run_for(6_000)
    expect(page.locator("hp-offline [role=status]")).to_contain_text("checks for changes about every 20 seconds")
    page.route("**/gates/**", lambda route: route.abort())
    page.clock.run_for(26_000)
    status = page.locator("hp-offline [role=status]")
    expect(status).to_contain_text("Live updates are paused. This page may be out of date since")
    expect(status).to_contain_text("What you type is kept.")
    page.get_by_role("button", name="Hide").click()
    expect(page.get_by_role("button", name="Hide")).to_be_hidden()
    page.unroute("**/gates/**")
    ended.clear()
    page.clock.run_for(16_000)  # by then it has tried again
    is_live(page)
    expect(page.locator("hp-offline [role=status]")).to_be_empty()
    decide(gate, mira(gate.team))
    page.clock.run_for(1_000)
    expect(page.locator("#gate-agreement")).to_contain_text("Mira Sandoval")  # so it has caught up with what it missed
    before = len(looks)
    for _ in range(5):  # in pieces: in one jump the server could not answer in time, and the socket would be given up
        page.clock.run_for(18_000)
        until(
            lambda: page.evaluate("Date.now() - document.querySelector('hp-live').heard < 3000"), what="it is answered"
        )
    assert len(looks) - before < 4  # what Mira's vote still asks for; by itself it would look four times more


def test_what_cannot_be_sent_outlives_the_page_and_is_sent_once_later(new_page: NewPage) -> None:
    """The browser's copy was dropped when the button was pressed, whether or not anything arrived."""
    gate = make_gate(team=make_team())
    page = opened(new_page, gate)
    note, commit = page.get_by_role("alert"), page.locator("[data-commit]:visible")
    cut(page)
    page.fill(AMOUNT, "99.50")
    expect(page.locator("[data-draft-note]")).to_contain_text("Draft not saved: offline")
    commit.click()
    expect(note).to_contain_text("Not sent: you are offline. All that you entered is still here.")
    page.goto("about:blank")
    page.context.set_offline(False)
    page.goto(f"/gates/{gate.pk}/")
    expect(page.locator(AMOUNT)).to_have_value("99.50")
    expect(page.locator("[data-draft-note]")).to_contain_text("restored.")
    assert Draft.objects.get(gate=gate).fields["args.refund/amount"] == "99.50", "the server has it by now"
    is_live(page)
    key = page.locator("#decision [name=key]").input_value()
    cut(page)
    page.locator("label[data-choice=reject]").click()
    page.check("[name=then][value=back]")
    page.fill("#feedback", "Ask for the receipt")
    commit.click()
    expect(note).to_contain_text("Not sent: you are offline.")
    expect(page.locator("#feedback")).to_have_value("Ask for the receipt")
    expect(commit).to_be_enabled()
    expect(page.locator(".sending")).to_have_count(0)
    note.get_by_role("button", name="Try again").click()
    expect(note).to_contain_text("Not sent")
    again(page)
    expect(note).to_contain_text("You are connected again.")
    note.get_by_role("button", name="Try again").click()
    expect(page.locator("#gate-news")).to_contain_text("Rejected by Ann Okafor")
    assert fresh(gate).decisions.get().key == key
    assert bytes(fresh(gate).outcome.feedback).decode() == "Ask for the receipt"


def test_what_an_earlier_visit_left_takes_nothing_from_what_is_typed_meanwhile(new_page: NewPage) -> None:
    """The page was loaded again once the earlier draft had arrived, and showed that instead of what was typed."""
    gate = make_gate(team=make_team())
    page = opened(new_page, gate)
    page.evaluate(LEFT, AMOUNT)
    held: list[Route] = []
    page.route("**/drafts/", lambda route: route.continue_() if held else held.append(route))
    page.goto(f"/gates/{gate.pk}/")
    until(lambda: page.evaluate("1") and held, what="what was left is on its way")
    page.fill(AMOUNT, "98.00")
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url) if request.is_navigation_request() else None)
    held[0].continue_()
    kept = Draft.objects.filter(gate=gate)
    until(lambda: page.evaluate("1") and [each.fields["args.refund/amount"] for each in kept.all()] == ["98.00"])
    assert loaded == []
    expect(page.locator(AMOUNT)).to_have_value("98.00")


def test_a_draft_under_way_is_cut_off_by_the_decision_that_it_was_kept_for(new_page: NewPage) -> None:
    """Its answer came after the decision: the page said that the gate is closed while the decision was being shown."""
    gate = make_gate(team=make_team())
    page = opened(new_page, gate)
    drafts: list[Route] = []
    decisions: list[Route] = []
    cut_off: list[str] = []
    page.route("**/drafts/", lambda route: drafts.append(route))
    page.route("**/decisions/", lambda route: decisions.append(route))
    page.on("requestfailed", lambda request: cut_off.append(request.url))
    page.locator("label[data-choice=reject]").click()
    page.fill("#feedback", "Ask for the receipt")
    until(lambda: page.evaluate("1") and drafts, what="the draft is on its way")
    page.locator("[data-commit]:visible").click()
    until(lambda: page.evaluate("1") and decisions, what="the decision is on its way")
    assert [url.rsplit("/", 2)[1] for url in cut_off] == ["drafts"]
    decisions[0].continue_()
    expect(page.locator("#gate-news")).to_contain_text("Rejected by Ann Okafor")
    assert not Draft.objects.filter(gate=gate).exists()


class Hanging:
    """Stands between a page and its server, which answers nothing any more once it hangs."""

    def __init__(self, page: Page) -> None:
        self.hangs = False
        page.route_web_socket(re.compile("/ws/"), self.socket)

    def socket(self, route: WebSocketRoute) -> None:
        if self.hangs:  # a connection that nobody answers would be opened by the browser's driver itself
            route.close()
            return
        server = route.connect_to_server()
        server.on_message(lambda said: None if self.hangs else route.send(said))


def lose(route: Route) -> None:
    """Have the server take it, and its answer get lost."""
    route.fetch(max_redirects=0)
    route.abort("connectionreset")


def test_what_a_server_does_not_answer_is_sent_again_as_what_it_was_and_counts_once(new_page: NewPage) -> None:
    """Try again forgot the button that was pressed, and sent the form as the decision that was chosen in it.

    And at a server that hangs the page stood still for a minute under the word Live.
    """
    policy = make_policy(make_team(), quorum=2)
    asked = with_order({"to": ["a@example.org"]}, policy=policy, to=RECIPIENTS)
    page = opened(new_page, asked)
    page.fill('[name="args.refund/to/0"]', "b@example.org")
    cut(page)
    page.locator('[data-change][value$=":add"]').click()
    note = page.locator(".not-sent")
    expect(note).to_contain_text("Not sent: you are offline.")
    again(page)
    note.get_by_role("button", name="Try again").click()
    expect(page.locator('[name^="args.refund/to/~new"]')).to_be_visible()
    expect(page.locator('[name="args.refund/to/0"]')).to_have_value("b@example.org")
    assert fresh(asked).decisions.count() == 0

    decide(asked, bob(policy.team), "reject")  # so that no other gate follows
    gate = make_gate(policy=policy)
    page.goto(f"/gates/{gate.pk}/")
    is_live(page)
    page.route("**/decisions/", lose, times=1)
    page.locator("label[data-choice=approve]").click()
    page.locator("[data-commit]:visible").click()
    expect(note).to_contain_text("No answer from the server. We don't know if it arrived.")
    assert fresh(gate).decisions.count() == 1
    with page.expect_event("load"):  # a live update said it before
        note.get_by_role("button", name="Try again").click()
    expect(page.locator("#gate-news")).to_contain_text("Approved by you.")
    expect(page.locator("#refusal")).to_have_count(0)
    assert fresh(gate).decisions.count() == 1
    assert not Event.objects.filter(kind="decision.refused", subject=gate.subject).exists()

    server = Hanging(page)
    page.goto(f"/gates/{make_gate(policy=policy).pk}/")
    is_live(page)
    server.hangs = True
    page.route("**/decisions/", lambda route: None)
    page.locator("label[data-choice=approve]").click()
    page.locator("[data-commit]:visible").click()
    expect(page.locator("#decision .sending")).to_have_text("Sending…", timeout=AT_ONCE)
    expect(page.locator("hp-live")).not_to_have_attribute("data-live", "on")
    expect(page.locator("hp-live")).not_to_contain_text("Live")


@pytest.mark.long
def test_over_plain_http_what_was_taken_leaves_the_page_and_a_second_word_is_said(new_page: NewPage) -> None:
    """A browser gives crypto.randomUUID to secure pages alone: taken, the form stayed as if nothing had happened."""
    gate = make_gate(team=make_team())
    page = new_page(ann(gate.team))
    page.add_init_script("delete Crypto.prototype.randomUUID")
    page.goto(f"/gates/{gate.pk}/")
    is_live(page)
    for words in ("Is this the same hostel?", "And the same week?"):
        page.fill("#ask", words)
        page.press("#ask", "Enter")
        expect(page.locator("#gate-remarks")).to_contain_text(words)
        expect(page.locator("#ask")).to_have_value("")
