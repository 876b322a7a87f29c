"""The id of an HTTP request: it finds the request's log lines, its events and the work that it caused in workers.

The web process gives each request one (config.middleware). Events recorded during the request keep it; a
doorbell that the request rings carries it in the message's own id, since a doorbell otherwise holds only numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from uuid import uuid4

SHAPE = re.compile(r"[A-Za-z0-9._-]{1,64}")
_OF_MESSAGE = re.compile(rf"({SHAPE.pattern})\.[0-9a-f]{{12}}")
_current: ContextVar[str] = ContextVar("request", default="")


@contextmanager
def answering(request_id: str) -> Iterator[None]:
    """Make `current` return this id inside the block."""
    token = _current.set(request_id)
    try:
        yield
    finally:
        _current.reset(token)


def current() -> str:
    """Return the id of the current request; "" in a worker, a command or the sweeper."""
    return _current.get()


def message_id() -> str | None:
    """Return a message id that contains the current request's id; None without one: Celery then makes up its own."""
    return f"{current()}.{uuid4().hex[:12]}" if current() else None


def of_message(message_id: str) -> str:
    """Return the id of the request that sent the message; "" if none did."""
    found = _OF_MESSAGE.fullmatch(message_id)
    return found[1] if found else ""
