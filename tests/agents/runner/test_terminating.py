"""A worker that is told to end again and again, while a COMMIT of its own is under way."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from checkpoints.models import Checkpoint, Run
from tests.factories.driven_runs import make_run, state
from tests.harness import services
from tests.harness.examples import first_alone
from tests.harness.waiting import until

Starter = Callable[..., services.Service]
QUICK = {"HOLDPOINT_LEASE": "2"}
LOCK = 712_033
# A deferred trigger runs inside COMMIT: there it waits until the test lets go.
SLOW_COMMIT = f"""
CREATE FUNCTION hold_commit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.step = 'grow' AND NEW.seq = 3 THEN PERFORM pg_advisory_xact_lock_shared({LOCK}); END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER hold_commit AFTER INSERT ON checkpoints_checkpoint
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION hold_commit();
"""
GONE = "DROP TRIGGER IF EXISTS hold_commit ON checkpoints_checkpoint; DROP FUNCTION IF EXISTS hold_commit()"
IN_COMMIT = f"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = {LOCK} AND NOT granted"


@pytest.fixture
def held() -> Iterator[psycopg.Connection]:
    """A connection that holds up the COMMIT of the second step, until it gives the lock back."""
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"], autocommit=True) as owner:
        owner.execute(SLOW_COMMIT)
        try:
            owner.execute(f"SELECT pg_advisory_lock({LOCK})")
            yield owner
        finally:
            owner.execute("SELECT pg_advisory_unlock_all()")
            owner.execute(GONE)


@pytest.mark.parametrize("signals", first_alone([[signal.SIGTERM, signal.SIGQUIT], [signal.SIGTERM] * 3]))
def test_a_step_whose_commit_is_under_way_lands_once_however_often_the_worker_is_told_to_end(
    signals: list[signal.Signals],
    held: psycopg.Connection,
    celery_worker: Starter,
    sweeper: Starter,
    tmp_path: Path,
) -> None:
    ledger = tmp_path / "ledger"
    worker = celery_worker("-c", "1", env=QUICK)
    run = make_run("grower", steps=4, pause=0.01, ledger=str(ledger))

    def waiting() -> bool:
        return held.execute(IN_COMMIT.encode()).fetchone() == (1,)

    until(waiting, what="its second step is in COMMIT")
    for each in signals:
        os.kill(worker.pid, each)
    held.execute("SELECT pg_advisory_unlock_all()")
    until(lambda: not worker.alive, what="the worker has ended")
    sweeper(env=QUICK)
    celery_worker("-c", "1", env=QUICK)
    until(lambda: Run.objects.get(pk=run.pk).status == "completed", what="another worker goes on")
    grown = ledger.read_text().splitlines()  # the step after it may have begun before the worker was ended
    assert (grown.count("grow 1"), sorted(set(grown))) == (1, [f"grow {number}" for number in range(4)])
    assert state(run)["log"] == [0, 1, 2, 3]
    assert Checkpoint.objects.filter(run=run).count() == 5
