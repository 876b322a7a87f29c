"""The command `holdpoint`. Each subcommand is a module with `main(arguments) -> exit code`, imported when it is called.

So `holdpoint hook` starts without the libraries that `holdpoint gateway` needs.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import NamedTuple


class Subcommand(NamedTuple):
    """A subcommand: its module, the extra that installs what it needs, and what it does."""

    module: str
    extra: str
    does: str


COMMANDS: Mapping[str, Subcommand] = {
    "mcp": Subcommand("holdpoint.mcp.stdio", "mcp", "an MCP server with Holdpoint's tools, over stdin and stdout"),
    "gateway": Subcommand("holdpoint.mcp.gateway.command", "mcp", "an MCP server that asks before another one acts"),
    "hook": Subcommand("holdpoint.mcp.hook", "", "a PreToolUse hook of Claude Code"),
    "inbox": Subcommand("holdpoint.terminal.app", "terminal", "the live inbox, also without a command"),
    "gates": Subcommand("holdpoint.terminal.commands.gates", "", "list the open gates"),
    "show": Subcommand("holdpoint.terminal.commands.show", "", "show a gate, and what each choice would do"),
    "decide": Subcommand("holdpoint.terminal.commands.decide", "", "decide a gate"),
    "undo": Subcommand("holdpoint.terminal.commands.undo", "", "take your decision back, while its policy allows it"),
    "runs": Subcommand("holdpoint.terminal.commands.runs", "", "list runs, or the checkpoints of one"),
    "rewind": Subcommand("holdpoint.terminal.commands.rewind", "", "send a run back to a checkpoint"),
    "watch": Subcommand("holdpoint.terminal.commands.watch", "", "write a line for each event"),
    "login": Subcommand("holdpoint.terminal.commands.login", "", "get a token by a code that you confirm"),
    "logout": Subcommand("holdpoint.terminal.commands.logout", "", "revoke that token"),
}
DEFAULT = "inbox"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the subcommand that is named first, and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    name, *rest = given or [DEFAULT]
    found = COMMANDS.get(name)
    if found is None:
        sys.stderr.write(usage())
        return 0 if name in ("-h", "--help") else 2
    try:
        module = import_module(found.module)
    except ModuleNotFoundError as error:
        if not found.extra or (error.name or "").partition(".")[0] == "holdpoint":
            raise
        sys.stderr.write(f"holdpoint {name} needs {error.name}: pip install 'holdpoint[{found.extra}]'\n")
        return 2
    code: int = module.main(rest)
    return code


def usage() -> str:
    """Return the list of subcommands."""
    lines = [f"  {name:<10}{subcommand.does}" for name, subcommand in COMMANDS.items()]
    return "\n".join(["usage: holdpoint COMMAND …", "", *lines, "", "holdpoint COMMAND --help says more.", ""])


if __name__ == "__main__":
    sys.exit(main())
