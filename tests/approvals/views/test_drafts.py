"""Drafts: what a reviewer has entered outlives the page, the session and what others do, and is nobody else's."""

from __future__ import annotations

import datetime as dt
import html
import re
import threading

from django.db import connection, transaction

from approvals.models import Draft, Gate
from approvals.models.draft import NotKept
from tests.factories import (
    ann,
    bob,
    change_gate,
    decide,
    edit_amount,
    eve,
    make_gate,
    make_policy,
    make_team,
    make_user,
)
from tests.harness.signed_in_clients import form_of, post, signed_in

AMOUNT = "args.refund/amount"


def keep(user: object, gate: Gate, form: dict[str, str]) -> object:
    return signed_in(user).post(f"/gates/{gate.pk}/drafts/", form, HTTP_ACCEPT="application/json")  # type: ignore[arg-type]


def page_of(user: object, gate: Gate) -> str:
    return signed_in(user).get(f"/gates/{gate.pk}/").content.decode()  # type: ignore[arg-type]


def test_a_draft_is_in_the_fields_again_on_any_machine_and_nobody_elses() -> None:
    gate = make_gate(team=(team := make_team()))
    reviewer, colleague = ann(team), bob(team)
    answer = keep(reviewer, gate, form_of(gate, "edit", **{AMOUNT: "80.00", "comment": "The shop's limit"}))
    assert answer.json()["kept_at"]  # type: ignore[attr-defined]
    mine, theirs = page_of(reviewer, gate), page_of(colleague, gate)
    assert 'value="80.00"' in mine
    assert "The shop&#x27;s limit" in mine
    assert "restored." in mine
    assert "80.00" not in theirs
    assert "restored." not in theirs


def test_a_form_that_says_nothing_is_no_draft_and_empties_the_one_before() -> None:
    gate = make_gate(team=(team := make_team()))
    reviewer = ann(team)
    keep(reviewer, gate, form_of(gate, "", comment="Hm"))
    assert Draft.objects.filter(gate=gate).count() == 1
    answer = keep(reviewer, gate, form_of(gate, "", **{AMOUNT: "120.00", "comment": " "}))
    assert answer.json()["empty"]  # type: ignore[attr-defined]
    assert Draft.objects.get(gate=gate).empty
    assert "restored." not in page_of(reviewer, gate)


def test_what_an_earlier_page_sent_and_comes_in_late_brings_no_emptied_draft_back() -> None:
    gate = make_gate(team=(team := make_team()))
    reviewer = ann(team)
    late = form_of(gate, "", comment="Hm", draft_seen="")
    seen = keep(reviewer, gate, late).json()["kept_at"]  # type: ignore[attr-defined]
    emptied = keep(reviewer, gate, {**form_of(gate, ""), "key": "of-the-next-page", "draft_seen": seen})
    assert emptied.status_code == 200  # type: ignore[attr-defined]
    assert keep(reviewer, gate, late).status_code == 409  # type: ignore[attr-defined]
    assert Draft.objects.get(gate=gate).empty
    known = emptied.json()["kept_at"]  # type: ignore[attr-defined]
    assert f'name="draft_seen" value="{known}"' in page_of(reviewer, gate)


def test_what_a_page_and_the_next_one_both_sent_is_one_draft_that_the_next_page_may_empty() -> None:
    """The later of two equal requests gave the draft another time, and the page that had read the first was refused."""
    gate = make_gate(team=(team := make_team()))
    reviewer = ann(team)
    left = form_of(gate, "edit", **{AMOUNT: "99.50", "draft_seen": ""})
    first, late = (keep(reviewer, gate, left).json() for _ in range(2))  # type: ignore[attr-defined]
    assert late["kept_at"] == first["kept_at"]
    emptied = form_of(gate, "", **{AMOUNT: "120.00", "draft_seen": first["kept_at"]})
    assert keep(reviewer, gate, emptied).json()["empty"]  # type: ignore[attr-defined]


def test_a_draft_of_an_earlier_version_is_read_against_what_stands_now() -> None:
    gate = make_gate(policy=make_policy(team := make_team(), quorum=2))
    keep(ann(team), gate, form_of(gate, "edit", **{AMOUNT: "80.00"}))
    reviewer = Draft.objects.get(gate=gate).user
    decide(gate, bob(team), "edit", arguments=edit_amount(gate, "90.00"))
    page = page_of(reviewer, gate)
    assert 'value="80.00"' in page
    assert "The gate has changed since then." in page


def test_the_decision_takes_the_draft_and_a_late_keeping_of_the_same_form_brings_none_back() -> None:
    gate = make_gate(policy=make_policy(team := make_team(), quorum=2))
    reviewer = ann(team)
    form = form_of(gate, "approve", comment="Fine")
    keep(reviewer, gate, form)
    assert post(reviewer, gate, form).status_code == 303
    assert not Draft.objects.filter(gate=gate).exists()
    late = keep(reviewer, gate, form)
    assert (late.status_code, late.json()) == (409, {"problem": "This form was sent already."})  # type: ignore[attr-defined]
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
    assert "Your draft was not sent" in page
    assert "80.00" in page
    assert "Half of it" in page
    assert signed_in(slow).post(f"/gates/{gate.pk}/drafts/", {"discard": "1"}).status_code == 303
    assert "Your draft was not sent" not in page_of(slow, gate)


def test_a_closed_gate_takes_no_draft_and_whoever_may_not_decide_keeps_none() -> None:
    gate = make_gate(team=(team := make_team(may=("checkpoints.view_run",))))
    reader = make_user("Rita Reader", team)
    assert keep(reader, gate, form_of(gate, "approve")).status_code == 403  # type: ignore[attr-defined]
    assert keep(eve(), gate, form_of(gate, "approve")).status_code == 404  # type: ignore[attr-defined]
    gate = make_gate(team=(team := make_team()))
    decide(gate, bob(team))
    assert keep(ann(team), gate, form_of(gate, "approve")).status_code == 409  # type: ignore[attr-defined]
    assert not Draft.objects.filter(gate=gate).exists()


def test_a_form_too_long_to_be_kept_is_refused_and_the_draft_before_it_stays() -> None:
    gate = make_gate(team=(team := make_team()))
    reviewer = ann(team)
    keep(reviewer, gate, form_of(gate, "approve", comment="Short"))
    assert keep(reviewer, gate, form_of(gate, "approve", comment="x" * 1_000_001)).status_code == 413  # type: ignore[attr-defined]
    assert Draft.objects.get(gate=gate).fields["comment"] == "Short"


def test_drafts_of_gates_that_closed_long_ago_are_cleared() -> None:
    gate = make_gate(team=(team := make_team()))
    keep(ann(team), gate, form_of(gate, "approve", comment="Fine"))
    decide(gate, bob(team))
    assert not Draft.objects.outlived(dt.timedelta(days=30)).filter(gate=gate).exists()
    Gate.objects.filter(pk=gate.pk).update(closed_at=gate.opened_at - dt.timedelta(days=31))
    assert Draft.objects.outlived(dt.timedelta(days=30)).filter(gate=gate).count() == 1


def test_a_page_that_was_drawn_before_another_kept_a_draft_does_not_write_over_it() -> None:
    gate = make_gate(team=(team := make_team()))
    reviewer = ann(team)
    first = keep(reviewer, gate, form_of(gate, "approve", comment="From the desk", draft_seen=""))
    stale = keep(reviewer, gate, form_of(gate, "approve", comment="From the train", draft_seen=""))
    assert stale.status_code == 409  # type: ignore[attr-defined]
    assert "newer draft" in stale.json()["problem"]  # type: ignore[attr-defined]
    assert Draft.objects.get(gate=gate).fields["comment"] == "From the desk"
    seen = first.json()["kept_at"]  # type: ignore[attr-defined]
    assert f'name="draft_seen" value="{seen}"' in page_of(reviewer, gate)
    keep(reviewer, gate, form_of(gate, "approve", comment="At the desk again", draft_seen=seen))
    assert Draft.objects.get(gate=gate).fields["comment"] == "At the desk again"


def test_a_page_drawn_in_answer_to_a_refused_send_goes_on_keeping_the_draft() -> None:
    """The refused page no longer knew of the draft that it was drawn with, and took it for another page's."""
    gate = make_gate(team=(team := make_team()))
    reviewer = ann(team)
    seen = keep(reviewer, gate, form_of(gate, "edit", **{AMOUNT: "80.00"})).json()["kept_at"]  # type: ignore[attr-defined]
    form = form_of(gate, "", **{AMOUNT: "80.00", "draft_seen": seen})  # of the page loaded anew, with a key of its own
    refused = post(reviewer, gate, form)
    assert refused.status_code == 422
    [known] = re.findall(r'name="draft_seen" value="([^"]*)"', refused.content.decode())
    kept = keep(reviewer, gate, {**form, "comment": "Half of it", "draft_seen": html.unescape(known)})
    assert kept.status_code == 200, kept.json()  # type: ignore[attr-defined]
    assert Draft.objects.get(gate=gate).fields["comment"] == "Half of it"


def test_a_page_without_script_keeps_what_it_holds_over_any_other() -> None:
    gate = make_gate(team=(team := make_team()))
    reviewer = ann(team)
    keep(reviewer, gate, form_of(gate, "approve", comment="From the desk", draft_seen=""))
    form = form_of(gate, "approve", comment="From the train", draft_seen="")
    assert signed_in(reviewer).post(f"/gates/{gate.pk}/drafts/", form).status_code == 303
    assert Draft.objects.get(gate=gate).fields["comment"] == "From the train"


def test_a_draft_that_a_crash_left_behind_its_decision_is_none() -> None:
    gate = make_gate(policy=make_policy(team := make_team(), quorum=2))
    reviewer = ann(team)
    form = form_of(gate, "approve", comment="Fine")
    keep(reviewer, gate, form)
    decide(gate, reviewer, key=form["key"], comment="Fine")
    assert Draft.objects.filter(gate=gate).count() == 1
    assert "restored." not in page_of(reviewer, gate)
    assert "Your draft was not sent" not in page_of(reviewer, gate)


def test_a_key_that_no_page_sends_is_no_fault_of_the_server() -> None:
    """U+0000 in it was asked of PostgreSQL, which takes none: the answer was 500."""
    gate = make_gate(team=(team := make_team()))
    answer = keep(ann(team), gate, {**form_of(gate, "", comment="Hm"), "key": "a\0b" * 100})
    assert answer.status_code == 200  # type: ignore[attr-defined]
    assert Draft.objects.get(gate=gate).fields["comment"] == "Hm"
