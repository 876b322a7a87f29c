"""Red and amber as a person meets them: in both themes, narrow and wide, and without a script."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.agents.compatibility.conftest import Deploy
from tests.conftest import SharedWeb, sign_in
from tests.factories import ann, make_gate, make_team
from tests.factories.driven_runs import advance_to_rest, make_run, open_gate
from tests.harness.browser_checks import check_each_look, watched


@pytest.mark.examples
def test_red_and_amber_have_no_fault_that_axe_can_find(deploy: Deploy, shared_web: SharedWeb, browser: Browser) -> None:
    team = make_team()
    deploy("one")
    gate = open_gate(advance_to_rest(make_run("porter", team=team, order="A-1")))
    unknown = make_gate(team=team)
    base = shared_web({"HOLDPOINT_AGENTS": "tests.agents.compatibility.porter.two_bare"})
    context = browser.new_context(base_url=base)
    sign_in(context, ann(team), base)
    page = context.new_page()
    said = watched(page)
    faults: list[str] = []
    for address in (f"/gates/{gate.pk}/", f"/runs/{gate.run_id}/", f"/gates/{unknown.pk}/"):
        faults += check_each_look(page, address, said)
        assert page.locator(".preflight[open]").is_visible()
    assert faults == []


def test_without_a_script_the_reasons_are_there_and_a_choice_is_not(
    deploy: Deploy, shared_web: SharedWeb, browser: Browser
) -> None:
    team = make_team()
    deploy("one")
    gate = open_gate(advance_to_rest(make_run("porter", team=team, order="A-1")))
    base = shared_web({"HOLDPOINT_AGENTS": "tests.agents.compatibility.porter.two_bare"})
    context = browser.new_context(base_url=base, java_script_enabled=False)
    sign_in(context, ann(team), base)
    page = context.new_page()
    page.goto(f"/gates/{gate.pk}/")
    assert page.get_by_text("Write an upcaster from 1 to 2").is_visible()
    assert page.locator("[name=verdict]").count() == 0
    page.get_by_role("link", name="cancel it on its page").click()
    expect(page.locator("#cancel")).to_be_visible()
    context.close()
