"""The command `holdpoint`. Each subcommand is a function from arguments to an exit code, imported when it is called.

So `holdpoint hook` starts without the libraries that `holdpoint gateway` needs.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import NamedTuple


class Subcommand(NamedTuple):
    """A subcommand: the function to call, the extra that installs what it needs, and what it does."""

    function: str  # module:name
    extra: str
    does: str


COMMANDS: Mapping[str, Subcommand] = {
    "mcp": Subcommand(
        "holdpoint.mcp.server:main", "mcp", "an MCP server with Holdpoint's tools, over stdin and stdout"
    ),
    "gateway": Subcommand(
        "holdpoint.mcp.gateway.command:main", "mcp", "an MCP server that asks before another one acts"
    ),
    "hook": Subcommand("holdpoint.mcp.hook:main", "", "a PreToolUse hook of Claude Code"),
    "inbox": Subcommand("holdpoint.terminal.app.inbox:main", "terminal", "the live inbox, also without a command"),
    "gates": Subcommand("holdpoint.terminal.commands:list_gates", "", "list the open gates"),
    "show": Subcommand("holdpoint.terminal.commands:show_gate", "", "show a gate, and what each choice would do"),
    "decide": Subcommand("holdpoint.terminal.commands:decide_gate", "", "decide a gate"),
    "undo": Subcommand(
        "holdpoint.terminal.commands:undo_decision", "", "take your decision back, while its policy allows it"
    ),
    "runs": Subcommand("holdpoint.terminal.commands:list_runs", "", "list runs, or the checkpoints of one"),
    "rewind": Subcommand("holdpoint.terminal.commands:rewind_run", "", "send a run back to a checkpoint"),
    "watch": Subcommand("holdpoint.terminal.commands:watch_events", "", "write a line for each event"),
    "login": Subcommand("holdpoint.terminal.signing_in:log_in", "", "get a token by a code that you confirm"),
    "logout": Subcommand("holdpoint.terminal.signing_in:log_out", "", "revoke that token"),
}
DEFAULT = "inbox"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the subcommand that is named first, and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    name, *rest = given or [DEFAULT]
    subcommand = COMMANDS.get(name)
    if subcommand is None:
        lines = [f"  {name:<10}{subcommand.does}" for name, subcommand in COMMANDS.items()]
        words = ["usage: holdpoint COMMAND …", "", *lines, "", "holdpoint COMMAND --help says more.", ""]
        sys.stderr.write("\n".join(words))
        return 0 if name in ("-h", "--help") else 2
    module, _, function = subcommand.function.partition(":")
    try:
        run = getattr(import_module(module), function)
    except ModuleNotFoundError as error:
        if not subcommand.extra or (error.name or "").partition(".")[0] == "holdpoint":
            raise
        sys.stderr.write(f"holdpoint {name} needs {error.name}: pip install 'holdpoint[{subcommand.extra}]'\n")
        return 2
    code: int = run(rest)
    return code


if __name__ == "__main__":
    sys.exit(main())
