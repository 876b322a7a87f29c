"""A gate opens with all that belongs to it, keeps no personal text, and ends at its deadline as its policy says."""

from __future__ import annotations

import contextlib
import datetime as dt
from dataclasses import replace
from typing import Any

import pytest

from approvals.cards.card import Card, completed
from approvals.errors import CardRefused, DecisionRefused, GateExpired
from approvals.gates import closing
from approvals.gates.closing import pass_deadline
from approvals.gates.opening import heading, open_gate
from approvals.gates.reading import read
from approvals.models import Gate, Policy, Proposal
from checkpoints import actors, store
from checkpoints.errors import Fenced
from checkpoints.models import Event, Hold, Run
from checkpoints.runs.plans import spec_of
from checkpoints.store import claims
from checkpoints.store.claims import Claim
from checkpoints.values import canonical_json
from tests.approvals.decisions.undoing.windows import end_window, make_held
from tests.factories import (
    ann,
    bob,
    change_gate,
    decide,
    edit_amount,
    eve,
    make_action,
    make_card,
    make_gate,
    make_policy,
    make_run,
    make_spec,
    make_state,
    make_team,
    waiting,
)
from tests.harness.racing_threads import meet_lock
from tests.harness.signed_in_clients import signed_in


def taken(run: Run) -> Claim:
    claim = claims.claim(run.pk, plan_ids=[run.plan_id], worker="test", lease=30)
    assert claim is not None
    return claim


def opened(run: Run, claim: Claim, card: Card | None = None) -> Gate:
    return open_gate(
        claim=claim,
        run=run,
        snapshot=store.load(run),
        step=spec_of(run.plan).step("review"),
        policy="refunds",
        card=card or make_card(),
        by=actors.of_agent(run.plan.agent),
    )


def test_a_gate_opens_with_its_proposal_its_hold_its_event_and_a_run_that_waits() -> None:
    gate = make_gate()
    policy = make_gate(team=gate.team).policy
    assert gate.policy == policy == Policy.objects.get(team=gate.team), "its team's default is made once"
    assert (policy.name, policy.quorum, policy.separation) == ("default", 1, True)
    assert (gate.status, gate.run.status, gate.proposal, gate.version) == ("open", "waiting", 1, 1)
    assert gate.standing().by is None
    assert Hold.objects.standing().filter(subject=gate.subject).count() == 1
    event = Event.objects.get(subject=gate.subject)
    assert (event.kind, event.actor, event.team_id) == ("gate.opened", f"agent:{gate.run.plan.agent}", gate.team_id)


def test_the_same_checkpoint_asks_once_and_a_gate_decided_meanwhile_is_not_slept_through() -> None:
    run = make_run()
    gate = opened(run, taken(run))
    run.wake(actors.SYSTEM)
    assert opened(run, taken(run)) == gate
    run.refresh_from_db()
    assert run.status == "waiting"
    assert Event.objects.filter(subject=gate.subject, kind="gate.opened").count() == 1
    run.wake(actors.SYSTEM)
    claim = taken(run)
    decide(gate, ann(run.team))
    assert opened(run, claim).status == "decided"
    run.refresh_from_db()
    assert run.status == "running"


def test_a_gate_that_closes_while_the_run_is_let_go_is_not_slept_through() -> None:
    run = make_run()
    gate = opened(run, taken(run))
    run.wake(actors.SYSTEM)
    claim = taken(run)
    late = meet_lock(lambda: closing.withdraw(gate, by=actors.SYSTEM, reason="no need"), lambda: opened(run, claim))
    assert late.status == "withdrawn"
    run.refresh_from_db()
    assert run.status == "running"


def test_a_worker_that_lost_the_run_opens_nothing() -> None:
    run = make_run()
    claim = taken(run)
    stale = replace(claim, token=claim.token - 1)
    with pytest.raises(Fenced):
        opened(run, stale)
    assert not Gate.objects.filter(run=run).exists()
    assert not Hold.objects.filter(run=run).exists()


def test_the_arguments_shown_are_those_in_the_saved_state_whatever_the_card_says() -> None:
    gate = make_gate(card=make_card(actions=[make_action(arguments={"amount": "1.00"})]))
    action = gate.standing().card.actions[0]
    assert action.arguments == make_state()["proposal"]
    assert action.schema["anyOf"]
    assert action.undo == "cancel_payment"


def test_what_an_agent_calls_its_gate_may_be_anything_and_is_kept_whole_in_the_card() -> None:
    title = "a\0b\n\n" + "x" * 5000
    gate = make_gate(card=make_card(title=title))
    assert gate.asked.title == title
    assert len(gate.title) == 200
    assert heading("a\0b\n c") == "a\ufffdb c"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"risk": "none"}, "risk"),
        ({"allows": ["pay", "reply", "wipe"]}, "does not let this gate allow 'wipe'"),
        ({"actions": [make_action(tool="p\u0430y")]}, "identifier"),
        ({"actions": [make_action(), make_action()]}, "twice"),
        ({"actions": [make_action(pointer="/nothing")]}, "nothing at /nothing"),
        ({"actions": [make_action(effect="find_order")]}, "does not allow"),
        ({"back_to": ["reply"]}, "'reply' cannot be undone"),
    ],
)
def test_a_card_that_cannot_be_asked_about_is_refused(fields: dict[str, Any], says: str) -> None:
    spec = make_spec()
    with pytest.raises(CardRefused, match=says):
        completed(make_card(**fields), step=spec.step("review"), plan=spec, state=make_state())


PERSONAL = ("Marit", "Ellery", "1,284", "Okafor", "Lindqvist", "Marlow", "patience", "lenses", "refund her")


def data_of(gate: Gate) -> dict[str, str]:
    events = Event.objects.filter(run_id=gate.run_id)
    return {event.kind: str(canonical_json.decode_canonical(bytes(event.data))) for event in events}


def personal_in(gate: Gate) -> list[tuple[str, str]]:
    return [(kind, word) for kind, data in data_of(gate).items() for word in PERSONAL if word in data]


def test_no_event_of_a_gate_keeps_its_title_or_what_people_wrote() -> None:
    team = make_team()
    card = make_card(title="Refund €1,284.00 and reply to Marit Ellery", summary="refund her")
    gate = make_gate(policy=make_policy(team, quorum=2), card=card)
    decide(gate, ann(team), "edit", arguments=edit_amount(gate, "80.00"), comment="Thank you for your patience")
    with contextlib.suppress(DecisionRefused):
        decide(gate, eve(), comment="patience")
    with contextlib.suppress(DecisionRefused):
        decide(gate, bob(team), "Marit Ellery")
    decide(gate, bob(team), "reject", comment="Not the lenses")
    kinds = {"gate.opened", "gate.edited", "gate.decided", "gate.closed", "decision.refused", "run.queued"}
    assert kinds <= set(data_of(gate))
    assert personal_in(gate) == []
    silent, gone = make_gate(card=card), make_gate(card=card)
    closing.withdraw(gone, by=actors.SYSTEM, reason="Marit Ellery wrote again")
    closing.pass_deadline(silent)
    closing.expire(silent)
    assert [Gate.objects.get(pk=each.pk).status for each in (silent, gone)] == ["expired", "withdrawn"]
    assert personal_in(silent) == personal_in(gone) == []


def test_a_gate_that_does_not_exist_is_an_error_that_is_answered_with_404() -> None:
    for number in (0, 2**62, 2**63):
        with pytest.raises(Proposal.DoesNotExist):
            read(number)


HOUR = dt.timedelta(hours=1)


def ended(gate: Gate) -> tuple[str, int]:
    """(how a gate ends that nobody answered in time, how many grants it gives)."""
    pass_deadline(gate)
    outcome = closing.expire(gate)
    assert outcome is not None
    return outcome.kind, outcome.grants.count()


def test_a_decision_after_the_deadline_loses_though_nothing_has_swept_the_gate() -> None:
    team = make_team()
    gate = make_gate(policy=make_policy(team, deadline=HOUR, on_expiry="approve"))
    person = ann(team)
    pass_deadline(gate)
    assert gate.pk not in waiting(person)
    for verdict in ("approve", "reject"):
        with pytest.raises(GateExpired, match="deadline has passed"):
            decide(gate, person, verdict)
    assert not gate.decisions.exists()
    assert Event.objects.filter(subject=gate.subject, kind="decision.refused").count() == 2


def test_a_decision_that_waited_for_the_gate_past_the_deadline_loses() -> None:
    team = make_team()
    gate = make_gate(team=team)
    person = ann(team)
    late = meet_lock(lambda: pass_deadline(gate), lambda: decide(gate, person))
    assert isinstance(late, GateExpired)
    assert not gate.decisions.exists()


def test_nobody_in_time_is_expired_and_not_rejected_and_the_run_is_woken_to_hear_it() -> None:
    gate = make_gate(policy=make_policy(deadline=HOUR))
    assert gate.deadline == gate.opened_at + HOUR
    assert closing.expire(gate) is None
    pass_deadline(gate)
    assert Gate.objects.overdue().filter(pk=gate.pk).exists()
    assert ended(gate) == ("expired", 0)
    assert gate.outcome.to_run is None
    gate = Gate.objects.get(pk=gate.pk)
    assert (gate.status, gate.run.status) == ("expired", "queued")
    assert gate.closed_at is not None
    assert closing.expire(gate) is None
    assert not Gate.objects.overdue().filter(pk=gate.pk).exists()
    assert Event.objects.filter(subject=gate.subject, kind="gate.expired", actor="system").count() == 1


def test_a_policy_that_approves_on_expiry_gives_the_grants_and_never_answers_a_question() -> None:
    policy = make_policy(deadline=HOUR, on_expiry="approve")
    gate = make_gate(policy=policy)
    assert ended(gate) == ("approved", 2)
    outcome = gate.outcome
    assert (outcome.by, outcome.decisions.count()) == ("system", 0)
    assert bytes(outcome.to_run or b"") == outcome.approved().digest()
    assert sorted(outcome.grants.values_list("effect", flat=True)) == ["pay", "reply"]
    assert Gate.objects.get(pk=gate.pk).status == "expired"
    assert ended(make_gate(policy=policy, kind="recovery")) == ("expired", 0)


def test_approval_on_expiry_never_approves_what_one_person_changed() -> None:
    """One of two people edited the amount and lost the account; the deadline then paid what nobody had agreed to."""
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=2, deadline=HOUR, on_expiry="approve"))
    decide(gate, ann(team), "edit", arguments=edit_amount(gate, "80.00"))
    pass_deadline(gate)
    page = signed_in(bob(team)).get(f"/gates/{gate.pk}/").content.decode()
    assert "approved automatically" not in page
    assert ended(gate) == ("expired", 0)


def test_approval_on_expiry_holds_only_while_the_newest_version_of_the_policy_and_its_rules_still_say_so() -> None:
    """The policy still approved at its deadline, and only its new rule said otherwise: the gate was approved."""
    rule = {"name": "never", "when": "true", "require": {"on_expiry": "expire"}}
    versions: list[dict[str, Any]] = [{}, {"on_expiry": "approve", "rules": [rule]}]
    for newer in versions:
        team = make_team()
        gate = make_gate(policy=make_policy(team, deadline=HOUR, on_expiry="approve"))
        make_policy(team, deadline=HOUR, version=2, **newer)
        assert ended(gate) == ("expired", 0)


def test_approval_on_expiry_never_approves_what_somebody_rejected_though_their_vote_lapsed() -> None:
    """The one who said no left the team, their no lapsed, and the deadline then approved."""
    team = make_team()
    gate = make_held(team, deadline=HOUR, on_expiry="approve")
    person = ann(team)
    decide(gate, person, "reject")
    person.groups.clear()
    assert end_window(gate)
    assert not gate.decisions.filter(verdict="reject", counts=True).exists()
    assert ended(gate) == ("expired", 0)


def test_a_deadline_that_somebody_wrote_into_the_row_approves_nothing() -> None:
    gate = make_gate(policy=make_policy(deadline=HOUR, on_expiry="approve"))
    Gate.objects.filter(pk=gate.pk).update(deadline=gate.opened_at)
    closing.expire(gate)
    assert (gate.outcome.kind, gate.outcome.grants.count()) == ("expired", 0)
    change_gate(gate)
