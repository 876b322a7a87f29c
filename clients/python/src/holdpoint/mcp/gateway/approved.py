"""One call of a tool that needs approval: asked, waited for, begun, made and reported, so that it is made once.

The same call again finds the same gate until it was made. After a crash the run knows how far it came: a call that was
begun and not reported is never made again on a guess, people are asked whether it happened.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import anyio
import mcp_types as types
from mcp import MCPError

from ...answers import Run
from ...awaiting import Way
from ...calls import Allowed, AsyncCall
from ...client import AsyncHoldpoint
from ...errors import Altered, HoldpointError, NotJson
from ...exact_calls import encode_canonical
from ...posting import Posting, post_gate
from ...sending import Api, Op
from ..asking import LASTS

NEVER_RAN = (types.METHOD_NOT_FOUND, types.INVALID_PARAMS, types.PARSE_ERROR, types.INVALID_REQUEST)
KEPT = 20_000  # characters of a result that are kept with the run
HEARD = (
    "People changed this call before it was made: {changes}. This is the result of the call as they approved it; do "
    "not repeat your own."
)
UNREPORTED = (
    "This call was made, but Holdpoint could not be told so ({error}). Do not make it again: people may be asked "
    "whether it happened."
)
Json = dict[str, Any]


class Changed(Altered):
    """The tool changed while people decided, so the call was not made. Call it again: people are asked anew."""


@dataclass(frozen=True)
class Made:
    """A call as it is made: with which arguments, and how."""

    send: Callable[[Json], Awaitable[types.CallToolResult]]
    unchanged: Callable[[], Awaitable[bool]]  # whether the tool is still the one that people were asked about
    keeps: bool  # the result, with the run
    newest: dict[str, str]  # the key of the newest gate of a call, by its first key: so that older ones are not asked


async def perform_call(hp: AsyncHoldpoint, posting: Posting, tool_call: Made) -> types.CallToolResult:
    """Return the result of the call, made as people approved it. Raises HoldpointError and MCPError."""
    way = await hp._io.run(_asked(hp._api, posting, tool_call.newest))
    await hp._io.run(way.decided())
    with anyio.CancelScope(shield=True):  # begun and not reported, people would have to be asked whether it happened
        allowed = await hp._io.run(_begun(way))
        call = AsyncCall(hp._io, allowed)
        try:
            await _still(call, tool_call)
            result = await _sent(call, tool_call, call.arguments)
        except BaseException as error:
            await hp._io.run(allowed.leave(error))
            raise
        added = [HEARD.format(changes="; ".join(call.changes))] if call.changes else []
        try:
            await call.done(_result_to_keep(result, tool_call.keeps))
        except HoldpointError as error:  # it happened: that must not be told as a failure
            allowed.run_claim.let_go()
            added.append(UNREPORTED.format(error=error))
    notes = [types.TextContent(text=note) for note in added]
    return result.model_copy(update={"content": [*result.content, *notes]}) if notes else result


async def _still(call: AsyncCall, tool_call: Made) -> None:
    """Check that the tool is the one that was asked about; else report that nothing was sent."""
    try:
        if not await tool_call.unchanged():
            raise Changed(Changed.__doc__)
    except Exception as error:
        await call.failed(str(error), retry=not isinstance(error, Changed))
        raise


async def _sent(call: AsyncCall, tool_call: Made, arguments: Json) -> types.CallToolResult:
    """Make the call; report where it failed, or where nobody knows."""
    try:
        return await tool_call.send(arguments)
    except MCPError as error:
        if error.code == types.URL_ELICITATION_REQUIRED:  # once a person was at that page, the same call goes on
            await call.failed(error.message, retry=True)
        elif error.code in NEVER_RAN:
            await call.failed(error.message)
        else:
            await call.unknown(f"The server answered: {error.message}")
        raise
    except BaseException as error:
        await call.unknown(f"{type(error).__name__}: {error}")
        raise


def _result_to_keep(result: types.CallToolResult, keeps: bool) -> Json:
    """Return what is kept of a result."""
    record: Json = {"is_error": result.is_error}
    whole = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    try:
        fits = keeps and len(encode_canonical(whole)) <= KEPT
    except NotJson:
        fits = False
    return record | ({"result": whole} if fits else {"result_kept": False})


def _asked(api: Api, posting: Posting, newest: dict[str, str]) -> Op[Way]:
    """Ask, or find the gate of the same call if that was not made yet, or was refused a short while ago."""
    key = newest.get(posting.key, posting.key)
    while True:
        turn = yield from post_gate(api, replace(posting, key=key), deferred=True)
        run = yield from api.get(f"runs/{turn.run}", Run)
        if not _is_over(api, run):
            newest[posting.key] = key
            return Way(api, turn.gate or 0, timeout=posting.timeout, asked=posting.asked)
        key = f"{posting.key}-{turn.run}"


def _is_over(api: Api, run: Run) -> bool:
    if run.status == "completed":
        return True
    ended = run.finished_at if run.status in ("failed", "cancelled") else None
    return ended is not None and api.now() - ended > timedelta(seconds=LASTS)


def _begun(way: Way) -> Op[Allowed]:
    found = yield from way.following()
    if found is None:
        raise (yield from way._end())
    return found
