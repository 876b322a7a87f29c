"""A prune that is done or stopped: its report agrees with itself, and each checkpoint that stayed says why."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from bs4 import BeautifulSoup
from django.db.models import Sum
from django.db.models.functions import Now
from django.template.defaultfilters import filesizeformat
from django.test import Client

from checkpoints import crash_points, tasks
from checkpoints.actors import SYSTEM, Actor
from checkpoints.audit.verify_runs import verify_run
from checkpoints.errors import NotVerified
from checkpoints.models import Checkpoint, Event, Gap, Prune, PruneLine, RetentionPolicy
from checkpoints.retention import delete_batch, prune_report, prunes, reading
from checkpoints.retention.prunes import NotUnderWay
from checkpoints.runs import holds
from checkpoints.values.canonical_json import decode_canonical
from tests.agents.pages.test_run_page import text_of
from tests.conftest import Starter
from tests.factories import make_user
from tests.harness.signed_in_clients import signed_in
from tests.harness.waiting import until

from .pruned_runs import elsewhere, ended, grown, keep, looked, more, ordered, pruned, seqs


def order(prune: Prune) -> Prune:
    prunes.order(prune, seen=bytes(prune.digest), by=SYSTEM)
    return prune


def reported(prune: Prune) -> tuple[str, Client]:
    client = signed_in(make_user("Root", superuser=True))
    return client.get(f"/admin/checkpoints/prune/{prune.pk}/change/").content.decode(), client


def table(page: str) -> list[list[str]]:
    """The rows of the table by agent, as text."""
    found = BeautifulSoup(page, "html.parser").find("h2", string="By agent")
    assert found is not None
    rows: Any = found.find_next("table")
    return [[cell.get_text(strip=True) for cell in row.select("th, td")] for row in rows.select("tbody tr")]


def agrees(prune: Prune) -> None:
    """Everything that the prune's rows say adds up."""
    prune.refresh_from_db()
    for line in prune.lines.all():
        assert line.checkpoints == line.removed + sum(count for _, _, count in line.stayed), line
    sums = prune.lines.aggregate(shown=Sum("checkpoints"), removed=Sum("removed"), freed=Sum("freed"))
    assert (sums["shown"], sums["removed"]) == (prune.checkpoints, prune.removed)
    assert sums["freed"] + prune_report.files(prune) == prune.freed
    assert sum(each.checkpoints for each in prune_report.kept_after_all(prune)) == prune.kept_after_all


def test_what_a_new_hold_kept_is_in_every_number_and_named() -> None:
    """It said "5 stayed after all: they were held, moved or used", and below that nothing was held."""
    run, other = ended(60), ended(60)
    keep(run, keep_last=20), keep(other, keep_last=20)
    prune = looked()
    for seq in (7, 8, 9):
        holds.hold(run, seq, "Lawsuit 12/26", by=SYSTEM)
    assert prunes.apply(order(prune))
    agrees(prune)
    page, _ = reported(prune)
    said = text_of(page)
    assert said.count(f"1 of R-{run.pk} : legal hold “Lawsuit 12/26” (Holdpoint)") == 3
    assert "3 by legal hold" in said
    rows = {row[0]: row[1:] for row in table(page)}
    line, beside = prune.lines.get(run=run), prune.lines.get(run=other)
    assert rows[run.plan.agent] == ["1", "41", filesizeformat(line.size), "38", "3", filesizeformat(line.freed)]
    assert rows[other.plan.agent] == ["1", "41", filesizeformat(beside.size), "41", "0", filesizeformat(beside.freed)]


def test_what_is_freed_counts_what_nothing_names_any_more_with_the_run_it_belonged_to() -> None:
    run = ended(400)
    keep(run, keep_last=2)
    prune = looked()
    assert prunes.apply(order(prune))
    agrees(prune)
    assert prune.lines.get(run=run).freed > 0
    assert len(seqs(run)) <= 3


def test_what_a_policy_that_was_changed_let_stay_says_so() -> None:
    run = ended(60)
    keep(run, keep_last=20)
    prune = ordered()
    keep(run, keep_last=50)
    assert prunes.apply(prune)
    agrees(prune)
    said, _ = reported(prune)
    assert f"41 of R-{run.pk} : the policy was changed meanwhile" in text_of(said)


def test_a_name_that_was_given_since_is_named() -> None:
    run, claim, head = grown(60)
    keep(run, keep_last=5)
    prune = looked()
    more(head, claim, 1)
    holds.name(run, prune.lines.get(run=run).ranges[-1][1], "Before it went wrong", by=SYSTEM)
    assert prunes.apply(order(prune))
    agrees(prune)
    assert f"1 of R-{run.pk} : name “Before it went wrong” (Holdpoint)" in text_of(reported(prune)[0])


def test_what_a_stop_left_says_so_and_what_was_not_recorded_is_counted_all_the_same() -> None:
    run = ended(60)
    keep(run, keep_last=20)
    prune = ordered()
    prunes.stop(prune, by=SYSTEM)
    page, client = reported(prune)
    assert f"41 of R-{run.pk} : the prune was stopped before it reached them" in text_of(page)
    PruneLine.objects.filter(prune=prune).update(done=True)  # as lines are that were applied before reasons were kept
    again = text_of(client.get(f"/admin/checkpoints/prune/{prune.pk}/change/").content.decode())
    assert "41 of the 41 checkpoints of the dry run are kept: 41 of R-" in again
    assert RetentionPolicy.objects.filter(agent=run.plan.agent).count() == 1


def test_deleting_that_costs_more_than_it_frees_is_not_told_as_a_negative_size() -> None:
    prune = Prune(freed=-14_336, size=20_000, checkpoints=3, removed=3)
    assert prune_report.freed(prune).startswith("which takes 14.0\xa0KB more")


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
    assert not Gap.objects.filter(run=run).exists()
    with pytest.raises(NotVerified):
        delete_batch.prepared(run.pk, run.pk, reading.history_of(run.pk), [3])


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
