"""What changed since a reader last looked: in the proposal, and from one gate to the next that asks the same."""

from __future__ import annotations

import re
from typing import Any

import pytest
from channels.db import database_sync_to_async

from approvals.gates import closing
from approvals.models import Draft, Gate, GateVisit
from checkpoints.actors import SYSTEM
from checkpoints.models import Run
from tests.approvals.live.test_socket import socket
from tests.factories import ann, bob, decide, edit_amount, eve, make_card, make_gate, make_policy, make_team, make_user
from tests.harness.signed_in_clients import form_of, post, signed_in

from .test_conversation import go_on
from .test_merging_drafts import AMOUNT, keep, page_of


@pytest.fixture
def gate() -> Gate:
    """A gate that three people have to approve."""
    return make_gate(policy=make_policy(make_team(), quorum=3))


def told(user: Any, gate: Gate) -> str:
    """The part of the page that says what is new, without markup; "" where there is none."""
    found = re.search(r'<section class="sheet" id="since-look".*?</section>', page_of(user, gate), re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", found[0]).split()) if found else ""


def look(user: Any, gate: Gate) -> None:
    GateVisit.objects.look(gate.pk, by=user, proposal=Gate.objects.get(pk=gate.pk).proposal)


def test_an_edit_by_somebody_else_is_told_until_the_next(gate: Gate) -> None:
    mine, other = ann(gate.team), bob(gate.team)
    assert told(mine, gate) == ""
    look(mine, gate)
    assert told(mine, gate) == ""
    decide(gate, other, "edit", arguments=edit_amount(gate, "90.00"))
    said = told(mine, gate)
    assert re.search(r"Changed since you looked at .* by Bob Lindqvist, version 2 .*120\.00.* 90\.00", said), said
    look(mine, gate)
    assert "120.00" in told(mine, gate)  # a reload takes nothing away
    assert told(other, gate) == ""  # they made it
    decide(gate, mine, "edit", arguments=edit_amount(gate, "95.00"))
    assert told(mine, gate) == ""
    look(mine, gate)
    decide(gate, other, "edit", arguments=edit_amount(gate, "99.00"))
    assert re.search(r"95\.00.* 99\.00", told(mine, gate))


def test_an_edit_that_is_told_as_new_is_not_told_twice_and_can_still_be_left_out(gate: Gate) -> None:
    mine, other = ann(gate.team), bob(gate.team)
    look(mine, gate)
    decide(gate, other, "edit", arguments=edit_amount(gate, "90.00"))
    page = page_of(mine, gate)
    assert "120.00" in told(mine, gate)
    assert f'name="restore.{AMOUNT}" value="120.00"' in page
    assert 'id="edits"' not in page
    page = page_of(make_user("Cara Third", gate.team), gate)  # who never looked before
    assert f'name="restore.{AMOUNT}" value="120.00"' in page
    assert 'id="edits"' in page


def test_a_browser_without_script_has_seen_what_it_asked_for(gate: Gate) -> None:
    mine, other = ann(gate.team), bob(gate.team)
    assert told(mine, gate) == ""
    decide(gate, other, "edit", arguments=edit_amount(gate, "90.00"))
    assert "120.00" in told(mine, gate)
    assert "120.00" in told(mine, gate)
    third = make_user("Cara Third", gate.team)
    scripted = signed_in(third)
    scripted.cookies["hp-zone"] = "Europe/Berlin"
    assert scripted.get(f"/gates/{gate.pk}/").status_code == 200
    assert not GateVisit.objects.filter(gate=gate, user=third).exists()  # it says so once it is in sight


def test_an_older_tab_takes_nothing_back_and_a_version_that_is_not_there_is_not_seen(gate: Gate) -> None:
    mine = ann(gate.team)
    GateVisit.objects.look(gate.pk, by=mine, proposal=99)
    assert GateVisit.objects.get(gate=gate, user=mine).proposal == 1
    decide(gate, bob(gate.team), "edit", arguments=edit_amount(gate, "90.00"))
    look(mine, gate)
    GateVisit.objects.look(gate.pk, by=mine, proposal=1)
    visit = GateVisit.objects.get(gate=gate, user=mine)
    assert (visit.proposal, visit.before) == (2, 1)


def test_what_the_agent_changed_after_feedback_is_told_at_its_next_gate() -> None:
    first = make_gate(policy=make_policy(make_team()))
    mine = ann(first.team)
    look(mine, first)
    decide(first, mine, "reject", comment="Only the frames.", then="stop")
    go_on(first)
    less = make_card(title="Refund €90.00", amount="€90.00")
    second = make_gate(policy=first.policy, run=Run.objects.get(pk=first.run_id), card=less)
    said = told(mine, second)
    assert f"the agent asks again; before, it asked at gate {first.pk}" in said
    assert "€120.00" in said
    assert "€90.00" in said
    assert told(bob(second.team), second) == ""  # they never looked at the first


def test_a_draft_of_a_withdrawn_gate_is_carried_to_the_one_that_replaces_it_and_dropped_with_it(gate: Gate) -> None:
    mine = ann(gate.team)
    keep(mine, gate, form_of(gate, "edit", **{AMOUNT: "80.00", "comment": "The limit"}))
    closing.withdraw(gate, by=SYSTEM, reason="Newer version.")
    go_on(gate)
    again = make_gate(policy=gate.policy, run=Run.objects.get(pk=gate.run_id))
    assert again.replaces.filter(pk=gate.pk).exists()
    page = page_of(mine, again)
    assert 'value="80.00"' in page
    assert "The limit" in page
    assert "The gate has changed since then." in page
    assert "80.00" not in page_of(bob(gate.team), again)
    sent = post(mine, again, form_of(again, "edit", **{AMOUNT: "80.00"}))
    assert sent.status_code == 303
    assert not Draft.objects.filter(user=mine).exists()
    assert "restored." not in page_of(mine, again)


def test_discarding_a_carried_draft_discards_it(gate: Gate) -> None:
    mine = ann(gate.team)
    keep(mine, gate, form_of(gate, "edit", **{AMOUNT: "80.00"}))
    closing.withdraw(gate, by=SYSTEM, reason="Newer version.")
    go_on(gate)
    again = make_gate(policy=gate.policy, run=Run.objects.get(pk=gate.run_id))
    signed_in(mine).post(f"/gates/{again.pk}/drafts/", {"discard": "1"})
    assert 'value="80.00"' not in page_of(mine, again)


async def test_a_page_in_sight_is_remembered_as_seen_and_an_outsiders_is_not(gate: Gate) -> None:
    mine, outsider = await database_sync_to_async(ann)(gate.team), await database_sync_to_async(eve)()
    async with socket(mine) as page, socket(outsider) as other:
        for each in (page, other):
            await each.say({"watch": [f"gate:{gate.pk}"], "looking": gate.pk, "proposal": 1})
            await each.hear_all()
        for junk in (True, -1, "1", 2**40):
            await page.say({"watch": [], "looking": gate.pk, "proposal": junk})
        await page.hear_all()
    visits = GateVisit.objects.filter(gate=gate).values_list("user", "proposal")
    assert [each async for each in visits] == [(mine.pk, 1)]
