"""What the logic asks of the world, as plain data: it sends nothing itself and waits for nothing.

An operation is a generator. It yields a step, is sent what came of it, and returns its result. A driver takes the
steps: one in the calling thread, one in an event loop. So every rule is written once, for both, and can be tested
without a network.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Request:
    """One HTTP request, without the token, which only a driver has. `timeout`: seconds for the whole answer."""

    method: str
    path: str
    query: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    key: str = ""  # Idempotency-Key
    timeout: float = 30.0

    @property
    def headers(self) -> dict[str, str]:
        """Return what is sent with it."""
        typed = {"Content-Type": "application/json"} if self.method == "POST" else {}
        return typed | ({"Idempotency-Key": self.key} if self.key else {})


@dataclass(frozen=True)
class Reply:
    """What the server answered; the names of headers in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the body; None where it is no JSON. Integers of any size stay what they are, and so do 1 and 1.0."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None


@dataclass(frozen=True)
class Lost:
    """No answer came: the request may have arrived, or not."""

    reason: str


@dataclass(frozen=True)
class Send:
    """Step: send a request. Comes to a Reply or Lost."""

    request: Request


@dataclass(frozen=True)
class Pause:
    """Step: wait so many seconds. Comes to None."""

    seconds: float


@dataclass(frozen=True)
class Keep:
    """Step: keep an operation going beside. Comes to what stops it."""

    beside: Generator[Step, Any, None]


Step = Send | Pause | Keep
Op = Generator[Step, Any, T]
Stop = Callable[[], None]


def worker() -> str:
    """Return who this is, for people: host and process."""
    return f"{socket.gethostname()}:{os.getpid()}"[:120]


@dataclass(frozen=True)
class Habits:
    """How long to wait for what, in seconds."""

    patience: float = 60.0  # for an answer, all attempts together
    poll: float = 25.0  # that one request for an outcome may stand open
    lease: float = 30.0  # for which nobody else may claim a run, counted from the last sign of life
    clock: Callable[[], float] = time.monotonic
