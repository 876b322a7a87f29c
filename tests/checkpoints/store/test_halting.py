"""A person asks a worker to halt, or takes its run over: nobody's save is lost or lands twice, and nothing lingers."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from checkpoints import store
from checkpoints.actors import SYSTEM, Actor
from checkpoints.audit.verify_runs import verify_run
from checkpoints.errors import Fenced
from checkpoints.models import Checkpoint, Event, Run
from checkpoints.store import Header, claims
from checkpoints.store.claims import Claim
from checkpoints.values.ops import Append
from tests.factories.stored_runs import STEP, begin, make_run, take

from .test_claims import at_once, kinds

ANN = Actor("user:7", "Ann Okafor")


def test_a_worker_is_told_that_a_person_wants_it_to_halt() -> None:
    run, claim, _ = begin()
    assert not claims.halting(claim)
    assert claims.ask_to_halt(run, ANN)
    assert claims.halting(claim)
    event = Event.objects.get(run_id=run.pk, kind="run.halting")
    assert (event.subject, event.actor, event.actor_name) == (f"run:{run.pk}", "user:7", "Ann Okafor")


def test_of_many_who_ask_at_once_one_is_told_of() -> None:
    run, claim, _ = begin()
    got = at_once(8, lambda n: claims.ask_to_halt(run, ANN))
    assert sorted(map(str, got)) == ["False"] * 7 + ["True"]
    assert kinds(run).count("run.halting") == 1
    assert claims.halting(claim)


def test_a_run_that_nobody_works_on_is_asked_nothing() -> None:
    run = make_run()
    assert not claims.ask_to_halt(run, ANN)
    assert not Run.objects.get(pk=run.pk).halt
    assert "run.halting" not in kinds(run)


def test_a_worker_that_goes_on_is_still_asked_to_halt() -> None:
    run, claim, head = begin(n=0)
    claims.ask_to_halt(run, ANN)
    store.save(head, {"n": 1}, claim=claim, header=STEP)
    assert claims.halting(claim)


def _release(run: Run, claim: Claim) -> None:
    claims.release(claim, status="queued", by=SYSTEM)


def _save(run: Run, claim: Claim) -> None:
    store.save(store.load(run), {}, claim=claim, header=STEP, status="waiting")


def _end(run: Run, claim: Claim) -> None:
    store.save(store.load(run), {}, claim=claim, header=Header("step", "one", ""), status="completed")


def _cancel(run: Run, claim: Claim) -> None:
    assert Run.objects.get(pk=run.pk).cancel(ANN)


def _claim_again(run: Run, claim: Claim) -> None:
    Run.objects.filter(pk=run.pk).update(lease_until=run.created_at)
    take(run)


def _take_over(run: Run, claim: Claim) -> None:
    claims.take_over(run, ANN)


@pytest.mark.parametrize("act", [_release, _save, _end, _cancel, _claim_again, _take_over])
def test_the_next_to_hold_the_run_is_not_asked_to_halt(act: Callable[[Run, Claim], None]) -> None:
    run, claim, _ = begin()
    claims.ask_to_halt(run, ANN)
    act(run, claim)
    assert not Run.objects.get(pk=run.pk).halt


def test_a_take_over_begins_anew_whatever_the_run_was_about_to_do() -> None:
    run, claim, _ = begin(n=0)
    claims.release(claim, status="queued", by=SYSTEM)
    claim = take(run)
    assert claim.attempts == 2
    Run.objects.filter(pk=run.pk).update(settling=True, ending="cancelled", ending_reason="Ann said so", halt=True)
    mine = claims.take_over(run, ANN)
    run.refresh_from_db()
    assert (run.settling, run.ending, run.ending_reason, run.halt) == (False, "", "", False)
    assert (run.attempts, run.status) == (0, "running")
    assert (mine.head, mine.seq, mine.attempts) == (run.head, 1, 0)
    claims.release(mine, status="queued", by=ANN)
    assert take(run).attempts == 1


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled", "waiting", "queued"])
def test_a_run_may_be_taken_over_in_whatever_status(status: str) -> None:
    run, claim, head = begin(n=0)
    claims.release(claim, status=status, reason="Because", by=SYSTEM)
    mine = claims.take_over(run, ANN)
    assert Run.objects.get(pk=run.pk).finished_at is None
    store.move_head(head, {"n": 1}, claim=mine, header=Header("edit", "one", "two"), status="queued", actor=ANN)
    run.refresh_from_db()
    assert (run.status, run.next_step, run.reason, run.lease_until) == ("queued", "two", "", None)
    assert take(run).token == mine.token + 1


def test_a_take_over_that_is_rolled_back_leaves_the_run_to_its_worker() -> None:
    run, claim, head = begin(n=0)
    with transaction.atomic():
        mine = claims.take_over(run, ANN)
        store.move_head(head, {"n": 7}, claim=mine, header=Header("edit", "one", "two"), status="queued", actor=ANN)
        transaction.set_rollback(True)
    assert store.save(head, {"n": 1}, claim=claim, header=STEP).seq == 2
    assert "run.taken" not in kinds(run)


@pytest.mark.parametrize("seed", range(6))
def test_a_page_that_takes_over_while_a_worker_saves_loses_nothing(seed: int) -> None:
    run, claim, head = begin(log=[])
    going, got = threading.Event(), []
    rewind_after = random.Random(seed).randrange(1, 12)

    def work() -> None:
        at = head
        try:
            while True:
                at = store.save(at, {"log": Append([at.seq])}, claim=claim, header=STEP)
                if at.seq > rewind_after:
                    going.set()
        except Fenced as error:
            got.append((at, error))
        finally:
            going.set()
            connection.close()

    worker = threading.Thread(target=work)
    worker.start()
    going.wait()
    moved = _rewind(run, seed)
    worker.join()
    (last, _), *others = got
    assert not others
    assert moved.seq == last.seq + 1, "what the worker had saved was lost, or landed after the rewind"
    run.refresh_from_db()
    assert (run.head, run.seq, run.status, run.next_step) == (moved.id, moved.seq, "queued", "two")
    assert store.load(run).state == {"log": [], "why": seed}
    assert Checkpoint.objects.filter(run=run).count() == moved.seq
    assert verify_run(run) == []


def _rewind(run: Run, why: Any) -> store.Snapshot:
    """What a page does: by an own transaction, half of the time."""
    first = Checkpoint.objects.get(run=run, seq=1).pk
    header = Header("rewind", "one", "two")
    if why % 2:
        mine = claims.take_over(run, ANN)
        return store.move_head(
            store.load_checkpoint(first), {"why": why}, claim=mine, header=header, status="queued", actor=ANN
        )
    with transaction.atomic():
        mine = claims.take_over(run, ANN)
        return store.move_head(
            store.load_checkpoint(first), {"why": why}, claim=mine, header=header, status="queued", actor=ANN
        )


def test_of_many_pages_that_rewind_at_once_each_builds_on_the_one_before() -> None:
    run, _, head = begin(n=0)

    def rewind(n: int) -> store.Snapshot:
        with transaction.atomic():
            mine = claims.take_over(run, ANN)
            return store.move_head(head, {"n": n}, claim=mine, header=Header("rewind", "one", "one"), status="queued")

    got = at_once(6, rewind)
    assert sorted(made.seq for made in got) == [2, 3, 4, 5, 6, 7]
    run.refresh_from_db()
    assert run.head == max(got, key=lambda made: made.seq).id
    assert verify_run(run) == []
