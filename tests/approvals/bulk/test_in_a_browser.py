"""A selection by keyboard, its bar, its list and its results, in a real browser."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from approvals.models import Decision, Gate
from tests.approvals.bulk.bulk_forms import REASON, alike, make_stuck_plan
from tests.factories import ann, bob, decide, make_card, make_gate, make_policy, make_team
from tests.harness.browser_checks import check, watched

NewPage = Callable[..., Page]


def test_a_selection_is_made_decided_and_read_with_the_keyboard_alone(new_page: NewPage) -> None:
    policy = make_policy(team := make_team())
    gates = alike(4, policy=policy)
    risky = alike(1, policy=policy, risk="high")[0]
    other = make_gate(policy=make_policy(team, name="wires"), card=make_card(title="A wire", risk="low"))
    page = new_page(ann(team))
    said = watched(page)
    page.goto("/")
    bar, why = page.locator(".bulk"), page.locator("[data-bulk-why]")
    expect(bar).to_be_hidden()
    page.keyboard.press("j")
    for _ in range(2):
        page.keyboard.down("x")  # held down, it took back what it had just selected
    page.keyboard.up("x")
    expect(page.locator("[data-bulk-count]")).to_have_text("1 gate selected")
    for _ in range(3):
        page.keyboard.press("j")
    page.keyboard.press("X")
    expect(page.locator("[data-bulk-count]")).to_have_text("4 gates selected")
    expect(page.locator("[data-bulk-sum]")).to_have_text("· €480.00")
    expect(why).to_contain_text("The policy lets you decide this risk together")
    for gate, words in ((risky, "1 has to be decided by itself. The risk is high"), (other, "1 is of another kind")):
        page.keyboard.press("j")
        page.keyboard.press("x")
        expect(page.locator(f"#gate-{gate.pk} [name=gate]")).to_be_checked()
        expect(why).to_contain_text(words)
    # A gate that others decide meanwhile leaves the list, and the rest stays selected.
    decide(gates[3], bob(team))
    expect(page.locator("[data-bulk-count]")).to_have_text("5 gates selected")
    page.keyboard.press("a")
    page.wait_for_url("**/inbox/bulk/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Approve 3 gates")
    assert check(page, "", said) == []
    page.get_by_label("Why these together?").fill(REASON)
    page.get_by_label("I have read what each of the 3 approvals does").check()
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/inbox/bulk/*/")
    expect(page.get_by_role("heading", level=1)).to_have_text("You approved 3 gates")
    assert check(page, "", said) == []
    assert Decision.objects.filter(gate__in=gates[:3]).count() == 3
    assert set(Gate.objects.filter(pk__in=[risky.pk, other.pk]).values_list("status", flat=True)) == {"open"}


def test_without_script_the_list_of_a_rejection_says_what_the_choice_does_to_each(new_page: NewPage) -> None:
    """It said that the run stops though the reviewer chose to send each back, also where no step was named for that."""
    policy = make_policy(team := make_team())
    gates, stuck = alike(2, policy=policy), alike(1, policy=policy, plan=make_stuck_plan())
    page = new_page(ann(team), java_script_enabled=False)
    page.goto("/")
    expect(page.locator(".bulk")).to_be_hidden()
    for gate in (*gates, *stuck):
        page.locator(f"#gate-{gate.pk} [name=gate]").check()
    page.get_by_role("button", name="Reject…").click()
    stops, backs = page.get_by_text("The run stops as rejected"), page.get_by_text("The run goes back to")
    stays = page.locator(f"#bulk-{stuck[0].pk}").get_by_text("Stays open")
    heading = page.get_by_role("heading", level=1)
    expect(stops.locator("visible=true")).to_have_count(3)
    expect(backs.locator("visible=true")).to_have_count(0)
    expect(stays).to_be_hidden()
    expect(heading).to_have_accessible_name("Reject 3 gates")
    page.get_by_label("Send each back").check()
    expect(stops.locator("visible=true")).to_have_count(0)
    expect(backs.locator("visible=true")).to_have_count(2)
    expect(stays).to_be_visible()
    expect(heading).to_have_accessible_name("Send 2 gates back")
    page.get_by_label("Why do you reject these?").fill("Not this month.")
    page.get_by_role("button", name="Send 2 gates back").click()
    expect(heading).to_have_text("You rejected 2 gates")
    decided = Gate.objects.filter(pk__in=[gate.pk for gate in (*gates, *stuck)], status="decided")
    assert set(decided) == set(gates)


def test_a_gate_is_snoozed_brought_back_and_selected_and_progress_shows_no_page_to_sign_in(new_page: NewPage) -> None:
    gate, _ = alike(2, policy=make_policy(team := make_team()))
    page = new_page(ann(team))
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto("/")
    page.keyboard.press("j")
    page.locator(".preview .snooze").wait_for()
    page.keyboard.press("z")
    with page.expect_event("load"):  # keys work once the new page's scripts do
        page.get_by_role("button", name="For an hour").click()
    page.get_by_text("Snoozed until").wait_for()
    expect(page.locator(f"#gate-{gate.pk}")).to_have_count(0)
    with page.expect_event("load"):
        page.keyboard.press("u")
    expect(page.locator(f"#gate-{gate.pk}")).to_have_count(1)
    page.locator("[name=gate]").first.click()
    page.keyboard.press("j")  # it did nothing before something else had the focus
    expect(page.locator(".gate-row a").last).to_be_focused()
    # A session that ended while gates are decided puts no page to sign in into this one.
    page.keyboard.press("a")
    page.wait_for_url("**/inbox/bulk/")
    page.context.clear_cookies(name="sessionid")
    page.evaluate("document.querySelector('hp-bulk').look()")
    expect(page.locator(".bulk-progress")).to_be_empty()
