"""Five thousand runs wait at gates, all are decided at once, and each goes on exactly once."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.db import connection

from approvals.models import Gate
from approvals.policy import pacing
from checkpoints.models import Event, Run
from tests.conftest import Starter
from tests.factories import ann, make_team
from tests.factories.driven_runs import advance_to_rest, decide, make_run
from tests.harness.waiting import until

MANY = 5_000
PEOPLE = 8  # who decide side by side
WITHIN = 900.0  # seconds, on a machine that has other things to do


@pytest.mark.long
def test_five_thousand_runs_that_are_decided_at_once_all_go_on_and_none_twice(
    celery_worker: Starter, sweeper: Starter, tmp_path: Path
) -> None:
    ledger, team = tmp_path / "ledger", make_team()
    person = ann(team)
    with pacing.unpaced():
        runs = [advance_to_rest(make_run("payer", team=team, ledger=str(ledger))) for _ in range(MANY)]
    assert Gate.objects.open().filter(run__in=runs).count() == MANY
    sweeper()
    celery_worker("-c", "2")
    ready = threading.Barrier(PEOPLE)

    def approve(share: list[Run]) -> None:
        ready.wait(60)
        try:
            for run in share:
                decide(run, by=person)
        finally:
            connection.close()

    with ThreadPoolExecutor(PEOPLE) as pool:
        list(pool.map(approve, [runs[first::PEOPLE] for first in range(PEOPLE)]))
    numbers = [run.pk for run in runs]
    unfinished = Run.objects.filter(pk__in=numbers).exclude(status="completed")
    until(lambda: not unfinished.exists(), what="all have completed", within=WITHIN)
    done = Counter(line.split()[0] for line in ledger.read_text().splitlines())
    assert set(done.values()) == {MANY}, done
    assert Event.objects.filter(run_id__in=numbers, kind="run.completed").count() == MANY
