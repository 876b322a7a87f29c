"""The agent under a Holdpoint run: its DeferredToolRequests become calls to approve, its messages the checkpoint.

Approved calls go through a capability of the run: each is begun as an effect before the tool runs, and reported as
soon as it has; one that ran before a crash gives its recorded result instead. They run one after the other.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError
from pydantic_ai import Agent, AgentRunResult, DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ToolCallPart

from ..calls import one_line
from ..endings import end_sentence
from ..errors import CannotAsk, CannotResume
from ..tool_runs.driving import ToolRun
from ..tool_runs.plan import Came, ToolCall
from ..tool_runs.verdicts import Verdict
from .performing import Performed

External = Callable[[ToolCallPart], Awaitable[Any]]


@dataclass(frozen=True)
class Options:
    """The arguments passed on to `Agent.run`, and the function that answers calls done elsewhere."""

    options: Mapping[str, Any] = field(default_factory=dict)
    external: External | None = None


class PydanticAgent:
    """An agent of Pydantic AI."""

    name = "pydantic_ai"
    limitation = ""

    def __init__(self, agent: Agent[Any, Any], options: Options) -> None:
        self.own, self.options = agent, options
        self.agent = agent.name or "agent"

    async def start(self, input: Any) -> Came[AgentRunResult[Any]]:
        """Run it from its prompt."""
        watch = Performed(None, {})
        return await self._came(await self._run(watch, user_prompt=input), watch)

    async def go_on(self, run: ToolRun[AgentRunResult[Any]]) -> Came[AgentRunResult[Any]]:
        """Run it from its messages, with the verdicts."""
        saved = run.state.get("checkpoint") or {}
        if (made_by := saved.get("agent", "")) != self.agent:
            raise CannotResume(f"The run is of the agent {made_by}, not of {self.agent}. Resume it with {made_by}.")
        messages = self._messages(saved.get("messages"))
        watch = Performed(run, {verdict.call: verdict for verdict in run.verdicts})
        approvals = {verdict.call: _answered(verdict) for verdict in run.verdicts}
        calls = await self._external(messages, saved.get("external") or [])
        results = DeferredToolResults(approvals=dict(approvals), calls=calls)
        return await self._came(await self._run(watch, message_history=messages, deferred_tool_results=results), watch)

    async def _run(self, watch: Performed, **given: Any) -> AgentRunResult[Any]:
        options = dict(self.options.options)
        options["capabilities"] = [*(options.get("capabilities") or []), watch]
        output = options.get("output_type", self.own.output_type)
        kinds = list(output) if isinstance(output, (list, tuple)) else [output]
        if DeferredToolRequests not in kinds:
            options["output_type"] = [*kinds, DeferredToolRequests]
        return await self.own.run(**given, **options)

    async def _came(self, result: AgentRunResult[Any], watch: Performed) -> Came[AgentRunResult[Any]]:
        """Return where it stopped; answer calls that are done elsewhere at once where there is nothing to approve."""
        while isinstance(asked := result.output, DeferredToolRequests):
            if asked.calls and self.options.external is None:
                raise CannotAsk(
                    f"The agent waits for {asked.calls[0].tool_name}, which is done elsewhere: give external=, which "
                    "is awaited with the call and returns its result."
                )
            if asked.approvals:
                messages = ModelMessagesTypeAdapter.dump_python(result.all_messages(), mode="json")
                elsewhere = [call.tool_call_id for call in asked.calls]
                kept = {"agent": self.agent, "messages": messages, "external": elsewhere}
                made = [part.tool_call_id for part in result.response.tool_calls]  # in the model's order
                ordered = sorted(asked.approvals, key=lambda call: made.index(call.tool_call_id))
                return Came(result, [_called(call, asked, watch) for call in ordered], kept)
            messages = result.all_messages()
            calls = await self._external(messages, [call.tool_call_id for call in asked.calls])
            results = DeferredToolResults(calls=calls)
            result = await self._run(watch, message_history=messages, deferred_tool_results=results)
        return Came(result, output=result.output)

    async def _external(self, messages: list[ModelMessage], ids: list[str]) -> dict[str, Any]:
        """Return the results of the calls that are done elsewhere."""
        parts = [part for message in messages for part in message.parts if isinstance(part, ToolCallPart)]
        waiting = [call for call in parts if call.tool_call_id in ids]
        if waiting and self.options.external is None:
            raise CannotResume(f"The agent waits for {waiting[0].tool_name} too: resume with external=, as it was run.")
        return {call.tool_call_id: await self.options.external(call) for call in waiting if self.options.external}

    def _messages(self, saved: Any) -> list[ModelMessage]:
        try:
            return ModelMessagesTypeAdapter.validate_python(saved)
        except ValidationError as error:
            raise CannotResume(
                f"The saved messages cannot be read: {end_sentence(one_line(error))} Resume with the version of "
                "pydantic-ai that saved them, or run the agent anew."
            ) from error


def _called(part: ToolCallPart, asked: DeferredToolRequests, watch: Performed) -> ToolCall:
    metadata = asked.metadata.get(part.tool_call_id) or {}
    notes = tuple(f"{part.tool_name}: {name}: {metadata[name]}" for name in metadata)
    return ToolCall(
        id="", tool=part.tool_name, call=part.tool_call_id, arguments=part.args_as_dict(),
        schema=watch.schemas.get(part.tool_name), notes=notes,
    )  # fmt: skip


def _answered(verdict: Verdict) -> ToolApproved | ToolDenied:
    """Return the verdict as the library takes it."""
    return ToolApproved(override_args=verdict.arguments) if verdict.runs else ToolDenied(verdict.words)
