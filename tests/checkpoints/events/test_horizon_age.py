"""Readers of events wait for any transaction of the server that has written; who that is can be seen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.test import Client

from checkpoints.events import commit_order
from checkpoints.events.commit_order import HorizonAge, horizon_age
from config.health import checks as health
from tests.factories.runs import make_run
from tests.harness import horizon
from tests.harness.session import Session


@contextmanager
def somebody_writes(servers: Session) -> Iterator[psycopg.Connection]:
    """A transaction of a stranger in another database that has written and stays open."""
    with psycopg.connect(servers.postgres.url("postgres"), application_name="a console") as made:
        made.execute("SELECT pg_current_xact_id()")
        yield made


def test_the_session_that_holds_readers_back_is_named_with_the_oldest_events_wait(
    servers: Session,
) -> None:
    horizon.reached()
    with somebody_writes(servers) as stranger:
        before = commit_order.newest_cursor()
        make_run()
        assert commit_order.read_after(before)[1]
        first = horizon_age()
        assert first.holder == f"process {stranger.info.backend_pid} of database postgres (role postgres, a console)"
        assert horizon_age().seconds > first.seconds > 0
    horizon.reached()
    assert horizon_age() == HorizonAge(0.0, "")


def test_readiness_says_who_makes_live_pages_late_and_stays_up(
    servers: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "READERS_LATE", 0)
    monkeypatch.setattr(health, "CHECKS", {"postgresql": health.postgresql})
    horizon.reached()
    with somebody_writes(servers) as stranger:
        make_run()
        answer = Client().get("/readyz")
        holder = f"by process {stranger.info.backend_pid} of database postgres"
    assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
    assert holder in answer.json()["parts"]["readers"]
    horizon.reached()
    assert Client().get("/readyz").json() == {
        "status": "ready",
        "parts": {"postgresql": "ok", "readers": "ok", "restarts": "ok"},
    }
