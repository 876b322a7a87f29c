"""A gate opens with all that belongs to it, or not at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from approvals.cards.card import Card, completed
from approvals.errors import CardRefused
from approvals.gates import closing
from approvals.gates.opening import heading, open_gate
from approvals.models import Gate, Policy
from checkpoints import actors, store
from checkpoints.errors import Fenced
from checkpoints.models import Event, Hold, Run
from checkpoints.runs.plans import spec_of
from checkpoints.store import claims
from checkpoints.store.claims import Claim
from tests.factories import (
    ann,
    decide,
    make_action,
    make_card,
    make_gate,
    make_policy,
    make_run,
    make_spec,
    make_state,
    make_team,
)
from tests.harness.racing_threads import meet_lock, race


def taken(run: Run) -> Claim:
    """Claim the run."""
    claim = claims.claim(run.pk, plan_ids=[run.plan_id], worker="test", lease=30)
    assert claim is not None
    return claim


def opened(run: Run, claim: Claim, card: Card | None = None) -> Gate:
    """Open the run's gate under a claim."""
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
    assert (gate.status, gate.run.status, gate.proposal, gate.version) == ("open", "waiting", 1, 1)
    assert gate.standing().by is None
    assert Hold.objects.standing().filter(subject=gate.subject).count() == 1
    event = Event.objects.get(subject=gate.subject)
    assert (event.kind, event.actor, event.team_id) == ("gate.opened", f"agent:{gate.run.plan.agent}", gate.team_id)


def test_the_same_checkpoint_asks_once_and_the_run_waits_again() -> None:
    run = make_run()
    gate = opened(run, taken(run))
    run.wake(actors.SYSTEM)
    assert opened(run, taken(run)) == gate
    run.refresh_from_db()
    assert run.status == "waiting"
    assert Event.objects.filter(subject=gate.subject, kind="gate.opened").count() == 1


def test_a_gate_decided_meanwhile_is_not_slept_through() -> None:
    team = make_team()
    run = make_run(team=team)
    gate = opened(run, taken(run))
    run.wake(actors.SYSTEM)
    claim = taken(run)
    decide(gate, ann(team))
    assert opened(run, claim).status == "decided"
    run.refresh_from_db()
    assert run.status == "running"


def test_a_run_is_never_left_waiting_by_an_opening_that_races_the_decision() -> None:
    team = make_team()
    person = ann(team)
    for _ in range(5):
        run = make_run(team=team)
        gate = opened(run, taken(run))
        run.wake(actors.SYSTEM)
        claim = taken(run)
        race([lambda run=run, claim=claim: opened(run, claim), lambda gate=gate: decide(gate, person)])  # type: ignore[misc]
        run.refresh_from_db()
        assert run.status in ("running", "queued")


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


def test_a_team_without_the_policy_asks_under_its_default_which_is_made_once() -> None:
    team = make_team()
    first, second = make_gate(team=team), make_gate(team=team)
    assert first.policy == second.policy == Policy.objects.get(team=team)
    assert (first.policy.name, first.policy.quorum, first.policy.separation) == ("default", 1, True)


def test_a_gate_takes_the_newest_version_of_its_policy() -> None:
    team = make_team()
    make_policy(team)
    newest = make_policy(team, version=2, quorum=2)
    run = make_run(team=team)
    assert opened(run, taken(run)).policy == newest


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
        ({"actions": [make_action(id="a b")]}, "identifier"),
        ({"actions": [make_action(tool="p\u0430y")]}, "identifier"),
        ({"actions": [make_action(), make_action()]}, "twice"),
        ({"actions": [make_action(pointer="/nothing")]}, "nothing at /nothing"),
        ({"actions": [make_action(effect="find_order")]}, "does not allow"),
        ({"back_to": ["nowhere"]}, "no step 'nowhere'"),
        ({"back_to": ["reply"]}, "'reply' cannot be undone"),
        ({"question": {"text": "?", "choices": []}}, "choices"),
    ],
)
def test_a_card_that_cannot_be_asked_about_is_refused(fields: dict[str, Any], says: str) -> None:
    spec = make_spec()
    with pytest.raises(CardRefused, match=says):
        completed(make_card(**fields), step=spec.step("review"), plan=spec, state=make_state())


def test_a_refused_card_leaves_the_run_with_its_worker() -> None:
    run = make_run()
    with pytest.raises(CardRefused):
        opened(run, taken(run), make_card(risk="none"))
    run.refresh_from_db()
    assert run.status == "running"
    assert not Gate.objects.filter(run=run).exists()
