"""A part of one action is left out: a stretch of a long text, or one field; what runs is what was composed of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.cards.drawing import Drawing
from approvals.models import Draft, Gate, Outcome
from approvals.presentation.text import line_diff
from tests.factories import (
    ann,
    bob,
    decide,
    edit_amount,
    make_action,
    make_card,
    make_gate,
    make_policy,
    make_run,
    make_state,
    make_team,
)  # fmt: skip
from tests.harness.signed_in_clients import form_of, post, signed_in

from .test_merging_drafts import AMOUNT, keep, page_of

OLD = "".join(f"line {number}\n" for number in range(1, 21))
NEW = OLD.replace("line 2\n", "LINE 2\n").replace("line 10\n", "").replace("line 18\n", "line 18\nmore\n")
REPLY = "args.refund/reply"
STATE: dict[str, Any] = {"amount": "120.00", "currency": "EUR", "reply": NEW, "note": None}


def make_texts(*draws: Drawing, quorum: int = 1) -> Gate:
    """A gate whose action replaces a long text."""
    team = make_team()
    run = make_run(team=team, state=make_state(proposal=STATE))
    policy, card = make_policy(team, quorum=quorum), make_card(actions=[make_action(draws=draws)])
    return make_gate(run=run, policy=policy, card=card)


@pytest.fixture
def gate() -> Gate:
    return make_texts(Drawing(kind="diff", at="/reply", was=OLD))


def ran(gate: Gate) -> dict[str, Any]:
    """The arguments with which the gate's action runs, whose digest the outcome binds."""
    outcome = Outcome.objects.get(gate=gate)
    assert outcome.to_run is not None
    assert bytes(outcome.to_run) == outcome.approved().digest()
    found: dict[str, Any] = json.loads(bytes(outcome.arguments))["refund"]
    return found


def test_each_stretch_has_a_box_and_one_that_is_left_out_stays_as_it_was(gate: Gate) -> None:
    page = page_of(ann(gate.team), gate)
    for number in (1, 2, 3):
        assert f'name="drop.{REPLY}.{number}"' in page
    sent = form_of(gate, "edit", **{f"drop.{REPLY}.2": "yes"})
    assert post(ann(gate.team), gate, sent).status_code == 303
    assert ran(gate)["reply"] == NEW.replace("line 9\n", "line 9\nline 10\n")


def test_it_is_shown_as_my_own_edit_before_it_is_sent_and_kept_in_the_draft(gate: Gate) -> None:
    mine = ann(gate.team)
    sent = form_of(gate, "edit", **{f"drop.{REPLY}.1": "yes"})
    shown = signed_in(mine).post(f"/gates/{gate.pk}/impacts/", sent).content.decode()
    assert 'data-by="you"' in shown
    assert "Your edit" in shown
    assert f'name="drop.{REPLY}.1" value="yes" checked' in shown
    keep(mine, gate, sent)
    assert not Draft.objects.get(gate=gate).empty
    assert f'name="drop.{REPLY}.1" value="yes" checked' in page_of(mine, gate)


def test_approving_with_a_box_ticked_is_refused_and_leaving_all_out_changes_nothing_silently(gate: Gate) -> None:
    mine = ann(gate.team)
    refused = post(mine, gate, form_of(gate, "approve", **{f"drop.{REPLY}.1": "yes"}))
    assert refused.status_code == 422
    assert "You changed a field but chose Approve." in refused.content.decode()
    sent = form_of(gate, "edit", **{f"drop.{REPLY}.{number}": "yes" for number in (1, 2, 3)})
    assert post(mine, gate, sent).status_code == 303
    assert ran(gate)["reply"] == OLD


def test_what_is_typed_elsewhere_in_the_text_stays_and_over_the_same_lines_is_refused(gate: Gate) -> None:
    mine = ann(gate.team)
    box = {f"drop.{REPLY}.1": "yes"}
    both = post(mine, gate, form_of(gate, "edit", **box, **{REPLY: NEW.replace("LINE 2", "Zeile 2")}))
    assert both.status_code == 422
    assert "also left the same part out" in both.content.decode()
    assert "Zeile 2" in both.content.decode()
    sent = form_of(gate, "edit", **box, **{REPLY: NEW.replace("line 15", "Zeile 15")})
    assert post(mine, gate, sent).status_code == 303
    assert ran(gate)["reply"] == NEW.replace("LINE 2", "line 2").replace("line 15", "Zeile 15")


def test_junk_in_a_box_is_ignored_and_whoever_may_not_decide_has_none(gate: Gate) -> None:
    for junk in ("0", "99", "-1", "x", "1" * 20, ""):
        sent = form_of(gate, "edit", **{f"drop.{REPLY}.{junk}": "yes"})
        assert post(ann(gate.team), gate, sent).status_code == 422
    assert post(ann(gate.team), gate, form_of(gate, "edit", **{"drop.args.gone/x.1": "yes"})).status_code == 422
    decide(gate, ann(gate.team))
    assert "drop." not in page_of(bob(gate.team), gate)


def test_a_field_of_somebody_elses_edit_is_put_back_and_others_approve_that() -> None:
    gate = make_gate(policy=make_policy(make_team(), quorum=2))
    mine = ann(gate.team)
    decide(gate, bob(gate.team), "edit", arguments=edit_amount(gate, "90.00"))
    page = page_of(mine, gate)
    assert f'name="restore.{AMOUNT}" value="120.00"' in page
    gate.refresh_from_db()
    assert post(mine, gate, form_of(gate, "edit", **{f"restore.{AMOUNT}": "120.00"})).status_code == 303
    assert gate.proposals.latest("number").card.actions[0].arguments["amount"] == "120.00"


def test_changed_fields_are_drawn_beside_what_is_there_now_and_left_out_one_by_one() -> None:
    now = {**STATE, "amount": "100.00", "reply": OLD}
    gate = make_texts(Drawing(kind="fields", at="", was=json.dumps(now)))
    mine = ann(gate.team)
    page = page_of(mine, gate)
    assert ">Proposed<" in page
    assert f'name="restore.{AMOUNT}" value="100.00"' in page
    assert post(mine, gate, form_of(gate, "edit", **{f"restore.{AMOUNT}": "100.00"})).status_code == 303
    assert ran(gate) == {**STATE, "amount": "100.00"}


def test_a_box_ticked_over_an_earlier_version_is_typed_text_in_the_next() -> None:
    gate = make_texts(Drawing(kind="diff", at="/reply", was=OLD), quorum=2)
    mine = ann(gate.team)
    keep(mine, gate, form_of(gate, "edit", **{f"drop.{REPLY}.1": "yes"}))
    theirs = {"refund": {**STATE, "reply": NEW.replace("line 15", "Zeile 15")}}
    decide(gate, bob(gate.team), "edit", arguments=theirs)
    page = page_of(mine, gate)
    assert "conflicts-title" not in page
    assert f'name="drop.{REPLY}.1" value="yes" checked' not in page
    assert NEW.replace("LINE 2", "line 2").replace("line 15", "Zeile 15") in page


TEXTS = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=10).flatmap(
    lambda lines: st.sampled_from(["\n".join(lines), "\n".join(lines) + "\n"])
)


@given(TEXTS, TEXTS, st.sets(st.integers(1, 9)))
def test_nothing_left_out_is_the_new_text_and_all_left_out_the_old(before: str, after: str, dropped: set[int]) -> None:
    numbers = {line.hunk for line in line_diff._all(line_diff.split(before), line_diff.split(after))} - {0}
    assert line_diff.without(before, after, set()) == after
    whole = line_diff.without(before, after, numbers)
    assert line_diff.split(whole) == line_diff.split(before)
    some = line_diff.without(before, after, dropped)
    left = {line.hunk for line in line_diff._all(line_diff.split(some), line_diff.split(after))} - {0}
    assert len(left) <= len(numbers)
