"""Preconditions on a gate's page and in its form, with no script at work."""

from __future__ import annotations

import re
from dataclasses import replace

from django.contrib.auth.models import User

from approvals.models import Gate, Outcome
from tests.factories import ann, bob, decide, make_gate, make_policy, make_team
from tests.harness.signed_in_clients import form_of, post, signed_in

from .offering_gates import make_observing_gate, make_precondition, said_of

BALANCE = make_precondition(preselected=True, effects=["pay"])
MOOD = make_precondition("mood", observes="mood", value="calm", label="the shop is still as it is")
UNTICKED = {"offered.balance": ""}
IN_ITS_PLACE = '{"amount": "9.00", "currency": "EUR", "reply": "", "note": null}'


def page_of(gate: Gate, person: User) -> str:
    return signed_in(person).get(f"/gates/{gate.pk}/").content.decode()


def boxes(page: str) -> list[str]:
    """The group's check boxes; there is another one in the sheet of the keys."""
    return [" ".join(box.split()) for box in re.findall(r'<input class="check"[^>]*>', page) if "data-keys" not in box]


def test_the_page_offers_what_may_be_added_and_fixes_what_the_agent_insists_on() -> None:
    gate = make_observing_gate(BALANCE, replace(MOOD, required=True))
    page = page_of(gate, ann(gate.team))
    assert boxes(page) == [
        '<input class="check" type="checkbox" name="only_if.balance" checked>',
        '<input class="check" type="checkbox" checked disabled>',
    ]
    joined = " ".join(page.split())
    assert '<span class="voice"><bdi>the balance is still</bdi></span> <span class="seen" dir="auto">' in joined
    assert "0.00 EUR" in page
    assert "Required by the agent." in page
    assert "Checked before “Pay”, “Reply”" in page  # the mood guards all that is allowed


def test_a_gate_that_offers_nothing_shows_no_group() -> None:
    gate, plain = make_observing_gate(BALANCE), make_gate()
    assert "Safety checks" in page_of(gate, ann(gate.team))
    assert "Safety checks" not in page_of(plain, ann(plain.team))


def test_what_an_agent_wrote_or_observed_is_no_markup_and_hides_nothing() -> None:
    nasty = make_precondition(label="<b>still</b> {value} \u202e<i>", value={"<script>": "a\u200bb"})
    gate = make_observing_gate(nasty)
    page = page_of(gate, ann(gate.team))
    assert "<b>still</b>" not in page
    assert "&lt;b&gt;still&lt;/b&gt;" in page
    assert '<script>"' not in page
    assert "right-to-left override" in page
    assert "in the safety checks cannot be seen" in page


def test_a_ticked_box_adds_its_precondition_and_an_unticked_one_drops_what_was_preselected() -> None:
    gate = make_observing_gate(BALANCE, MOOD)
    form = form_of(gate, **{"only_if.mood": "on", **UNTICKED})
    assert post(ann(gate.team), gate, form).status_code == 303
    assert Outcome.objects.get(gate=gate).counted == ["mood"]
    assert said_of(gate)["dropped"] == ["balance"]


def test_a_form_that_never_had_the_box_of_what_is_preselected_leaves_it_ticked() -> None:
    gate = make_observing_gate(BALANCE, MOOD)
    assert post(ann(gate.team), gate, form_of(gate)).status_code == 303
    assert Outcome.objects.get(gate=gate).counted == ["balance"]


def test_the_page_sends_with_each_box_that_it_was_there() -> None:
    gate = make_observing_gate(BALANCE, replace(MOOD, required=True))
    assert re.findall(r'<input type="hidden" name="(offered[^"]*)">', page_of(gate, ann(gate.team))) == [*UNTICKED]


def test_an_edit_and_a_value_put_in_its_place_take_them_too() -> None:
    for verdict, more in (
        ("edit", {"args.refund/amount": "99.50"}),
        ("reject", {"then": "override", "override.refund": IN_ITS_PLACE}),
    ):
        gate = make_observing_gate(BALANCE, MOOD)
        form = form_of(gate, verdict, **{"only_if.balance": "on"}, **more)
        assert post(ann(gate.team), gate, form).status_code == 303
        assert Outcome.objects.get(gate=gate).counted == ["balance"]


def test_a_rejection_passes_the_ticked_boxes_over() -> None:
    gate = make_observing_gate(BALANCE, MOOD)
    form = form_of(gate, "reject", then="stop", comment="Not today.", **{"only_if.balance": "on"})
    assert post(ann(gate.team), gate, form).status_code == 303
    assert Outcome.objects.get(gate=gate).kind == "rejected"


def test_a_box_that_the_page_never_had_is_refused() -> None:
    gate = make_observing_gate(BALANCE)
    answer = post(ann(gate.team), gate, form_of(gate, **{"only_if.mood": "on"}))
    assert answer.status_code == 422
    assert "offers no such precondition" in answer.content.decode()
    assert Gate.objects.get(pk=gate.pk).status == "open"


def test_a_refusal_keeps_the_boxes_as_they_were_set() -> None:
    gate = make_observing_gate(BALANCE, MOOD)
    form = form_of(gate, **{"only_if.mood": "on", "args.refund/amount": "1.00", **UNTICKED})
    answer = post(ann(gate.team), gate, form)
    assert answer.status_code == 422
    assert [("checked" in box) for box in boxes(answer.content.decode())] == [False, True]


def test_others_see_what_somebody_added_and_the_closed_gate_says_what_counts() -> None:
    team = make_team()
    gate = make_observing_gate(BALANCE, MOOD, policy=make_policy(team, quorum=2))
    decide(gate, ann(team), preconditions=["balance"])
    other = bob(team)
    [said] = re.findall(r'<div class="comment-said observed">(.*?)</div>', page_of(gate, other), re.DOTALL)
    assert " ".join(re.sub(r"<[^>]*>", " ", said).split()) == "Safety check the balance is still 0.00 EUR"
    decide(gate, other)
    page = page_of(gate, other)
    assert boxes(page) == []
    assert page.count(">Required<") == 0
    assert page.count("Selected") == 1
    assert page.count("Not selected") == 1
    assert "Next: “Pay” and “Reply”, if the safety checks still hold." in page


def test_what_changed_in_the_world_stands_apart_from_what_changed_in_the_run() -> None:
    world = {"of": "world", "pointer": "/balance", "kind": "changed", "before": "0.00 EUR", "after": "12.00 EUR"}
    state = {"of": "state", "pointer": "/order/number", "kind": "changed", "before": "A-1", "after": "A-2"}
    for rows, headings in (
        ([world], ["Not done: something changed after approval"]),
        ([state], ["Asked again: what would run is no longer what was approved"]),
        ([state, world], ["Not done: something changed", "Asked again: what would run"]),
        ([], ["The values match the approved ones again, or this was already done once."]),
    ):
        gate = make_observing_gate(BALANCE, reopened={"gate": 1, "changes": rows})
        page = page_of(gate, ann(gate.team))
        assert all(heading in page for heading in headings), rows
        assert ("<del>" in page) is bool(rows)
        assert page.count("Asked again: what would run") == int(state in rows)


def test_whoever_may_not_decide_reads_what_is_offered_and_has_no_boxes() -> None:
    gate = make_observing_gate(BALANCE, replace(MOOD, required=True))
    page = page_of(gate, reader_of(gate))
    assert boxes(page) == []
    assert (page.count("Optional"), page.count("Required</span>")) == (1, 1)


def reader_of(gate: Gate) -> User:
    """Somebody of the team who may look and not decide."""
    starter = ann(gate.team)
    gate.run.started_by = starter
    gate.run.save(update_fields=["started_by"])
    return starter
