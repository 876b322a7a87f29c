"""The two drivers: one takes an operation's steps in the calling thread, one in an event loop.

`operation` turns a generator into a method, which the driver of its object calls or awaits.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
import time
from collections.abc import Callable, Coroutine
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

import httpx

from .errors import NotConfigured
from .sending import Keep, Lost, Op, Pause, Reply, Request, Send, Step, Stop

P = ParamSpec("P")
T = TypeVar("T")
CLOSING = 5.0  # seconds that closing waits for requests of background operations
F = TypeVar("F", bound=Callable[..., Any])


class Threads:
    """Takes steps in the calling thread; background operations run in threads of their own."""

    def __init__(self, base: str, token: str, transport: httpx.BaseTransport | None = None) -> None:
        self.client = httpx.Client(base_url=base, headers=_headers(token), transport=transport)
        self.beside: dict[threading.Thread, Stop] = {}

    def run(self, op: Op[T], sleep: Callable[[float], object] = time.sleep) -> T:
        """Run an operation to its end."""
        step_result: Any = None
        while True:
            try:
                step = op.send(step_result)
            except StopIteration as end:
                result: T = end.value
                return result
            step_result = self._take(step, sleep)

    def close(self) -> None:
        """Stop the background operations, and close the connections.

        It waits for a request that is under way: a connection made while httpx closes the others would stay open.
        """
        under_way = dict(self.beside)
        for stop in under_way.values():
            stop()
        until = time.monotonic() + CLOSING
        for thread in under_way.keys() - {threading.current_thread()}:
            if thread.is_alive():  # not one that is registered and not started yet
                thread.join(max(until - time.monotonic(), 0))
        self.client.close()

    def _take(self, step: Step, sleep: Callable[[float], object]) -> Any:
        if isinstance(step, Send):
            try:
                return _reply(self.client.send(_request(self.client, step.request)))
            except httpx.RequestError as error:
                return _lost(error)
        return self._keep(step) if isinstance(step, Keep) else sleep(step.seconds)

    def _keep(self, step: Keep) -> Stop:
        stopped = threading.Event()

        def sleep(seconds: float) -> None:
            if stopped.wait(seconds):
                raise _Stopped

        def run_in_background() -> None:
            try:
                self.run(step.operation, sleep)
            except _Stopped:
                return
            except RuntimeError:  # httpx: the client was closed while it sent
                if not stopped.is_set():
                    raise
            finally:
                self.beside.pop(thread, None)

        thread = threading.Thread(target=run_in_background, name="holdpoint", daemon=True)
        self.beside[thread] = stopped.set
        thread.start()
        return stopped.set


class Tasks:
    """Takes steps in the running event loop; background operations are tasks of it."""

    def __init__(self, base: str, token: str, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.client = httpx.AsyncClient(base_url=base, headers=_headers(token), transport=transport)
        self.beside: set[asyncio.Task[None]] = set()  # the loop itself keeps no task alive

    async def run(self, op: Op[T]) -> T:
        step_result: Any = None
        while True:
            try:
                step = op.send(step_result)
            except StopIteration as end:
                result: T = end.value
                return result
            step_result = await self._take(step)

    async def close(self) -> None:
        for task in self.beside:
            task.cancel()
        await self.client.aclose()

    async def _take(self, step: Step) -> Any:
        if isinstance(step, Send):
            try:
                return _reply(await self.client.send(_request(self.client, step.request)))
            except httpx.RequestError as error:
                return _lost(error)
        if isinstance(step, Pause):
            return await asyncio.sleep(step.seconds)
        task = asyncio.get_running_loop().create_task(self.run(step.operation))
        self.beside.add(task)
        task.add_done_callback(self.beside.discard)
        return task.cancel


class Blocking:
    """Base of objects whose operations wait."""

    _io: Threads


class Awaiting:
    """Base of objects whose operations are awaited."""

    _io: Tasks


class operation(Generic[P, T]):
    """A method written as a generator of steps: called on a Blocking object, awaited on an Awaiting one."""

    def __init__(self, write: Callable[Concatenate[Any, P], Op[T]]) -> None:
        self.write = write
        self.__doc__ = write.__doc__
        self._made: dict[bool, Callable[..., Any]] = {}

    @overload
    def __get__(self, obj: Blocking, owner: object) -> Callable[P, T]: ...
    @overload
    def __get__(self, obj: Awaiting, owner: object) -> Callable[P, Coroutine[Any, Any, T]]: ...
    @overload
    def __get__(self, obj: None, owner: object) -> Callable[..., Any]: ...

    def __get__(self, obj: Any, owner: Any) -> Any:
        """Return the method of this object, or the class's function: a coroutine function where it is awaited."""
        awaited = issubclass(owner, Awaiting)
        function = self._made.get(awaited) or self._made.setdefault(awaited, self._function(awaited))
        return function if obj is None else MethodType(function, obj)

    def _function(self, awaited: bool) -> Callable[..., Any]:
        write = self.write
        function = wrap_function(lambda obj, *args, **kwargs: obj._io.run(write(obj, *args, **kwargs)), awaited=awaited)
        signature = inspect.signature(write)
        returns = str(signature.return_annotation).removeprefix("Op[").removesuffix("]")
        returns = ("AsyncRun" if awaited else "Run") if returns == "W" else returns
        return told_as(function, write, signature.replace(return_annotation=returns))


def wrap_function(do: Callable[..., Any], *, awaited: bool) -> Callable[..., Any]:
    """Return a function that does it, or a coroutine function if its result is awaited."""

    def called(*args: Any, **kwargs: Any) -> Any:
        return do(*args, **kwargs)

    async def waited(*args: Any, **kwargs: Any) -> Any:
        return await do(*args, **kwargs)

    return waited if awaited else called


def told_as(function: F, source: Callable[..., Any], signature: inspect.Signature) -> F:
    """Return the function with the name, docstring and signature that people, editors and models read.

    It has no `__wrapped__`: a tool that unwraps functions would skip the question to people.
    """
    functools.update_wrapper(function, source)
    documented: Any = function
    del documented.__wrapped__
    documented.__signature__ = signature
    annotated = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    annotated["return"] = signature.return_annotation
    documented.__annotations__ = {
        name: annotation for name, annotation in annotated.items() if annotation is not inspect.Parameter.empty
    }
    return function


class _Stopped(Exception):
    """The background operation was stopped."""


def _headers(token: str) -> dict[str, str]:
    if not token.isascii() or not token.isprintable() or " " in token:
        raise NotConfigured("The token contains invalid characters; copy it again, without spaces around it.")
    signed = {"Authorization": f"Bearer {token}"} if token else {}
    return {**signed, "Accept": "application/json", "User-Agent": "holdpoint-python"}


def _request(client: httpx.Client | httpx.AsyncClient, asked: Request) -> httpx.Request:
    return client.build_request(
        asked.method, f"/api/{asked.path}", params=asked.query, content=asked.body or None, headers=asked.headers,
        timeout=httpx.Timeout(asked.timeout, connect=10.0),
    )  # fmt: skip


def _reply(response: httpx.Response) -> Reply:
    return Reply(
        response.status_code, {name.lower(): value for name, value in response.headers.items()}, response.content
    )


def _lost(error: httpx.RequestError) -> Lost:
    """Return the error by its kind, since a library's text about a request may hold more than it should."""
    return Lost(f"{type(error).__name__}: {error}" if isinstance(error, httpx.ConnectError) else type(error).__name__)
