"""One worker at a time writes a run, by lease and token; a stale one writes nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from checkpoints import store
from checkpoints.actors import SYSTEM, Actor
from checkpoints.errors import Fenced
from checkpoints.models import Checkpoint, Event, Plan, Run
from checkpoints.signals import run_needs_attention
from checkpoints.store import claims
from tests.factories.stored_runs import REWIND, STEP, begin, make_plan, make_run, take
from tests.harness.sent_statements import sent

ANN = Actor("user:7", "Ann Okafor")


def at_once(count: int, act: Callable[[int], Any]) -> list[Any]:
    """What `count` threads got, started together; an exception is what a thread got too."""
    got: list[Any] = [None] * count
    gate = threading.Barrier(count)

    def work(n: int) -> None:
        gate.wait()
        try:
            got[n] = act(n)
        except Exception as error:  # noqa: BLE001 - told to the test
            got[n] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=[n]) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return got


def kinds(run: Run) -> list[str]:
    return list(Event.objects.filter(run_id=run.pk).order_by("id").values_list("kind", flat=True))


def test_of_many_workers_one_gets_the_run() -> None:
    run = make_run()
    got = at_once(12, lambda n: claims.claim(run.pk, plan_ids=[run.plan_id], worker=f"w{n}", lease=60))
    won = [claim for claim in got if claim is not None]
    assert len(won) == 1
    assert (won[0].token, won[0].attempts, won[0].next_step) == (1, 1, "one")
    assert kinds(run) == ["run.started", "run.running"]


def test_a_claim_gives_the_run_as_the_database_has_it() -> None:
    run = make_run()
    Run.objects.filter(pk=run.pk).update(thread="t", key="k", reason="waits", environment=b'{"config": {}}', halt=True)
    claim = claims.claim(run.pk, plan_ids=[run.plan_id], worker="w", lease=60)
    assert claim is not None
    assert claim.run is not None
    stored = Run.objects.select_related("team").get(pk=run.pk)
    with sent() as statements:
        assert claim.run.team == stored.team
        assert claim.run.team.name == stored.team.name
    assert not statements, "the team is read with it"
    names = [field.attname for field in Run._meta.concrete_fields]
    assert {name: getattr(claim.run, name) for name in names} == {name: getattr(stored, name) for name in names}
    assert (claim.run.status, claim.run.worker, claim.run.reason, claim.run.halt) == ("running", "w", "", False)


def test_of_many_saves_on_one_head_one_lands() -> None:
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


def test_a_worker_takes_no_version_that_it_lacks() -> None:
    run = make_run()
    assert claims.claim(run.pk, plan_ids=[make_plan().pk], worker="w", lease=60) is None
    assert claims.claim(run.pk, plan_ids=[], worker="w", lease=60) is None


def test_a_run_that_is_not_due_is_left_alone() -> None:
    run, claim, _ = begin()
    later = claim.clock().replace(year=claim.at.year + 1)
    claims.release(claim, status="queued", wake_at=later, reason="Try again later", by=SYSTEM)
    assert claims.claim(run.pk, plan_ids=[run.plan_id], worker="w", lease=60) is None
    assert run not in Run.objects.due()
    assert run in Run.objects.due(later)


def test_starts_are_counted_until_a_step_lands() -> None:
    run, claim, head = begin()
    for attempts in (2, 3):
        claims.release(claim, status="queued", by=SYSTEM)
        claim = take(run)
        assert claim.attempts == attempts
    head = store.save(head, {"n": 1}, claim=claim, header=STEP)
    run.refresh_from_db()
    assert run.attempts == 1, "the same worker goes on with the next step"
    store.save(head, {"n": 2}, claim=claim, header=STEP, status="queued")
    assert take(run).attempts == 1


def test_a_page_that_takes_over_fences_the_worker_and_says_who_it_was() -> None:
    run, stale, head = begin(n=0)
    mine = claims.take_over(run, ANN)
    with pytest.raises(Fenced):
        store.save(head, {"n": 1}, claim=stale, header=STEP)
    store.save(head, {"n": 9}, claim=mine, header=STEP, status="queued", actor=ANN)
    assert kinds(run)[2:] == ["run.taken", "checkpoint.saved", "run.queued"]
    assert Event.objects.filter(run_id=run.pk, actor="user:7", actor_name="Ann Okafor").count() == 3
    assert take(run).token == mine.token + 1


def test_the_claims_clock_follows_the_databases() -> None:
    _, claim, _ = begin()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now = cursor.fetchone()[0]
    assert abs((claim.clock() - now).total_seconds()) < 0.2
    assert claim.clock() > claim.at


def test_waking_twice_queues_once_and_rings_each_time() -> None:
    run, claim, _ = begin()
    claims.release(claim, status="waiting", by=SYSTEM)
    rung: list[tuple[int, Plan]] = []

    def hear(sender: Any, run_id: int, plan: Plan, **_: Any) -> None:
        rung.append((run_id, plan))

    run_needs_attention.connect(hear)
    try:
        assert run.wake(SYSTEM)
        assert not run.wake(SYSTEM)
    finally:
        run_needs_attention.disconnect(hear)
    assert rung == [(run.pk, run.plan)] * 2
    assert run.status == "queued"
    assert kinds(run)[-2:] == ["run.waiting", "run.queued"]


def test_of_many_cancellations_one_counts_and_the_worker_is_fenced() -> None:
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
