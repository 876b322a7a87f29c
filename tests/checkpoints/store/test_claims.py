"""One worker at a time writes a run, by lease and token; whoever is halted, fenced or killed leaves nothing half."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
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
from tests.factories.stored_runs import REWIND, STEP, begin, make_plan, make_run, take
from tests.harness.examples import first_alone
from tests.harness.racing_threads import race

ANN = Actor("user:7", "Ann Okafor")
LAST = Header("step", "one", "")


def at_once(count: int, act: Callable[[int], Any]) -> list[Any]:
    return race([partial(act, n) for n in range(count)])


def kinds(run: Run) -> list[str]:
    return list(Event.objects.filter(run_id=run.pk).order_by("id").values_list("kind", flat=True))


def test_of_many_workers_one_gets_the_run_and_of_many_saves_on_one_head_one_lands() -> None:
    run = make_run()
    got = at_once(12, lambda n: claims.claim(run.pk, plan_ids=[run.plan_id], worker=f"w{n}", lease=60))
    won = [claim for claim in got if claim is not None]
    assert len(won) == 1
    assert (won[0].token, won[0].attempts, won[0].next_step) == (1, 1, "one")
    assert kinds(run) == ["run.started", "run.running"]
    run, claim, head = begin(n=0)
    got = at_once(12, lambda n: store.save(head, {"n": n}, claim=claim, header=STEP))
    assert sum(isinstance(made, store.Snapshot) for made in got) == 1
    assert sum(isinstance(made, Fenced) for made in got) == 11
    assert Checkpoint.objects.filter(run=run).count() == 2


def test_a_worker_whose_lease_ran_out_is_fenced() -> None:
    run, stale, head = begin(n=0)
    assert claims.claim(run.pk, plan_ids=[run.plan_id], worker="other", lease=60) is None
    Run.objects.filter(pk=run.pk).update(lease_until=run.created_at)
    fresh = take(run)
    assert (fresh.token, fresh.attempts) == (stale.token + 1, 2)
    with pytest.raises(Fenced):
        store.save(head, {"n": 1}, claim=stale, header=STEP)
    with pytest.raises(Fenced):
        store.move_head(head, {}, claim=stale, header=REWIND)
    with pytest.raises(Fenced):
        claims.release(stale, status="failed", by=SYSTEM)
    assert not claims.renew(stale)
    assert claims.renew(fresh)
    assert store.save(head, {"n": 2}, claim=fresh, header=STEP).state == {"n": 2}


def test_a_worker_takes_no_version_that_it_lacks_and_no_run_that_is_not_due() -> None:
    run = make_run()
    assert claims.claim(run.pk, plan_ids=[make_plan().pk], worker="w", lease=60) is None
    assert claims.claim(run.pk, plan_ids=[], worker="w", lease=60) is None
    run, claim, _ = begin()
    later = claim.clock().replace(year=claim.at.year + 1)
    claims.release(claim, status="queued", wake_at=later, reason="Try again later", by=SYSTEM)
    assert claims.claim(run.pk, plan_ids=[run.plan_id], worker="w", lease=60) is None
    assert run not in Run.objects.due()
    assert run in Run.objects.due(later)


def test_a_take_over_or_one_of_many_cancellations_fences_the_worker_and_says_who_it_was() -> None:
    run, stale, head = begin(n=0)
    mine = claims.take_over(run, ANN)
    with pytest.raises(Fenced):
        store.save(head, {"n": 1}, claim=stale, header=STEP)
    store.save(head, {"n": 9}, claim=mine, header=STEP, status="queued", actor=ANN)
    assert kinds(run)[2:] == ["run.taken", "checkpoint.saved", "run.queued"]
    assert Event.objects.filter(run_id=run.pk, actor="user:7", actor_name="Ann Okafor").count() == 3
    assert take(run).token == mine.token + 1
    run, claim, head = begin(n=0)
    got = at_once(8, lambda n: Run.objects.get(pk=run.pk).cancel(ANN, f"by {n}"))
    assert sorted(map(str, got)) == ["False"] * 7 + ["True"]
    with pytest.raises(Fenced):
        store.save(head, {"n": 1}, claim=claim, header=STEP)
    run.refresh_from_db()
    assert (run.status, run.lease_until) == ("cancelled", None)
    assert kinds(run).count("run.cancelled") == 1
    assert not run.wake(SYSTEM)


def test_a_run_stays_frozen_until_a_person_takes_it_over_whatever_the_reason_says() -> None:
    run, claim, _ = begin()

    def frozen() -> bool:
        return Run.objects.get(pk=run.pk).frozen

    claims.release(claim, status="failed", reason="A row", freeze=True, by=SYSTEM)
    was = frozen()
    assert was
    claims.release(claims.take_over(run, ANN), status="queued", freeze=was, by=ANN)  # to settle first
    assert not frozen()
    claims.release(take(run), status="failed", reason="A row", by=SYSTEM)
    assert frozen(), "settled, and as it was before"
    claims.release(claims.take_over(run, ANN), status="failed", reason="Integrity fault at a row", by=ANN)
    assert not frozen()


def test_a_worker_is_told_that_a_person_wants_it_to_halt_also_while_it_goes_on() -> None:
    run, claim, head = begin(n=0)
    assert not claims.halting(claim)
    assert claims.ask_to_halt(run, ANN)
    assert claims.halting(claim)
    store.save(head, {"n": 1}, claim=claim, header=STEP)
    assert claims.halting(claim)
    assert not claims.ask_to_halt(run, ANN), "once is enough"
    event = Event.objects.get(run_id=run.pk, kind="run.halting")
    assert (event.subject, event.actor, event.actor_name) == (f"run:{run.pk}", "user:7", "Ann Okafor")
    idle = make_run()
    assert not claims.ask_to_halt(idle, ANN)
    assert not Run.objects.get(pk=idle.pk).halt
    assert "run.halting" not in kinds(idle)


def _claim_again(run: Run, claim: Claim) -> None:
    Run.objects.filter(pk=run.pk).update(lease_until=run.created_at)
    take(run)


ENDS: dict[str, Callable[[Run, Claim], Any]] = {
    "release": lambda run, claim: claims.release(claim, status="queued", by=SYSTEM),
    "wait": lambda run, claim: store.save(store.load(run), {}, claim=claim, header=STEP, status="waiting"),
    "end": lambda run, claim: store.save(store.load(run), {}, claim=claim, header=LAST, status="completed"),
    "cancel": lambda run, claim: Run.objects.get(pk=run.pk).cancel(ANN),
    "claim again": _claim_again,
    "take over": lambda run, claim: claims.take_over(run, ANN),
}


@pytest.mark.parametrize("end", ENDS)
def test_the_next_to_hold_the_run_is_not_asked_to_halt(end: str) -> None:
    run, claim, _ = begin()
    claims.ask_to_halt(run, ANN)
    ENDS[end](run, claim)
    assert not Run.objects.get(pk=run.pk).halt
    assert Run.objects.get(pk=run.pk).token == claim.token + (end in ("cancel", "claim again", "take over"))


@pytest.mark.parametrize("status", ["completed", "cancelled", "waiting"])
def test_a_run_may_be_taken_over_in_whatever_status(status: str) -> None:
    run, claim, head = begin(n=0)
    claims.release(claim, status=status, reason="Because", by=SYSTEM)
    mine = claims.take_over(run, ANN)
    assert Run.objects.get(pk=run.pk).finished_at is None
    store.move_head(head, {"n": 1}, claim=mine, header=Header("edit", "one", "two"), status="queued", actor=ANN)
    run.refresh_from_db()
    assert (run.status, run.next_step, run.reason, run.lease_until) == ("queued", "two", "", None)
    assert take(run).token == mine.token + 1


@pytest.mark.parametrize("seed", first_alone(range(6), 2))
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


def _rewind(run: Run, why: int) -> store.Snapshot:
    """What a page does: by an own transaction, half of the time."""
    first = Checkpoint.objects.get(run=run, seq=1).pk
    with nullcontext() if why % 2 else transaction.atomic():
        mine = claims.take_over(run, ANN)
        return store.move_head(
            store.load_checkpoint(first), {"why": why}, claim=mine, header=Header("rewind", "one", "two"),
            status="queued", actor=ANN,
        )  # fmt: skip
