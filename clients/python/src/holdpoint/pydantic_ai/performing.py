"""The capability through which the approved calls of a run go."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pydantic_ai import ModelRetry, RunContext, ToolDefinition
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ToolFailed, ToolFailedError, ToolRetryError
from pydantic_ai.messages import ToolCallPart, ToolReturn

from ..tool_runs.driving import ToolRun
from ..tool_runs.verdicts import Verdict, removed_tool_error

SAYS = (
    ModelRetry,
    ToolRetryError,
    ToolFailed,
    ToolFailedError,
    ApprovalRequired,
    CallDeferred,
)  # a tool's own words to the model


class Performed(AbstractCapability[Any]):
    """Performs approved calls as effects, and remembers the schemas of the tools."""

    def __init__(self, run: ToolRun[Any] | None, verdicts: Mapping[str, Verdict]) -> None:
        self.run, self.verdicts = run, verdicts
        self.schemas: dict[str, Mapping[str, Any]] = {}

    async def prepare_tools(self, ctx: RunContext[Any], tool_defs: list[ToolDefinition]) -> list[ToolDefinition]:
        """Remember the schemas, for the forms at the gate. Raises CannotResume for an approved tool that is gone."""
        found = {tool_def.name: tool_def.parameters_json_schema for tool_def in tool_defs}
        waiting = (
            [] if self.schemas else [verdict for verdict in self.verdicts.values() if verdict.runs and not verdict.done]
        )
        if self.run is not None and (
            missing := next((verdict for verdict in waiting if verdict.tool not in found), None)
        ):
            raise removed_tool_error(missing.tool, self.run.framework.agent, self.run.gate)
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
