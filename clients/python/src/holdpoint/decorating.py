"""`@hp.requires_approval`: a function that runs once people have allowed it, with what they left of its arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

from .approvals import Approval, AsyncApproval, Pending, deferred
from .awaiting import Way
from .calls import RESULT, Allowed, AsyncCall, Call
from .drivers import Tasks, Threads
from .errors import AlreadyDone, Answered
from .exchange import Op
from .plans import Risk
from .posting import Posting, asked, post
from .sending import Api
from .signatures import KEY, Signature

P = ParamSpec("P")
Q = ParamSpec("Q")
T = ParamSpec("T")
R = TypeVar("R")
S = TypeVar("S")


@dataclass(frozen=True, kw_only=True)
class Terms:
    """How a function is asked about. `title` and `amount` may name its arguments: "Wire {amount} to {to}"."""

    title: str = ""
    summary: str = ""
    amount: str = ""
    risk: Risk = "medium"
    reasons: Sequence[str] = ()
    pinned: Sequence[str] = ()
    respond: bool = False
    idempotent: bool = False
    undo: Callable[..., Any] | None = None
    policy: str = ""
    agent: str = ""
    team: str = ""
    timeout: float | None = None


class Guarded:
    """A function and its terms: what is asked, and what is called for what was allowed."""

    def __init__(self, api: Api, function: Callable[..., Any], terms: Terms) -> None:
        self.api, self.terms = api, terms
        self.signature = Signature(function)
        for said in (terms.title, terms.amount):
            self.signature.names_in(said)
        self.undo = inspect.signature(terms.undo) if terms.undo else None
        if self.undo is not None and (odd := [name for name in self.undo.parameters if name not in self._known()]):
            raise TypeError(f"What takes {self.signature.name} back is called with {self._known()}, not with {odd[0]}.")

    def posting(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Posting:
        """What is asked about a call with these arguments."""
        terms, name = self.terms, self.signature.name
        values = self.signature.bound(args, kwargs)
        said = (self.signature.function.__doc__ or name).strip().splitlines()[0]
        return asked(
            name, self.signature.sent(values), schema=self.signature.schema(),
            title=terms.title.format(**values) or said, summary=terms.summary, amount=terms.amount.format(**values),
            risk=terms.risk, reasons=terms.reasons, pinned=terms.pinned,
            respond=self.signature.response() if terms.respond else False,
            undo=getattr(terms.undo, "__name__", "") if terms.undo else "", idempotent=terms.idempotent,
            policy=terms.policy, agent=terms.agent, team=terms.team, timeout=terms.timeout,
        )  # fmt: skip

    def opened(self, posting: Posting) -> Op[int]:
        """Post the gate; its number."""
        turn = yield from post(self.api, posting)
        return turn.gate or 0

    def way(self, gate: int) -> Op[Allowed]:
        """From the gate to what it allowed, which may be to take back what was done."""
        way = Way(self.api, gate, timeout=self.terms.timeout, undoes=self.terms.undo is not None)
        return (yield from way.allowed())

    def done(self, call: Call | AsyncCall) -> Any:
        """Call the function, or what takes it back, with what people left; what it returned, or a coroutine of it."""
        if call.undoes is None:
            return self.signature.call(call.arguments, call.key)
        return self._undo(call)

    def told(self, answer: Any) -> Any:
        """What the function is said to have returned, in its own types; as it came where it does not fit."""
        try:
            return self.signature.returns.validate_python(answer)
        except ValueError:
            return answer

    def _known(self) -> list[str]:
        return [*self.signature.names.values(), "result", KEY]

    def _undo(self, call: Call | AsyncCall) -> Any:
        """Call what takes it back with those of the arguments, the result and the key that it names."""
        if self.terms.undo is None or self.undo is None:
            raise AssertionError("nobody said how to take it back")
        state, name = call.arguments, self.signature.name
        known = {**self.signature.values(state.get(name) or {}), "result": self.told(state.get(name + RESULT))}
        known[KEY] = call.key
        return self.terms.undo(**{each: known[each] for each in self.undo.parameters if each in known})


class Approved(Generic[P, R]):
    """A function that asks first. Raises what `hp.approve` does, except that an answer in its place is returned."""

    def __init__(self, io: Threads, guarded: Guarded, function: Callable[P, R]) -> None:
        self._io, self._guarded, self.__wrapped__ = io, guarded, function
        functools.update_wrapper(self, function)

    @overload
    def __get__(self, obj: None, owner: object) -> Approved[P, R]: ...
    @overload
    def __get__(self: Approved[Concatenate[S, Q], R], obj: S, owner: object) -> Approved[Q, R]: ...

    def __get__(self, obj: Any, owner: object) -> Any:
        """The method of this object, as of any function; the object itself is not asked about."""
        if obj is None:
            return self
        guarded, method = self._guarded, MethodType(self.__wrapped__, obj)
        return Approved(self._io, Guarded(guarded.api, method, guarded.terms), method)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.resume(self._io.run(self._guarded.opened(self._guarded.posting(args, kwargs))))

    def defer(self, *args: P.args, **kwargs: P.kwargs) -> Pending:
        """Ask, and return at once: `resume` runs it, in this process or another."""
        return self._io.run(deferred(self._guarded.api, self._guarded.posting(args, kwargs)))

    def resume(self, gate: int) -> R:
        """Wait for people at the gate, run what they allowed, and return what it returned."""
        while True:
            try:
                with Approval(self._io, self._guarded.way(gate)) as call:
                    result = self._guarded.done(call)
                    call.done(result)
                    if call.undoes is None:
                        return cast(R, result)
            except Answered as told:
                return cast(R, self._guarded.told(told.answer))
            except AlreadyDone as told:
                return cast(R, self._guarded.told(told.result))


class AsyncApproved(Generic[P, R]):
    """A coroutine function that asks first; as Approved, awaited."""

    def __init__(self, io: Tasks, guarded: Guarded, function: Callable[P, Coroutine[Any, Any, R]]) -> None:
        self._io, self._guarded, self.__wrapped__ = io, guarded, function
        functools.update_wrapper(self, function)

    @overload
    def __get__(self, obj: None, owner: object) -> AsyncApproved[P, R]: ...
    @overload
    def __get__(self: AsyncApproved[Concatenate[S, Q], R], obj: S, owner: object) -> AsyncApproved[Q, R]: ...

    def __get__(self, obj: Any, owner: object) -> Any:
        """The method of this object, as of any function; the object itself is not asked about."""
        if obj is None:
            return self
        guarded, method = self._guarded, MethodType(self.__wrapped__, obj)
        return AsyncApproved(self._io, Guarded(guarded.api, method, guarded.terms), method)

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self.resume(await self._io.run(self._guarded.opened(self._guarded.posting(args, kwargs))))

    async def defer(self, *args: P.args, **kwargs: P.kwargs) -> Pending:
        """Ask, and return at once: `resume` runs it, in this process or another."""
        return await self._io.run(deferred(self._guarded.api, self._guarded.posting(args, kwargs)))

    async def resume(self, gate: int) -> R:
        """Wait for people at the gate, run what they allowed, and return what it returned."""
        while True:
            try:
                async with AsyncApproval(self._io, lambda: self._guarded.way(gate)) as call:
                    given = self._guarded.done(call)
                    result = await given if inspect.isawaitable(given) else given
                    await call.done(result)
                    if call.undoes is None:
                        return cast(R, result)
            except Answered as told:
                return cast(R, self._guarded.told(told.answer))
            except AlreadyDone as told:
                return cast(R, self._guarded.told(told.result))


class Requiring(Generic[T]):
    """The decorator: takes what Terms has, or the function alone."""

    def __init__(self, io: Threads, api: Api, terms: Callable[T, Terms]) -> None:
        self._io, self._api = io, api
        self._terms: Callable[..., Terms] = terms
        self.__doc__, self.__signature__ = terms.__doc__, inspect.signature(terms)

    @overload
    def __call__(self, function: Callable[P, R], /) -> Approved[P, R]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, *args: T.args, **kwargs: T.kwargs) -> Callable[[Callable[P, R]], Approved[P, R]]: ...

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function that asks first, or what makes it of one."""
        terms = self._terms(**kwargs)

        def made(function: Callable[P, R]) -> Approved[P, R]:
            if inspect.iscoroutinefunction(function):
                raise TypeError(f"{function.__name__} is awaited, and this client is not: take an AsyncHoldpoint.")
            return Approved(self._io, Guarded(self._api, function, terms), function)

        return made(*args) if args else made


class AsyncRequiring(Generic[T]):
    """The decorator of coroutine functions."""

    def __init__(self, io: Tasks, api: Api, terms: Callable[T, Terms]) -> None:
        self._io, self._api = io, api
        self._terms: Callable[..., Terms] = terms
        self.__doc__, self.__signature__ = terms.__doc__, inspect.signature(terms)

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> AsyncApproved[P, R]: ...
    @overload
    def __call__(
        self, *args: T.args, **kwargs: T.kwargs
    ) -> Callable[[Callable[P, Coroutine[Any, Any, R]]], AsyncApproved[P, R]]: ...

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function that asks first, or what makes it of one."""
        terms = self._terms(**kwargs)

        def made(function: Callable[P, Coroutine[Any, Any, R]]) -> AsyncApproved[P, R]:
            return AsyncApproved(self._io, Guarded(self._api, function, terms), function)

        return made(*args) if args else made
