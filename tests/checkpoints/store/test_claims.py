"""One worker at a time writes a run, by lease and token; whoever is halted, fenced or killed leaves nothing half."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
from django.db import connection, transaction

from checkpoints import store
from checkpoints.actors import SYSTEM, Actor
from checkpoints.audit.verify_runs import verify_run
from checkpoints.errors import Fenced
from checkpoints.models import Checkpoint, Event, Plan, Run
from checkpoints.signals import run_needs_attention
from checkpoints.store import Header, claims
from checkpoints.store.claims import Claim
from checkpoints.values.ops import Append
from tests.conftest import Starter
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


def test_a_worker_is_told_that_a_person_wants_it_to_halt_also_while_it_goes_on() -> None:
    run, claim, head = begin(n=0)
    assert not claims.halting(claim)
    assert claims.ask_to_halt(run, ANN)
    assert claims.halting(claim)
    store.save(head, {"n": 1}, claim=claim, header=STEP)
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


def _claim_again(run: Run, claim: Claim) -> None:
    Run.objects.filter(pk=run.pk).update(lease_until=run.created_at)
    take(run)


LAST = Header("step", "one", "")
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


def _rewind(run: Run, why: int) -> store.Snapshot:
    """What a page does: by an own transaction, half of the time."""
    first = Checkpoint.objects.get(run=run, seq=1).pk
    with nullcontext() if why % 2 else transaction.atomic():
        mine = claims.take_over(run, ANN)
        return store.move_head(
            store.load_checkpoint(first), {"why": why}, claim=mine, header=Header("rewind", "one", "two"),
            status="queued", actor=ANN,
        )  # fmt: skip


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


SAVER = """
import django; django.setup()
from checkpoints import store
from checkpoints.store import claims
from checkpoints.models import Run
from checkpoints.values.ops import Append
run = Run.objects.get(pk={run})
claim = claims.claim(run.pk, plan_ids=[run.plan_id], worker="doomed", lease=60)
head = store.load(run)
header = store.Header("step", "one", "one")
print("saving", flush=True)
while True:
    head = store.save(head, {{"log": Append(["x" * 3000, head.seq]), "n": head.seq}}, claim=claim, header=header)
"""


def test_a_process_killed_while_it_saves_leaves_nothing_half(start_service: Starter) -> None:
    for pause in (0.02, 0.2):
        run, claim, head = begin(log=[], n=0)
        store.save(head, {}, claim=claim, header=STEP, status="queued")
        command = [sys.executable, "-c", SAVER.format(run=run.pk)]
        saver = start_service("saver", command, {"DJANGO_SETTINGS_MODULE": "config.settings"})
        saver.says("saving")
        while Run.objects.get(pk=run.pk).seq < 4:
            time.sleep(0.005)
        time.sleep(pause)
        saver.kill()
        seen = 0
        while seen != run.seq:  # the server may still commit what it was sent
            seen = run.seq
            time.sleep(0.1)
            run.refresh_from_db()
        loaded = store.load(run)
        assert (loaded.id, loaded.seq) == (run.head, run.seq)
        assert loaded.state["log"][1::2] == list(range(2, loaded.seq))
        assert Checkpoint.objects.filter(run=run).count() == loaded.seq
        assert Event.objects.filter(run_id=run.pk, kind="checkpoint.saved").count() == loaded.seq - 1
        assert verify_run(run) == []
        # The dead worker's lease has to run out before anybody goes on.
        Run.objects.filter(pk=run.pk).update(lease_until=run.created_at)
        fresh = take(run)
        assert store.save(loaded, {"n": -1}, claim=fresh, header=STEP).state["n"] == -1
