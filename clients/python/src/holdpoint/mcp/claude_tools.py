"""The tools of Claude Code: whether the hook lets one pass without a person, and how people see a call of it.

What reads, keeps a to-do list or asks the person itself passes; what runs, writes or sends does not, and neither does
what nobody has looked at. Names that newer versions no longer send stay for older ones.

A drawing shows arguments as people read them, a diff or a command. It is a hint: the exact arguments stay beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

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
WRITES = {"Edit": "Edit", "MultiEdit": "Edit", "Write": "Write", "NotebookEdit": "Edit"}  # with their verbs
PINS = {
    "Edit": ["file_path"], "MultiEdit": ["file_path"], "Write": ["file_path"], "NotebookEdit": ["notebook_path"],
    "WebFetch": ["url"],
}  # fmt: skip
TITLE = 120  # characters
DRAWINGS = 50  # of one action
LARGEST = 100_000  # bytes of a file that is compared
Input = Mapping[str, Any]


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


def title_call(tool: str, input: Input) -> str:
    """Return a title that says what is asked, in one line."""
    path = input.get("file_path") or input.get("notebook_path")
    if tool in WRITES and isinstance(path, str):
        return cut_title(f"{WRITES[tool]} {path}")
    command = input.get("command")
    if tool != "Bash" or not isinstance(command, str):
        return cut_title(f"Call {tool}")
    first, *more = command.strip().splitlines() or [""]  # lines put together would read as another command
    return cut_title(f"Run {first}") + (f" (and {len(more)} more line{'s' * (len(more) > 1)})" if more else "")


def cut_title(text: str) -> str:
    """Return the text on one line, cut where it is long."""
    line = " ".join(text.split()) or "-"
    return line if len(line) <= TITLE else f"{line[: TITLE - 1]}…"


def draw_call(tool: str, input: Input, was: str = "") -> Iterator[dict[str, str]]:
    """Yield how the input of a tool of Claude Code is drawn; nothing for what it does not fit."""
    if tool == "Bash":
        yield from _draw_text(input, "command", "command", words="description")
    elif tool == "Edit":
        yield from _draw_text(input, "diff", "new_string", before="old_string", name="file_path")
    elif tool == "Write":
        yield from (
            drawing | ({"was": was} if was else {})
            for drawing in _draw_text(input, "diff", "content", name="file_path")
        )
    elif tool == "NotebookEdit" and input.get("edit_mode") != "delete":
        yield from _draw_text(input, "diff", "new_source", name="notebook_path")
    elif tool == "MultiEdit" and isinstance(edits := input.get("edits"), list):
        yield from _edits(edits, {"name": "/file_path"} if isinstance(input.get("file_path"), str) else {})


def _edits(edits: Sequence[Any], path: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield each edit as a diff, or nothing where one would be missing: a part would look like all of it."""
    if len(edits) > DRAWINGS or not all(isinstance(edit, Mapping) for edit in edits):
        return
    drawn = [list(_draw_text(edit, "diff", "new_string", before="old_string")) for edit in edits]
    if not all(drawn):
        return
    for number, [drawing] in enumerate(drawn):
        places = {name: f"/edits/{number}{at}" for name, at in drawing.items() if name != "kind"}
        yield {"kind": drawing["kind"], **places, **path}


def _draw_text(input: Input, kind: str, at: str, **others: str) -> Iterator[dict[str, str]]:
    if isinstance(input.get(at), str):
        beside = {part: f"/{name}" for part, name in others.items() if isinstance(input.get(name), str)}
        yield {"kind": kind, "at": f"/{at}", **beside}


def read_replaced(input: Input, folder: str) -> tuple[str, str]:
    """Return the text that Write is to replace, as it is now, and what is said of it.

    The text is "" where there is nothing to compare. The input's path is relative to the folder.
    """
    path = input.get("file_path")
    if not isinstance(path, str) or not path:
        return "", ""
    file = Path(folder) / path
    try:
        if not file.exists():
            return "", "There was no such file when this was asked: it would be new."
        if not file.is_file():
            return "", "There is something at this path that is no plain file."
        with file.open("rb") as opened:
            found = opened.read(LARGEST + 1)
    except OSError as error:
        return "", f"There is a file, which could not be read for a comparison: {error.strerror}."
    if len(found) > LARGEST:
        return "", f"There is a file of more than {LARGEST:,} bytes, too large for a comparison."
    text = found.decode(errors="replace")
    if "\0" in text or text.encode() != found:
        return "", "There is a file that is no text: all of it would be replaced."
    if not text:
        return "", "There was an empty file when this was asked."
    return text, "The difference is from the file as it was when this was asked."
