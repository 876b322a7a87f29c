"""The steps that the logic asks a driver to take, as plain data: the logic itself sends nothing and waits for nothing.

An operation is a generator. It yields a step, is sent its result, and returns its own result. A driver takes the
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

from .answers import Question

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
        """Return the headers."""
        typed = {"Content-Type": "application/json"} if self.method == "POST" else {}
        return typed | ({"Idempotency-Key": self.key} if self.key else {})


@dataclass(frozen=True)
class Reply:
    """The server's answer; header names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the body; None if it is not JSON. Integers of any size keep their value, and 1 and 1.0 differ."""
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
    """Step: send a request. Results in a Reply or Lost."""

    request: Request


@dataclass(frozen=True)
class Pause:
    """Step: wait so many seconds. Results in None."""

    seconds: float


@dataclass(frozen=True)
class Keep:
    """Step: run an operation in the background. Results in the function that stops it."""

    operation: Generator[Step, Any, None]


Step = Send | Pause | Keep
Op = Generator[Step, Any, T]
Stop = Callable[[], None]


def worker_name() -> str:
    """Return the name of this process for people: host and process id."""
    return f"{socket.gethostname()}:{os.getpid()}"[:120]


@dataclass(frozen=True)
class Habits:
    """Limits on waiting, in seconds."""

    patience: float = 60.0  # for an answer, all attempts together
    poll: float = 25.0  # of one request that waits for an outcome
    lease: float = 30.0  # of a claim, counted from the last heartbeat
    clock: Callable[[], float] = time.monotonic
    on_question: Callable[[Question], str] | None = None  # answers questions at a gate that is waited for
