"""`run`, `defer` and `resume`: `Runner.run` of the OpenAI Agents SDK, with people in it.

The agent's interruptions become calls to approve, its RunState the checkpoint. Approved calls run one after the other:
the SDK is given one approval at a time, and comes back while others are pending. So each is begun as an effect before
it runs, and reported as soon as it has. A call that ran before a crash is not run again: it is answered by its recorded
output.

Hooks report an approved call before the model is called again. `RunHooks` see the calls of the run itself. An agent
that is a tool of another has a run of its own, whose calls only its own `AgentHooks` see: those are wrapped once, and
do nothing outside of a run of this adapter.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from agents import (
    Agent,
    AgentHooks,
    FunctionTool,
    RunConfig,
    RunHooks,
    Runner,
    RunResult,
    RunResultStreaming,
    RunState,
    Session,
    StreamEvent,
    ToolCallOutputItem,
    TResponseInputItem,
)
from agents.exceptions import UserError
from agents.items import ToolApprovalItem
from typing_extensions import Unpack

from ..approvals import Pending
from ..calls import one_line, refuse_unfinished
from ..client import AsyncHoldpoint
from ..endings import end_sentence
from ..errors import CannotResume
from ..sending import to_json_data
from ..tool_runs.driving import Placed, ToolRun, find_tool_run, own_arguments, run_to_end, start_tool_run
from ..tool_runs.plan import OTHERWISE, Came, Shown, ToolCall, Verdict, digest_call, removed_tool_error


class Watched:
    """The approved call that runs now. `done` reports its output."""

    def __init__(self, tool: str, call: str, done: Callable[[str], Awaitable[None]]) -> None:
        self.tool, self.call, self.done = tool, call, done

    async def ended(self, context: Any, tool: Any, result: Any) -> None:
        """Report the call, if it is this one."""
        call = getattr(context, "tool_call_id", None)
        if call == self.call or (call is None and getattr(tool, "name", "") == self.tool):
            refuse_unfinished(self.tool, result)
            await self.done(str(result))

    def hooks(self, own: RunHooks[Any] | None) -> RunHooks[Any]:
        """Return hooks that do what the program's own do, and report."""
        return _RunWatch(own)


WATCHED: ContextVar[Watched | None] = ContextVar("holdpoint_watched", default=None)


@contextmanager
def watched_by(watched: Watched) -> Iterator[None]:
    """Report the call in this block."""
    before = WATCHED.set(watched)
    try:
        yield
    finally:
        WATCHED.reset(before)


class _Passing:
    """Passes every hook on to the program's own, except the end of a tool, which is reported first."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattribute__(self, name: str) -> Any:
        inner = object.__getattribute__(self, "inner")
        if name.startswith("on_") and name != "on_tool_end" and inner is not None:
            return getattr(inner, name)
        return object.__getattribute__(self, name)

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        """Report the call that ended."""
        watched = WATCHED.get()
        if watched is not None:
            await watched.ended(context, tool, result)
        if self.inner is not None:
            await self.inner.on_tool_end(context, agent, tool, result)


class _RunWatch(_Passing, RunHooks[Any]):
    """Reports the calls of a run."""


class _AgentWatch(_Passing, AgentHooks[Any]):
    """Reports the calls of an agent that is a tool of another."""


def watching_nested(agent: Agent[Any]) -> None:
    """Wrap the hooks of all agents that are tools of this one, or of one that it reaches."""
    seen: set[int] = set()
    waiting: list[tuple[Agent[Any], bool]] = [(agent, False)]
    while waiting:
        current, nested = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if nested and not isinstance(current.hooks, _AgentWatch):
            current.hooks = _AgentWatch(current.hooks)
        waiting += [(other, nested) for other in current.handoffs if isinstance(other, Agent)]
        inside = [getattr(tool, "_agent_instance", None) for tool in current.tools]
        waiting += [(other, True) for other in inside if isinstance(other, Agent)]


class Resuming(Shown, total=False):
    """The texts of further gates, and the arguments of `Runner.run`: those that the run was started with.

    With `events` the run is streamed (`Runner.run_streamed`): it is awaited with each event.
    """

    context: Any
    run_config: RunConfig
    hooks: RunHooks[Any]
    session: Session
    max_turns: int
    events: Callable[[StreamEvent], Awaitable[None]]


class Asking(Resuming, Placed, total=False):
    """The texts of the gates, the arguments of `Runner.run`, and the run's place."""


async def run(
    agent: Agent[Any],
    input: str | list[TResponseInputItem],
    *,
    hp: AsyncHoldpoint,
    timeout: float | None = None,
    **asking: Unpack[Asking],
) -> Result:
    """Run the agent to its end; whenever calls need approval, wait for people.

    `key`: your own name for this run; after a crash, the same call goes on from where it was. `timeout`: seconds to
    wait for people at a gate.

    Raises StillOpen after the timeout, Rejected, Withdrawn and Stopped where people ended the run, AlreadyDone for a
    key whose run has ended (`result` is its output), CannotAsk, CannotResume, StateTooLarge and KeyReused.
    """
    return await run_to_end(await start_tool_run(hp, OpenAIAgent(agent, asking), input, asking), timeout)


def run_sync(
    agent: Agent[Any],
    input: str | list[TResponseInputItem],
    *,
    url: str = "",
    token: str = "",
    timeout: float | None = None,
    **asking: Unpack[Asking],
) -> Result:
    """Do what `run` does in a program without an event loop, with a client of its own.

    Address and token are from HOLDPOINT_URL and HOLDPOINT_TOKEN unless given.
    """

    async def ran() -> Result:
        async with AsyncHoldpoint(url, token) as hp:
            return await run(agent, input, hp=hp, timeout=timeout, **asking)

    return asyncio.run(ran())


async def defer(
    agent: Agent[Any], input: str | list[TResponseInputItem], *, hp: AsyncHoldpoint, **asking: Unpack[Asking]
) -> Result | Pending:
    """Run the agent until calls need approval, and return the open gate without waiting; or its result, if none do."""
    begun = await start_tool_run(hp, OpenAIAgent(agent, asking), input, asking)
    return await begun.to_the_end(timeout=None, defer=True)


async def resume(
    agent: Agent[Any], gate: int, *, hp: AsyncHoldpoint, timeout: float | None = None, **asking: Unpack[Resuming]
) -> Result:
    """Go on from a gate by its number, whichever process asked, to the agent's end. Raises what `run` does.

    Calls that ran are not run again: the agent gets their recorded results.
    """
    return await run_to_end(await find_tool_run(hp, OpenAIAgent(agent, asking), gate, asking), timeout)


Result = RunResult | RunResultStreaming
NOT_SAID = ("id", "call_id", "type", "status", "name", "created_by")  # of a call: they tell nothing of what it does
NO_EDITS = "This framework cannot change a call: an edit rejects it and tells the agent to make the corrected one."


class OpenAIAgent:
    """An agent of the SDK."""

    name = "openai_agents"
    limitation = NO_EDITS

    def __init__(self, agent: Agent[Any], asking: Mapping[str, Any]) -> None:
        self.sdk, self.agent, self.options = agent, agent.name, own_arguments(asking, Resuming)
        watching_nested(agent)  # before a RunState is restored, which takes the agents as they are then

    async def start(self, input: Any) -> Came[Result]:
        """Run it from its input."""
        return self._came(await self._run(input), {})

    async def go_on(self, run: ToolRun[Result]) -> Came[Result]:
        """Run it from its RunState: one approved call after the other, then on to the next stop."""
        saved = run.state.get("checkpoint") or {}
        state, taken = await self._restored(saved.get("state")), dict(saved.get("taken") or {})
        while True:
            items = state.get_interruptions()
            if missing := next((pending for pending in items if not has_tool(pending)), None):
                raise removed_tool_error(name_of(missing), agent_of(missing), run.gate)
            sorted_out = _Sorted.from_items(items, run.verdicts, taken)
            if sorted_out.newly_taken:
                taken |= sorted_out.newly_taken
                await run.save("go_on", "go_on", checkpoint={"state": self._json(state), "taken": taken})
            for item, words in sorted_out.replies:
                state.reject(item, rejection_message=words)
            if not sorted_out.runs and not sorted_out.replies and items:
                return self._asks(state, sorted_out.fresh, {})
            result = await self._performed(run, state, sorted_out.next(run.standing))
            if not result.interruptions:
                return self._came(result, taken)
            state = result.to_state()

    async def _performed(
        self, run: ToolRun[Result], state: RunState[Any], approved: tuple[ToolApprovalItem, Verdict] | None
    ) -> Result:
        """Run the SDK with one approved call, which is an effect; without one, on from the rejections."""
        if approved is None:
            return await self._run(state)
        item, verdict = approved
        begun = await run.begin(verdict, name_of(item), arguments_of(item))
        state.approve(item)
        seen = Watched(name_of(item), item.call_id or "", begun.done)
        try:
            with watched_by(seen):
                result = await self._run(state, seen)
        except BaseException as error:
            await begun.unknown(one_line(error))
            if begun.refused is not None:
                raise begun.refused from error
            raise
        if any(pending.call_id == item.call_id for pending in result.interruptions):
            await begun.unknown("The SDK asks for its approval again.")
            raise CannotResume(f"The SDK did not take the approval of {verdict.tool}. Look at the run, and resume it.")
        await begun.done(_output(result, item.call_id or ""))
        return result

    async def _run(self, input: Any, seen: Watched | None = None) -> Result:
        options: dict[str, Any] = {name: value for name, value in self.options.items() if value is not None}
        if seen is not None:
            options["hooks"] = seen.hooks(options.get("hooks"))
        if (events := options.pop("events", None)) is None:
            return await Runner.run(self.sdk, input, **options)
        streamed = Runner.run_streamed(self.sdk, input, **options)
        async for event in streamed.stream_events():
            await events(event)
        return streamed

    async def _restored(self, state: Any) -> RunState[Any]:
        """Return the saved RunState. Raises CannotResume."""
        own = self.options.get("context")
        context: Any = None if own is None or isinstance(own, Mapping) else lambda _: own
        try:
            return await RunState.from_json(self.sdk, copy.deepcopy(state), context_deserializer=context)
        except (UserError, ValueError, TypeError, KeyError) as error:
            raise CannotResume(
                f"The saved RunState cannot be restored: {end_sentence(one_line(error))} Resume with the agents that "
                "saved it and the version of openai-agents that did, or run the agent anew."
            ) from error

    def _json(self, state: RunState[Any]) -> Any:
        return state.to_json(context_serializer=lambda _: {})

    def _came(self, result: Result, taken: dict[str, str]) -> Came[Result]:
        if result.interruptions:
            return self._asks(result.to_state(), result.interruptions, taken)
        return Came(result, output=result.final_output)

    def _asks(self, state: RunState[Any], items: list[ToolApprovalItem], taken: dict[str, str]) -> Came[Any]:
        return Came(None, [tool_call_of(item) for item in items], {"state": self._json(state), "taken": taken})


@dataclass
class _Sorted:
    """The pending calls: what runs, what the agent is told of the others, and what nobody has decided."""

    runs: list[tuple[ToolApprovalItem, Verdict]]
    replies: list[tuple[ToolApprovalItem, str]]
    fresh: list[ToolApprovalItem]
    newly_taken: dict[str, str]  # the ids of corrected calls, and what approved them

    @classmethod
    def from_items(cls, items: list[ToolApprovalItem], verdicts: list[Verdict], taken: Mapping[str, str]) -> _Sorted:
        """Sort the pending calls by the verdicts of the newest gate.

        A call that is exactly what people edited an earlier one of the same agent to has their approval, once.
        """
        found, left = cls([], [], [], {}), {decision.id: decision for decision in verdicts}
        by_call = {decision.call: decision for decision in verdicts}
        open_edits = [edit for edit in verdicts if edit.kind == "edit" and edit.id not in taken.values()]
        for item in items:
            call = item.call_id or ""
            verdict, corrects = by_call.get(call), left.get(taken.get(call, ""))
            if corrects is None and verdict is None:
                made = digest_call(name_of(item), arguments_of(item))
                same = (edit for edit in open_edits if (edit.agent, edit.digest) == (agent_of(item), made))
                corrects = next(same, None)
                if corrects is not None:
                    open_edits.remove(corrects)
                    found.newly_taken[call] = corrects.id
            found._place(item, verdict, corrects)
        return found

    def next(self, standing: str) -> tuple[ToolApprovalItem, Verdict] | None:
        """Return the call to run now: the one at which the run stands, or else the first."""
        return next((pair for pair in self.runs if pair[1].id == standing), self.runs[0] if self.runs else None)

    def _place(self, item: ToolApprovalItem, verdict: Verdict | None, corrects: Verdict | None) -> None:
        approved = corrects or (verdict if verdict is not None and verdict.kind == "approve" else None)
        if approved is not None and approved.done:
            self.replies.append((item, str(approved.result)))
        elif approved is not None:
            self.runs.append((item, approved))
        elif verdict is None:
            self.fresh.append(item)
        else:
            self.replies.append((item, describe_correction(verdict) if verdict.kind == "edit" else verdict.words))


def _output(result: Result, call: str) -> str:
    """Return what the call gave, as the agent reads it."""
    for item in result.new_items:
        if isinstance(item, ToolCallOutputItem) and _call_id(item.raw_item) == call:
            return str(item.output)
    return f"It ran inside another agent. {OTHERWISE}"


def _call_id(raw: Any) -> Any:
    return raw.get("call_id") if isinstance(raw, Mapping) else getattr(raw, "call_id", None)


def tool_call_of(item: ToolApprovalItem) -> ToolCall:
    """Return the interruption as a call."""
    name, tool = name_of(item), _tool_of(item)
    return ToolCall(
        id="", tool=name, call=item.call_id or "", arguments=arguments_of(item), agent=agent_of(item),
        schema=tool.params_json_schema if tool is not None else None,
    )  # fmt: skip


def has_tool(item: ToolApprovalItem) -> bool:
    """Tell whether the agent still has the tool, as far as that is known: an MCP server's tools are not."""
    asked = _members(item.raw_item).get("type") == "function_call"
    return not asked or _tool_of(item) is not None or bool(getattr(item.agent, "mcp_servers", None))


def agent_of(item: ToolApprovalItem) -> str:
    """Return the name of the agent that made the call."""
    return str(getattr(item.agent, "name", ""))


def name_of(item: ToolApprovalItem) -> str:
    """Return the tool's name, with its namespace or its server where it has one."""
    server, name = _members(item.raw_item).get("server_label"), item.qualified_name or item.name or "tool"
    return f"{server}.{name}" if server else name


def arguments_of(item: ToolApprovalItem) -> dict[str, Any]:
    """Return the arguments; a text that is no JSON object is shown as it is, under `input`.

    Shell, patch and computer calls have no arguments but members of their own: the commands, the operation.
    """
    given = item.arguments
    if given is None:
        return {name: value for name, value in _members(item.raw_item).items() if name not in NOT_SAID}
    given = given or "{}"
    try:
        found = json.loads(given, object_pairs_hook=_once, parse_constant=_no_constant)
    except ValueError:
        return {"input": given}
    return found if isinstance(found, dict) else {"input": given}


def describe_correction(verdict: Verdict) -> str:
    """Return what the agent is told of an edited call: who corrected it, how, and what to do."""
    call = f"{verdict.tool}({json.dumps(verdict.arguments, ensure_ascii=False)})"
    return (
        f"{verdict.by} did not allow this call but a corrected one ({'; '.join(verdict.changes)}). Make exactly this "
        f"call now: {call}. It is approved already, once. {OTHERWISE}"
    )


def _tool_of(item: ToolApprovalItem) -> FunctionTool | None:
    tools = getattr(item.agent, "tools", None) or []
    return next((tool for tool in tools if isinstance(tool, FunctionTool) and tool.name == item.tool_name), None)


def _members(raw: Any) -> dict[str, Any]:
    """Return what the model said of a call, without what it left out."""
    found = to_json_data(raw)
    return _without_none(found) if isinstance(found, dict) else {}


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_none(member) for name, member in value.items() if member is not None}
    return [_without_none(item) for item in value] if isinstance(value, list) else value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands there twice")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
