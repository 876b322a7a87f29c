"""The two clients: the same operations, called or awaited."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import httpx
from pydantic import BaseModel

from .answers import Events, Gate, Outcome, Version
from .answers import Run as RunRead
from .approvals import Approval, Approve, AsyncApproval, AsyncApprove
from .awaiting import Way
from .decorating import AsyncRequiring, Requiring, Terms
from .drivers import Awaiting, Blocking, Tasks, Threads, operation
from .errors import NotConfigured
from .exchange import Habits, Op
from .plans import Step
from .posting import asked
from .runs import AsyncRun, Run
from .sending import Api

W = TypeVar("W")  # a run to work on, called or awaited


class _Client(ABC, Generic[W]):
    """What both can do."""

    _api: Api
    url: str

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}>"

    @operation
    def register(
        self,
        version: str,
        steps: Sequence[Step],
        *,
        agent: str,
        state: type[BaseModel] | Mapping[str, Any],
        doc: str = "",
    ) -> Op[Version]:
        """Register a version of an agent: its steps, and its state as a model or a JSON Schema."""
        schema = state.model_json_schema(mode="serialization") if isinstance(state, type) else dict(state)
        body = {"version": version, "doc": doc, "state_schema": schema, "steps": [each.body() for each in steps]}
        return (yield from self._api.post(f"agents/{agent}/versions", body, Version))

    @abstractmethod
    def run(self, id: int) -> W:
        """A run, to be read or worked on; asks nothing of the server yet."""

    @operation
    def start(
        self,
        input: Mapping[str, Any],
        *,
        agent: str = "",
        version: str = "",
        title: str = "",
        team: str = "",
        key: str = "",
    ) -> Op[W]:
        """Start a run of an agent with a plan; claim it to work on it. The same `key` again is the same run."""
        body = {"agent": agent, "version": version, "input": dict(input), "title": title, "team": team}
        started = yield from self._api.post("runs", body, RunRead, key=key)
        return self.run(started.id)

    @operation
    def gate(self, id: int) -> Op[Gate]:
        """One gate, with all that it asks."""
        return (yield from self._api.get(f"gates/{id}", Gate))

    @operation
    def outcome(self, gate: int, *, wait: float = 0.0) -> Op[Outcome]:
        """How a gate ended, or that it still asks; after `wait` seconds at the latest."""
        return (yield from self._api.get(f"gates/{gate}/outcome", Outcome, longer=wait, wait=wait))

    @operation
    def withdraw(self, gate: int, reason: str = "") -> Op[Outcome]:
        """Take back what was asked: nothing of it is done. Raises Problem where it is closed already."""
        return (yield from self._api.post(f"gates/{gate}/withdrawals", {"reason": reason}, Outcome))

    @operation
    def events(self, after: str = "", *, limit: int = 50) -> Op[Events]:
        """What happened after a cursor; `now` for what happens from here on."""
        return (yield from self._api.get("events", Events, after=after, limit=limit))


class Holdpoint(_Client[Run], Blocking):
    """Asks people before something is done. Address and token from HOLDPOINT_URL and HOLDPOINT_TOKEN unless given.

    `patience`: seconds for which a request is tried again while the server does not answer. `lease`: seconds after
    which a run is handed to somebody else where this process has died. May be used by several threads.
    """

    def __init__(
        self,
        url: str = "",
        token: str = "",
        *,
        patience: float = 60.0,
        lease: float = 30.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.url = _address(url)
        self._io = Threads(self.url, _token(token), transport)
        self._api = Api(Habits(patience=patience, lease=lease))
        self.approve = Approve(self._io, self._api, asked)
        self.requires_approval = Requiring(self._io, self._api, Terms)

    def resume(self, gate: int, *, timeout: float | None = None) -> Approval:
        """Go on from a gate by its number, whichever process asked and however far that one came."""
        return Approval(self._io, Way(self._api, gate, timeout=timeout).allowed())

    def run(self, id: int) -> Run:
        """A run, to be read or worked on; asks nothing of the server yet."""
        return Run(self._io, self._api, id)

    def close(self) -> None:
        """Close its connections."""
        self._io.close()

    def __enter__(self) -> Holdpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncHoldpoint(_Client[AsyncRun], Awaiting):
    """The same for an event loop; one client belongs to one loop. Heartbeats are a task of it: do not block it."""

    def __init__(
        self,
        url: str = "",
        token: str = "",
        *,
        patience: float = 60.0,
        lease: float = 30.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.url = _address(url)
        self._io = Tasks(self.url, _token(token), transport)
        self._api = Api(Habits(patience=patience, lease=lease))
        self.approve = AsyncApprove(self._io, self._api, asked)
        self.requires_approval = AsyncRequiring(self._io, self._api, Terms)

    def resume(self, gate: int, *, timeout: float | None = None) -> AsyncApproval:
        """Go on from a gate by its number, whichever process asked and however far that one came."""
        return AsyncApproval(self._io, lambda: Way(self._api, gate, timeout=timeout).allowed())

    def run(self, id: int) -> AsyncRun:
        """A run, to be read or worked on; asks nothing of the server yet."""
        return AsyncRun(self._io, self._api, id)

    async def close(self) -> None:
        """Close its connections."""
        await self._io.close()

    async def __aenter__(self) -> AsyncHoldpoint:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _address(url: str) -> str:
    found = (url or os.environ.get("HOLDPOINT_URL", "")).rstrip("/").removesuffix("/api")
    if not found.startswith(("http://", "https://")):
        raise NotConfigured("Give the server's address, http://… or https://…, or set HOLDPOINT_URL.")
    return found


def _token(token: str) -> str:
    found = token or os.environ.get("HOLDPOINT_TOKEN", "")
    if not found:
        raise NotConfigured("Give a token, or set HOLDPOINT_TOKEN. `manage.py token` on the server makes one.")
    return found
