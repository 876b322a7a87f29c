"""`holdpoint rewind RUN CHECKPOINT`: sends a run back to a checkpoint, after showing what that does."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .. import describe, exits, reviewing
from ..lines import make_line, render_lines
from .common import as_json, ask_to_confirm, make_parser, open_connection, parse_and_run
from .runs import run_lines


def main(arguments: Sequence[str]) -> int:
    """Order it."""
    does = "Send a run back to a checkpoint. What that does is shown first, and it is done just so or not at all."
    parser = make_parser("rewind", f"{does} At a\nterminal you are asked to confirm, unless --yes.")
    parser.add_argument("run", type=int, help="the run's number")
    parser.add_argument("checkpoint", type=int, help="the checkpoint's number, as `holdpoint runs RUN` lists it")
    parser.add_argument("--feedback", default="", help="what the agent should do differently")
    parser.add_argument("--again", action="store_true", help="do once more even what cannot be undone")
    parser.add_argument("--yes", action="store_true", help="do not ask to confirm")
    parser.add_argument("--json", action="store_true", help="what was recorded, as JSON")
    return parse_and_run(_rewind, parser, arguments)


def _rewind(given: argparse.Namespace) -> int:
    with open_connection(given.server) as (api, threads, _):
        found = threads.run(reviewing.run(api, given.run))
        impact = threads.run(reviewing.rewind_impact(api, given.run, given.checkpoint, given.feedback))
        lines = [
            *run_lines(found),
            make_line(f"Back to checkpoint {given.checkpoint}. What it does:"),
            *describe.impact(impact),
        ]
        sys.stderr.write(render_lines(lines, colour=sys.stderr.isatty()))
        if describe.repeats_for_good(impact) and not given.again:
            sys.stderr.write("Nothing was ordered. Confirm with --again that it is done once more for good.\n")
            return exits.INVALID
        if sys.stdin.isatty() and not given.yes and not ask_to_confirm("Rewind it so?"):
            sys.stderr.write("Nothing was ordered.\n")
            return exits.INTERRUPTED
        order = {"to": given.checkpoint, "feedback": given.feedback, "seen": impact["digest"], "confirm": given.again}
        made = threads.run(reviewing.rewind(api, given.run, order))
    sys.stdout.write(
        as_json(made) if given.json else f"Run {given.run} was sent back to checkpoint {given.checkpoint}.\n"
    )
    return exits.DONE
