"""A worker that is started while PostgreSQL is away begins when it is there."""

from __future__ import annotations

from collections.abc import Callable

from config.local.servers.embedded import embedded_urls
from config.local.servers.postgres import Postgres
from tests.harness.services import Service
from tests.harness.session import Session


def test_a_worker_that_is_started_while_postgresql_is_away_waits_for_it(
    celery_worker: Callable[..., Service], servers: Session, server: Postgres
) -> None:
    """It ended with a traceback, where a sweeper waited."""
    server.stop()
    worker = celery_worker("-c", "1", env=embedded_urls(server), ready=False)
    worker.says("The worker waits until it can read its plans from PostgreSQL: ")
    server.start(servers.log("apart"))
    worker.says("PostgreSQL is back: the worker begins")
    worker.says(r"(?m)\bready\b")
    assert "Traceback" not in worker.log
