"""The tools of Claude Code, as its binaries were looked at, and whether the hook lets a tool pass without a person.

What reads, keeps a to-do list or asks the person itself passes; what runs, writes or sends does not, and neither does
what nobody has looked at. Names that newer versions no longer send stay for older ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

LOOKED_AT = {"2.1.197": "2026-11-29", "2.1.332": "2026-11-29"}
OLDER = "before 2.1.197"


class KnownTool(NamedTuple):
    """A tool. `until`: the last version looked at that has it, or OLDER; empty: the newest one has it."""

    passes: bool
    why: str
    until: str = ""


TOOLS: Mapping[str, KnownTool] = {
    # read
    "Read": KnownTool(True, "reads a file"),
    "Glob": KnownTool(True, "lists files"),
    "Grep": KnownTool(True, "searches files"),
    "LS": KnownTool(True, "lists a folder", OLDER),
    "NotebookRead": KnownTool(True, "reads a notebook", OLDER),
    "BashOutput": KnownTool(True, "reads what a command in the background wrote", OLDER),
    "AgentOutputTool": KnownTool(True, "reads what an agent in the background wrote", OLDER),
    "TaskOutput": KnownTool(True, "reads what a command or an agent in the background wrote", "2.1.197"),
    "CronList": KnownTool(True, "lists what is scheduled"),
    "ListAgents": KnownTool(True, "lists agents"),
    "ToolSearch": KnownTool(True, "reads the descriptions of tools"),
    "WaitForMcpServers": KnownTool(True, "waits"),
    # the session's to-do list
    "TodoRead": KnownTool(True, "reads the to-do list", OLDER),
    "TodoWrite": KnownTool(True, "writes the to-do list; sent where tasks are switched off"),
    "TaskCreate": KnownTool(True, "adds an entry to the to-do list"),
    "TaskGet": KnownTool(True, "reads an entry of the to-do list"),
    "TaskList": KnownTool(True, "reads the to-do list"),
    "TaskUpdate": KnownTool(True, "changes an entry of the to-do list"),
    # Claude Code asks the person by them: allowed here, they would go unanswered
    "AskUserQuestion": KnownTool(True, "asks the person"),
    "EnterPlanMode": KnownTool(True, "asks the person whether to plan, in which nothing is changed"),
    "ExitPlanMode": KnownTool(True, "shows the person a plan"),
    # run, write or send
    "Agent": KnownTool(False, "starts an agent"),
    "Bash": KnownTool(False, "runs a command"),
    "CronCreate": KnownTool(False, "schedules a prompt"),
    "CronDelete": KnownTool(False, "removes what is scheduled"),
    "Edit": KnownTool(False, "writes a file"),
    "EnterWorktree": KnownTool(False, "makes a worktree"),
    "ExitWorktree": KnownTool(False, "may remove a worktree"),
    "KillBash": KnownTool(False, "stops a command", OLDER),
    "KillShell": KnownTool(False, "stops a command", OLDER),
    "ListMcpResourcesTool": KnownTool(False, "sends a request to an MCP server"),
    "Monitor": KnownTool(False, "runs a command"),
    "MultiEdit": KnownTool(False, "writes a file", OLDER),
    "NotebookEdit": KnownTool(False, "writes a notebook"),
    "PushNotification": KnownTool(False, "sends a message"),
    "ReadMcpResourceTool": KnownTool(False, "sends a request to an MCP server"),
    "RemoteTrigger": KnownTool(False, "sends a request"),
    "ReportFindings": KnownTool(False, "hands findings to the program around Claude Code"),
    "ScheduleWakeup": KnownTool(False, "schedules a prompt"),
    "SendMessage": KnownTool(False, "sends a message to another agent"),
    "SendUserFile": KnownTool(False, "sends a file"),
    "SendUserMessage": KnownTool(False, "sends a message"),
    "Skill": KnownTool(False, "takes instructions from a file, which may run commands"),
    "Task": KnownTool(False, "starts an agent", OLDER),
    "TaskStop": KnownTool(False, "stops a command or an agent"),
    "WebFetch": KnownTool(False, "sends a request"),
    "WebSearch": KnownTool(False, "sends a request"),
    "Workflow": KnownTool(False, "starts agents"),
    "Write": KnownTool(False, "writes a file"),
}
PASSES = [name for name, tool in TOOLS.items() if tool.passes]
MCP = "mcp__"  # the beginning of the names of MCP servers' tools


def notice_about(tool: str) -> str:
    """Return what a person is told of a tool that is not in the table; empty for one that is, and for MCP tools."""
    if tool in TOOLS or tool.startswith(MCP):
        return ""
    version, day = list(LOOKED_AT.items())[-1]
    return (
        f"Holdpoint does not know the tool {tool}, since it knows those of Claude Code {version} ({day}): people are "
        "asked about each call. A newer version of the package holdpoint may know it. To let it pass, set `pass` in "
        "the hook's settings to its default with this name added."
    )
