"""What a reviewer has entered outlives the page and what others do, is merged with it, and is nobody else's.

What others changed meanwhile is told, in the proposal and from one gate to the next that asks the same.
"""

from __future__ import annotations

import datetime as dt
import html
import re
import threading
from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.db import connection, transaction

from approvals.forms.texts import as_json
from approvals.gates import closing
from approvals.models import Draft, Gate, GateVisit, Outcome
from approvals.models.draft import NotKept
from approvals.presentation.decision_form import conflicts, whole_state
from approvals.presentation.decision_form.conflicts import OpenConflict
from approvals.schema import redact
from checkpoints.actors import SYSTEM
from checkpoints.models import Run
from tests.approvals.live.test_socket import socket
from tests.approvals.views.test_gate_page import go_on
from tests.factories import (
    ann,
    bob,
    change_gate,
    decide,
    edit_amount,
    eve,
    make_card,
    make_gate,
    make_policy,
    make_team,
    make_user,
)
from tests.harness.signed_in_clients import form_of, post, signed_in

AMOUNT, REASON = "args.refund/amount", "args.refund/reason"


def keep(user: Any, gate: Gate, form: dict[str, str]) -> Any:
    return signed_in(user).post(f"/gates/{gate.pk}/drafts/", form, HTTP_ACCEPT="application/json")


def page_of(user: Any, gate: Gate) -> str:
    return signed_in(user).get(f"/gates/{gate.pk}/").content.decode()


def test_a_draft_is_in_the_fields_again_on_any_machine_and_nobody_elses() -> None:
    gate = make_gate(team=(team := make_team()))
    reviewer, colleague = ann(team), bob(team)
    answer = keep(reviewer, gate, form_of(gate, "edit", **{AMOUNT: "80.00", "comment": "The shop's limit"}))
    assert answer.json()["kept_at"]
    mine, theirs = page_of(reviewer, gate), page_of(colleague, gate)
    for words in ('value="80.00"', "The shop&#x27;s limit", "restored."):
        assert words in mine
    assert "80.00" not in theirs
    assert "restored." not in theirs


def test_a_form_that_says_nothing_empties_the_draft_and_what_comes_in_late_brings_none_back() -> None:
    """The later of two equal requests gave the draft another time, and the page that had read the first was refused."""
    gate = make_gate(team=(team := make_team()))
    reviewer = ann(team)
    late = form_of(gate, "", comment="Hm", draft_seen="")
    seen, again = (keep(reviewer, gate, late).json()["kept_at"] for _ in range(2))
    assert seen == again
    emptied = keep(
        reviewer, gate, {**form_of(gate, "", **{AMOUNT: "120.00", "comment": " "}), "key": "next", "draft_seen": seen}
    )
    assert (emptied.status_code, emptied.json()["empty"]) == (200, True)
    assert keep(reviewer, gate, late).status_code == 409
    assert Draft.objects.get(gate=gate).empty
    page = page_of(reviewer, gate)
    assert "restored." not in page
    assert f'name="draft_seen" value="{emptied.json()["kept_at"]}"' in page


def test_the_decision_takes_the_draft_and_a_late_keeping_of_the_same_form_brings_none_back() -> None:
    gate = make_gate(policy=make_policy(team := make_team(), quorum=2))
    reviewer = ann(team)
    form = form_of(gate, "approve", comment="Fine")
    keep(reviewer, gate, form)
    assert post(reviewer, gate, form).status_code == 303
    assert not Draft.objects.filter(gate=gate).exists()
    late = keep(reviewer, gate, form)
    assert (late.status_code, late.json()) == (409, {"problem": "This form was sent already."})
    assert not Draft.objects.filter(gate=gate).exists()


def test_a_keeping_that_meets_the_decision_waits_for_it_and_keeps_nothing() -> None:
    gate = make_gate(policy=make_policy(team := make_team(), quorum=2))
    reviewer = ann(team)
    form = form_of(gate, "approve", comment="Fine")
    kept: list[object] = []

    def late() -> None:
        try:
            kept.append(Draft.objects.keep(gate, by=reviewer, proposal=1, fields={"comment": "Fine"}, key=form["key"]))
        except NotKept as why:
            kept.append(str(why))
        connection.close()

    with transaction.atomic():
        Gate.objects.select_for_update().get(pk=gate.pk)
        meeting = threading.Thread(target=late)
        meeting.start()
        meeting.join(0.3)
        assert meeting.is_alive()
        gate.decisions.create(
            user=reviewer, proposal=gate.standing(), verdict="approve", seen=b"", key=form["key"], request=b""
        )
    meeting.join(10)
    change_gate(gate)
    assert kept == ["This form was sent already."]


def test_what_somebody_had_entered_when_another_was_faster_is_shown_to_them_and_can_be_discarded() -> None:
    gate = make_gate(team=(team := make_team()))
    slow = ann(team)
    keep(slow, gate, form_of(gate, "edit", **{AMOUNT: "80.00", "comment": "Half of it"}))
    decide(gate, bob(team))
    page = page_of(slow, gate)
    for words in ("Your draft was not sent", "80.00", "Half of it"):
        assert words in page
    assert signed_in(slow).post(f"/gates/{gate.pk}/drafts/", {"discard": "1"}).status_code == 303
    assert "Your draft was not sent" not in page_of(slow, gate)


def test_a_closed_gate_takes_no_draft_one_too_long_leaves_the_one_before_it_and_what_is_old_is_cleared() -> None:
    gate = make_gate(team=(team := make_team()))
    reviewer = ann(team)
    keep(reviewer, gate, form_of(gate, "approve", comment="Short") | {"key": "a\0b" * 100})  # which PostgreSQL refuses
    assert keep(reviewer, gate, form_of(gate, "approve", comment="x" * 1_000_001)).status_code == 413
    assert Draft.objects.get(gate=gate).fields["comment"] == "Short"
    decide(gate, bob(team))
    assert keep(make_user("Mira", team), gate, form_of(gate, "approve")).status_code == 409
    assert not Draft.objects.outlived(dt.timedelta(days=30)).filter(gate=gate).exists()
    Gate.objects.filter(pk=gate.pk).update(closed_at=gate.opened_at - dt.timedelta(days=31))
    assert Draft.objects.outlived(dt.timedelta(days=30)).filter(gate=gate).count() == 1


def test_a_page_drawn_before_another_kept_a_draft_does_not_write_over_it_unless_it_runs_no_script() -> None:
    gate = make_gate(team=(team := make_team()))
    reviewer = ann(team)
    first = keep(reviewer, gate, form_of(gate, "approve", comment="From the desk", draft_seen=""))
    stale = keep(reviewer, gate, form_of(gate, "approve", comment="From the train", draft_seen=""))
    assert stale.status_code == 409
    assert "newer draft" in stale.json()["problem"]
    assert Draft.objects.get(gate=gate).fields["comment"] == "From the desk"
    seen = first.json()["kept_at"]
    assert f'name="draft_seen" value="{seen}"' in page_of(reviewer, gate)
    keep(reviewer, gate, form_of(gate, "approve", comment="At the desk again", draft_seen=seen))
    assert Draft.objects.get(gate=gate).fields["comment"] == "At the desk again"
    unscripted = form_of(gate, "approve", comment="From the train", draft_seen="")
    assert signed_in(reviewer).post(f"/gates/{gate.pk}/drafts/", unscripted).status_code == 303
    assert Draft.objects.get(gate=gate).fields["comment"] == "From the train"


def test_a_page_drawn_in_answer_to_a_refused_send_goes_on_keeping_the_draft() -> None:
    """The refused page no longer knew of the draft that it was drawn with, and took it for another page's."""
    gate = make_gate(team=(team := make_team()))
    reviewer = ann(team)
    seen = keep(reviewer, gate, form_of(gate, "edit", **{AMOUNT: "80.00"})).json()["kept_at"]
    form = form_of(gate, "", **{AMOUNT: "80.00", "draft_seen": seen})  # of the page loaded anew, with a key of its own
    refused = post(reviewer, gate, form)
    assert refused.status_code == 422
    [known] = re.findall(r'name="draft_seen" value="([^"]*)"', refused.content.decode())
    kept = keep(reviewer, gate, {**form, "comment": "Half of it", "draft_seen": html.unescape(known)})
    assert kept.status_code == 200, kept.json()
    assert Draft.objects.get(gate=gate).fields["comment"] == "Half of it"


def test_a_draft_that_a_crash_left_behind_its_decision_is_none() -> None:
    gate = make_gate(policy=make_policy(team := make_team(), quorum=2))
    reviewer = ann(team)
    form = form_of(gate, "approve", comment="Fine")
    keep(reviewer, gate, form)
    decide(gate, reviewer, key=form["key"], comment="Fine")
    assert Draft.objects.filter(gate=gate).count() == 1
    assert "restored." not in page_of(reviewer, gate)
    assert "Your draft was not sent" not in page_of(reviewer, gate)


@pytest.fixture
def gate() -> Gate:
    return make_gate(policy=make_policy(make_team(), quorum=2))


def test_a_conflict_shows_both_values_and_blocks_until_one_is_chosen(gate: Gate) -> None:
    mine = ann(gate.team)
    keep(mine, gate, form_of(gate, "edit", **{AMOUNT: "80.00"}))
    decide(gate, bob(gate.team), "edit", arguments=edit_amount(gate, "90.00"))
    page = page_of(mine, gate)
    assert "Your draft and the new version differ" in page
    assert f'name="conflict.{AMOUNT}" value="80.00"' in page
    gate.refresh_from_db()
    sent = {AMOUNT: "80.00", f"conflict.{AMOUNT}": "80.00"}
    refused = post(mine, gate, form_of(gate, "edit", **sent))
    assert refused.status_code == 422
    said = refused.content.decode()
    assert "Choose whose value counts." in said
    assert f'name="conflict.{AMOUNT}" value="80.00"' in said
    keep(mine, gate, form_of(gate, "edit", **sent))
    assert f'name="conflict.{AMOUNT}" value="80.00"' in page_of(mine, gate)  # a reload asks again
    taken = post(mine, gate, form_of(gate, "edit", **sent, **{f"counts.{AMOUNT}": "mine"}))
    assert taken.status_code == 303
    assert gate.proposals.latest("number").card.actions[0].arguments["amount"] == "80.00"


def test_taking_theirs_approves_the_version_as_it_is(gate: Gate) -> None:
    mine = ann(gate.team)
    decide(gate, bob(gate.team), "edit", arguments=edit_amount(gate, "90.00"))
    gate.refresh_from_db()
    sent = {AMOUNT: "80.00", f"conflict.{AMOUNT}": "80.00", f"counts.{AMOUNT}": "theirs"}
    assert post(mine, gate, form_of(gate, "approve", **sent)).status_code == 303
    outcome = Outcome.objects.get(gate=gate)
    assert b"90.00" in bytes(outcome.arguments)


def test_an_undecided_conflict_is_no_empty_draft_and_stops_no_rejection(gate: Gate) -> None:
    mine = ann(gate.team)
    decide(gate, bob(gate.team), "edit", arguments=edit_amount(gate, "90.00"))
    gate.refresh_from_db()
    lost = {"conflict.args.gone/text": "what I wrote"}
    keep(mine, gate, form_of(gate, "", **lost))
    assert not Draft.objects.get(gate=gate).empty
    page = page_of(mine, gate)
    assert "what I wrote" in page
    assert "has no such field any more" in page
    assert post(mine, gate, form_of(gate, "approve", **lost)).status_code == 422
    assert post(mine, gate, form_of(gate, "reject", **lost, feedback="No.", then="stop")).status_code == 303


def test_a_text_for_an_item_that_is_gone_opposes_no_field() -> None:
    gone = {"args.refund/lines/~gone1/count": OpenConflict(mine="5")}
    [found] = conflicts.shown(gone, [])
    assert (found.label, found.mine, found.theirs) == ("lines 2 count", "5", None)
    assert [each["message"] for each in conflicts.undecided(gone, make_card())] == [str(conflicts.CHOOSE)]


def test_the_whole_state_is_merged_member_by_member_and_opposed_ones_are_chosen() -> None:
    gate = make_gate(policy=make_policy(make_team(), quorum=2, whole_state=True))
    mine, state = ann(gate.team), gate.saved.state
    typed = {**state, "proposal": {**state["proposal"], "amount": "80.00"}, "order": {"number": "A-2"}}
    keep(mine, gate, form_of(gate, "edit", state=as_json(typed)))
    decide(gate, bob(gate.team), "edit", arguments=edit_amount(gate, "90.00"))
    page = page_of(mine, gate)
    assert 'name="conflict.state/proposal/amount"' in page
    assert 'name="conflict.state/order' not in page
    gate.refresh_from_db()
    sent = {"state": as_json(typed), "conflict.state/proposal/amount": '"80.00"'}
    assert post(mine, gate, form_of(gate, "edit", **sent)).status_code == 422
    taken = post(mine, gate, form_of(gate, "edit", **sent, **{"counts.state/proposal/amount": "theirs"}))
    assert taken.status_code == 303, taken.content.decode()
    assert gate.proposals.latest("number").card.actions[0].arguments["amount"] == "90.00"


@pytest.mark.parametrize(
    ("typed", "at", "state", "settled"),
    [
        ({"b": 2}, "/a", {"a": 9, "b": 1}, {"a": 9, "b": 2}),  # I took it out, they changed it
        ({"a": 5, "b": 2}, "/a", {"b": 1}, {"b": 2}),  # they took it out
        ({"in": [1]}, "/in/0", {"in": {"0": 9}}, {"in": [1]}),  # there is no such place in what was typed since
    ],
)
def test_theirs_is_what_the_current_state_has_at_the_place(typed: Any, at: str, state: Any, settled: Any) -> None:
    """A value that the reader had taken out stayed out, though they chose the new version's."""
    form = {"state": as_json(typed), f"conflict.state{at}": "x", f"counts.state{at}": "theirs"}
    assert whole_state.read(form, state, redact.OPEN).state == settled


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
    for reader, edits in ((mine, False), (make_user("Cara Third", gate.team), True)):  # who never looked before
        page = page_of(reader, gate)
        assert f'name="restore.{AMOUNT}" value="120.00"' in page, "it can be left out"
        assert ('id="edits"' in page) is edits, "and is not told twice"
    assert told(other, gate) == ""  # they made it
    decide(gate, mine, "edit", arguments=edit_amount(gate, "95.00"))
    assert told(mine, gate) == ""
    look(mine, gate)
    decide(gate, other, "edit", arguments=edit_amount(gate, "99.00"))
    assert re.search(r"95\.00.* 99\.00", told(mine, gate))


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
    for words in (f"the agent asks again; before, it asked at gate {first.pk}", "€120.00", "€90.00"):
        assert words in said
    assert told(bob(second.team), second) == ""  # they never looked at the first


def test_a_draft_of_a_withdrawn_gate_is_carried_to_the_one_that_replaces_it_and_dropped_with_it(gate: Gate) -> None:
    mine, other = ann(gate.team), bob(gate.team)
    keep(mine, gate, form_of(gate, "edit", **{AMOUNT: "80.00", "comment": "The limit"}))
    keep(other, gate, form_of(gate, "edit", **{AMOUNT: "70.00"}))
    closing.withdraw(gate, by=SYSTEM, reason="Newer version.")
    go_on(gate)
    again = make_gate(policy=gate.policy, run=Run.objects.get(pk=gate.run_id))
    assert again.replaces.filter(pk=gate.pk).exists()
    page = page_of(mine, again)
    for words in ('value="80.00"', "The limit", "The gate has changed since then."):
        assert words in page
    assert "70.00" not in page
    assert 'value="70.00"' in page_of(other, again)
    signed_in(other).post(f"/gates/{again.pk}/drafts/", {"discard": "1"})
    assert "restored." not in page_of(other, again)
    sent = post(mine, again, form_of(again, "edit", **{AMOUNT: "80.00"}))
    assert sent.status_code == 303
    assert not Draft.objects.filter(user=mine).exists()
    assert "restored." not in page_of(mine, again)


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
