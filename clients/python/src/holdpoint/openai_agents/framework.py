"""The SDK's agent under a Holdpoint run: its interruptions become calls to approve, its RunState the checkpoint.

Approved calls run one after the other: the SDK is given one approval at a time, and comes back while others are
pending. So each is begun as an effect before it runs, and reported as soon as it has. A call that ran before a crash
is not run again: it is answered by its recorded output.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agents import (
    Agent,
    RunConfig,
    RunHooks,
    Runner,
    RunResult,
    RunResultStreaming,
    RunState,
    Session,
    StreamEvent,
    ToolCallOutputItem,
)
from agents.exceptions import UserError
from agents.items import ToolApprovalItem

from ..calls import one_line
from ..endings import end_sentence
from ..errors import CannotResume
from ..tool_runs.driving import ToolRun
from ..tool_runs.plan import Came, digest_call
from ..tool_runs.verdicts import OTHERWISE, Verdict, removed_tool_error
from .items import agent_of, arguments_of, describe_correction, has_tool, name_of, tool_call_of
from .watching import Watched, watched_by, watching_nested

Result = RunResult | RunResultStreaming
NO_EDITS = "This framework cannot change a call: an edit rejects it and tells the agent to make the corrected one."


@dataclass(frozen=True)
class Options:
    """The options of `Runner.run` that an adapter passes on."""

    context: Any = None
    run_config: RunConfig | None = None
    hooks: RunHooks[Any] | None = None
    session: Session | None = None
    max_turns: int | None = 10
    events: Callable[[StreamEvent], Awaitable[None]] | None = None  # gets the events of a streamed run


class OpenAIAgent:
    """An agent of the SDK."""

    name = "openai_agents"
    limitation = NO_EDITS

    def __init__(self, agent: Agent[Any], options: Options) -> None:
        self.sdk, self.options = agent, options
        self.agent = agent.name
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
        options: dict[str, Any] = {name: value for name, value in vars(self.options).items() if value is not None}
        if seen is not None:
            options["hooks"] = seen.hooks(self.options.hooks)
        if (events := options.pop("events", None)) is None:
            return await Runner.run(self.sdk, input, **options)
        streamed = Runner.run_streamed(self.sdk, input, **options)
        async for event in streamed.stream_events():
            await events(event)
        return streamed

    async def _restored(self, state: Any) -> RunState[Any]:
        """Return the saved RunState. Raises CannotResume."""
        context: Callable[[Mapping[str, Any]], Any] | None = None
        if self.options.context is not None and not isinstance(self.options.context, Mapping):
            context = lambda _: self.options.context  # noqa: E731
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
