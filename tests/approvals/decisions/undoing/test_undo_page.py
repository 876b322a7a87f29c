"""The gate's page while a decision may still be undone."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client
from playwright.sync_api import Page, expect

from tests.factories import ann, bob, decide, make_gate, make_team, make_user
from tests.harness.signed_in_clients import form_of, signed_in

from .windows import end_window, make_held, now


def shown(client: Client, gate: int) -> str:
    answer = client.get(f"/gates/{gate}/")
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_it_says_who_decided_what_happens_when_and_offers_the_undo() -> None:
    team = make_team()
    gate, person = make_held(team), ann(team)
    made = decide(gate, person)
    page = shown(signed_in(person), gate.pk)
    assert "Approved by you." in page
    assert "Pays €120.00" in page or "Refunds €120.00" in page or "once, at" in page
    assert 'data-as="countdown"' in page
    assert f'action="/gates/{gate.pk}/undos/"' in page
    assert f'name="decision" value="{made.pk}"' in page


def test_of_several_rejections_it_says_what_the_last_one_does() -> None:
    team = make_team()
    gate = make_held(team, denials=2)
    decide(gate, ann(team), "reject", then="back")
    decide(gate, bob(team), "reject")
    page = shown(signed_in(bob(team)), gate.pk)
    assert "Rejected by" in page
    assert "The gate closes as rejected" in page
    assert "The agent tries again" not in page


def test_the_preview_in_the_inbox_counts_down_and_offers_the_undo() -> None:
    team = make_team()
    gate, person = make_held(team), ann(team)
    decide(gate, person)
    for who, undoes in ((person, True), (bob(team), False)):
        page = signed_in(who).get(f"/gates/{gate.pk}/preview/").content.decode()
        assert 'role="timer"' in page
        assert 'data-as="countdown"' in page
        assert "If you approve" not in page
        assert ("/undos/" in page) is undoes


def test_a_colleague_sees_it_and_may_still_reject_it_and_has_no_undo() -> None:
    team = make_team()
    gate = make_held(team)
    decide(gate, ann(team))
    page = shown(signed_in(bob(team)), gate.pk)
    assert "Approved by Ann Okafor." in page
    assert "Until then you can still reject or edit it." in page
    assert "/undos/" not in page


def test_a_colleague_is_not_told_to_edit_what_was_rejected() -> None:
    team = make_team()
    gate = make_held(team)
    decide(gate, ann(team), "reject")
    page = shown(signed_in(bob(team)), gate.pk)
    assert "Until it is undone, nobody else can approve or edit it." in page
    assert "Until then you can still reject or edit it." not in page


def test_the_form_takes_it_back_and_leads_to_the_decision_again() -> None:
    team = make_team()
    gate, person = make_held(team), ann(team)
    made = decide(gate, person)
    client = signed_in(person)
    answer = client.post(f"/gates/{gate.pk}/undos/", {"decision": made.pk})
    assert (answer.status_code, answer["Location"]) == (303, f"/gates/{gate.pk}/?undone={made.pk}#decide")
    assert now(gate).settles_at is None
    assert "Your decision" in shown(client, gate.pk)
    page = client.get(answer["Location"]).content.decode()
    assert "Your approval was undone." in page
    assert "Nothing was done." in page
    assert "was undone" not in signed_in(bob(team)).get(answer["Location"]).content.decode()
    decide(gate, person)
    assert "was undone" not in client.get(answer["Location"]).content.decode()
    client.post(f"/gates/{gate.pk}/undos/")
    again = client.post(f"/gates/{gate.pk}/undos/", {"decision": made.pk})
    assert again.status_code == 409
    assert "There is nothing to undo." in again.content.decode()


def test_a_form_that_is_sent_again_after_the_undo_says_that_it_decided_nothing() -> None:
    """Back in the browser and sent once more, it led on to the next gate as if it had been recorded."""
    team = make_team()
    gate, person = make_held(team), ann(team)
    client = signed_in(person)
    filled = form_of(gate)
    assert client.post(f"/gates/{gate.pk}/decisions/", filled).status_code == 303
    assert now(gate).settles_as == "approved"
    client.post(f"/gates/{gate.pk}/undos/")
    answer = client.post(f"/gates/{gate.pk}/decisions/", filled)
    assert answer.status_code == 409
    page = answer.content.decode()
    assert "This form was sent before" in page
    assert now(gate).settles_at is None
    [key] = set(re.findall(r'name="key" value="(\w+)"', page))
    assert key != filled["key"]
    assert client.post(f"/gates/{gate.pk}/decisions/", {**filled, "key": key}).status_code == 303
    assert now(gate).settles_as == "approved"


def test_too_late_it_says_so_on_the_page_of_the_closed_gate() -> None:
    team = make_team()
    gate, person = make_held(team), ann(team)
    made = decide(gate, person)
    end_window(gate)
    answer = signed_in(person).post(f"/gates/{gate.pk}/undos/", {"decision": made.pk})
    assert answer.status_code == 409
    assert "Too late to undo." in answer.content.decode()


@pytest.mark.parametrize("number", ["", "x", "999999999999999999999", "-1"])
def test_a_decision_by_another_number_or_none_at_all(number: str) -> None:
    team = make_team()
    gate, person = make_held(team), ann(team)
    decide(gate, person)
    answer = signed_in(person).post(f"/gates/{gate.pk}/undos/", {"decision": number})
    assert answer.status_code == 303  # junk names none, so that it is the one that counts


def test_after_the_decision_the_next_gate_offers_the_undo_of_the_last() -> None:
    team = make_team()
    first, second = make_held(team), make_held(team)
    client = signed_in(ann(team))
    answer = client.post(f"/gates/{first.pk}/decisions/", {**form_of(first), "follows": "yes", "follow": "yes"})
    assert answer["Location"] == f"/gates/{second.pk}/?decided={first.pk}"
    page = " ".join(client.get(answer["Location"]).content.decode().split())
    assert "It takes effect at" in page
    assert f'action="/gates/{first.pk}/undos/"' in page


def test_the_key_of_every_undo_is_u_and_never_the_key_of_the_decisions_form() -> None:
    """`Undo [fe82491e…]`: the page's `key`, under which its form counts once, was drawn as the button's key."""
    team = make_team()
    first, second = make_held(team), make_held(team)
    client = signed_in(ann(team))
    client.post(f"/gates/{first.pk}/decisions/", form_of(first))
    for page in (shown(client, first.pk), client.get(f"/gates/{second.pk}/?decided={first.pk}").content.decode()):
        forms = re.findall(r'<form class="undo".*?</form>', page, re.DOTALL)
        keys = [set(re.findall(r'data-hotkey="([^"]*)"|<kbd class="key">([^<]*)</kbd>', form)) for form in forms]
        assert {("u", ""), ("", "u")} in keys
        assert all(each <= {("u", ""), ("", "u")} for each in keys)
        assert all("csrfmiddlewaretoken" in form for form in forms)


def test_u_on_the_next_gates_page_takes_the_last_decision_back(new_page: Callable[..., Page]) -> None:
    team = make_team()
    first, second = make_held(team), make_held(team)
    page = new_page(ann(team))
    page.goto(f"/gates/{first.pk}/")
    page.locator("label[data-choice=approve]").click()
    page.locator("[data-commit]:visible").click()
    page.wait_for_url(f"**/gates/{second.pk}/?decided={first.pk}")
    page.keyboard.press("u")
    expect(page.locator("#undone")).to_contain_text("Your approval was undone.")
    assert now(first).settles_at is None


def test_a_policy_without_a_window_offers_none() -> None:
    team = make_team()
    gate, person = make_gate(team=team), ann(team)
    decide(gate, person)
    assert "/undos/" not in shown(signed_in(person), gate.pk)


def test_in_the_inbox_it_waits_for_nobody_and_is_shown_with_its_countdown() -> None:
    team = make_team()
    gate = make_held(team)
    decide(gate, ann(team))
    other = bob(team)
    page = " ".join(signed_in(other).get("/").content.decode().split())
    assert "Approved, takes effect" in page
    assert 'data-open-count="0"' in page
    everything = " ".join(signed_in(other).get("/?queue=all").content.decode().split())
    assert everything.count("Approved, takes effect") == 1


def test_an_outsider_is_told_nothing() -> None:
    gate = make_held(make_team())
    assert signed_in(make_user("Eve")).post(f"/gates/{gate.pk}/undos/").status_code == 404
