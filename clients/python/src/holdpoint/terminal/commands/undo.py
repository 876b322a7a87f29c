"""`holdpoint undo GATE`: takes your decision back while the gate's policy lets it be undone."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .. import exits, reviewing
from ..lines import BOLD, make_line, make_span, render_lines
from .common import as_json, make_parser, open_connection, parse_and_run


def main(arguments: Sequence[str]) -> int:
    """Undo it."""
    does = "Take your decision back, so that it counts no more. It works until the decision takes effect, where the\n"
    parser = make_parser("undo", f"{does}gate's policy gives time for that; `holdpoint show` says until when.")
    parser.add_argument("gate", type=int, help="the gate's number")
    parser.add_argument("--json", action="store_true", help="the decision that was undone, as JSON")
    return parse_and_run(_undo, parser, arguments)


def _undo(given: argparse.Namespace) -> int:
    with open_connection(given.server) as (api, threads, _):
        made = threads.run(reviewing.undo(api, given.gate))
    undone = render_lines(
        [make_line("Undone: ", make_span(made["verdict"], BOLD), f"; the gate is {made['gate']['status']}.")]
    )
    sys.stdout.write(as_json(made) if given.json else undone)
    return exits.DONE
