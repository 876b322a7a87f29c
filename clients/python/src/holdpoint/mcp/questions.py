"""Words a question about a tool call: its title, what is checked first, and how the tools of Claude Code are drawn.

A drawing shows arguments as people read them, a diff or a command. It is a hint: the exact arguments stay beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import HoldpointError
from ..posting import Ask, Posting, Risk, question_each

TOOL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}")  # what the server takes as a tool's name
RESERVED = re.compile(r"(ask|feedback|model_.*|[^A-Za-z].*)")
TITLE = 120  # characters
DRAWINGS = 50  # of one action
Input = Mapping[str, Any]


class NoSuchName(HoldpointError):
    """People cannot be asked about a tool with this name: it has other characters than letters, digits, _ . : / -"""


def question(
    tool: str,
    input: Input,
    *,
    title: str = "",
    summary: str = "",
    risk: Risk = "medium",
    reasons: Sequence[str] = (),
    pinned: Sequence[str] = (),
    schema: Mapping[str, Any] | None = None,
    state: Mapping[str, Any] | None = None,
    policy: str = "",
    thread: str = "",
    idempotent: bool = False,
    was: str = "",
) -> Posting:
    """Return the question whether a tool may be called with this input. Raises NoSuchName.

    `was`: the text of the file that Write is to replace.
    """
    name = named(tool)
    asked = Ask(
        field(name), input, title=title or titled(tool, input), tool=name, schema=schema, idempotent=idempotent,
        pinned=[argument for argument in (pinned or pins(tool)) if argument in input],
        draws=list(drawings(tool, input, was)),
    )  # fmt: skip
    return question_each(
        [asked], title=title or titled(tool, input), summary=summary, risk=risk, reasons=reasons, state=state,
        policy=policy, thread=thread,
    )  # fmt: skip


def named(tool: str) -> str:
    """Return the tool's name as the server takes it. A slash becomes a colon, which no tool of MCP has in its name."""
    name = tool.replace("/", ":")
    if not TOOL.fullmatch(name) or (":" in tool and "/" in tool):
        raise NoSuchName(
            f"People cannot be asked about a tool with the name {tool[:120]!r}: it may have 1 to 100 letters, digits, "
            "_ . - and /."
        )
    return name


def field(name: str) -> str:
    """Return the name of the state's field that holds the arguments."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)[:90]
    return f"tool_{plain}" if RESERVED.fullmatch(plain) or plain.endswith("_result") else plain


def titled(tool: str, input: Input) -> str:
    """Return a title that says what is asked, in one line."""
    verb = {"Edit": "Edit", "MultiEdit": "Edit", "Write": "Write", "NotebookEdit": "Edit"}.get(tool)
    path = input.get("file_path") or input.get("notebook_path")
    if verb and isinstance(path, str):
        return short(f"{verb} {path}")
    if tool == "Bash" and isinstance(input.get("command"), str):
        return _run(input["command"])
    return short(f"Call {tool}")


def _run(command: str) -> str:
    """Return a title with the first line alone: lines put together would read as another command."""
    first, *more = command.strip().splitlines() or [""]
    return short(f"Run {first}") + (f" (and {len(more)} more line{'s' * (len(more) > 1)})" if more else "")


def short(text: str) -> str:
    """Return the text on one line, cut where it is long."""
    line = " ".join(text.split()) or "-"
    return line if len(line) <= TITLE else f"{line[: TITLE - 1]}…"


def pins(tool: str) -> Sequence[str]:
    """Return the arguments of a tool of Claude Code that people check first."""
    return {
        "Edit": ["file_path"], "MultiEdit": ["file_path"], "Write": ["file_path"], "NotebookEdit": ["notebook_path"],
        "WebFetch": ["url"],
    }.get(tool, [])  # fmt: skip


def drawings(tool: str, input: Input, was: str = "") -> Iterator[dict[str, str]]:
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
