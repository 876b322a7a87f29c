"""The client before the gateway: here it is asked and told what the server behind asks and tells its client.

Its first request is read before it is answered: it says what the client can do, and the server behind is started for
this client, with its capabilities. A client of the handshake era takes requests. One of 2026-07-28 takes none: its call
is answered with what is asked, and it makes the same call again with the answers, while the call of the server behind
goes on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from secrets import token_urlsafe
from typing import Any, TypeVar

import anyio
import mcp_types as types
from anyio.abc import ObjectReceiveStream, TaskGroup
from mcp import MCPError
from mcp.client.session import ClientRequestContext, IncomingMessage
from mcp.server import ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus
from mcp.shared.message import SessionMessage
from mcp.shared.subscriptions import event_from_wire, event_to_notification
from pydantic import BaseModel, ValidationError

from ... import exact_calls

Context = ServerRequestContext[Any, Any]
R = TypeVar("R")
PATIENT = 600.0  # seconds for which the server behind waits for a client that has to come back
GONE = "The client did not answer what was asked of it."
OVER = "This call is not under way here any more. Make it anew, without requestState."
OTHER = "This continues another call. Make this one without requestState."
NO_CALL = "This client can be asked only while it calls something."


@dataclass(eq=False)
class Caller:
    """A call of the client. `session` reaches it: that of its newest request."""

    session: ServerSession


@dataclass(eq=False)
class Asked:
    """Something that the server behind asks of the client."""

    request: types.InputRequest
    answered: anyio.Event = field(default_factory=anyio.Event)
    answer: types.InputResponse | None = None


@dataclass(eq=False)
class Exchange(Caller):
    """A call in as many rounds as the server behind asks something meanwhile."""

    call: str  # a digest of it
    asked: dict[str, Asked] = field(default_factory=dict)
    news: anyio.Event = field(default_factory=anyio.Event)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    result: Any = None
    error: Exception | None = None
    is_over: bool = False

    async def run(self, work: Callable[[Caller], Awaitable[Any]]) -> None:
        """Do the work beside the rounds."""
        CURRENT.set(self)
        try:
            with self.scope:
                self.result = await work(self)
        except Exception as error:  # noqa: BLE001 - it is raised to the client, in the round that waits for it
            self.error = error
        finally:
            self.is_over = True
            self.news.set()

    async def ask(self, request: types.InputRequest) -> types.InputResponse | types.ErrorData:
        """Ask the client in this round or the next, and return its answer."""
        key, asked = token_urlsafe(8), Asked(request)
        self.asked[key] = asked
        self.news.set()
        with anyio.move_on_after(PATIENT):
            await asked.answered.wait()
        self.asked.pop(key, None)
        return asked.answer or types.ErrorData(code=types.INTERNAL_ERROR, message=GONE)

    async def round(self, session: ServerSession, answers: types.InputResponses) -> bool:
        """Take the answers; return once there is more to ask (True), or the result."""
        self.session = session
        for key, answer in answers.items():
            if asked := self.asked.pop(key, None):
                asked.answer = answer
                asked.answered.set()
        try:
            while not self.is_over and not self.asked:
                self.news = anyio.Event()
                await self.news.wait()
        except BaseException:
            self.scope.cancel()  # the client gave the call up
            raise
        return not self.is_over


CURRENT: ContextVar[Exchange | None] = ContextVar("exchange", default=None)


class ClientSide:
    """One client. `tasks` live as long as its connection."""

    def __init__(self, opening: Opening, tasks: TaskGroup) -> None:
        self.opening, self.tasks = opening, tasks
        self.session: ServerSession | None = None
        self.calls: list[Caller] = []
        self.exchanges: dict[str, Exchange] = {}
        self.bus = InMemorySubscriptionBus()

    def callbacks(self) -> dict[str, Any]:
        """Return what the server behind may ask: what this client says that it can do, and nothing else."""
        can = self.opening.capabilities
        found: dict[str, Any] = {"message_handler": self.pass_on_change, "logging_callback": self.logged}
        if can.sampling:
            found |= {"sampling_callback": self.sampled, "sampling_capabilities": can.sampling}
        if can.elicitation:
            found["elicitation_callback"] = self.elicited
        if can.roots:
            found["list_roots_callback"] = self.listed_roots
        return found

    async def heard(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Keep the newest session of each message that comes: middleware of the server."""
        self.session = ctx.session
        return await call_next(ctx)

    async def call(self, context: Context, params: Any, work: Callable[[Caller], Awaitable[R]]) -> Any:
        """Return the result of the work, or what the client is asked before there is one."""
        if not self.opening.in_rounds:
            caller = Caller(context.session)
            self.calls.append(caller)
            try:
                return await work(caller)
            finally:
                self.calls.remove(caller)
        state = params.request_state
        asked = exact_calls.digest_values(
            params.model_dump(mode="json", exclude={"input_responses", "request_state", "meta"})
        )
        exchange = self.exchanges.get(state) if state else Exchange(context.session, asked)
        if exchange is None:
            raise MCPError(types.INVALID_PARAMS, OVER)
        if exchange.call != asked:
            raise MCPError(types.INVALID_PARAMS, OTHER)
        if not state:
            state = token_urlsafe(16)
            self.exchanges[state] = exchange
            self.calls.append(exchange)
            self.tasks.start_soon(exchange.run, work)
        try:
            more = await exchange.round(context.session, params.input_responses or {})
        except BaseException:
            self._end(state)
            raise
        if more:
            requests = {key: question.request for key, question in exchange.asked.items()}
            return types.InputRequiredResult(input_requests=requests, request_state=state)
        self._end(state)
        if exchange.error is not None:
            raise exchange.error
        return exchange.result

    def _end(self, state: str) -> None:
        exchange = self.exchanges.pop(state, None)
        if exchange is not None:
            self.calls.remove(exchange)

    async def sampled(self, context: ClientRequestContext, params: types.CreateMessageRequestParams) -> Any:
        """Ask for a message of the client's model."""
        with_tools = params.tools is not None or params.tool_choice is not None
        kind = types.CreateMessageResultWithTools if with_tools else types.CreateMessageResult
        return await self._asked(types.CreateMessageRequest(params=params), kind)

    async def elicited(self, context: ClientRequestContext, params: types.ElicitRequestParams) -> Any:
        """Ask who sits before the client."""
        return await self._asked(types.ElicitRequest(params=params), types.ElicitResult)

    async def listed_roots(self, context: ClientRequestContext) -> Any:
        """Ask which folders the client works in."""
        return await self._asked(types.ListRootsRequest(), types.ListRootsResult)

    async def _asked(self, request: types.InputRequest, kind: type[Any]) -> Any:
        if self.opening.modern:
            newest = next((call for call in reversed(self.calls) if isinstance(call, Exchange)), None)
            exchange = CURRENT.get() or newest  # whichever call carries it: its key finds who asked
            if exchange is None or exchange.is_over:
                return types.ErrorData(code=types.INVALID_REQUEST, message=NO_CALL)
            return await exchange.ask(request)
        if self.session is None:
            return types.ErrorData(code=types.INVALID_REQUEST, message=NO_CALL)
        try:
            return await self.session.send_request(request, kind)
        except MCPError as error:
            return error.error

    async def logged(self, params: types.LoggingMessageNotificationParams) -> None:
        """Pass on what the server behind logs, to a call that takes it or to the client as a whole."""
        session = self.calls[-1].session if self.calls else self.session
        if session is not None:
            await session.send_log_message(params.level, params.data, params.logger)

    async def pass_on_change(self, message: IncomingMessage) -> None:
        """Pass on that something has changed."""
        if isinstance(message, Exception) or self.session is None:
            return
        if isinstance(message, types.ElicitCompleteNotification) and not self.opening.modern:
            await self.session.send_notification(message)
            return
        data = message.model_dump(by_alias=True, mode="json", exclude_none=True)
        event = event_from_wire(data["method"], data.get("params"))
        if event is None:
            return
        if self.opening.modern:
            await self.bus.publish(event)
        else:
            await self.session.send_notification(event_to_notification(event, {}))


Item = SessionMessage | Exception
MOST = 8  # messages before the first request


@dataclass(frozen=True)
class Opening:
    """A client by its own words. `modern`: it speaks 2026-07-28 or later, without a handshake."""

    capabilities: types.ClientCapabilities
    info: types.Implementation | None
    modern: bool

    @property
    def in_rounds(self) -> bool:
        """Tell whether it is asked by answers to its calls."""
        can = self.capabilities
        return self.modern and bool(can.sampling or can.elicitation or can.roots)


class Replayed(ObjectReceiveStream[Item]):
    """A stream of messages that begins with those that were read from it."""

    def __init__(self, rest: Any, read: list[Item]) -> None:
        self.rest, self.read = rest, read

    @property
    def last_context(self) -> Any:
        """Return the context of the last message's sender."""
        return getattr(self.rest, "last_context", None)

    async def receive(self) -> Item:
        """Return the next message."""
        found: Item = self.read.pop(0) if self.read else await self.rest.receive()
        return found

    async def aclose(self) -> None:
        """Close the stream."""
        await self.rest.aclose()


async def read_opening(reads: Any) -> tuple[Opening | None, Replayed]:
    """Return what the first request says, and the stream with it; None where the client leaves before one."""
    found: list[Item] = []
    async for item in reads:
        found.append(item)
        if isinstance(item, SessionMessage) and isinstance(item.message, types.JSONRPCRequest):
            return opening_of(item.message.method, item.message.params or {}), Replayed(reads, found)
        del found[:-MOST]
    return None, Replayed(reads, found)


def opening_of(method: str, params: Mapping[str, Any]) -> Opening:
    """Return what a first request says."""
    if method == "initialize":
        declared, version = (params.get("capabilities"), params.get("clientInfo")), None
    else:
        meta = params.get("_meta")
        meta = meta if isinstance(meta, Mapping) else {}
        declared = meta.get(types.CLIENT_CAPABILITIES_META_KEY), meta.get(types.CLIENT_INFO_META_KEY)
        version = meta.get(types.PROTOCOL_VERSION_META_KEY)
    capabilities = _read(types.ClientCapabilities, declared[0]) or types.ClientCapabilities()
    return Opening(capabilities, _read(types.Implementation, declared[1]), modern=version is not None)


def _read(kind: type[BaseModel], value: Any) -> Any:
    """Return it as a model; None where it is none, which the server says to the client."""
    try:
        return kind.model_validate(value)
    except ValidationError:
        return None
