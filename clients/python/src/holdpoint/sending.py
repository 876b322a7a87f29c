"""Requests, and the steps that the logic asks a driver to take, as plain data: it sends nothing and waits for nothing.

An operation is a generator. It yields a step, is sent its result, and returns its own result. A driver takes the
steps: one in the calling thread, one in an event loop. So every rule is written once, for both, and can be tested
without a network.

`Api` sends a request until it is answered: the same request under the same key, so that it is done once. Failures that
may pass are tried again: no answer, 429, and every 5xx. Every other refusal is final.
"""

from __future__ import annotations

import json
import logging
import random
import re
import time
import uuid
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from .answers import Question
from .errors import BadAnswer, HoldpointError, Problem, Unreachable, make_problem

T = TypeVar("T")
LOG = logging.getLogger("holdpoint")
M = TypeVar("M", bound=BaseModel)
FIRST, MOST = 0.2, 8.0  # seconds between attempts: the first pause, and the longest after doubling
KEY = re.compile(r"[!-~]{1,200}")
# NaN stays NaN, so that it is refused and not sent as null.
ANY: TypeAdapter[Any] = TypeAdapter(Any, config=ConfigDict(ser_json_inf_nan="constants"))


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


@dataclass(frozen=True)
class Habits:
    """Limits on waiting, in seconds."""

    patience: float = 60.0  # for an answer, all attempts together
    poll: float = 25.0  # of one request that waits for an outcome
    lease: float = 30.0  # of a claim, counted from the last heartbeat
    clock: Callable[[], float] = time.monotonic
    on_question: Callable[[Question], str] | None = None  # answers questions at a gate that is waited for


class Api:
    """Sends requests to the server, and parses the answers."""

    def __init__(self, habits: Habits) -> None:
        self.habits = habits
        self._date: tuple[datetime, float] | None = None  # of the newest answer, and when it came by the client's clock

    def now(self) -> datetime:
        """Return the time by the server's clock: that of a client may be wrong by hours."""
        if self._date is None:
            return datetime.now(timezone.utc)
        date, at = self._date
        return date + timedelta(seconds=self.habits.clock() - at)

    def _dated(self, reply: Reply) -> None:
        try:
            found = parsedate_to_datetime(reply.headers.get("date", ""))
        except (TypeError, ValueError):
            return
        self._date = found.astimezone(timezone.utc), self.habits.clock()

    def get(self, path: str, answer: type[M], *, longer: float = 0.0, **query: object) -> Op[M]:
        """Read something. `longer`: seconds for which the server may hold the request."""
        asked = {name: str(value) for name, value in query.items() if value not in (None, "")}
        document = yield from self.sent(Request("GET", path, asked, timeout=30.0 + longer))
        return _read(answer, document)

    def post(self, path: str, body: dict[str, Any], answer: type[M], *, key: str = "", patience: float = 0.0) -> Op[M]:
        """Do something, once for a key; without one a new key is made."""
        key = key or uuid.uuid4().hex
        if not KEY.fullmatch(key):
            raise ValueError(f"A key has 1 to 200 printable ASCII characters and no space, unlike {key[:200]!r}.")
        document = yield from self.sent(Request("POST", path, body=encode_body(body), key=key), patience)
        return _read(answer, document)

    def sent(self, request: Request, patience: float = 0.0) -> Op[Any]:
        """Send a request and return the JSON of its answer. Raises Problem, Unreachable."""
        patience = patience or self.habits.patience
        until = self.habits.clock() + patience
        pause, silent = FIRST, True
        while True:
            reply: Reply | Lost = yield Send(request)
            if isinstance(reply, Reply):
                self._dated(reply)
            if isinstance(reply, Reply) and _is_final(reply):
                return _answer(reply)
            wait = _asked_to_wait(reply, self.now()) or pause * random.uniform(0.5, 1.0)  # noqa: S311 - spreads, guards nothing
            if self.habits.clock() + wait > until:
                raise _given_up(reply, patience)
            if silent and pause > FIRST:
                why = reply.reason if isinstance(reply, Lost) else f"the server said {reply.status}"
                LOG.warning("No usable answer: %s. It is tried again for %g s.", why, patience)
                silent = False
            yield Pause(wait)
            pause = min(2 * pause, MOST)


def to_json_data(value: Any) -> Any:
    """Return the value as JSON data: a Decimal and a date as text, a model as an object. Raises ValueError."""
    return ANY.dump_python(value, mode="json")


def encode_body(body: Any) -> bytes:
    """Return the body of a request.

    Raises ValueError for what JSON cannot hold: NaN, and objects without a schema.
    """
    return json.dumps(to_json_data(body), allow_nan=False).encode()


def _is_final(reply: Reply) -> bool:
    """Tell whether sending it again is of no use. What people rejected is not asked about again unasked."""
    if reply.status != 429:
        return reply.status < 500
    found = reply.json()
    return isinstance(found, dict) and found.get("code") == "rejected_before"


def _answer(reply: Reply) -> Any:
    found = reply.json()
    if reply.status in (200, 201) and found is not None:
        return found
    if reply.status >= 400 and isinstance(found, dict) and "problem" in reply.headers.get("content-type", ""):
        raise make_problem(reply.status, found)
    raise BadAnswer(f"The answer ({reply.status}) is not from Holdpoint. Check the address.")


def _read(answer: type[M], document: Any) -> M:
    try:
        return answer.model_validate(document)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()[:3])
        raise BadAnswer(
            f"This version of the client cannot read the server's answer ({faults}). Update one of the two."
        ) from None


def _asked_to_wait(reply: Reply | Lost, now: datetime) -> float:
    """Return the seconds to wait by Retry-After, in seconds or as a date by the server's clock; 0 without it."""
    retry_after = reply.headers.get("retry-after", "") if isinstance(reply, Reply) else ""
    if retry_after.isdigit():
        return float(retry_after)
    try:
        return max(0.0, (parsedate_to_datetime(retry_after) - now).total_seconds()) if retry_after else 0.0
    except (TypeError, ValueError):
        return 0.0


def _given_up(reply: Reply | Lost, patience: float) -> HoldpointError:
    if isinstance(reply, Lost):
        return Unreachable(
            f"No answer within {patience:g} s: {reply.reason}. It is unknown whether the last request was done, but "
            "nothing is lost: look at the run, or resume by the gate's number once the server is back."
        )
    found = reply.json()
    if isinstance(found, dict):
        return make_problem(reply.status, found)
    return Problem(reply.status, {"detail": f"The server answered {reply.status} for {patience:g} s."})
