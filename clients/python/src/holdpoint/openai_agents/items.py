"""The SDK's interruptions as calls to approve, and the words for an edited one."""

from __future__ import annotations

import json
from typing import Any

from agents import FunctionTool
from agents.items import ToolApprovalItem

from ..sending import to_json_data
from ..tool_runs.plan import ToolCall
from ..tool_runs.verdicts import OTHERWISE, Verdict

NOT_SAID = ("id", "call_id", "type", "status", "name", "created_by")  # of a call: they tell nothing of what it does


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
