"""The two clients: the same operations, called or awaited."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar

import httpx
from pydantic import BaseModel

from . import approvals
from .answers import Events, Gate, Outcome, Question, Signals, Version
from .answers import Run as RunRead
from .approvals import Approval, AsyncApproval, AsyncCalls, Calls, Pending, Several, make_asking
from .awaiting import Way
from .calls import AsyncCall, Call
from .decorating import Terms, make_requiring, requiring_awaited
from .drivers import Awaiting, Blocking, Tasks, Threads, operation
from .endings import Said
from .errors import NotConfigured
from .posting import THREAD, Posting, Step, post_all, question, question_each, thread
from .runs import AsyncRun, Run
from .sending import Api, Habits, Op, Request

W = TypeVar("W")  # a run to work on, called or awaited
A = TypeVar("A")  # the result of `resume`
B = TypeVar("B")  # the result of `resume_each`


class _Client(ABC, Generic[W, A, B]):
    """The operations of both clients."""

    _api: Api
    url: str

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}>"

    @abstractmethod
    def resume(self, gate: int, *, timeout: float | None = None) -> A:
        """Go on from a gate by its number, whichever process asked and however far it came."""

    @abstractmethod
    def resume_each(self, gate: int, *, timeout: float | None = None) -> B:
        """Go on from a gate with several actions, with those that are not done yet."""

    @abstractmethod
    def run(self, id: int) -> W:
        """Return a run, to be read or worked on; it sends no request yet."""

    @staticmethod
    def thread(name: str) -> AbstractContextManager[None]:
        """Work as `holdpoint.thread` does: everything asked inside the block is listed together."""
        return thread(name)

    @operation
    def register(
        self,
        version: str,
        steps: Sequence[Step],
        *,
        agent: str = "-",
        state: type[BaseModel] | Mapping[str, Any],
        doc: str = "",
        signals: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Op[Version]:
        """Register a version of an agent, by default the token's: its steps, and its state as a model or a schema.

        `signals` are those that its runs take, each with the JSON Schema of its value.
        """
        schema = state.model_json_schema(mode="serialization") if isinstance(state, type) else dict(state)
        body = {"version": version, "doc": doc, "state_schema": schema, "steps": [step.body() for step in steps]}
        body |= {"signals": dict(signals)} if signals else {}
        return (yield from self._api.post(f"agents/{agent}/versions", body, Version))

    @operation
    def start(
        self,
        input: Mapping[str, Any],
        *,
        agent: str = "",
        version: str = "",
        title: str = "",
        team: str = "",
        thread: str = "",
        key: str = "",
    ) -> Op[W]:
        """Start a run of an agent with a plan; claim it to work on it. The same `key` again is the same run."""
        body = {"agent": agent, "version": version, "input": dict(input), "title": title, "team": team}
        body["thread"] = thread or THREAD.get()
        started = yield from self._api.post("runs", body, RunRead, key=key)
        return self.run(started.id)

    @operation
    def defer_all(self, questions: Sequence[Posting], *, key: str = "", ask_only: bool = False) -> Op[list[Pending]]:
        """Ask up to 100 things in one call, a gate each, without waiting: all are asked, or none.

        `questions` are made by `question` and `question_each`, whose `key` and `timeout` do not count here. Go on with
        each by `resume` or `resume_each`; with `ask_only`, by `said`. `key`: the same one again asks nothing new.
        """
        turns = yield from post_all(self._api, questions, key=key, ask_only=ask_only)
        return [Pending(turn.gate or 0, turn.run, turn.gate_url or "") for turn in turns]

    @operation
    def said(self, gate: int, *, timeout: float | None = None) -> Op[Said]:
        """Wait for the answer to a question that `ask.defer` asked; raises what `ask` does."""
        return (yield from Way(self._api, gate, timeout=timeout).answer())

    @operation
    def gate(self, id: int) -> Op[Gate]:
        """Return one gate, with its whole proposal."""
        return (yield from self._api.get(f"gates/{id}", Gate))

    @operation
    def form(self, gate: int) -> Op[dict[str, Any]]:
        """Return what a gate's page offers to decide and to fill in, as the server's description has it."""
        return self._api.sent(Request("GET", f"gates/{gate}/form"))

    @operation
    def outcome(self, gate: int, *, wait: float = 0.0) -> Op[Outcome]:
        """Return a gate's outcome, or that it is open; after `wait` seconds at the latest."""
        return (yield from self._api.get(f"gates/{gate}/outcome", Outcome, longer=wait, wait=wait))

    @operation
    def signals(self, run: int, name: str, *, after: int = 0, wait: float = 0.0) -> Op[Signals]:
        """Return a run's signals of one name after the one numbered `after`, or none after `wait` seconds."""
        return (yield from self._api.get(f"runs/{run}/signals/{name}", Signals, longer=wait, after=after, wait=wait))

    @operation
    def withdraw(self, gate: int, reason: str = "") -> Op[Outcome]:
        """Withdraw a gate: nothing of it is done. Raises Problem if it is already closed."""
        return (yield from self._api.post(f"gates/{gate}/withdrawals", {"reason": reason}, Outcome))

    @operation
    def events(self, after: str = "", *, limit: int = 50) -> Op[Events]:
        """Return the events after a cursor; `now` for events from now on."""
        return (yield from self._api.get("events", Events, after=after, limit=limit))


class Holdpoint(_Client[Run, Approval[Call], Approval[Calls]], Blocking):
    """Asks people before something is done. Address and token from HOLDPOINT_URL and HOLDPOINT_TOKEN unless given.

    `patience`: seconds for which a request is tried again while the server does not answer. `lease`: seconds after
    which another process may claim a run if this one has died. May be used by several threads.

    `approve`, `approve_each`, `ask` and `requires_approval` are functions of a client: see help(hp.approve).
    """

    def __init__(
        self,
        url: str = "",
        token: str = "",
        *,
        patience: float = 60.0,
        lease: float = 30.0,
        on_question: Callable[[Question], str] | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.url = _address(url)
        self._io = Threads(self.url, _token(token), transport)
        api = self._api = Api(Habits(patience=patience, lease=lease, on_question=on_question))
        run = self._io.run
        self.approve = make_asking(
            "approve", question, lambda posting: Approval(self._io, approvals.begun(api, posting), Call),
            lambda posting: run(approvals.post_deferred(api, posting)), "Approval[Call]",
        )  # fmt: skip
        self.approve_each = make_asking(
            "approve_each", question_each,
            lambda posting: Approval(self._io, approvals.begun_each(api, posting), Calls),
            lambda posting: run(approvals.post_deferred(api, posting)), "Approval[Calls]",
        )  # fmt: skip
        self.ask = make_asking(
            "ask", question, lambda posting: run(approvals.ask_people(api, posting)),
            lambda posting: run(approvals.post_deferred(api, posting, ask_only=True)), "Said",
            words=approvals.ask_people.__doc__,
        )  # fmt: skip
        self.requires_approval = make_requiring(self._io, api, Terms)

    def resume(self, gate: int, *, timeout: float | None = None) -> Approval[Call]:
        return Approval(self._io, Way(self._api, gate, timeout=timeout).allowed(), Call)

    def resume_each(self, gate: int, *, timeout: float | None = None) -> Approval[Calls]:
        return Approval(self._io, Several(Way(self._api, gate, timeout=timeout, several=True)).begin(), Calls)

    def run(self, id: int) -> Run:
        return Run(self._io, self._api, id)

    def close(self) -> None:
        """Close its connections."""
        self._io.close()

    def __enter__(self) -> Holdpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncHoldpoint(_Client[AsyncRun, AsyncApproval[AsyncCall], AsyncApproval[AsyncCalls]], Awaiting):
    """The same for an event loop; one client belongs to one loop. Heartbeats are a task of it: do not block it."""

    def __init__(
        self,
        url: str = "",
        token: str = "",
        *,
        patience: float = 60.0,
        lease: float = 30.0,
        on_question: Callable[[Question], str] | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.url = _address(url)
        self._io = Tasks(self.url, _token(token), transport)
        api = self._api = Api(Habits(patience=patience, lease=lease, on_question=on_question))
        run = self._io.run
        self.approve = make_asking(
            "approve", question,
            lambda posting: AsyncApproval(self._io, lambda: approvals.begun(api, posting), AsyncCall),
            lambda posting: run(approvals.post_deferred(api, posting)), "AsyncApproval[AsyncCall]", defer_awaited=True,
        )  # fmt: skip
        self.approve_each = make_asking(
            "approve_each", question_each,
            lambda posting: AsyncApproval(self._io, lambda: approvals.begun_each(api, posting), AsyncCalls),
            lambda posting: run(approvals.post_deferred(api, posting)), "AsyncApproval[AsyncCalls]",
            defer_awaited=True,
        )  # fmt: skip
        self.ask = make_asking(
            "ask", question, lambda posting: run(approvals.ask_people(api, posting)),
            lambda posting: run(approvals.post_deferred(api, posting, ask_only=True)), "Said",
            words=approvals.ask_people.__doc__, awaited=True, defer_awaited=True,
        )  # fmt: skip
        self.requires_approval = requiring_awaited(self._io, api, Terms)

    def resume(self, gate: int, *, timeout: float | None = None) -> AsyncApproval[AsyncCall]:
        return AsyncApproval(self._io, lambda: Way(self._api, gate, timeout=timeout).allowed(), AsyncCall)

    def resume_each(self, gate: int, *, timeout: float | None = None) -> AsyncApproval[AsyncCalls]:
        ways = lambda: Several(Way(self._api, gate, timeout=timeout, several=True)).begin()  # noqa: E731
        return AsyncApproval(self._io, ways, AsyncCalls)

    def run(self, id: int) -> AsyncRun:
        return AsyncRun(self._io, self._api, id)

    async def close(self) -> None:
        """Close its connections."""
        await self._io.close()

    async def __aenter__(self) -> AsyncHoldpoint:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _address(url: str) -> str:
    url = (url or os.environ.get("HOLDPOINT_URL", "")).rstrip("/").removesuffix("/api")
    if not url.startswith(("http://", "https://")):
        raise NotConfigured("Give the server's address, http://… or https://…, or set HOLDPOINT_URL.")
    return url


def _token(token: str) -> str:
    token = token or os.environ.get("HOLDPOINT_TOKEN", "")
    if not token:
        raise NotConfigured("Give a token, or set HOLDPOINT_TOKEN. `manage.py token` on the server makes one.")
    return token
