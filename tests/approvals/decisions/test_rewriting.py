"""The whole state is edited only where the policy says so, as the agent's model takes it, and all of it is bound."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from approvals.errors import EditRefused, Invalid, NotAllowed, StaleGate
from approvals.models import Decision, Gate, Outcome
from checkpoints import store
from checkpoints.models import Event
from checkpoints.values import patch
from checkpoints.values.canonical_json import encode_canonical
from tests.factories import (
    ann,
    bob,
    decide,
    edit_amount,
    eve,
    make_action,
    make_card,
    make_gate,
    make_plan,
    make_policy,
    make_run,
    make_state,
    make_team,
)
from tests.harness.racing_threads import race

NUMBERED = {"number": "A-2"}


def make_open(*, quorum: int = 1, card: Any = None, **fields: Any) -> Gate:
    """A gate whose policy lets the whole state be edited."""
    team = make_team()
    run = make_run(team=team, plan=make_plan(), state=make_state(**fields))
    return make_gate(run=run, policy=make_policy(team, quorum=quorum, whole_state=True), card=card)


def as_saved(gate: Gate) -> dict[str, Any]:
    return dict(store.load_checkpoint(gate.checkpoint).state)


def refused(gate: Gate, kind: type[Invalid] | type[EditRefused], state: dict[str, Any], **said: Any) -> list[str]:
    """The place of each fault within the state; the gate is as it was."""
    with pytest.raises(kind) as caught:
        decide(gate, ann(gate.team), "edit", state=state, **said)
    after = Gate.objects.get(pk=gate.pk)
    assert (after.status, after.proposal, after.version) == ("open", 1, 1)
    assert type(caught.value) is kind
    return sorted(error["at"] for error in caught.value.errors)


def test_a_policy_that_says_nothing_of_it_refuses_it() -> None:
    gate = make_gate(team=make_team())
    with pytest.raises(EditRefused) as caught:
        decide(gate, ann(gate.team), "edit", state=as_saved(gate) | {"order": NUMBERED})
    assert "does not let the state be edited as a whole" in caught.value.errors[0]["message"]
    assert Gate.objects.get(pk=gate.pk).proposal == 1
    assert Event.objects.filter(subject=gate.subject, kind="decision.refused").count() == 1


def test_a_place_that_no_action_shows_is_edited_and_bound() -> None:
    gate = make_open()
    before, wanted = bytes(gate.standing().digest), as_saved(gate) | {"order": NUMBERED}
    decide(gate, ann(gate.team), "edit", state=wanted)
    outcome = Outcome.objects.get(gate=gate)
    assert outcome.kind == "edited"
    assert encode_canonical(patch.apply(outcome.state_patch, as_saved(gate))) == encode_canonical(wanted)
    assert outcome.proposal.content["state"] == [{"op": "replace", "path": "/order/number", "value": "A-2"}]
    assert bytes(outcome.proposal.digest) != before


def test_two_edits_of_places_that_no_action_shows_are_two_digests() -> None:
    digests = set()
    gate = make_open(quorum=3)
    for number in ("A-2", "A-3"):
        decide(gate, ann(gate.team), "edit", state=as_saved(gate) | {"order": {"number": number}})
        digests.add(bytes(Gate.objects.get(pk=gate.pk).standing().digest))
    assert len(digests) == 2


def test_an_edit_of_what_an_action_shows_is_in_its_arguments() -> None:
    gate = make_open()
    wanted = as_saved(gate)
    wanted["proposal"] = {**wanted["proposal"], "amount": 80.5}
    decide(gate, ann(gate.team), "edit", state=wanted)
    outcome = Outcome.objects.get(gate=gate)
    assert outcome.approved().actions[0].arguments["amount"] == "80.5"
    assert "state" not in outcome.proposal.content


def test_what_others_said_lapses_and_they_are_told_what_changed() -> None:
    gate = make_open(quorum=2)
    approver, editor = ann(gate.team), bob(gate.team)
    seen = bytes(gate.standing().digest)
    decide(gate, approver)
    decide(gate, editor, "edit", state=as_saved(gate) | {"order": NUMBERED})
    counted = Decision.objects.filter(gate=gate, counts=True).values_list("user", "proposal__number")
    assert list(counted) == [(editor.pk, 2)]
    with pytest.raises(StaleGate) as stale:
        decide(gate, approver, seen=seen)
    assert stale.value.changes == [
        {"of": "state", "pointer": "/order/number", "kind": "changed", "before": "A-1", "after": "A-2"}
    ]
    decide(gate, approver)
    assert Outcome.objects.get(gate=gate).kind == "edited"


def test_an_edit_of_an_action_keeps_what_was_edited_elsewhere() -> None:
    gate = make_open(quorum=2)
    decide(gate, ann(gate.team), "edit", state=as_saved(gate) | {"order": NUMBERED})
    decide(gate, bob(gate.team), "edit", arguments=edit_amount(gate, "80.00"))
    standing = Gate.objects.get(pk=gate.pk).standing()
    state = patch.apply(standing.state_patch, as_saved(gate))
    assert (state["order"], state["proposal"]["amount"]) == (NUMBERED, "80.00")
    assert standing.content["state"] == standing.state_patch


def test_a_word_on_each_action_keeps_what_was_edited_elsewhere() -> None:
    first = make_action(verdicts=["approve", "edit", "reject"])
    second = make_action(id="letter", pointer="/order", effect="reply", verdicts=["approve", "reject"])
    gate = make_open(quorum=2, card=make_card(actions=[first, second]))
    decide(gate, ann(gate.team), "edit", state=as_saved(gate) | {"mailed": True, "order": NUMBERED})
    each = {"refund": {"verdict": "approve"}, "letter": {"verdict": "reject", "reason": "Not this one."}}
    decide(gate, bob(gate.team), "", verdicts=each)
    standing = Gate.objects.get(pk=gate.pk).standing()
    state = patch.apply(standing.state_patch, as_saved(gate))
    assert (state["mailed"], state["order"]) == (True, {"number": "A-1"})
    assert standing.content["state"] == standing.state_patch


def test_faults_are_named_by_their_places_in_the_state() -> None:
    gate = make_open()
    wanted = as_saved(gate) | {"mailed": "perhaps", "order": []}
    wanted["proposal"] = {**wanted["proposal"], "amount": "a lot"}
    assert refused(gate, Invalid, wanted) == ["/mailed", "/order", "/proposal/amount"]


@pytest.mark.parametrize("name", ["status", "run", "team", "owner"])
def test_nothing_but_the_agents_state_is_reached(name: str) -> None:
    gate = make_open()
    assert refused(gate, EditRefused, as_saved(gate) | {name: "completed"}) == [f"/{name}"]


def test_what_is_asked_about_cannot_be_taken_out() -> None:
    gate = make_open()
    wanted = {name: value for name, value in as_saved(gate).items() if name != "proposal"}
    assert refused(gate, EditRefused, wanted) == ["/proposal"]


def test_what_the_gate_writes_itself_is_left_alone() -> None:
    gate = make_open()
    words = [{"text": "I said so.", "by": "Somebody Else"}]
    assert refused(gate, EditRefused, as_saved(gate) | {"feedback": words}) == ["/feedback"]


def test_the_same_state_is_no_edit() -> None:
    gate = make_open()
    assert refused(gate, Invalid, as_saved(gate)) == [""]


def test_new_arguments_beside_a_new_state_are_refused() -> None:
    gate = make_open()
    wanted = as_saved(gate) | {"order": NUMBERED}
    assert refused(gate, Invalid, wanted, arguments=edit_amount(gate, "80.00")) == [""]


@pytest.mark.parametrize("verdict", ["approve", "reject"])
def test_only_an_edit_takes_a_state(verdict: str) -> None:
    gate = make_open()
    with pytest.raises(EditRefused, match=r".*"):
        decide(gate, ann(gate.team), verdict, state=as_saved(gate) | {"order": NUMBERED})
    assert Gate.objects.get(pk=gate.pk).status == "open"


def test_a_field_that_is_left_out_is_taken_out() -> None:
    gate = make_open()
    decide(
        gate, ann(gate.team), "edit", state={name: v for name, v in as_saved(gate).items() if name != "payment"}
    )  # fmt: skip
    assert Outcome.objects.get(gate=gate).state_patch == [{"op": "remove", "path": "/payment"}]


def test_an_outsider_is_refused_before_anything_is_looked_at() -> None:
    gate = make_open()
    with pytest.raises(NotAllowed):
        decide(gate, eve(), "edit", state=as_saved(gate) | {"order": NUMBERED})


def test_the_same_key_again_is_the_same_decision_and_with_another_state_none() -> None:
    gate = make_open()
    by, seen = ann(gate.team), bytes(gate.standing().digest)
    wanted = as_saved(gate) | {"order": NUMBERED}
    first = decide(gate, by, "edit", state=wanted, key="k", seen=seen)
    assert decide(gate, by, "edit", state=wanted, key="k", seen=seen) == first
    with pytest.raises(Invalid, match="sent before"):
        decide(gate, by, "edit", state=wanted | {"mailed": True}, key="k", seen=seen)


def test_an_approval_that_races_it_never_counts_for_what_the_approver_did_not_see() -> None:
    for _ in range(4):
        gate = make_open(quorum=2)
        editor, approver = ann(gate.team), bob(gate.team)
        seen, wanted = bytes(gate.standing().digest), as_saved(gate) | {"order": NUMBERED}
        race(
            [partial(decide, gate, editor, "edit", seen=seen, state=wanted), partial(decide, gate, approver, seen=seen)]
        )
        counted = Decision.objects.filter(gate=gate, counts=True).values_list("user", "proposal__number")
        assert list(counted) == [(editor.pk, 2)]
