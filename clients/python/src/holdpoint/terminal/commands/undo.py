"""`holdpoint undo GATE`: takes your decision back while the gate's policy lets it be undone."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .. import exits, reviewing
from ..lines import BOLD, line, plain, said
from .common import as_json, parser, run, talking


def main(arguments: Sequence[str]) -> int:
    """Undo it."""
    does = "Take your decision back, so that it counts no more. It works until the decision takes effect, where the\n"
    told = parser("undo", f"{does}gate's policy gives time for that; `holdpoint show` says until when.")
    told.add_argument("gate", type=int, help="the gate's number")
    told.add_argument("--json", action="store_true", help="the decision that was undone, as JSON")
    return run(_undo, told, arguments)


def _undo(given: argparse.Namespace) -> int:
    with talking(given.server) as (api, threads, _):
        made = threads.run(reviewing.undo(api, given.gate))
    undone = plain([line("Undone: ", said(made["verdict"], BOLD), f"; the gate is {made['gate']['status']}.")])
    sys.stdout.write(as_json(made) if given.json else undone)
    return exits.DONE
