"""A run that waits from its start on is the run that a start, a claim and a release leave."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from checkpoints import actors, store
from checkpoints.audit import verify_runs
from checkpoints.events import event_log
from checkpoints.models import Event, Run
from checkpoints.store import claims, start_and_fork
from tests.factories import make_run

VALUES: dict[str, Any] = {"items": [{"n": n, "text": "x" * 90} for n in range(900)], "name": "Wire"}
ANN = actors.of_agent("payouts")


def row(run: Run) -> dict[str, Any]:
    own = ("id", "lineage", "head", "created_at")
    return {name: value for name, value in Run.objects.values().get(pk=run.pk).items() if name not in own}


def said(run: Run) -> list[tuple[Any, ...]]:
    events = Event.objects.filter(run_id=run.pk).order_by("id")
    names = ("kind", "version", "team_id", "actor", "actor_name", "data")
    return [(*found[:-1], bytes(found[-1])) for found in events.values_list(*names)]


def test_its_row_its_events_and_its_state_are_the_same() -> None:
    """The state is large enough for chunks of its own."""
    like = make_run()
    known: dict[str, Any] = {"plan": like.plan, "team": like.team, "title": "Wire", "thread": "t"}
    slow = store.start(**known, values=VALUES, first_step="ask", by=ANN)
    claim = claims.claim(slow.pk, plan_ids=[slow.plan_id], worker="box:81", lease=30, by=ANN)
    assert claim is not None
    claims.release(claim, status="waiting", reason="asks: Wire", by=ANN)
    runs = [Run(**known, started_as=ANN.id) for _ in range(3)]
    with transaction.atomic():
        numbers, at, list_format = start_and_fork.new_numbers(3)
        pairs = zip(runs, numbers, strict=True)
        drafts = [
            start_and_fork.first_checkpoint(run, n, VALUES, first_step="ask", at=at, list_format=list_format)
            for run, n in pairs
        ]
        rows = start_and_fork.waiting_rows(runs, drafts, ["asks: Wire"] * 3)
        events = [one for run in runs for one in (*start_and_fork.began(run, ANN), start_and_fork.waits(run, ANN))]
        event_log.append_events(events, extras=rows)
    for run in runs:
        assert row(run) == row(slow)
        assert said(run) == said(slow)
        assert store.load(run).state == VALUES
        assert run.checkpoints.get().digest != slow.checkpoints.get().digest  # it covers the run
        assert verify_runs.verify_run(run) == []
        assert run.wake(actors.SYSTEM)
        assert claims.claim(run.pk, plan_ids=[run.plan_id], worker="box:81", lease=30) is not None
