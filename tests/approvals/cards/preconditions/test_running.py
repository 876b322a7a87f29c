"""A gate that observes, from its opening to the effect: the real runner and store, and a world that moves."""

from __future__ import annotations

import pytest

from agents.models import Effect
from approvals.cards.answer import RecoveryAnswer
from approvals.models import Gate, Grant, Proposal
from checkpoints.models import Event, Run
from checkpoints.values.canonical_json import decode_canonical, encode_canonical
from tests.approvals.cards.preconditions.watched_world import World, world_rows
from tests.factories import make_team, make_user
from tests.factories.driven_runs import (
    advance,
    advance_to_rest,
    answer,
    decide,
    effects,
    failures,
    make_run,
    open_gate,
    state,
    trail,
)
from tests.harness.altered_rows import altered
from tests.harness.signed_in_clients import signed_in


def waiting(world: World, **input: object) -> Run:
    run = advance(world.run(**input))
    assert run.status == "waiting"
    return run


def observed(run: Run) -> list[object]:
    return [each.value for each in open_gate(run).standing().card.preconditions]


def withheld(run: Run) -> list[dict[str, object]]:
    found = Event.objects.filter(run_id=run.pk, kind="effect.withheld")
    return [decode_canonical(bytes(event.data)) for event in found]


def test_what_is_observed_at_the_gates_opening_is_held_to_only_where_it_was_added(world: World) -> None:
    run = waiting(world)
    assert observed(run) == [{"amount": "0.00", "currency": "EUR"}, "calm"]
    assert world.looks() == ["0.00"]

    world.says("5.00")
    decide(run)
    assert advance(run).status == "completed"
    assert (world.paid(), world.looks()) == (["done"], ["0.00"])


def test_a_world_that_moved_has_nothing_done_and_the_gate_open_again_with_the_difference(world: World) -> None:
    run = waiting(world)
    first = open_gate(run)
    decide(run, preconditions=["balance"])
    world.says("5.00")
    assert advance(run).status == "waiting"
    assert (world.paid(), effects(run)) == ([], [])
    again = open_gate(run)
    assert again.pk != first.pk
    assert world_rows(again) == [("/balance/amount", "0.00", "5.00")]
    assert observed(run)[0] == {"amount": "5.00", "currency": "EUR"}
    assert not Effect.objects.filter(grant__in=Grant.objects.filter(outcome__gate=first)).exists()
    assert withheld(run) == [{"step": "pay", "gate": first.pk, "preconditions": ["balance"]}]
    assert trail(run)[-1] == ("reopen", "pay")
    said = [bytes(note.text).decode() for note in run.notes.order_by("pk")]
    assert 'Conditions changed since “Pay” was approved: balance/amount was "0.00", is "5.00".' in said
    decide(run, preconditions=["balance"])  # over what the world is now
    assert advance(run).status == "completed"
    assert (world.paid(), state(run)["told"]) == (["done"], True)


def test_a_world_that_stood_still_is_looked_at_once_more_for_the_effect_that_it_guards(world: World) -> None:
    run = waiting(world, ends=["moody"])
    decide(run, preconditions=["balance"])
    assert advance(run).status == "completed"
    assert (world.looks(), withheld(run)) == (["0.00", "0.00"], [])


def test_an_outcome_that_lost_its_precondition_in_the_table_permits_nothing(world: World) -> None:
    run = waiting(world)
    gate = open_gate(run)
    decide(run, preconditions=["balance"])
    world.says("5.00")
    with altered(gate.outcome, preconditions=encode_canonical([])):
        assert advance(run).status == "failed"
    assert "differs from what" in run.reason
    assert (world.paid(), world.looks()) == ([], ["0.00"])


def test_a_gate_whose_observation_fails_does_not_open_is_tried_again_with_pauses_and_asks_in_the_end(
    world: World,
) -> None:
    world.says("gone")
    run = advance(world.run())
    assert (run.status, Gate.objects.filter(run=run).count()) == ("queued", 0)
    assert run.wake_at is None or run.wake_at > run.created_at
    assert "The observation balance failed: ConnectionError: nobody answers" in failures(run)[0].error
    world.says("0.00")
    assert advance(run).status == "waiting"
    assert observed(run)[0] == {"amount": "0.00", "currency": "EUR"}

    world.says("gone")
    run = advance_to_rest(world.run())
    gate = open_gate(run)
    assert (gate.kind, gate.step, len(world.looks())) == ("recovery", "review", 6)
    world.says("0.00")
    answer(run, RecoveryAnswer.RETRY)
    advance(run)
    assert (open_gate(run).kind, observed(run)[1]) == ("review", "calm")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("hopeless", "there is no such account"),
        ("nan", "The observation balance failed: ValueRefused"),
        ("large", "The observation balance gave 70,002 bytes"),
    ],
)
def test_an_observation_that_no_second_try_mends_asks_at_once(world: World, said: str, told: str) -> None:
    world.says(said)
    run = advance(world.run())
    assert (open_gate(run).kind, len(world.looks())) == ("recovery", 1)
    assert told in failures(run)[0].error


def test_an_effect_whose_observation_goes_on_failing_asks_and_the_answer_keeps_the_precondition(world: World) -> None:
    run = waiting(world)
    decide(run, preconditions=["balance"])
    world.says("gone")
    advance_to_rest(run)
    gate = open_gate(run)
    assert (gate.kind, gate.step, len(world.looks())) == ("recovery", "pay", 5)
    [carried] = gate.standing().card.preconditions
    assert (carried.required, carried.value) == (True, {"amount": "0.00", "currency": "EUR"})
    world.says("5.00")
    answer(run, RecoveryAnswer.RETRY)
    assert advance(run).status == "waiting"
    assert world.paid() == []
    assert world_rows(open_gate(run)) == [("/balance/amount", "0.00", "5.00")]


def test_a_payment_that_was_refused_is_tried_again_only_under_its_precondition(world: World) -> None:
    """A person's "try again" gave a permission without the condition under which they had allowed it."""
    run = waiting(world, ends=["refused"])
    decide(run, preconditions=["balance"])
    advance(run)
    assert (open_gate(run).kind, world.paid()) == ("recovery", ["refused"])
    world.says("5.00")
    answer(run, RecoveryAnswer.RETRY)
    advance(run)
    assert world.paid() == ["refused"]
    decide(run, preconditions=["balance"])
    assert advance(run).status == "completed"
    assert world.paid() == ["refused", "done"]


def test_a_payment_that_was_never_sent_is_sent_later_only_under_its_precondition(world: World) -> None:
    run = waiting(world, ends=["unsent"])
    decide(run, preconditions=["balance"])
    assert advance(run).status == "queued"
    world.says("5.00")
    assert advance(run).status == "waiting"
    assert world.paid() == ["unsent"]
    assert world_rows(open_gate(run)) == [("/balance/amount", "0.00", "5.00")]
    decide(run, preconditions=["balance"])
    assert advance(run).status == "completed"
    assert world.paid() == ["unsent", "done"]


def test_nothing_is_held_open_in_the_database_while_the_world_is_looked_at(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.db import connection

    from agents.gates import preconditions

    looked = preconditions.look
    inside: list[bool] = []

    def look(session: object, name: str) -> object:
        inside.append(connection.in_atomic_block)
        return looked(session, name)  # type: ignore[arg-type]

    monkeypatch.setattr(preconditions, "look", look)
    run = waiting(world)
    decide(run, preconditions=["balance", "awake"])
    advance(run)
    assert inside == [False] * 5


def test_one_that_guards_all_is_checked_before_each_and_what_was_done_is_not_done_again(world: World) -> None:
    """The gate that asked again after a payment would have paid once more on its second yes."""
    run = waiting(world, ends=["moody"])
    decide(run, preconditions=["awake"])
    assert advance(run).status == "waiting"
    assert world_rows(open_gate(run)) == [("/mood", "calm", "upset")]
    decide(run, preconditions=["awake"])
    assert advance(run).status == "completed"
    assert world.paid() == ["moody"]
    assert state(run)["told"] is True


def test_a_card_cannot_have_a_method_called_that_its_gate_does_not_name(world: World) -> None:
    run = advance(world.run(observes="cancel"))
    assert (open_gate(run).kind, open_gate(run).step) == ("recovery", "review")
    assert "observes 'cancel', which the gate does not name" in failures(run)[0].error
    assert not (world.folder / "cancelled").exists()


TOKEN, CODE, OTHER = "token-5d0f1e77", "code-81c2aa90", "code-f37e6b12"
MAY = ("checkpoints.view_run", "approvals.decide_gate", "checkpoints.view_audit")


def at_the_lock(world: World) -> Run:
    world.turns(CODE)
    run = advance(make_run("keyholder", team=make_team(may=MAY), world=str(world.folder), token=TOKEN))
    assert run.status == "waiting"
    return run


def told_at(run: Run) -> list[str]:
    """Where a secret stands: in what is kept of the gates, in events and notes, or at an address."""
    kept = [bytes(each.body) for each in Proposal.objects.filter(gate__run=run)]
    kept += [bytes(each.data) for each in Event.objects.filter(run_id=run.pk)]
    kept += [bytes(each.text) for each in run.notes.all()]
    client = signed_in(make_user("Ann Okafor", run.team))
    places = [f"/runs/{run.pk}/", f"/runs/{run.pk}/events/", f"/audit/?run={run.pk}", f"/api/runs/{run.pk}"]
    for gate in Gate.objects.filter(run=run).values_list("pk", flat=True):
        places += [f"/gates/{gate}/", f"/api/gates/{gate}", f"/gates/{gate}/preview/"]
    answers = [client.get(place) for place in places]
    assert [answer.status_code for answer in answers] == [200] * len(places)
    texts = {f"kept {at}": text for at, text in enumerate(kept)}
    texts |= {place: answer.content for place, answer in zip(places, answers, strict=True)}
    return [place for place, text in texts.items() if any(each.encode() in text for each in (TOKEN, CODE, OTHER))]


def test_what_was_observed_is_kept_and_shown_without_its_secrets_and_holds_while_it_stands_still(world: World) -> None:
    """The observation's secrets, and the state's in its words, stood on the gate's page and in its proposal."""
    run = at_the_lock(world)
    [condition] = open_gate(run).standing().card.preconditions
    assert condition.label == "with •••••••• the lock is still {value}"
    assert condition.value["heard"][0] == "•••••••• was said"
    assert condition.value["code"].startswith("•••••••• (")
    assert told_at(run) == []
    decide(run)
    assert advance(run).status == "completed"
    assert state(run)["opened"] is True


def test_a_secret_that_is_another_one_asks_again_and_neither_is_shown(world: World) -> None:
    run = at_the_lock(world)
    decide(run)
    world.turns(OTHER)
    assert advance(run).status == "waiting"
    rows = world_rows(open_gate(run))
    assert [pointer for pointer, _, _ in rows] == ["/lock/code", "/lock/heard/1/again"]
    assert all(before != after and "••••••••" in before and "••••••••" in after for _, before, after in rows)
    assert told_at(run) == []

    marks = {open_gate(at_the_lock(world)).standing().card.preconditions[0].value["code"] for _ in range(2)}
    assert len(marks) == 2
