"""What a decision has to say: a reason, what is missing, an answer; and a gate that asks no more takes none."""

from __future__ import annotations

import datetime as dt
import secrets
from typing import Any

import pytest

from approvals.decisions import deciding
from approvals.decisions.submission import Submission
from approvals.errors import GateWithdrawn, Invalid, NotVerifiable, StaleGate
from approvals.gates import closing
from approvals.gates.closing import pass_deadline
from approvals.models import Decision, Gate, Outcome
from checkpoints import actors
from checkpoints.models import Checkpoint, Event, EventText
from checkpoints.values import canonical_json
from tests.factories import (
    ann,
    bob,
    decide,
    edit_amount,
    make_action,
    make_card,
    make_gate,
    make_policy,
    make_question,
    make_team,
)
from tests.harness.signed_in_clients import form_of, signed_in


def test_a_withdrawn_gate_takes_no_decision_and_says_why() -> None:
    team = make_team()
    gate = make_gate(team=team)
    outcome = closing.withdraw(gate, by=actors.SYSTEM, reason="the run went another way")
    assert outcome is not None
    assert (outcome.kind, outcome.grants.count()) == ("withdrawn", 0)
    assert closing.withdraw(gate, by=actors.SYSTEM, reason="again") is None
    with pytest.raises(GateWithdrawn, match="the run went another way"):
        decide(gate, ann(team))


def test_nothing_is_decided_for_another_gate_or_on_a_state_that_does_not_verify() -> None:
    team = make_team()
    looked_at, other = make_gate(team=team), make_gate(team=team)
    with pytest.raises(StaleGate):
        decide(other, ann(team), seen=bytes(looked_at.standing().digest))
    assert Gate.objects.get(pk=other.pk).status == "open"
    gate = make_gate(team=team)
    saved = Checkpoint.objects.filter(pk=gate.checkpoint)
    digest = bytes(saved.get().state_digest)
    saved.update(state_digest=bytes(32))
    with pytest.raises(NotVerifiable):
        decide(gate, ann(team))
    saved.update(state_digest=digest)  # other tests verify every run that is there


def test_a_comment_is_kept_apart_from_its_event_so_that_it_can_be_erased() -> None:
    gate = make_gate(team=make_team())
    decision = decide(gate, ann(gate.team), comment="Marit was very patient 🙂")
    words = EventText.objects.get(event__subject=gate.subject, event__kind="gate.decided")
    assert bytes(words.text).decode() == decision.words == "Marit was very patient 🙂"
    assert b"patient" not in bytes(words.event.data)


@pytest.mark.parametrize(
    ("said", "pointer"),
    [
        ({"verdict": "allow"}, "/verdict"),
        ({"key": "k" * 81}, "/key"),
        ({"comment": "half a smile \ud83d"}, "/comment"),
        ({"comment": "x" * 20_001}, "/comment"),
        ({"verdict": "answer", "answer": {"choice": "again"}}, ""),
        ({"answer": {"choice": "again"}}, "/answer"),
        ({"verdict": "reject", "then": "back", "back_to": "pay"}, "/back_to"),
    ],
)
def test_a_decision_that_makes_no_sense_is_refused_by_place(said: dict[str, object], pointer: str) -> None:
    team = make_team()
    gate = make_gate(team=team)
    with pytest.raises(Invalid) as caught:
        decide(gate, ann(team), **said)  # type: ignore[arg-type]
    assert [error["pointer"] for error in caught.value.errors] == [pointer]
    assert not gate.decisions.exists()


def make_missing(**policy: Any) -> Gate:
    card = make_card(actions=[make_action(missing=["/amount"])])
    return make_gate(policy=make_policy(**policy), card=card)


def refusal(gate: Gate, verdict: str, **said: Any) -> list[tuple[str, str, str]]:
    """(action, pointer, message) of each fault of a refused decision."""
    with pytest.raises(Invalid) as refused:
        decide(gate, ann(gate.team), verdict, **said)
    assert Gate.objects.get(pk=gate.pk).status == "open"
    return [(each["action"], each["pointer"], each["message"]) for each in refused.value.errors]


def test_what_is_missing_is_not_agreed_to_as_asked_emptied_or_beside_another_edit() -> None:
    said = "Change this value: the agent says that it cannot go on with it as it is."
    assert refusal(make_missing(), "approve") == [("refund", "/amount", said)]
    gate = make_missing()
    action = gate.standing().card.actions[0]
    [(_, pointer, _)] = refusal(gate, "edit", arguments={"refund": {**action.arguments, "reply": "Hello."}})
    assert pointer == "/amount"
    card = make_card(actions=[make_action(missing=["/reply"])])
    gate = make_gate(card=card)
    action = gate.standing().card.actions[0]
    [(_, pointer, message)] = refusal(gate, "edit", arguments={"refund": {**action.arguments, "reply": " "}})
    assert (pointer, message) == ("/reply", "Fill this in: nothing can be approved without it.")


def test_filled_in_it_is_agreed_to_until_somebody_puts_back_what_was_asked() -> None:
    gate = make_missing(quorum=2)
    decide(gate, ann(gate.team), "edit", arguments=edit_amount(gate, "80.00"))
    decide(gate, bob(gate.team))
    assert Gate.objects.get(pk=gate.pk).status == "decided"
    gate = make_missing(quorum=2)
    decide(gate, bob(gate.team), "edit", arguments=edit_amount(gate, "80.00"))
    [(_, pointer, _)] = refusal(gate, "edit", arguments=edit_amount(gate, "120.00"))
    assert pointer == "/amount"


def test_what_is_missing_binds_each_action_and_the_deadline_that_approves() -> None:
    pay = make_action(missing=["/amount"])
    note = make_action(id="note", effect="reply", pointer="/order", edits=False, pinned=[])
    gate = make_gate(card=make_card(actions=[pay, note]))
    approve = {"verdict": "approve"}
    [(action, pointer, _)] = refusal(gate, "", verdicts={"refund": approve, "note": approve})
    assert (action, pointer) == ("refund", "/amount")
    refused = {"verdict": "reject", "reason": "Nobody knows how much."}
    decide(gate, ann(gate.team), "", verdicts={"refund": refused, "note": approve})
    assert Gate.objects.get(pk=gate.pk).outcome.kind == "mixed"
    gate = make_missing(deadline=dt.timedelta(hours=1), on_expiry="approve")
    pass_deadline(gate)
    outcome = closing.expire(gate)
    assert outcome is not None
    assert (outcome.kind, outcome.grants.count()) == ("expired", 0)


def say(gate: Gate, **said: Any) -> Decision:
    """One word, with nothing in it but what is named."""
    person = ann(gate.team)
    return deciding.decide(
        gate, Submission(seen=bytes(gate.standing().digest), key=secrets.token_hex(8), **said), by=person
    )


def places_refused(gate: Gate, **said: Any) -> list[str]:
    with pytest.raises(Invalid) as refused:
        say(gate, **said)
    assert Gate.objects.get(pk=gate.pk).status == "open"
    return [each["pointer"] for each in refused.value.errors]


def test_a_rejection_says_all_that_is_missing_and_is_kept_as_an_attempt_unless_no_reason_is_asked() -> None:
    gate = make_gate(policy=make_policy(make_team()))
    for comment, then in (("", {"then": "stop"}), ("  \n\t ", {"then": "back", "back_to": "propose"})):
        assert places_refused(gate, verdict="reject", comment=comment, **then) == ["/comment"]
    tried = Event.objects.filter(kind="decision.refused", subject=gate.subject)
    assert [canonical_json.decode_canonical(bytes(each.data))["pointers"] for each in tried] == [["/comment"]] * 2
    assert places_refused(gate, verdict="reject") == ["/comment", "/then"]
    gate = make_gate(policy=make_policy(make_team(), reason_required=False))
    assert say(gate, verdict="reject", then="stop").words == ""
    assert Gate.objects.get(pk=gate.pk).outcome.kind == "rejected"


def test_of_several_answers_the_same_one_counts() -> None:
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=2), kind="recovery")
    first, second = ann(team), bob(team)
    decide(gate, first, "answer", answer=HAPPENED)
    decide(gate, second, "answer", answer={"choice": "again"})
    assert Gate.objects.get(pk=gate.pk).status == "open"
    decide(gate, first, "answer", answer={"choice": "again"})
    assert Outcome.objects.get(gate=gate).answered == {"choice": "again", "value": None}


def test_where_every_action_is_rejected_the_reason_of_one_is_enough() -> None:
    actions = [make_action(), make_action(id="letter", pointer="/order", effect="reply", pinned=[])]
    gate = make_gate(policy=make_policy(make_team()), card=make_card(actions=actions, allows=("pay", "reply")))
    each = {"refund": {"verdict": "reject", "reason": ""}, "letter": {"verdict": "reject"}}
    assert places_refused(gate, verdicts=each, then="stop") == ["/comment"]
    each["refund"]["reason"] = "Wrong order."
    assert say(gate, verdicts=each, then="stop").verdict == "reject"
    assert "Wrong order." in bytes(Gate.objects.get(pk=gate.pk).outcome.feedback).decode()


HAPPENED = {"choice": "happened", "value": {"id": "re_1"}}


def answered(answer: dict[str, Any]) -> Outcome:
    team = make_team()
    gate = make_gate(team=team, kind="recovery")
    decide(gate, ann(team), "answer", answer=answer)
    return Outcome.objects.get(gate=gate)


def test_an_answer_grants_what_its_choice_says_and_never_what_a_gate_step_would() -> None:
    outcome = answered(HAPPENED)
    assert (outcome.kind, outcome.answered, outcome.to_run) == ("answered", HAPPENED, None)
    assert not outcome.grants.exists()
    assert not answered({"choice": "stop"}).grants.exists()
    gate = make_gate(team=make_team(), card=make_question(allows=()))
    decide(gate, ann(gate.team), "answer", answer={"choice": "again"})
    assert not Outcome.objects.get(gate=gate).grants.exists()
    for choice in ("not_happened", "again"):
        outcome = answered({"choice": choice})
        assert outcome.answered == {"choice": choice, "value": None}
        assert list(outcome.grants.values_list("action", "effect")) == [("", "pay")]
        assert sorted(outcome.approved().bound["pay"]) == ["order", "proposal"]
        assert bytes(outcome.to_run or b"") == outcome.approved().digest()


def test_a_question_wants_an_answer_that_it_offers_and_no_verdict() -> None:
    gate = make_gate(team=make_team(), kind="recovery")
    wrong: list[tuple[Any, str]] = [
        (None, "/choice"), ({"choice": "maybe"}, "/choice"), ({"choice": "happened"}, "/value"),
        ({"choice": "happened", "value": "a text"}, "/value"), ({"choice": "again", "value": 1}, "/value"),
    ]  # fmt: skip
    for answer, pointer in wrong:
        assert places_refused(gate, verdict="answer", answer=answer) == [pointer]
    for verdict in ("approve", "reject", "edit"):
        with pytest.raises(Invalid, match="Choose one of the answers"):
            decide(gate, ann(gate.team), verdict)


def test_a_refusal_on_the_page_is_recorded_at_the_version_that_the_gate_still_has() -> None:
    """Its event had the version that the refused move gave the gate, and that was rolled back."""
    gate = make_gate(policy=make_policy(team := make_team(), quorum=2))
    person = ann(team)
    browser = signed_in(person)
    for status in (303, 409):
        assert browser.post(f"/gates/{gate.pk}/decisions/", form_of(gate)).status_code == status
    refused = Event.objects.get(subject=gate.subject, kind="decision.refused")
    assert refused.version == Gate.objects.get(pk=gate.pk).version
