"""The tailer hands on every event: on a ring at once, without Redis within a second, after any break."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from unittest import mock

import psycopg
import pytest
import redis
from asgiref.sync import sync_to_async
from channels.db import database_sync_to_async
from django.db import connection, transaction
from django.test import Client, override_settings

from checkpoints.actors import SYSTEM
from checkpoints.events import event_log, tailer, wakeup
from checkpoints.events.tailer import Deliver, Tailer
from checkpoints.events.wakeup import ring_after_commit
from checkpoints.models import Event
from config.health import checks as health
from tests.factories.runs import make_run
from tests.harness import horizon
from tests.harness.session import Session
from tests.harness.waiting import PATIENCE


def say() -> str:
    subject = f"test:{secrets.token_hex(8)}"
    event_log.record("test.said", subject=subject, by=SYSTEM)
    return subject


class Ear:
    def __init__(self) -> None:
        self.heard: set[str] = set()
        self.count = 0

    async def deliver(self, events: list[Event]) -> None:
        for event in events:
            self.heard.add(event.subject)
            self.count += 1

    async def hears(self, subject: str) -> None:
        started = time.monotonic()
        while subject not in self.heard:
            assert time.monotonic() - started < PATIENCE, f"not heard within {PATIENCE} s"
            await asyncio.sleep(0.002)


@asynccontextmanager
async def listening(ear: Ear, deliver: Deliver | None = None) -> AsyncIterator[Tailer]:
    """A tailer at work, past its first look."""
    listener = Tailer(deliver or ear.deliver)
    task = asyncio.create_task(listener.run())
    while listener.cursor is None:
        await asyncio.sleep(0.005)
    yield listener
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def subscribed(url: str) -> None:
    client = redis.Redis.from_url(url)
    while not client.pubsub_numsub(wakeup.channel())[0][1]:
        await asyncio.sleep(0.005)


async def test_an_event_arrives_on_its_ring(
    redis_url: str, deaf: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tailer, "PERIOD", 3600.0)  # nothing but a ring makes it look
    deaf()  # a failure before this test keeps the bell quiet for a second
    ear = Ear()
    async with listening(ear):
        await subscribed(redis_url)
        for _ in range(10):
            await ear.hears(await sync_to_async(say)())
    assert ear.count == 10


@pytest.fixture
def deaf() -> Callable[[], None]:
    def forget() -> None:
        wakeup._client.cache_clear()
        wakeup._quiet_until = 0.0

    return forget


async def test_nothing_is_lost_while_redis_is_dead(deaf: Callable[[], None]) -> None:
    ear = Ear()
    with override_settings(REDIS_URL="redis://127.0.0.1:1/0"):
        deaf()
        async with listening(ear):
            started = time.monotonic()
            subjects = [await sync_to_async(say)() for _ in range(20)]
            assert time.monotonic() - started < 10, "a dead Redis slows writers down"
            for subject in subjects:
                await ear.hears(subject)
    deaf()
    assert ear.count == 20


async def test_one_failing_delivery_does_not_silence_the_next(redis_url: str) -> None:
    ear = Ear()
    failed = asyncio.Event()

    async def fragile(events: list[Event]) -> None:
        if not failed.is_set():
            failed.set()
            raise RuntimeError("a bad fact")
        await ear.deliver(events)

    async with listening(ear, fragile):
        await subscribed(redis_url)
        await sync_to_async(say)()
        await asyncio.wait_for(failed.wait(), PATIENCE)
        later = await sync_to_async(say)()
        await ear.hears(later)
    assert ear.heard == {later}


async def test_what_meets_a_lost_connection_is_told_by_the_next_look(redis_url: str) -> None:
    """The cursor was past it already: an inbox lacked a gate until it was loaded anew."""
    ear = Ear()
    lost = False

    def lose() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    async def fragile(events: list[Event]) -> None:
        nonlocal lost
        if not lost:
            lost = True
            await database_sync_to_async(lose)()
        await ear.deliver(events)

    async with listening(ear, fragile):
        await subscribed(redis_url)
        await ear.hears(await sync_to_async(say)())
        await ear.hears(await sync_to_async(say)())
    assert lost
    assert ear.count == 2


async def test_a_stop_that_meets_a_ring_still_stops(redis_url: str) -> None:
    """`asyncio.wait_for` swallowed the cancellation on Python 3.11, and the web process never ended: first the
    tailer's own, then redis-py's inside its listener."""
    ear = Ear()
    for turn in range(12):
        listener = Tailer(ear.deliver)
        task = asyncio.create_task(listener.run())
        while listener.cursor is None:
            await asyncio.sleep(0.0005)
        await asyncio.sleep(turn / 600)
        listener._rung.set()
        await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=PATIENCE)
        assert done, "the tailer goes on after it was cancelled"


def test_two_installations_on_one_redis_do_not_hear_each_other() -> None:
    names = set()
    for url, prefix in (("redis://h:1/0", "holdpoint"), ("redis://h:1/3", "holdpoint"), ("redis://h:1/0", "other")):
        with override_settings(REDIS_URL=url, HOLDPOINT_RING_PREFIX=prefix):
            wakeup._client.cache_clear()
            names.add(wakeup.channel())
    wakeup._client.cache_clear()
    assert len(names) == 3


def test_steps_ring_at_most_every_tenth_of_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    rung: list[float] = []
    now = [100.0]
    monkeypatch.setattr(wakeup, "ring", lambda: rung.append(now[0]))
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    for tick in range(50):
        now[0] = 100.0 + tick / 100
        wakeup.ring_step(-1)
    assert len(rung) in (5, 6)
    wakeup.ring_step(-2)
    assert len(rung) in (6, 7), "each run has a pace of its own"


@pytest.fixture
def woken() -> Iterator[list[str]]:
    names: list[str] = []
    with mock.patch.object(wakeup, "publish", side_effect=lambda *_: names.append("pages")):
        yield names


def test_each_transaction_rings_once_after_its_commit_and_after_the_worker(woken: list[str]) -> None:
    with transaction.atomic():
        ring_after_commit()
        transaction.on_commit(lambda: woken.append("worker"))
        ring_after_commit()
        with transaction.atomic():
            ring_after_commit()
            transaction.set_rollback(True)
        assert woken == []
    assert woken == ["worker", "pages"]
    with transaction.atomic():
        ring_after_commit()
        transaction.set_rollback(True)
    assert woken == ["worker", "pages"], "of one that is rolled back nobody hears"
    with transaction.atomic():
        ring_after_commit()
    ring_after_commit()
    assert woken == ["worker", "pages", "pages", "pages"], "and outside of a transaction it rings at once"


@contextmanager
def somebody_writes(servers: Session) -> Iterator[psycopg.Connection]:
    """A transaction of a stranger in another database that has written and stays open."""
    with psycopg.connect(servers.postgres.url("postgres"), application_name="a console") as made:
        made.execute("SELECT pg_current_xact_id()")
        yield made


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
