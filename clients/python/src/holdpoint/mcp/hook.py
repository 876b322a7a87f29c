"""`holdpoint hook`: a PreToolUse hook of Claude Code, which asks people before a tool is used.

It reads the call from stdin and answers on stdout. Whatever goes wrong, the answer is that the tool may not be used: a
hook that ends without an answer, or too late, would let it through.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .. import exact_calls
from ..client import AsyncHoldpoint
from ..endings import not_done
from ..errors import HoldpointError
from . import asking
from .asking import Answer, Limits, describe_fault
from .claude_tools import PASSES, notice_about, read_replaced

EVENT = "PreToolUse"
SETTINGS = "HOLDPOINT_HOOK_SETTINGS"
HEARD = (
    "People changed this call before it was made: {changes}. Go on with what was done, and do not repeat your own call."
)
Decision = Literal["allow", "deny", "ask", "defer"]
Json = dict[str, Any]


class Settings(BaseModel):
    """The operator's settings: the tools that people are asked about. Names may be globs, as mcp__github__get_*."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    ask: list[str] = Field(["*"], description="Tools to ask about.")
    passes: list[str] = Field([*PASSES], alias="pass", description="Tools that are not asked about.")
    wait: float = Field(50.0, gt=0, le=3600, description="Seconds to wait; below the hook's own timeout.")
    late: Literal["defer", "deny", "ask"] = Field("deny", description="The answer where people take longer.")
    policy: str = Field("", description="The policy by which people decide.")
    thread: str = Field("", description="The conversation under which the runs are listed.")
    compare: bool = Field(True, description="Whether a file that is to be written is read, to show the difference.")

    def asks(self, tool: str) -> bool:
        """Tell whether people are asked about this tool."""
        return matches(tool, self.ask) and not matches(tool, self.passes)


class Use(BaseModel):
    """The use of a tool, as Claude Code describes it."""

    model_config = ConfigDict(extra="ignore")
    hook_event_name: str = EVENT
    tool_name: str = Field(min_length=1)
    tool_input: Json = {}
    tool_use_id: str | None = None
    cwd: str = ""


def main(arguments: Sequence[str]) -> int:
    """Answer one use of a tool; return the exit code."""
    asked = parser().parse_args(arguments)
    try:
        output = asyncio.run(answered(sys.stdin.buffer.read(), asked.settings))
    except BaseException as error:  # noqa: BLE001 - it fails closed, whatever it is
        output = decided(
            "deny", f"Holdpoint could not ask about this, so it is not allowed: {error or type(error).__name__}"
        )
    if output is not None:
        sys.stdout.write(json.dumps(output) + "\n")
        sys.stdout.flush()
    return 0


async def answered(sent: bytes, settings_file: str) -> Json | None:
    """Return the hook's answer; None where people are not asked. Raises what is wrong with the input and settings."""
    settings = asking.read_settings(Settings, settings_file, "hook's settings file")
    try:
        use = Use.model_validate_json(sent)
    except ValidationError as error:
        raise ValueError(f"this is not the input of a {EVENT} hook: {describe_fault(error.errors()[0])}") from None
    if use.hook_event_name != EVENT:
        raise ValueError(f"this hook is for {EVENT}, not for {use.hook_event_name}. Correct your hooks")
    if not settings.asks(use.tool_name):
        return None
    limits = Limits(settings.wait)
    output = decided("deny", not_done(f"{asking.LATE}, so this is not allowed"))
    with limits.within():
        try:
            async with AsyncHoldpoint(patience=limits.patient) as hp:
                output = in_terms(await asked_of_people(hp, use, settings, limits), use, settings)
        except HoldpointError as error:
            output = decided("deny", asking.in_trouble(error))
    notice = "" if use.tool_name in settings.ask else notice_about(use.tool_name)
    return output | ({"systemMessage": notice} if notice and is_first(use.tool_name) else {})


async def asked_of_people(hp: AsyncHoldpoint, use: Use, settings: Settings, limits: Limits) -> Answer:
    """Ask people about this use."""
    compares = use.tool_name == "Write" and settings.compare
    text, words = read_replaced(use.tool_input, use.cwd) if compares else ("", "")
    seen = (use.tool_use_id, text, words)  # a file that changed is another question
    # Only what is deferred comes again under its id: a model that is denied makes the call anew, under a new one.
    id = exact_calls.digest_values(*seen) if use.tool_use_id and settings.late == "defer" else ""
    project = os.environ.get("CLAUDE_PROJECT_DIR", "")
    posting = asking.question(
        use.tool_name, use.tool_input, state={"project": project} if project else None, policy=settings.policy,
        thread=settings.thread, summary=words, was=text,
    )  # fmt: skip
    keyed = asking.keyed(posting, "hook", id=id)
    return asking.for_once(hp, await asking.ask(hp, keyed, limits, to=keyed.key if id else ""))


def in_terms(answer: Answer, use: Use, settings: Settings) -> Json:
    """Return people's answer as Claude Code takes it."""
    if answer.status == "approved":
        output = decided("allow", answer.message)
        inside = output["hookSpecificOutput"]
        inside["updatedInput"] = answer.arguments
        if answer.changes:
            inside["additionalContext"] = HEARD.format(changes="; ".join(answer.changes))
        return output
    if answer.status != "open":
        return decided("deny", answer.message)
    if settings.late == "defer" and not use.tool_use_id:
        return decided("deny", answer.message)  # nothing would tell the call apart later
    return decided(settings.late, answer.message)


def decided(decision: Decision, reason: str) -> Json:
    """Return a decision."""
    output = {"hookEventName": EVENT, "permissionDecision": decision, "permissionDecisionReason": reason}
    return {"hookSpecificOutput": output}


def is_first(tool: str) -> bool:
    """Record that the person was told of this tool, and return whether it is the first time on this machine."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    folder = Path(state) / "holdpoint" / "unknown-tools"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / sha256(tool.encode()).hexdigest()).open("x").close()
    except FileExistsError:
        return False
    except (OSError, RuntimeError):  # the latter where there is no home
        return True
    return True


def matches(tool: str, patterns: Sequence[str]) -> bool:
    """Tell whether a tool's name matches one of the patterns."""
    return any(fnmatchcase(tool, pattern) for pattern in patterns)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments."""
    made = argparse.ArgumentParser(prog="holdpoint hook", description=__doc__)
    file = f"a JSON file that the agent cannot write, with ask, pass, wait, late, policy; otherwise {SETTINGS}"
    made.add_argument("--settings", default=os.environ.get(SETTINGS, ""), help=file)
    return made
