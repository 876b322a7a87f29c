"""How runs end: by their deadline or a gate's, by a person who cancels them, and what these lock on the way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

import tests.factories as factories
from agents.moves import cancel
from agents.moves import rewind as rewinds
from agents.runner import engine
from agents.serving.sweeper import Sweeper
from approvals.errors import GateWithdrawn
from approvals.gates import closing
from approvals.models import Decision, Gate, Outcome
from checkpoints import actors, crash_points
from checkpoints.actors import SYSTEM
from checkpoints.models import Run
from checkpoints.store import claims
from tests.agents.moves.moved_runs import before, die, edit, fates, lines, rewind
from tests.agents.pages.moves.sent_orders import member
from tests.factories import ann, bob, change_gate, make_gate, make_policy, make_team
from tests.factories.driven_runs import advance, advance_to_rest, answer, make_run, open_gate
from tests.harness.racing_threads import blocked, meet_lock, race
from tests.harness.waiting import until


def due(run: Run, *, hours: float) -> Run:
    """The run, with a deadline that many hours from now."""
    Run.objects.filter(pk=run.pk).update(deadline=Now() + timedelta(hours=hours))
    run.refresh_from_db()
    return run


@pytest.mark.parametrize("ended_by_it", [False, True])
def test_a_run_that_a_person_moves_after_its_deadline_has_none_any_more(ledger: str, ended_by_it: bool) -> None:
    """The sweeper cancelled it within a second, and its worker undid by itself what lay after the target."""
    run = advance_to_rest(make_run("trip", ledger=ledger))
    if ended_by_it:
        rewind(run, before(run, "pack"))
        due(run, hours=-1)
        assert Sweeper().end_overdue() == 1
        assert Run.objects.get(pk=run.pk).status == "cancelled"
    due(run, hours=-1)
    rewind(run, before(run, "buy"))
    assert Sweeper().end_overdue() == 0
    assert advance_to_rest(run).status == "completed"
    assert (run.deadline, lines(ledger, words=1).count("sell")) == (None, 1)


def test_a_deadline_still_to_come_stays_with_a_run_that_a_person_moves(ledger: str) -> None:
    run = due(advance_to_rest(make_run("trip", ledger=ledger)), hours=2)
    kept = run.deadline
    edit(run, 1, mode="skip")
    assert (advance_to_rest(run).status, run.deadline) == ("completed", kept)
    assert fates(run) == [("buy", "undone"), ("undo of buy", "done")]


@pytest.mark.parametrize("hours", [-1, 2])
def test_a_move_says_before_it_is_ordered_that_it_takes_the_deadline_off(ledger: str, hours: float) -> None:
    run = due(advance_to_rest(make_run("trip", ledger=ledger)), hours=hours)
    client, words = member(run), "It has passed. This removes it"
    form = {"kind": "rewind", "at": before(run, "buy"), "panel": 1}
    assert (words in client.post(f"/runs/{run.pk}/impacts/", form).content.decode()) == (hours < 0)
    deadline = run.deadline.isoformat() if run.deadline and hours < 0 else None
    patch = [{"op": "add", "path": "/mode", "value": "skip"}]
    for kind, patched, said in (("rewind", [], deadline), ("edit", patch, deadline), ("fork", [], None)):
        order = {"kind": kind, "at": 1, "patch": patched}
        told = client.post(f"/api/runs/{run.pk}/impacts", order, content_type="application/json").json()["deadline"]
        assert told == (said and said.replace("+00:00", "Z"))


@pytest.mark.parametrize(
    ("said", "value", "fate"), [("happened", {"ticket": "1"}, "done"), ("not_happened", None, "failed")]
)
def test_a_deadline_in_the_middle_of_an_effect_leaves_its_question_open(
    ledger: str, said: str, value: Any, fate: str
) -> None:
    """The run was cancelled with its gate, and nobody was asked any more whether the effect had happened."""
    run = make_run("trip", ledger=ledger)
    die(run, "after_effect")
    due(run, hours=-1)
    sweeper = Sweeper()
    assert sweeper.end_overdue() == 0
    run.refresh_from_db()
    assert (run.status, run.halt) == ("running", True)
    assert advance_to_rest(run).status == "waiting"
    assert (sweeper.end_overdue(), open_gate(run).step, fates(run)) == (0, "buy", [("buy", "unknown")])
    answer(run, said, value)
    assert sweeper.end_overdue() == 0  # the answer is not applied yet
    assert advance(run).status == "queued"
    assert sweeper.end_overdue() == 1
    run.refresh_from_db()
    assert (run.status, run.reason, fates(run)) == ("cancelled", "Its deadline passed.", [("buy", fate)])
    assert lines(ledger, words=1) == ["buy"]


def expired(ledger: str, then: str, **policy: Any) -> Run:
    team = make_team()
    make_policy(team, name="default", deadline=timedelta(hours=1), **{"on_expiry": then, **policy})
    run = advance_to_rest(make_run("deposit", team=team, ledger=ledger))
    gate = open_gate(run)
    closing.pass_deadline(gate)
    assert closing.expire(Gate.objects.get(pk=gate.pk)) is not None
    return run


def kept(run: Run) -> tuple[str, str, str]:
    outcome = Outcome.objects.get(gate__run=run)
    return run.status, outcome.kind, outcome.then


@pytest.mark.parametrize(
    ("then", "status", "reason", "done"),
    [
        ("expire", "completed", "", ["pay"]),
        ("stop", "cancelled", "Nobody decided in time", ["pay"]),
        ("rollback", "cancelled", "Nobody decided in time", ["pay", "give_back"]),
    ],
)
def test_it_expires_stops_or_is_rolled_back_and_the_agent_goes_on_where_it_has_a_way(
    ledger: str, then: str, status: str, reason: str, done: list[str]
) -> None:
    run = advance_to_rest(expired(ledger, then))
    assert kept(run) == (status, "expired", then if then in ("stop", "rollback") else "")
    assert (run.reason, lines(ledger, words=1)) == (reason, done)
    assert fates(run)[0] == ("pay", "undone" if then == "rollback" else "done")


@pytest.mark.parametrize("point", ["after_outcome", "before_settle"])
def test_a_worker_that_dies_on_the_way_rolls_back_once(ledger: str, point: str) -> None:
    run = expired(ledger, "rollback")
    die(run, point)
    assert kept(advance_to_rest(run)) == ("cancelled", "expired", "rollback")
    assert lines(ledger, words=1) == ["pay", "give_back"]


@pytest.mark.parametrize(
    ("own", "rule", "kind"),
    [("expire", "approve", "approved"), ("approve", "stop", "expired"), ("approve", None, "expired")],
)
def test_a_rule_says_it_for_some_and_never_approves_where_it_cannot_be_evaluated(
    ledger: str, own: str, rule: str | None, kind: str
) -> None:
    when = "true" if rule else "amount < 50"
    rules = [{"name": "some", "when": when, "require": {"on_expiry": rule or "approve"}}]
    run = advance_to_rest(expired(ledger, own, rules=rules))
    assert (kept(run)[1], run.status == "cancelled") == (kind, rule == "stop")


def test_a_cancellation_and_a_decision_that_race_never_wait_for_each_other() -> None:
    """The one locked the run before the gate, the other the gate before the run: PostgreSQL ended one of them."""
    team = make_team()
    reviewer, owner = ann(team), bob(team)
    for _ in range(3):
        gate = make_gate(team=team)
        seen = bytes(gate.standing().digest)
        run = Run.objects.get(pk=gate.run_id)
        decided, ended = race(
            [
                partial(factories.decide, gate, reviewer, seen=seen),
                partial(cancel.cancel, run, by=owner, reason="Not needed"),
            ]
        )
        assert ended is True
        assert Run.objects.get(pk=run.pk).status == "cancelled"
        outcome = Outcome.objects.get(gate=gate)
        if isinstance(decided, Decision):
            assert outcome.kind == "approved"
        else:
            assert isinstance(decided, GateWithdrawn)
            assert (outcome.kind, outcome.grants.count()) == ("withdrawn", 0)


def test_a_cancellation_that_meets_a_decision_under_way_holds_nothing_that_the_decision_needs() -> None:
    team = make_team()
    gate = make_gate(team=team)
    run, owner = Run.objects.get(pk=gate.run_id), bob(team)
    ended = meet_lock(gate.move, partial(cancel.cancel, run, by=owner, reason=""), then=partial(gate.run.wake, SYSTEM))
    assert ended is True
    assert Outcome.objects.get(gate=gate).kind == "withdrawn"
    assert Run.objects.get(pk=run.pk).status == "cancelled"
    change_gate(gate)  # it moved without the event that a decision writes


def test_a_gate_that_opens_while_its_run_is_cancelled_is_withdrawn_with_it() -> None:
    team = make_team()
    run, owner = factories.make_run(team=team, first_step="review"), bob(team)
    assert meet_lock(partial(make_gate, run=run), partial(cancel.cancel, run, by=owner, reason="")) is True
    assert Outcome.objects.get(gate__run=run).kind == "withdrawn"
    assert Run.objects.get(pk=run.pk).status == "cancelled"


def undoing(ledger: str) -> Run:
    """A run that is about to undo what it left behind."""
    run = advance_to_rest(make_run("trip", ledger=ledger))
    return edit(run, 1, mode="skip")


def keeping(ledger: str) -> Run:
    """A run that is about to keep what it cannot undo."""
    run = advance_to_rest(make_run("final", ledger=ledger))
    rewind(run, before(run, "tell"), confirm=True)
    return rewinds.settle_now(run, by=ann(run.team))


@pytest.mark.parametrize(("made", "point"), [(undoing, "before_undo"), (keeping, "before_settle")])
def test_a_page_and_a_worker_do_not_wait_for_each_other(
    ledger: str, made: Callable[[str], Run], point: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One of the two was ended by the database: the person saw an error, or the worker lost its run until the lease."""
    run = made(ledger)
    by = ann(run.team)
    there, go = threading.Event(), threading.Event()

    def stand_still(name: str, step: str, value: Any) -> None:
        if name == point and not there.is_set():
            there.set()
            assert go.wait(20)

    crash_points.listen(stand_still)
    with ThreadPoolExecutor(2) as pool:
        worker = pool.submit(alone, lambda: engine.advance(run.pk))
        assert there.wait(20)
        claims.ask_to_halt(run, actors.of_user(by))  # as another page did just before: this one does not wait for it
        with transaction.atomic():
            Run.objects.select_for_update().get(pk=run.pk)
            go.set()
            until(lambda: blocked() == 1, what="the worker waits")
            page = pool.submit(alone, lambda: rewind(Run.objects.get(pk=run.pk), 1))
            until(lambda: blocked() == 2, what="the page waits")
        assert isinstance(page.result(20), Run)
        assert worker.result(20) is True
    assert "database.lost" not in caplog.text
    assert advance_to_rest(run).status in ("completed", "waiting")


def alone(call: Callable[[], object]) -> object:
    """What a call gave, on a connection of its own."""
    try:
        return call()
    finally:
        connection.close()
