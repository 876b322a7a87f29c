"""The id of an HTTP request, by which its lines in the logs, its events and what workers do because of it are found.

The web process gives each request one (config.middleware.request_ids). What is recorded while it is answered keeps it;
a doorbell that it rings carries it in its message's own id, since a doorbell holds nothing but numbers otherwise.
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
    """Have `current` return this id for as long as the block lasts."""
    token = _current.set(request_id)
    try:
        yield
    finally:
        _current.reset(token)


def current() -> str:
    """Return the id of the request that is being answered here; "" in a worker, a command or the sweeper."""
    return _current.get()


def message_id() -> str | None:
    """Return an id for a message to a worker that tells of the request; None for one that Celery makes up."""
    return f"{current()}.{uuid4().hex[:12]}" if current() else None


def of_message(message_id: str) -> str:
    """Return the id of the request that sent the message; "" where none did."""
    found = _OF_MESSAGE.fullmatch(message_id)
    return found[1] if found else ""
