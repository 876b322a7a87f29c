"""A prune under way is stopped: nothing of it lands afterwards, and what it removed is said."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from checkpoints import crash_points, tasks
from checkpoints.actors import SYSTEM, Actor
from checkpoints.audit.verify_runs import verify_run
from checkpoints.models import Checkpoint, Event, Prune
from checkpoints.retention import prunes
from checkpoints.retention.prunes import NotUnderWay
from checkpoints.values.canonical_json import decode_canonical
from tests.conftest import Starter
from tests.harness.waiting import until

from .pruned_runs import elsewhere, ended, keep, looked, ordered, pruned, seqs

ANN = Actor("user:7", "Ann")


def test_what_was_removed_before_a_stop_stays_removed_and_the_rest_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = ended(40), ended(40)
    for run in (first, second):
        keep(run, keep_last=10)
    prune = ordered()
    seen: list[int] = []

    def after_one(name: str, step: str = "", value: Any = None) -> None:
        if name == "prune_line_done" and not seen:
            seen.append(1)
            prunes.stop(prune, by=ANN)

    monkeypatch.setattr(crash_points, "point", after_one)
    assert prunes.apply(prune)
    assert prune.status == Prune.Status.STOPPED
    assert {len(seqs(first)), len(seqs(second))} == {10, 41}
    told = Event.objects.get(kind="retention.stopped", subject=f"prune:{prune.pk}")
    said = decode_canonical(bytes(told.data))
    assert (told.actor, said["checkpoints"], said["left"]) == ("user:7", prune.removed, 31)
    assert not Event.objects.filter(kind="retention.finished", subject=f"prune:{prune.pk}").exists()
    assert verify_run(first) == verify_run(second) == []
    assert pruned().removed == 31
    assert len(seqs(second)) == 10


def test_a_portion_that_meets_a_stop_does_not_land(monkeypatch: pytest.MonkeyPatch) -> None:
    run = ended(40)
    keep(run, keep_last=10)
    prune = ordered()

    def stop_elsewhere(name: str, step: str = "", value: Any = None) -> None:
        if name == "prune_removed":
            elsewhere(lambda: prunes.stop(prune, by=ANN)).join()

    monkeypatch.setattr(crash_points, "point", stop_elsewhere)
    assert prunes.apply(prune)
    assert (prune.status, prune.removed, len(seqs(run))) == (Prune.Status.STOPPED, 0, 41)
    assert verify_run(run) == []


def test_only_what_is_under_way_is_stopped() -> None:
    run = ended(20)
    keep(run, keep_last=10)
    for prune in (looked(), pruned()):
        with pytest.raises(NotUnderWay):
            prunes.stop(prune, by=ANN)
    assert not Event.objects.filter(kind="retention.stopped", actor="user:7", subject=f"prune:{prune.pk}").exists()


def test_a_dry_run_that_nobody_applied_is_dropped_after_a_week() -> None:
    run = ended(20)
    keep(run, keep_last=10)
    old, new = looked(), looked()
    Prune.objects.filter(pk=old.pk).update(at=Now() - timedelta(days=8))
    prunes.drop_old()
    old.refresh_from_db()
    new.refresh_from_db()
    assert (old.status, old.lines.count()) == (Prune.Status.DROPPED, 0)
    assert (new.status, new.lines.count()) == (Prune.Status.SHOWN, 1)


def test_a_run_that_does_not_verify_is_left_alone_and_named() -> None:
    run = ended(20)
    keep(run, keep_last=10)
    Checkpoint.objects.filter(run=run, seq=3).update(took_us=999)
    prune = pruned()
    assert len(seqs(run)) == 21
    line = prune.lines.get(run=run)
    assert "does not match its digest" in line.fault
    finished = Event.objects.get(kind="retention.finished", subject=f"prune:{prune.pk}")
    assert decode_canonical(bytes(finished.data))["not_verified"] == [run.pk]


def test_the_night_of_a_real_worker_drops_what_is_old_and_prunes(celery_worker: Starter) -> None:
    run = ended(20)
    keep(run, keep_last=10)
    old = looked()
    Prune.objects.filter(pk=old.pk).update(at=Now() - timedelta(days=8))
    celery_worker()
    tasks.prune_nightly.delay()
    until(lambda: Prune.objects.filter(nightly=True, status=Prune.Status.DONE).exists())
    old.refresh_from_db()
    assert old.status == Prune.Status.DROPPED
    assert len(seqs(run)) == 10
    assert Prune.objects.get(nightly=True).by == SYSTEM.id
    assert verify_run(run) == []
