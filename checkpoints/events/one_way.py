"""Sends commands to Redis without waiting for the answers: nobody needs to know how many heard a ring.

Waiting for an answer takes twenty times as long as sending. Answers are dropped before the next command, and that is
also how a connection that Redis closed meanwhile is noticed and replaced.
"""

from __future__ import annotations

import os
import select
import threading
from typing import Any

import redis

AT_ONCE = 64 * 1024  # bytes of answers


class OneWayConnection:
    """A process's connection for commands whose answers are dropped. Threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: tuple[redis.Redis, int] | None = None
        self._connection: Any = None

    def send(self, client: redis.Redis, *command: str) -> None:
        """Send a command to the server of `client`. Raises redis.RedisError and OSError where it cannot be sent.

        A server that reads nothing costs the client's timeout, once its buffer is full.
        """
        with self._lock:
            try:
                self._open(client)
                self._connection._sock.sendall(b"".join(self._connection.pack_command(*command)))
            except BaseException:  # part of the command may have been sent
                self._of = None
                raise

    def _open(self, client: redis.Redis) -> None:
        """Connect, unless this process is connected to that server and Redis has not closed the connection."""
        of = (client, os.getpid())  # a forked process must not write to its parent's socket
        if self._of == of and self._is_open():
            return
        if self._connection is not None:
            self._connection.disconnect()  # a child closes its copy alone; its parent goes on with the connection
        self._connection = client.connection_pool.make_connection()
        self._connection.connect()
        self._of = of

    def _is_open(self) -> bool:
        """Drop the answers that came; tell whether the connection is still open."""
        looked = select.poll()  # not select(), which takes no descriptor above 1023
        looked.register(self._connection._sock, select.POLLIN)
        try:
            while looked.poll(0):
                if not self._connection._sock.recv(AT_ONCE):
                    return False
        except OSError:
            return False
        return True
