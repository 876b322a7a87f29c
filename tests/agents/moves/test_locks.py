"""A page that moves a run and the worker that has it lock in one order: neither is ended by the database as a deadlock.

The run's row is held until the worker waits for it, and the page after it: whoever had taken the run's row before the
effects' would then wait for a page that has those, and waits for the run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, transaction

from agents.moves import rewind as rewinds
from agents.runner import engine
from checkpoints import actors, crash_points
from checkpoints.models import Run
from checkpoints.store import claims
from tests.factories import ann
from tests.factories.driven_runs import advance_to_rest, decide, make_run
from tests.harness.racing_threads import blocked
from tests.harness.waiting import until

from .moved_runs import before, edit, rewind

Call = Callable[[], object]


def undoing(ledger: str) -> Run:
    """A run that is about to undo what it left behind."""
    run = advance_to_rest(make_run("trip", ledger=ledger))
    return edit(run, 1, mode="skip")


def keeping(ledger: str) -> Run:
    """A run that is about to keep what it cannot undo."""
    run = advance_to_rest(make_run("final", ledger=ledger))
    rewind(run, before(run, "tell"), confirm=True)
    return rewinds.settle_now(run, by=ann(run.team))


def sent_back(ledger: str) -> Run:
    """A run that a reviewer sent back to an effect."""
    run = advance_to_rest(make_run("resend", ledger=ledger))
    decide(run, "reject", then="back", back_to="on", comment="again")
    return run


@pytest.mark.parametrize(
    ("made", "point"), [(undoing, "before_undo"), (keeping, "before_settle"), (sent_back, "before_outcome")]
)
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


def alone(call: Call) -> object:
    """What a call gave, on a connection of its own."""
    try:
        return call()
    finally:
        connection.close()
