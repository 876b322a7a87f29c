"""`hp.approve`: ask before something is done, and do it in a `with` block once people have approved it."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, Protocol, TypeVar

from .answers import ActionOutcome
from .awaiting import Way
from .calls import Allowed, AsyncCall, Call
from .drivers import Awaiting, Blocking, Tasks, Threads, told_as, wrap_function
from .endings import Said
from .posting import Posting, post_gate
from .sending import Api, Op

P = ParamSpec("P")
C = TypeVar("C")  # the value of a `with` block
A_co = TypeVar("A_co", covariant=True)
D_co = TypeVar("D_co", covariant=True)


@dataclass(frozen=True)
class Pending:
    """An open gate. `id` is all that another process needs to resume; people decide it at `url`."""

    id: int
    run: int
    url: str = ""


class Several:
    """The logic for several actions of one gate, done one after the other."""

    def __init__(self, way: Way) -> None:
        self.way = way
        self.at: Allowed | None = None  # the action in progress
        self.words: dict[str, ActionOutcome] = {}
        self.results: dict[str, Any] = {}
        self.over = False

    def begin(self) -> Op[Several]:
        """Wait for people. Raises Refused if no action may be done, and StillOpen."""
        yield from self.way.decided()
        self.at = yield from self.way.following()
        if self.at is None:
            yield from self._end()
        _, gate = yield from self.way.outcome_and_gate()
        self.words = dict(gate.outcome.actions) if gate.outcome else {}
        return self

    def next(self, first: bool) -> Op[Allowed | None]:
        """Return the next action, begun; None after the last one.

        The one before is reported as unknown if it was not reported.
        """
        before = self.at
        if self.over or before is None:
            return None
        if first and not before.reported:
            return before
        yield from before.leave(None)
        turn = before.turn if before.turn is not None and before.turn.next.kind else None
        self.at = yield from self.way.following(before.run_claim, turn)
        if self.at is None:
            yield from self._end()
        return self.at

    def leave(self, error: BaseException | None) -> Op[None]:
        """Report the action in progress as unknown if it was not reported."""
        if self.at is None:
            return
        yield from self.at.leave(error)
        yield from self.at.stop()

    def _end(self) -> Op[None]:
        self.over = True
        bad = yield from self.way.ended_badly()
        if bad is not None:
            raise bad
        self.results = yield from self.way.results()


class _Calls:
    """The approved actions of one gate: iterate over them, and each begins when you come to it."""

    def __init__(self, io: Any, several: Several) -> None:
        self._io, self._several = io, several

    @property
    def refused(self) -> dict[str, ActionOutcome]:
        """Return the rejected actions by id: `by` whom, and the `reason`."""
        return {name: outcome for name, outcome in self._several.words.items() if outcome.verdict == "reject"}

    @property
    def answers(self) -> dict[str, Any]:
        """Return people's answers by action, given instead of it."""
        return {name: outcome.response for name, outcome in self._several.words.items() if outcome.verdict == "respond"}

    @property
    def results(self) -> dict[str, Any]:
        """Return the result of each action, from now or an earlier process; complete after the last action."""
        return self._several.results

    @property
    def url(self) -> str:
        """Return the gate's page."""
        return self._several.way.url


class Calls(_Calls, Blocking):
    """Approved actions: `for call in calls`."""

    def __iter__(self) -> Iterator[Call]:
        first = True
        while (found := self._io.run(self._several.next(first))) is not None:
            first = False
            yield Call(self._io, found)


class AsyncCalls(_Calls, Awaiting):
    """The same, awaited: `async for call in calls`."""

    async def __aiter__(self) -> AsyncIterator[AsyncCall]:
        first = True
        while (found := await self._io.run(self._several.next(first))) is not None:
            first = False
            yield AsyncCall(self._io, found)


Begun = Allowed | Several


class Approval(Blocking, Generic[C]):
    """An approval: waits for people when it is made; `with` it gives the call, whose result must be reported.

    It waits where it is made, not at `with`, so that code without the block cannot go on unapproved. A call that was
    not reported when the block ends is unknown, except after NotDone: then it failed.
    """

    _entered = True  # if the constructor raises, no warning follows

    def __init__(self, io: Threads, begin: Op[Begun], given: Callable[[Threads, Any], C]) -> None:
        self._io, self._given = io, given
        self._begun = io.run(begin)
        self._entered = False

    def __enter__(self) -> C:
        self._entered = True
        return self._given(self._io, self._begun)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._io.run(self._begun.leave(error))

    def __del__(self) -> None:
        if not self._entered:
            # Heartbeats stop: once the lease is over, people are asked whether the action happened.
            allowed = self._begun.at if isinstance(self._begun, Several) else self._begun
            if allowed is not None:
                allowed.run_claim.let_go()
            message = "The approved action is done in a block: with hp.approve(…) as call."
            warnings.warn(message, RuntimeWarning, stacklevel=2)


class AsyncApproval(Awaiting, Generic[C]):
    """The same, awaited: nobody is asked before `async with`."""

    def __init__(self, io: Tasks, begin: Callable[[], Op[Begun]], given: Callable[[Tasks, Any], C]) -> None:
        self._io, self._begin, self._given = io, begin, given
        self._entered = False
        self._begun: Begun | None = None

    def __del__(self) -> None:
        if not self._entered:
            message = "Nobody was asked yet. Enter the block: async with hp.approve(…) as call."
            warnings.warn(message, RuntimeWarning, stacklevel=2)

    async def __aenter__(self) -> C:
        self._entered = True
        self._begun = await self._io.run(self._begin())
        return self._given(self._io, self._begun)

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._begun is not None:
            await self._io.run(self._begun.leave(error))


class Asking(Protocol[P, A_co, D_co]):
    """A function of the client that asks and waits; its `defer` asks and returns."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> A_co: ...

    def defer(self, *args: P.args, **kwargs: P.kwargs) -> D_co:
        """Ask, and return at once; this process or another resumes by the gate's number."""


def make_asking(
    name: str,
    asked: Callable[P, Posting],
    ask: Callable[[Posting], A_co],
    defer: Callable[[Posting], D_co],
    returns: str,
    *,
    words: str | None = None,
    awaited: bool = False,
    defer_awaited: bool = False,
) -> Asking[P, A_co, D_co]:
    """Make such a function; `asked` gives its signature, and its docstring unless `words` does."""

    call = wrap_function(lambda *args, **kwargs: ask(asked(*args, **kwargs)), awaited=awaited)
    signature = inspect.signature(asked)
    asking: Any = told_as(call, asked, signature.replace(return_annotation=returns))
    asking.__name__ = asking.__qualname__ = name
    asking.__doc__ = words or asking.__doc__
    asking.defer = wrap_function(lambda *args, **kwargs: defer(asked(*args, **kwargs)), awaited=defer_awaited)
    named_defer(asking.defer, name, signature)
    return asking  # type: ignore[no-any-return]


def named_defer(later: Callable[..., Any], name: str, signature: inspect.Signature) -> None:
    """Give the `defer` of a function its name, docstring and signature."""
    told_as(later, Asking.defer, signature.replace(return_annotation=Pending))
    later.__qualname__ = f"{name}.defer"


def begun(api: Api, posting: Posting) -> Op[Allowed]:
    """Ask, wait for people, and begin the approved action."""
    turn = yield from post_gate(api, posting)
    return (yield from Way(api, turn.gate or 0, timeout=posting.timeout, asked=posting.asked).allowed())


def begun_each(api: Api, posting: Posting) -> Op[Several]:
    """Return the same for several actions."""
    turn = yield from post_gate(api, posting)
    way = Way(api, turn.gate or 0, timeout=posting.timeout, several=True, asked=posting.asked)
    return (yield from Several(way).begin())


def ask_people(api: Api, posting: Posting) -> Op[Said]:
    """Ask people without doing anything; no run stays in the queue.

    The arguments are those of `approve`. Their final values are in `arguments`; an answer given instead
    (`respond=True`) is in `answer`. Raises Rejected, Expired, Withdrawn, Stopped, StillOpen, Altered
    and NotHandedOut.
    """
    turn = yield from post_gate(api, posting, ask_only=True)
    return (yield from Way(api, turn.gate or 0, timeout=posting.timeout, asked=posting.asked).answer())


def post_deferred(api: Api, posting: Posting, *, ask_only: bool = False) -> Op[Pending]:
    """Post the gate without waiting."""
    turn = yield from post_gate(api, posting, deferred=True, ask_only=ask_only)
    return Pending(turn.gate or 0, turn.run, turn.gate_url or "")


Later = Coroutine[Any, Any, Pending]
