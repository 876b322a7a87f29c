"""Preconditions: what a card may offer, what reviewers add on the page, and what of it the outcome binds."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents import observation
from agents.definition.plan_builder import plan_of
from approvals.cards import precondition
from approvals.cards.precondition import Precondition
from approvals.errors import CardRefused, Invalid
from approvals.gates import closing
from approvals.models import Decision, Gate, Outcome
from checkpoints.values.canonical_json import encode_canonical
from tests.approvals.cards.preconditions.offering_gates import make_observing_gate, make_precondition, said_of
from tests.approvals.cards.preconditions.watched_world import Watcher
from tests.factories import (
    ann,
    bob,
    decide,
    edit_amount,
    make_card,
    make_gate,
    make_policy,
    make_question,
    make_team,
    mira,
)
from tests.harness.altered_rows import altered
from tests.harness.signed_in_clients import form_of, post, signed_in

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

    page = page_of(gate, reader_of(gate))
    assert boxes(page) == []
    assert (page.count("Optional"), page.count("Required</span>")) == (1, 1)


def test_a_box_that_is_ticked_adds_unticked_drops_and_missing_leaves_what_was_preselected() -> None:
    gate = make_observing_gate(BALANCE, MOOD)
    form = form_of(gate, **{"only_if.mood": "on", **UNTICKED})
    assert post(ann(gate.team), gate, form).status_code == 303
    assert Outcome.objects.get(gate=gate).counted == ["mood"]
    assert said_of(gate)["dropped"] == ["balance"]
    gate = make_observing_gate(BALANCE, MOOD)
    assert post(ann(gate.team), gate, form_of(gate)).status_code == 303
    assert Outcome.objects.get(gate=gate).counted == ["balance"]


@pytest.mark.parametrize(
    ("verdict", "more"),
    [("edit", {"args.refund/amount": "99.50"}), ("reject", {"then": "override", "override.refund": IN_ITS_PLACE})],
)
def test_an_edit_and_a_value_put_in_its_place_take_them_too_and_a_refusal_keeps_them(
    verdict: str, more: dict[str, str]
) -> None:
    gate = make_observing_gate(BALANCE, MOOD)
    typed = {"only_if.mood": "on", "args.refund/amount": "1.00", **UNTICKED}
    answer = post(ann(gate.team), gate, form_of(gate, **typed))
    assert answer.status_code == 422
    assert [("checked" in box) for box in boxes(answer.content.decode())] == [False, True]
    form = form_of(gate, verdict, **{"only_if.balance": "on"}, **more)
    assert post(ann(gate.team), gate, form).status_code == 303
    assert Outcome.objects.get(gate=gate).counted == ["balance"]


def test_others_see_what_somebody_added_and_two_who_each_add_another_get_both() -> None:
    team = make_team()
    gate = make_observing_gate(BALANCE, MOOD, policy=make_policy(team, quorum=2))
    decide(gate, ann(team), preconditions=["balance"])
    other = bob(team)
    [said] = re.findall(r'<div class="comment-said observed">(.*?)</div>', page_of(gate, other), re.DOTALL)
    assert " ".join(re.sub(r"<[^>]*>", " ", said).split()) == "Safety check the balance is still 0.00 EUR"
    decide(gate, other, preconditions=["mood"])
    assert outcome_of(gate).counted == ["balance", "mood"]
    assert holds(outcome_of(gate))
    page = page_of(gate, other)
    assert boxes(page) == []
    assert page.count(">Required<") == 0
    assert (page.count("Selected"), page.count("Not selected")) == (2, 0)
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


def reader_of(gate: Gate) -> User:
    """Somebody of the team who may look and not decide."""
    starter = ann(gate.team)
    gate.run.started_by = starter
    gate.run.save(update_fields=["started_by"])
    return starter


PLAIN = make_precondition()
PRESELECTED = replace(PLAIN, preselected=True)
CALM = make_precondition("mood", observes="mood", value="calm")
INSISTED = replace(CALM, required=True)


def outcome_of(gate: Gate) -> Outcome:
    return Outcome.objects.get(gate=gate)


def holds(outcome: Outcome) -> bool:
    """Whether the outcome is what its digest says."""
    return bytes(outcome.to_run or b"") == outcome.approved().digest()


@pytest.mark.parametrize(
    ("offered", "verdict", "said", "counted"),
    [
        ((PLAIN, CALM), "approve", {}, []),
        ((PLAIN, CALM), "approve", {"preconditions": ["balance"]}, ["balance"]),
        ((PLAIN, INSISTED), "approve", {}, ["mood"]),
        ((PRESELECTED, CALM), "approve", {}, ["balance"]),
        ((PRESELECTED, CALM), "approve", {"dropped": ["balance"]}, []),
        ((PRESELECTED, CALM), "approve", {"preconditions": ["mood"]}, ["balance", "mood"]),
        ((PRESELECTED, INSISTED), "reject", {}, []),
    ],
)
def test_what_is_added_preselected_or_insisted_on_counts_and_the_outcome_binds_it(
    offered: tuple[Precondition, ...], verdict: str, said: dict[str, Any], counted: list[str]
) -> None:
    gate = make_observing_gate(*offered)
    decide(gate, ann(gate.team), verdict, **said)
    outcome = outcome_of(gate)
    assert outcome.counted == counted
    if verdict == "approve":
        assert [each.id for each in outcome.approved().preconditions] == counted
        assert holds(outcome)


def test_what_is_insisted_on_or_added_cannot_be_dropped_and_what_is_not_offered_not_added() -> None:
    gate = make_observing_gate(PRESELECTED, INSISTED)
    person = ann(gate.team)
    for dropped, added, place in (
        (["mood"], [], "/dropped/0"),
        (["balance", "more"], [], "/dropped/1"),
        (["balance"], ["balance"], "/dropped/0"),
    ):
        with pytest.raises(Invalid) as refused:
            decide(gate, person, dropped=dropped, preconditions=added)
        assert [each["pointer"] for each in refused.value.errors] == [place]
    with pytest.raises(Invalid, match="it takes no preconditions"):
        decide(gate, person, "reject", dropped=["balance"])
    for wrong in (["other"], ["balance", "Balance"], [""], [["balance"]], [None]):
        with pytest.raises(Invalid, match="offers no such precondition"):
            decide(gate, person, preconditions=wrong)
    assert not Decision.objects.filter(gate=gate).exists()


def test_an_edit_takes_preconditions_and_lets_those_lapse_that_were_added_to_what_it_replaces() -> None:
    team = make_team()
    gate = make_observing_gate(PLAIN, CALM, policy=make_policy(team, quorum=2))
    decide(gate, ann(team), preconditions=["balance"])
    decide(gate, bob(team), "edit", arguments=edit_amount(gate, "80.00"), preconditions=["mood"])
    assert [each.value for each in Gate.objects.get(pk=gate.pk).standing().card.preconditions] == ["0.00 EUR", "calm"]
    decide(gate, mira(team))
    assert outcome_of(gate).kind == "edited"
    assert outcome_of(gate).counted == ["mood"]


def test_a_key_does_not_serve_for_other_preconditions() -> None:
    team = make_team()
    gate = make_observing_gate(PLAIN, CALM, policy=make_policy(team, quorum=2))
    person = ann(team)
    first = decide(gate, person, key="a click", preconditions=["balance"])
    assert decide(gate, person, key="a click", preconditions=["balance"]) == first
    for other in ([], ["mood"], ["balance", "mood"]):
        with pytest.raises(Invalid, match="sent before with other content"):
            decide(gate, person, key="a click", preconditions=other)


@pytest.mark.parametrize("ids", [[], ["balance"], ["balance", "mood", "more"]])
def test_another_row_of_the_outcome_or_its_proposal_is_not_what_was_approved(ids: list[str]) -> None:
    gate = make_observing_gate(PLAIN, replace(CALM, required=True), make_precondition("more"))
    decide(gate, ann(gate.team), preconditions=["balance"])
    with altered(outcome_of(gate), preconditions=encode_canonical(ids)):
        assert not holds(outcome_of(gate))

    gate = make_observing_gate(PLAIN)
    decide(gate, ann(gate.team), preconditions=["balance"])
    standing = gate.standing()
    body = standing.content
    body["preconditions"][0]["value"] = "12.00 EUR"
    with altered(standing, body=encode_canonical(body)):
        assert not holds(outcome_of(gate))


def test_a_deadline_that_approves_keeps_what_people_added_who_were_too_few() -> None:
    team = make_team()
    policy = make_policy(team, quorum=2, deadline=dt.timedelta(hours=1), on_expiry="approve")
    gate = make_observing_gate(PLAIN, INSISTED, policy=policy)
    decide(gate, ann(team), preconditions=["balance"])
    closing.pass_deadline(gate)
    outcome = closing.expire(Gate.objects.get(pk=gate.pk))
    assert outcome is not None
    assert outcome.counted == ["balance", "mood"]
    assert holds(outcome_of(gate))


@pytest.mark.parametrize(
    ("label", "around"),
    [
        ("the balance is still {value}", ("the balance is still", "")),
        ("nothing else was refunded", ("nothing else was refunded", "")),
        ("{value} and {value!r} and {0}", ("", "and {value!r} and {0}")),
    ],
)
def test_the_value_stands_where_the_label_says_and_nothing_else_in_it_is_a_format(
    label: str, around: tuple[str, str]
) -> None:
    assert make_precondition(label=label).around() == around


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("0.00", "0.00", []), ("0.00", "12.00", [("/balance", "changed")]), (1, True, [("/balance", "changed")]),
        (0.0, -0.0, [("/balance", "changed")]), ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
        ({"a": 1}, {"b": 1}, [("/balance/a", "removed"), ("/balance/b", "added")]),
        ([1, 2], [1, 2, 3], [("/balance/2", "added")]),
    ],
)  # fmt: skip
def test_the_world_is_compared_to_the_byte(before: Any, after: Any, told: list[tuple[str, str]]) -> None:
    rows = precondition.drifts([make_precondition(value=before)], {"balance": after})
    assert [(row["pointer"], row["kind"]) for row in rows] == told
    assert {row["of"] for row in rows} <= {"world"}
    # What was not looked at says nothing, and one observation of two preconditions is told once.
    two = [make_precondition(), make_precondition("same")]
    assert precondition.drifts(two, {"mood": "calm"}) == []
    assert len(precondition.drifts(two, {"balance": "1.00 EUR"})) == 1


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"id": "b\u0430lance"}, "is not an identifier"),
        ({"label": "x" * 201}, "needs a label of 1 to 200 characters"),
        ({"observes": "propose"}, "observes 'propose', which the gate does not name"),
        ({"effects": ["pay", "find_order"]}, "guards 'find_order', which the gate does not allow"),
    ],
)
def test_a_precondition_that_cannot_be_kept_is_refused_with_its_gate(fields: dict[str, Any], fault: str) -> None:
    offered, before = make_precondition(**{"id": "balance", **fields}), Gate.objects.count()
    with pytest.raises(CardRefused, match=fault):
        make_observing_gate(offered)
    assert Gate.objects.count() == before


def test_two_of_one_id_are_refused_and_so_is_one_that_guards_nothing() -> None:
    with pytest.raises(CardRefused, match="precondition 'balance' is there twice"):
        make_observing_gate(make_precondition(), make_precondition())
    with pytest.raises(CardRefused, match="'balance' observes 'balance', which the gate does not name"):
        make_gate(card=make_card(preconditions=[make_precondition()]))
    nothing = make_question(allows=())
    with pytest.raises(CardRefused, match="guards nothing"):
        make_gate(kind="recovery", card=replace(nothing, preconditions=[make_precondition()]))


def test_an_observation_that_looks_at_something_else_makes_another_plan() -> None:
    """An approval would have been held against an observation that nobody saw the result of."""

    class Other(Watcher):
        @observation
        def mood(self, world: str) -> str:
            return f"never {world}"

    assert plan_of(Other).step("review").code_hash != plan_of(Watcher).step("review").code_hash
    assert plan_of(Other).step("pay").code_hash == plan_of(Watcher).step("pay").code_hash
