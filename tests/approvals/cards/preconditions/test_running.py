"""A gate that observes, from its opening to the effect: the real runner and store, and a world that moves."""

from __future__ import annotations

import datetime as dt
import signal
import sys
from collections.abc import Iterator

import pytest
from django.db.models.functions import Now

from agents.models import Effect
from approvals.cards.recovery_answers import RecoveryAnswer
from approvals.models import Gate, Grant
from checkpoints.models import Event, Run
from checkpoints.values.canonical_json import decode_canonical, encode_canonical
from tests.factories import bob, make_policy, make_team
from tests.factories.driven_runs import (
    advance,
    advance_to_rest,
    answer,
    decide,
    effects,
    failures,
    open_gate,
    state,
    trail,
)
from tests.harness.altered_rows import altered
from tests.harness.services import Talking

from .conftest import AGENTS
from .watched_world import World, world_rows


def waiting(world: World, **input: object) -> Run:
    """A run at its gate."""
    run = advance(world.run(**input))
    assert run.status == "waiting"
    return run


def observed(run: Run) -> list[object]:
    return [each.value for each in open_gate(run).standing().card.preconditions]


def withheld(run: Run) -> list[dict[str, object]]:
    return [
        decode_canonical(bytes(event.data)) for event in Event.objects.filter(run_id=run.pk, kind="effect.withheld")
    ]


def test_a_gate_opens_with_what_each_of_its_observations_saw_once(world: World) -> None:
    run = waiting(world)
    assert observed(run) == [{"amount": "0.00", "currency": "EUR"}, "calm"]
    assert world.looks() == ["0.00"]


def test_an_approval_that_adds_nothing_pays_whatever_the_world_does(world: World) -> None:
    run = waiting(world)
    world.says("5.00")
    decide(run)
    assert advance(run).status == "completed"
    assert (world.paid(), world.looks()) == (["done"], ["0.00"])


def test_a_world_that_stood_still_is_looked_at_once_more_and_the_effect_is_done(world: World) -> None:
    run = waiting(world)
    decide(run, preconditions=["balance", "awake"])
    assert advance(run).status == "completed"
    assert (world.paid(), world.looks()) == (["done"], ["0.00", "0.00"])
    assert withheld(run) == []


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


def test_approved_again_over_what_the_world_is_now_it_is_done_once(world: World) -> None:
    run = waiting(world)
    decide(run, preconditions=["balance"])
    world.says("5.00")
    advance(run)
    decide(run, preconditions=["balance"])
    assert advance(run).status == "completed"
    assert world.paid() == ["done"]
    assert state(run)["told"] is True


def test_a_world_that_moves_back_is_another_one_than_the_second_approval_saw(world: World) -> None:
    run = waiting(world)
    decide(run, preconditions=["balance"])
    world.says("5.00")
    advance(run)
    world.says("0.00")
    decide(run, preconditions=["balance"])
    assert advance(run).status == "waiting"
    assert world_rows(open_gate(run)) == [("/balance/amount", "5.00", "0.00")]
    decide(run, preconditions=["balance"])
    assert advance(run).status == "completed"
    assert world.paid() == ["done"]


def test_a_world_that_moved_back_before_the_gate_was_open_again_leaves_no_rows_but_its_words(world: World) -> None:
    run = waiting(world)
    decide(run, preconditions=["balance"])
    world.says("5.00", "0.00")
    assert advance(run).status == "waiting"
    assert world.paid() == []
    assert world_rows(open_gate(run)) == []
    assert any('was "0.00", is "5.00"' in bytes(note.text).decode() for note in run.notes.all())


def test_one_that_the_agent_insists_on_is_checked_though_nobody_added_it(world: World) -> None:
    run = waiting(world, required=True)
    world.says("5.00")
    decide(run)
    assert advance(run).status == "waiting"
    assert world.paid() == []


def test_a_quorum_of_two_is_held_to_what_either_added(world: World) -> None:
    team = make_team()
    make_policy(team, name="default", quorum=2)
    for moved in ("balance", "mood"):
        world.says("0.00")
        world.turns("calm")
        run = advance(world_run(world, team))
        decide(run, preconditions=["balance"])
        decide(run, by=bob(team), preconditions=["awake"])
        if moved == "balance":
            world.says("5.00")
        else:
            world.turns("upset")
        assert advance(run).status == "waiting"
        assert [pointer.split("/")[1] for pointer, _, _ in world_rows(open_gate(run))] == [moved]
    assert world.paid() == []


def world_run(world: World, team: object) -> Run:
    return world.run(team=team)


def test_what_guards_one_effect_is_not_asked_of_another(world: World) -> None:
    run = waiting(world, ends=["moody"])
    decide(run, preconditions=["balance"])
    assert advance(run).status == "completed"
    assert world.looks() == ["0.00", "0.00"]


def test_an_outcome_that_lost_its_precondition_in_the_table_permits_nothing(world: World) -> None:
    run = waiting(world)
    gate = open_gate(run)
    decide(run, preconditions=["balance"])
    world.says("5.00")
    with altered(gate.outcome, preconditions=encode_canonical([])):
        assert advance(run).status == "failed"
    assert "differs from what" in run.reason
    assert (world.paid(), world.looks()) == ([], ["0.00"])


def test_an_observed_value_that_was_changed_in_the_table_permits_nothing(world: World) -> None:
    run = waiting(world)
    gate = open_gate(run)
    decide(run, preconditions=["balance"])
    world.says("5.00")
    body = gate.standing().content
    body["preconditions"][0]["value"]["amount"] = "5.00"
    with altered(gate.standing(), body=encode_canonical(body)):
        assert advance(run).status == "failed"
    assert world.paid() == []


def test_a_gate_whose_observation_fails_does_not_open_and_is_tried_again_with_pauses(world: World) -> None:
    world.says("gone")
    run = advance(world.run())
    assert (run.status, Gate.objects.filter(run=run).count()) == ("queued", 0)
    assert run.wake_at is None or run.wake_at > run.created_at
    assert "The observation balance failed: ConnectionError: nobody answers" in failures(run)[0].error
    world.says("0.00")
    assert advance(run).status == "waiting"
    assert observed(run)[0] == {"amount": "0.00", "currency": "EUR"}


def test_a_gate_whose_observation_goes_on_failing_asks_how_to_go_on(world: World) -> None:
    world.says("gone")
    run = advance_to_rest(world.run())
    gate = open_gate(run)
    assert (gate.kind, gate.step, len(world.looks())) == ("recovery", "review", 4)
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


def test_an_effect_whose_observation_fails_is_not_done_and_is_tried_again_with_pauses(world: World) -> None:
    run = waiting(world)
    decide(run, preconditions=["balance"])
    world.says("gone")
    assert advance(run).status == "queued"
    assert (world.paid(), effects(run)) == ([], [])
    assert [(each.step, each.attempt) for each in failures(run)] == [("pay", 1)]
    world.says("0.00")
    assert advance(run).status == "completed"
    assert world.paid() == ["done"]


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


def test_an_observation_that_kills_its_worker_each_time_asks_in_the_end(world: World, hand: Talking) -> None:
    run = waiting(world)
    decide(run, preconditions=["balance"])
    world.says("kill")
    for _ in range(4):
        assert in_a_worker(hand, run) == -signal.SIGKILL
        Run.objects.filter(pk=run.pk).update(lease_until=Now() - dt.timedelta(seconds=1))  # as if it had run out
    assert advance(run).status == "waiting"
    assert (open_gate(run).kind, len(world.looks()), world.paid()) == ("recovery", 5, [])


@pytest.fixture
def hand() -> Iterator[Talking]:
    """A process that forks a worker for each run it is told; see tests/harness/forked_worker.py."""
    wishes = {"HOLDPOINT_AGENTS": AGENTS, "HOLDPOINT_LOG_LEVEL": "ERROR"}
    command = [sys.executable, "-m", "tests.harness.forked_worker"]
    process = Talking(*command, env=wishes)
    yield process
    process.close()


def in_a_worker(hand: Talking, run: Run) -> int:
    """Take the run on in a process of its own; how that ended."""
    return int(hand.tell(f"{run.pk}"))


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


def test_asked_again_after_a_payment_another_amount_takes_the_first_one_back(world: World) -> None:
    run = waiting(world, ends=["moody"])
    decide(run, preconditions=["awake"])
    advance(run)
    decide(run, "edit", arguments={"pay": {"amount": "20"}})
    assert advance(run).status == "waiting", "the payment has to be made anew, so the whole is asked about"
    assert (open_gate(run).title, world.paid()) == ("Pay 20", ["moody"])
    decide(run)
    assert advance(run).status == "completed"
    assert world.paid() == ["moody", "done"]
    assert [row.status for row in effects(run, "pay") if row.undoes is None] == ["undone", "done"]


def test_what_was_edited_is_what_is_asked_again_about(world: World) -> None:
    run = waiting(world, ends=["moody"])
    decide(run, "edit", arguments={"pay": {"amount": "20"}}, preconditions=["awake"])
    advance(run)
    assert open_gate(run).title == "Pay 20"
    decide(run)
    assert advance(run).status == "completed"
    assert world.paid() == ["moody"]


def test_a_recovery_that_finds_the_world_changed_does_not_do_again_what_is_done(world: World) -> None:
    run = waiting(world)
    world.deaf()
    decide(run, preconditions=["awake"])
    advance(run)
    assert (open_gate(run).kind, open_gate(run).step) == ("recovery", "tell")
    world.turns("upset")
    world.deaf(False)
    answer(run, RecoveryAnswer.RETRY)
    advance(run)
    assert world_rows(open_gate(run)) == [("/mood", "calm", "upset")]
    decide(run, preconditions=["awake"])
    assert advance(run).status == "completed"
    assert (world.paid(), state(run)["told"]) == (["done"], True)


def test_a_card_cannot_have_a_method_called_that_its_gate_does_not_name(world: World) -> None:
    run = advance(world.run(observes="cancel"))
    assert (open_gate(run).kind, open_gate(run).step) == ("recovery", "review")
    assert "observes 'cancel', which the gate does not name" in failures(run)[0].error
    assert not (world.folder / "cancelled").exists()
