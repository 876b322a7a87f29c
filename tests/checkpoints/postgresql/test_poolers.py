"""Behind a pooler in session mode all is as without one; one by transaction is refused at start, in one sentence."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, cast

import psycopg
import pytest
from django.db import connection, connections

from checkpoints.postgresql import base, fitness
from checkpoints.retention import delete_batch
from config.local.servers import Postgres
from tests.checkpoints.retention.pruned_runs import ended, keep, pruned
from tests.harness.pgbouncer import pooler
from tests.harness.services import IMPATIENT, Service, free_port, manage, run, wait_for_http, web_command
from tests.harness.session import Session
from tests.harness.waiting import PATIENCE, until

BOUNDS = """
from django.db import connection
with connection.cursor() as cursor:
    for name in ("statement_timeout", "idle_in_transaction_session_timeout", "transaction_timeout", "jit"):
        cursor.execute(f"SHOW {name}")
        print(*cursor.fetchone())
"""
SERVICES = {
    "migrate": [sys.executable, "-m", "config.migrate"],
    "web": web_command(free_port()),
    "worker": manage("worker"),
    "sweeper": manage("sweeper"),
}


def connects(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=int(PATIENCE)).close()
    except psycopg.OperationalError:
        return False
    return True


def test_a_pooler_in_session_mode_changes_nothing(servers: Session) -> None:
    """The bounds were start-up parameters: the pooler refused every connection, or dropped them."""
    with pooler(servers, servers.postgres, "session") as url:
        until(lambda: connects(url), what="the pooler answers")
        told = run(*manage("shell", "-v0", "-c", BOUNDS), env={"DATABASE_URL": url})
        assert told.stdout.split() == ["30s", "30s", "1min", "off"], told.stderr
        swept = run(*manage("sweeper", "--once"), env={"DATABASE_URL": url})
        assert swept.returncode == 0, swept.stderr


def test_a_pooler_by_transaction_is_refused_by_each_service(
    servers: Session, start_service: Callable[..., Service]
) -> None:
    """Settings and locks of a session went to whoever came next, and nothing said so."""
    with pooler(servers, servers.postgres, "transaction") as url:
        until(lambda: connects(url), what="the pooler answers")
        env = {"DATABASE_URL": url, "DATABASE_OWNER_URL": url}
        for service in [start_service(name, command, env) for name, command in SERVICES.items()]:
            assert service.process.wait(PATIENCE), service.log
            assert fitness.POOLED in service.log
            assert "Traceback" not in service.log


@pytest.mark.long
def test_a_pooler_by_transaction_is_refused_once_postgresql_answers_where_it_did_not_at_the_start(
    servers: Session, server: Postgres, start_service: Callable[..., Service]
) -> None:
    """Whatever was started while PostgreSQL was away worked on behind it for ever, and /readyz called that ok."""
    server.stop()
    with pooler(servers, server, "transaction") as url:
        port, env = free_port(), IMPATIENT | {"DATABASE_URL": url}
        web = start_service("web", web_command(port), env)
        sweeper = start_service("sweeper", manage("sweeper"), env)
        worker = start_service("worker", manage("worker"), env)
        wait_for_http(web, f"http://127.0.0.1:{port}/healthz")
        sweeper.says(r"sweeper\.failed")
        worker.says("The worker waits until it can read its plans")
        server.start(servers.log("apart"))
        for service in (web, sweeper, worker):
            service.process.wait(PATIENCE)
            assert fitness.POOLED in service.log


def test_a_direct_connection_is_fit() -> None:
    assert fitness.fault() == ""


def test_a_server_that_is_too_old_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """An old server refused a setting, and a hundred lines ended in the pool's timeout."""
    monkeypatch.setattr(base.DatabaseFeatures, "minimum_database_version", (99,))
    assert fitness.fault().startswith("Holdpoint needs PostgreSQL 99 or later; DATABASE_URL leads to 18")


def test_a_prune_waits_for_no_disk_in_its_own_transactions_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It set that for the session, which somebody else's statements shared behind a pooler by transaction."""
    during: list[str] = []
    remove = delete_batch.remove

    def removing(*args: Any, **options: Any) -> int:
        during.append(setting("synchronous_commit"))
        return remove(*args, **options)

    monkeypatch.setattr(delete_batch, "remove", removing)
    run = ended(20)
    keep(run, keep_last=1)
    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit TO on")  # the tests' server has it off
    pruned()
    assert (set(during), setting("synchronous_commit")) == ({"off"}, "on")
    with connection.cursor() as cursor:
        cursor.execute("RESET synchronous_commit")


def setting(name: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"SHOW {name}")
        return str(cursor.fetchone()[0])


def test_a_setting_that_the_server_does_not_know_yet_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL 15 and 16 do not know `transaction_timeout`, and refused every connection."""
    monkeypatch.setitem(base.SINCE, "transaction_timeout", 990000)
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as raw:
        cast(base.DatabaseWrapper, connections["default"])._configure_connection(raw)
        bounds = [raw.execute(f"SHOW {name}").fetchone() for name in ("statement_timeout", "transaction_timeout")]
    assert bounds == [("30s",), ("0",)]
