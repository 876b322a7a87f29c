"""The client's first request, read before it is answered: it says what the client can do, as the server behind is told.

So the server behind is started for this client, with its capabilities.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage
from pydantic import BaseModel, ValidationError
from typing_extensions import Self

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


class Replayed:
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

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


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
