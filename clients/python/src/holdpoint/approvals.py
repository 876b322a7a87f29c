"""`hp.approve`: ask before one thing is done, and do it in a `with` block once people have allowed it."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, ParamSpec

from .calls import Allowed, AsyncCall, Call
from .drivers import Awaiting, Blocking, Tasks, Threads
from .exchange import Op
from .posting import Posting, allowed, post
from .sending import Api

P = ParamSpec("P")


@dataclass(frozen=True)
class Pending:
    """A gate that asks. `id` is all that another process needs: `hp.resume(id)`."""

    id: int
    run: int


class Approval(Blocking):
    """What people allowed, waited for: `with` it gives the call, and sees to it that something is said of it.

    It waits where it is made, not in `with`: whoever forgets that goes no further without people either. Raises
    Rejected, Expired, Withdrawn, Stopped, Answered and AlreadyDone (all of them Refused), StillOpen and Unknown.
    What was not reported when the block is left is unknown, except for NotDone: it failed.
    """

    _entered = True  # nothing to enter, where it raised

    def __init__(self, io: Threads, begin: Op[Allowed]) -> None:
        self._io = io
        self._allowed = io.run(begin)
        self._entered = False

    def __enter__(self) -> Call:
        self._entered = True
        return Call(self._io, self._allowed)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._io.run(self._allowed.left(error))

    def __del__(self) -> None:
        if not self._entered:
            self._allowed.held.let_go()  # once the lease is over, people are asked whether it happened
            _forgotten("What was allowed is to be done in its block: with hp.approve(…) as call.")


class AsyncApproval(Awaiting):
    """`async with` it: as Approval."""

    def __init__(self, io: Tasks, begin: Callable[[], Op[Allowed]]) -> None:
        self._io = io
        self._begin = begin
        self._entered = False
        self._allowed: Allowed | None = None

    def __del__(self) -> None:
        if not self._entered:
            _forgotten("Nobody was asked: that begins with its block, async with hp.approve(…) as call.")

    async def __aenter__(self) -> AsyncCall:
        self._entered = True
        self._allowed = await self._io.run(self._begin())
        return AsyncCall(self._io, self._allowed)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._allowed is not None:
            await self._io.run(self._allowed.left(error))


class Approve(Generic[P]):
    """Call it to wait, for a `with` block to do it in; `defer` to come back for the outcome later."""

    def __init__(self, io: Threads, api: Api, asked: Callable[P, Posting]) -> None:
        self._io, self._api, self._asked = io, api, asked
        self.__doc__, self.__signature__ = asked.__doc__, inspect.signature(asked)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Approval:
        posting = self._asked(*args, **kwargs)
        return Approval(self._io, allowed(self._api, posting))

    def defer(self, *args: P.args, **kwargs: P.kwargs) -> Pending:
        """Ask, and return at once: `hp.resume(pending.id)` goes on, in this process or another."""
        return self._io.run(deferred(self._api, self._asked(*args, **kwargs)))


class AsyncApprove(Generic[P]):
    """The same, awaited."""

    def __init__(self, io: Tasks, api: Api, asked: Callable[P, Posting]) -> None:
        self._io, self._api, self._asked = io, api, asked
        self.__doc__, self.__signature__ = asked.__doc__, inspect.signature(asked)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> AsyncApproval:
        posting = self._asked(*args, **kwargs)
        return AsyncApproval(self._io, lambda: allowed(self._api, posting))

    async def defer(self, *args: P.args, **kwargs: P.kwargs) -> Pending:
        """Ask, and return at once: `hp.resume(pending.id)` goes on, in this process or another."""
        return await self._io.run(deferred(self._api, self._asked(*args, **kwargs)))


def _forgotten(said: str) -> None:
    warnings.warn(said, RuntimeWarning, stacklevel=3)


def deferred(api: Api, posting: Posting) -> Op[Pending]:
    """Post the gate, and go away."""
    turn = yield from post(api, posting, deferred=True)
    return Pending(turn.gate or 0, turn.run)
