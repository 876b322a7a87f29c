"""Rings are sent without waiting for an answer; a lost connection is noticed before the next one."""

from __future__ import annotations

import multiprocessing
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace

import pytest
import redis

from checkpoints.events.one_way import OneWayConnection
from tests.harness.waiting import PATIENCE, until

CHANNEL = "test-one-way"


@pytest.fixture
def client(redis_url: str) -> redis.Redis:
    return redis.Redis.from_url(redis_url)


@contextmanager
def heard(client: redis.Redis) -> Iterator[Callable[[], bytes]]:
    """Give a function that waits for the channel's next message."""
    with client.pubsub() as listened:  # type: ignore[no-untyped-call]
        listened.subscribe(CHANNEL)
        assert (listened.get_message(timeout=PATIENCE) or {})["type"] == "subscribe"
        yield lambda: (listened.get_message(timeout=PATIENCE) or {})["data"]


def ids(client: redis.Redis) -> set[str]:
    return {each["id"] for each in client.client_list()}


def test_every_message_arrives_in_order(client: redis.Redis) -> None:
    line = OneWayConnection()
    with heard(client) as next_one:
        for number in range(500):
            line.send(client, "PUBLISH", CHANNEL, str(number))
        assert [next_one() for _ in range(500)] == [b"%d" % number for number in range(500)]


def test_a_connection_that_redis_closed_is_replaced_before_a_message_is_lost(client: redis.Redis) -> None:
    line = OneWayConnection()
    with heard(client) as next_one:
        before = ids(client)
        line.send(client, "PUBLISH", CHANNEL, "before")
        assert next_one() == b"before"
        (mine,) = ids(client) - before
        client.client_kill_filter(_id=mine)
        until(lambda: mine not in ids(client))
        line.send(client, "PUBLISH", CHANNEL, "after")
        assert next_one() == b"after"


def test_threads_share_the_connection(client: redis.Redis) -> None:
    line = OneWayConnection()

    def send() -> None:
        for _ in range(100):
            line.send(client, "PUBLISH", CHANNEL, "x")

    with heard(client) as next_one:
        threads = [threading.Thread(target=send) for _ in range(4)]
        for thread in threads:
            thread.start()
        assert [next_one() for _ in range(400)] == [b"x"] * 400
        for thread in threads:
            thread.join(PATIENCE)


def test_a_forked_process_makes_a_connection_of_its_own(client: redis.Redis) -> None:
    line = OneWayConnection()
    line.send(client, "SET", "test-one-way", "x")
    child = multiprocessing.get_context("fork").Process(target=line.send, args=(client, "SET", CHANNEL, "x"))
    before = client.info("stats")["total_connections_received"]
    child.start()
    child.join(PATIENCE)
    assert child.exitcode == 0
    assert client.info("stats")["total_connections_received"] > before
    assert client.getdel(CHANNEL) == b"x"
    mine = line._connection
    line.send(client, "SET", CHANNEL, "y")
    assert line._connection is mine, "the child closed its parent's connection"
    until(lambda: client.getdel(CHANNEL) == b"y")


def test_a_server_that_reads_nothing_costs_one_short_timeout(client: redis.Redis) -> None:
    """A worker would have waited at its next ring for as long as Redis was stopped."""
    line = OneWayConnection()
    mine, its = socket.socketpair()
    with mine, its:
        mine.settimeout(0.01)
        line._connection = SimpleNamespace(_sock=mine, pack_command=lambda *said: [b"x" * 65536])
        line._of = (client, os.getpid())
        with pytest.raises(TimeoutError):
            list(map(partial(line.send, client, "PUBLISH"), [CHANNEL] * 1000))
        assert line._of is None, "what follows would be read as the rest of half a message"
