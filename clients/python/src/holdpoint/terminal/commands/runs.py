"""`holdpoint runs`: lists the newest runs, or one run with its checkpoints."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from .. import describe, exits, reviewing
from ..lines import BOLD, HOLD, SOFT, Line, Span, line, said, write
from ..safe import one_line, padded
from .common import as_json, parser, run, talking


def main(arguments: Sequence[str]) -> int:
    """List them."""
    told = parser("runs", "List the newest runs that you may see; or, of one run, its checkpoints, the newest first.")
    told.add_argument("run", type=int, nargs="?", help="the number of a run")
    told.add_argument("--status", default="", help="only runs with this status, as waiting")
    told.add_argument("--json", action="store_true", help="a line of JSON for each run, or for each checkpoint")
    return run(_list, told, arguments)


def _list(given: argparse.Namespace) -> int:
    with talking(given.server) as (api, threads, _):
        if given.run is None:
            found, head = threads.run(reviewing.runs(api, status=given.status)), []
        else:
            head = run_lines(threads.run(reviewing.run(api, given.run)))
            found = threads.run(reviewing.checkpoints(api, given.run))
    if given.json:
        sys.stdout.write("".join(map(as_json, found)))
        return exits.DONE
    write([*head, *(_run(each) if given.run is None else _checkpoint(each) for each in found)])
    return exits.DONE


def run_lines(found: Mapping[str, Any]) -> list[Line]:
    """Describe a run in two lines, or three where there is a reason."""
    about = [Span(f"run {found['id']}  ", SOFT), said(found["status"], describe.STATUS.get(found["status"], BOLD))]
    told = [line(said(found["title"], BOLD)), line(*about, Span(f"  {said(found['agent']).text}", SOFT))]
    return told + ([line(said(found["reason"], HOLD))] if found["reason"] else [])


def _run(found: Mapping[str, Any]) -> Line:
    status = Span(padded(one_line(found["status"], 10), 10), describe.STATUS.get(found["status"], BOLD))
    words = f"  {one_line(found['agent'], 20)}, {describe.ago(found['created_at'])}"
    return line(Span(f"{found['id']}  ", SOFT), status, " ", Span(one_line(found["title"], 60)), Span(words, SOFT))


def _checkpoint(found: Mapping[str, Any]) -> Line:
    after = Span(f"  then {one_line(found['next_step'] or 'the end', 30)}, {describe.ago(found['at'])} ago", SOFT)
    return line(Span(f"{found['seq']}  ", BOLD), said(describe.made_by(found)), after)
