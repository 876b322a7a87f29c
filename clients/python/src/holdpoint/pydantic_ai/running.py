"""`run`, `defer` and `resume`: `Agent.run` of Pydantic AI, with people in it.

The agent's DeferredToolRequests become calls to approve, its messages the checkpoint. Approved calls go through a
capability of the run: each is begun as an effect before the tool runs, and reported as soon as it has; one that ran
before a crash gives its recorded result instead. They run one after the other.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_ai import (
    Agent,
    AgentRunResult,
    DeferredToolRequests,
    DeferredToolResults,
    ModelRetry,
    RunContext,
    ToolApproved,
    ToolDefinition,
    ToolDenied,
)
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ToolFailed, ToolFailedError, ToolRetryError
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ToolCallPart, ToolReturn
from typing_extensions import Unpack

from ..approvals import Pending
from ..calls import one_line
from ..client import AsyncHoldpoint
from ..endings import end_sentence
from ..errors import CannotAsk, CannotResume
from ..tool_runs.driving import Placed, ToolRun, find_tool_run, own_arguments, run_to_end, start_tool_run
from ..tool_runs.plan import Came, Shown, ToolCall, Verdict, removed_tool_error

External = Callable[[ToolCallPart], Awaitable[Any]]
# A tool's own words to the model.
SAYS = (ModelRetry, ToolRetryError, ToolFailed, ToolFailedError, ApprovalRequired, CallDeferred)


class Resuming(Shown, total=False):
    """The texts of further gates, and the arguments with which the run was started.

    `options` are arguments of `Agent.run`, such as `deps` and `model`. `external` answers the calls that are done
    elsewhere (`DeferredToolRequests.calls`): it is awaited with each, and again after a crash.
    """

    options: dict[str, Any]
    external: External


class Asking(Resuming, Placed, total=False):
    """The texts of the gates, the arguments for `Agent.run`, and the run's place."""


async def run(
    agent: Agent[Any, Any], prompt: str, *, hp: AsyncHoldpoint, timeout: float | None = None, **asking: Unpack[Asking]
) -> AgentRunResult[Any]:
    """Run the agent to its end; whenever calls need approval, wait for people.

    `key`: your own name for this run; after a crash, the same call goes on from where it was. `timeout`: seconds to
    wait for people at a gate.

    Raises StillOpen after the timeout, Rejected, Withdrawn and Stopped where people ended the run, AlreadyDone for a
    key whose run has ended (`result` is its output), CannotAsk, CannotResume, StateTooLarge and KeyReused.
    """
    return await run_to_end(await start_tool_run(hp, PydanticAgent(agent, asking), prompt, asking), timeout)


def run_sync(
    agent: Agent[Any, Any],
    prompt: str,
    *,
    url: str = "",
    token: str = "",
    timeout: float | None = None,
    **asking: Unpack[Asking],
) -> AgentRunResult[Any]:
    """Do what `run` does in a program without an event loop, with a client of its own.

    Address and token are from HOLDPOINT_URL and HOLDPOINT_TOKEN unless given.
    """

    async def ran() -> AgentRunResult[Any]:
        async with AsyncHoldpoint(url, token) as hp:
            return await run(agent, prompt, hp=hp, timeout=timeout, **asking)

    return asyncio.run(ran())


async def defer(
    agent: Agent[Any, Any], prompt: str, *, hp: AsyncHoldpoint, **asking: Unpack[Asking]
) -> AgentRunResult[Any] | Pending:
    """Run the agent until calls need approval, and return the open gate without waiting; or its result, if none do."""
    begun = await start_tool_run(hp, PydanticAgent(agent, asking), prompt, asking)
    return await begun.to_the_end(timeout=None, defer=True)


async def resume(
    agent: Agent[Any, Any], gate: int, *, hp: AsyncHoldpoint, timeout: float | None = None, **asking: Unpack[Resuming]
) -> AgentRunResult[Any]:
    """Go on from a gate by its number, whichever process asked, to the agent's end. Raises what `run` does.

    Calls that ran are not run again: the agent gets their recorded results.
    """
    return await run_to_end(await find_tool_run(hp, PydanticAgent(agent, asking), gate, asking), timeout)


class PydanticAgent:
    """An agent of Pydantic AI."""

    external: External | None
    name = "pydantic_ai"
    limitation = ""

    def __init__(self, agent: Agent[Any, Any], asking: Mapping[str, Any]) -> None:
        own = own_arguments(asking, Resuming)
        self.own, self.options, self.external = agent, own.get("options") or {}, own.get("external")
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
        options = dict(self.options)
        options["capabilities"] = [*(options.get("capabilities") or []), watch]
        output = options.get("output_type", self.own.output_type)
        kinds = list(output) if isinstance(output, (list, tuple)) else [output]
        if DeferredToolRequests not in kinds:
            options["output_type"] = [*kinds, DeferredToolRequests]
        return await self.own.run(**given, **options)

    async def _came(self, result: AgentRunResult[Any], watch: Performed) -> Came[AgentRunResult[Any]]:
        """Return where it stopped; answer calls that are done elsewhere at once where there is nothing to approve."""
        while isinstance(asked := result.output, DeferredToolRequests):
            if asked.calls and self.external is None:
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
        if waiting and self.external is None:
            raise CannotResume(f"The agent waits for {waiting[0].tool_name} too: resume with external=, as it was run.")
        return {call.tool_call_id: await self.external(call) for call in waiting if self.external}

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


class Performed(AbstractCapability[Any]):
    """Performs approved calls as effects, and remembers the schemas of the tools."""

    def __init__(self, run: ToolRun[Any] | None, verdicts: Mapping[str, Verdict]) -> None:
        self.run, self.verdicts = run, verdicts
        self.schemas: dict[str, Mapping[str, Any]] = {}

    async def prepare_tools(self, ctx: RunContext[Any], tool_defs: list[ToolDefinition]) -> list[ToolDefinition]:
        """Remember the schemas, for the forms at the gate. Raises CannotResume for an approved tool that is gone."""
        found = {tool_def.name: tool_def.parameters_json_schema for tool_def in tool_defs}
        if self.run is not None and not self.schemas:
            for verdict in self.verdicts.values():
                if verdict.runs and not verdict.done and verdict.tool not in found:
                    raise removed_tool_error(verdict.tool, self.run.framework.agent, self.run.gate)
        self.schemas |= found
        return tool_defs

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any],
        handler: Callable[[dict[str, Any]], Awaitable[Any]],
    ) -> Any:  # fmt: skip
        """Perform an approved call as an effect; any other call as it is."""
        # A model may give a later call the id of an approved one.
        verdict = self.verdicts.get(call.tool_call_id) if ctx.tool_call_approved else None
        if verdict is None or self.run is None:
            return await handler(args)
        raised: list[BaseException] = []

        async def do() -> Any:
            try:
                given = await handler(args)
            except SAYS as error:
                raised.append(error)
                return f"The tool told the agent: {error}"
            said_result.append(given)
            return given.return_value if isinstance(given, ToolReturn) else given

        said_result: list[Any] = []
        recorded = await self.run.perform(verdict, call.tool_name, call.args_as_dict(), do)
        if raised:
            raise raised[0]
        return _explain_edit(verdict, said_result[0] if said_result else recorded)


def _explain_edit(verdict: Verdict, result: Any) -> Any:
    """Return the result; of an edited call with a message that says what people changed."""
    if verdict.kind != "edit":
        return result
    words = (
        f"{verdict.by} changed the call of {verdict.tool} before it ran: {'; '.join(verdict.changes)}. The result is "
        "that of the changed call. Do not make the original one again."
    )
    whole = result if isinstance(result, ToolReturn) else ToolReturn(return_value=result)
    content: Any = words if whole.content is None else [*_listed(whole.content), words]
    return dataclasses.replace(whole, content=content)


def _listed(content: Any) -> list[Any]:
    return [content] if isinstance(content, str) else list(content)
