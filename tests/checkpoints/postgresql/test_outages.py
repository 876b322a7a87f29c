"""PostgreSQL away, hung, full or behind a pooler: who waits is told in time, and work goes on soon after."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier
from threading import Event as Signalled
from threading import enumerate as enumerate_threads
from typing import cast
from unittest import mock

import httpx
import psutil
import psycopg
import pytest
from django.conf import settings
from django.db import connection, connections
from django.db.utils import ConnectionHandler
from django.test import Client

from agents.models import Signal
from checkpoints.models import Event, Run
from checkpoints.postgresql import base, fitness
from checkpoints.postgresql.base import DatabaseWrapper
from config.health.checks import BoundedChecks
from config.local.servers import DATABASE, Postgres, embedded_urls
from tests.agents.pages.moves.sent_orders import member
from tests.agents.waits.conftest import own_agents
from tests.factories import ann, make_team
from tests.factories.driven_runs import make_run
from tests.harness.altered_rows import owner
from tests.harness.examples import first_alone
from tests.harness.pgbouncer import pooler
from tests.harness.services import IMPATIENT, Service, free_port, manage, run, web_command
from tests.harness.session import Session
from tests.harness.signed_in_clients import session_of
from tests.harness.waiting import PATIENCE, until

SOON = 8.0  # seconds: less than a client of the pool waits, and more than a loaded machine needs
AT_ONCE = 8  # connections
PAGES = ("/", "/api/runs")  # of people, and of programs
CONNECTIONS = 2  # of a small pool
ENDED = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = %s"
StartWeb = Callable[..., tuple[Service, str]]


@contextmanager
def hanging(server: Postgres) -> Iterator[None]:
    """Stop the clock of the server and of all its sessions (SIGSTOP)."""
    assert server.process is not None
    main = psutil.Process(server.process.pid)
    stopped = [main, *main.children(recursive=True)]
    for each in stopped:
        each.suspend()
    try:
        yield
    finally:
        for each in stopped:
            each.resume()


def readiness(base: str) -> tuple[int, str]:
    """The verdict of /readyz, and what it says of PostgreSQL."""
    answer = httpx.get(f"{base}/readyz", timeout=SOON)
    return answer.status_code, answer.json()["parts"]["postgresql"]


@pytest.mark.long
def test_work_goes_on_soon_after_an_absence_in_which_attempts_had_become_rare(
    start_web: StartWeb, servers: Session, server: Postgres
) -> None:
    """The pauses between the pool's attempts doubled up to minutes: 50 s after the server was back nothing worked."""
    web, base = start_web(embedded_urls(server))
    server.stop()
    web.says("reconnection attempt in pool .* failed", within=30)
    server.start(servers.log("apart"))

    def answers() -> bool:
        try:
            return readiness(base)[1] == "ok"
        except httpx.TransportError:
            return False

    until(answers, within=SOON, what="PostgreSQL is taken up again")


@pytest.fixture
def apart(server: Postgres) -> Iterator[Callable[[], DatabaseWrapper]]:
    """Return a function that gives the thread's connection to the test's own server, all from one pool."""
    described = settings.DATABASES["default"] | {"HOST": str(server.sockets), "NAME": DATABASE}
    handler = ConnectionHandler({"default": described, "apart": described})
    yield lambda: cast(DatabaseWrapper, handler["apart"])
    cast(DatabaseWrapper, handler["apart"]).close_pool()


def test_the_first_connection_that_is_found_dead_has_the_others_replaced(
    apart: Callable[[], DatabaseWrapper], servers: Session, server: Postgres
) -> None:
    """The pool took dead connections out one by one, with growing pauses: with eight of them nobody got one in 10 s."""
    all_out = Barrier(AT_ONCE)

    def ask() -> None:
        with apart().cursor() as cursor:
            cursor.execute("SELECT 1")
            all_out.wait()
        apart().close()

    with ThreadPoolExecutor(AT_ONCE) as threads:
        for asked in [threads.submit(ask) for _ in range(AT_ONCE)]:
            asked.result()
    assert apart().pool.get_stats()["pool_available"] == AT_ONCE
    server.stop()
    server.start(servers.log("apart"))
    with apart().cursor() as cursor:
        cursor.execute("SELECT 1")
    apart().close()


def backend(connection: DatabaseWrapper) -> int:
    """Take a connection from the pool, put it back, and return the server's process behind it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        number = int(cursor.fetchone()[0])
    connection.close()
    return number


def test_a_connection_that_ends_right_after_it_answered_is_replaced_all_the_same(
    apart: Callable[[], DatabaseWrapper], server: Postgres
) -> None:
    with mock.patch.object(base, "ALIVE", 3600.0), psycopg.connect(server.url(DATABASE), autocommit=True) as other:
        gone = backend(apart())
        ended = "SELECT pg_terminate_backend(%s, %s)"
        assert other.execute(ended, [gone, int(PATIENCE * 1000)]).fetchall() == [(True,)]
        assert backend(apart()) != gone


def test_readiness_says_no_in_time_while_the_server_hangs_and_while_it_is_away(
    start_web: StartWeb, server: Postgres
) -> None:
    """Each request of a balancer hung with the server, and kept a thread and a connection for as long.

    So did whoever sent a cookie, be it made up.
    """
    _, base = start_web(embedded_urls(server) | {"FORWARDED_ALLOW_IPS": "127.0.0.1"})
    stranger = {"X-Forwarded-For": "203.0.113.9", "Cookie": f"sessionid={'a' * 32}"}
    until(lambda: readiness(base)[1] == "ok", what="PostgreSQL answers")
    with hanging(server):
        assert readiness(base) in [(503, "no answer within 2 s"), (503, "does not answer")]
        assert httpx.get(f"{base}/healthz", timeout=SOON).status_code == 200
        answer = httpx.get(f"{base}/readyz", headers=stranger, timeout=SOON)
    assert (answer.status_code, answer.json()) == (503, {"status": "not ready"})
    until(lambda: readiness(base)[1] == "ok", what="PostgreSQL answers again")
    server.stop()
    assert readiness(base)[0] == 503
    assert httpx.get(f"{base}/healthz", timeout=SOON).status_code == 200


def test_a_check_that_hangs_is_under_way_once_and_keeps_no_other_from_its_answer() -> None:
    bounded, goes_on = BoundedChecks[str](), Signalled()
    checks = {"hangs": lambda: str(goes_on.wait()), "fine": lambda: ""}
    for _ in range(3):
        assert bounded.ask(checks, within=1.0, late="late") == {"hangs": "late", "fine": ""}
    assert [thread.name for thread in enumerate_threads()].count("asks-hangs") == 1
    goes_on.set()
    assert bounded.ask(checks, within=PATIENCE, late="late") == {"hangs": "True", "fine": ""}


def is_told_to_try_again(answer: httpx.Response) -> None:
    """503 in a sentence: a page for people, a problem document for programs, and nothing of the fault itself."""
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    if answer.url.path.startswith("/api/"):
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.json()["detail"].startswith("The database does not answer, is too busy, or cannot do this now.")
    else:
        assert "It does not answer, is too busy, or has no room. Try again in a few seconds." in answer.text
    assert "Traceback" not in answer.text


def test_a_request_that_finds_every_connection_of_the_pool_taken_is_told_to_try_again(start_web: StartWeb) -> None:
    """It was told that something broke on our side, as for a bug."""
    _, base = start_web(IMPATIENT | {"HOLDPOINT_POOL_SIZE": str(CONNECTIONS)})
    cookies = {"sessionid": session_of(ann(make_team()))}

    def ask(path: str) -> httpx.Response:
        return httpx.get(base + path, cookies=cookies, timeout=PATIENCE)

    with ThreadPoolExecutor(4 * CONNECTIONS) as threads:
        with owner() as holder, holder.transaction():
            holder.execute("LOCK TABLE django_session")
            asked = [threads.submit(ask, path) for path in PAGES * 2 * CONNECTIONS]
            until(
                lambda: sum(each.done() for each in asked) >= len(asked) - CONNECTIONS, what="the others are answered"
            )
            told = [each for each in asked if each.done()]
        for each in told:
            is_told_to_try_again(each.result())
        assert {each.result().url.path for each in told} == set(PAGES)
        rest = [each.result() for each in asked if each not in told]
        for answer in rest:
            if answer.status_code != 200:  # it still waited for a connection
                is_told_to_try_again(answer)
        assert 200 in {answer.status_code for answer in rest}, "who had a connection is answered"
    assert [ask(path).status_code for path in PAGES] == [200, 200]


__all__ = ["own_agents"]
FULL = """
CREATE FUNCTION refuse_for_want_of_room() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$;
CREATE TRIGGER refuse_for_want_of_room BEFORE INSERT ON agents_signal
FOR EACH ROW EXECUTE FUNCTION refuse_for_want_of_room();
"""


@contextmanager
def no_room() -> Iterator[None]:
    """Let PostgreSQL refuse each signal as it does when its disk is full."""
    with owner() as admin:
        admin.execute(FULL)
        try:
            yield
        finally:
            admin.execute("DROP FUNCTION refuse_for_want_of_room CASCADE")


def sent(client: Client, run: Run) -> list[int]:
    """The statuses of a signal from the run's page, and of one by the API."""
    client.raise_request_exception = False
    page = client.post(f"/runs/{run.pk}/signals/", {"name": "go", "key": "k"})
    body = {"value": None, "key": "k"}
    told = client.post(f"/api/runs/{run.pk}/signals/go", body, content_type="application/json")
    retry = {answer.headers.get("Retry-After") for answer in (page, told) if answer.status_code == 503}
    assert retry <= {"5"}
    return [page.status_code, told.status_code]


def test_what_postgresql_has_no_room_for_is_a_503_and_nothing_of_it_is_kept() -> None:
    run = make_run("listener")
    client = member(run)
    with no_room():
        assert sent(client, run) == [503, 503]
    assert not Signal.objects.filter(run=run).exists()
    assert not Event.objects.filter(run_id=run.pk, kind="signal.received").exists()
    assert sent(client, run) == [302, 201]


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


@pytest.mark.parametrize("services", first_alone([["worker"], ["migrate", "web", "sweeper"]]))
def test_a_pooler_by_transaction_is_refused_by_each_service(
    servers: Session, start_service: Callable[..., Service], services: list[str]
) -> None:
    """Settings and locks of a session went to whoever came next, and nothing said so."""
    with pooler(servers, servers.postgres, "transaction") as url:
        until(lambda: connects(url), what="the pooler answers")
        env = {"DATABASE_URL": url, "DATABASE_OWNER_URL": url}
        for service in [start_service(name, SERVICES[name], env) for name in services]:
            assert service.process.wait(PATIENCE), service.log
            assert fitness.POOLED in service.log
            assert "Traceback" not in service.log


def test_a_server_that_is_too_old_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """An old server refused a setting, and a hundred lines ended in the pool's timeout."""
    assert fitness.fault() == ""
    monkeypatch.setattr(base.DatabaseFeatures, "minimum_database_version", (99,))
    assert fitness.fault().startswith("Holdpoint needs PostgreSQL 99 or later; DATABASE_URL leads to 18")


def test_a_setting_that_the_server_does_not_know_yet_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL 15 and 16 do not know `transaction_timeout`, and refused every connection."""
    monkeypatch.setitem(base.SINCE, "transaction_timeout", 990000)
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as raw:
        cast(base.DatabaseWrapper, connections["default"])._configure_connection(raw)
        bounds = [raw.execute(f"SHOW {name}").fetchone() for name in ("statement_timeout", "transaction_timeout")]
    assert bounds == [("30s",), ("0",)]
