"""`holdpoint runs`: lists the newest runs, or one run with its checkpoints."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from .. import describe, exits, reviewing
from ..lines import BOLD, HOLD, SOFT, Line, Span, make_line, make_span, write_lines
from ..safe import one_line, pad_text
from .common import as_json, make_parser, open_connection, parse_and_run


def main(arguments: Sequence[str]) -> int:
    """List them."""
    parser = make_parser(
        "runs", "List the newest runs that you may see; or, of one run, its checkpoints, the newest first."
    )
    parser.add_argument("run", type=int, nargs="?", help="the number of a run")
    parser.add_argument("--status", default="", help="only runs with this status, as waiting")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each run, or for each checkpoint")
    return parse_and_run(_list, parser, arguments)


def _list(given: argparse.Namespace) -> int:
    with open_connection(given.server) as (api, threads, _):
        if given.run is None:
            found, head = threads.run(reviewing.runs(api, status=given.status)), []
        else:
            head = run_lines(threads.run(reviewing.run(api, given.run)))
            found = threads.run(reviewing.checkpoints(api, given.run))
    if given.json:
        sys.stdout.write("".join(map(as_json, found)))
        return exits.DONE
    write_lines([*head, *(_run(row) if given.run is None else _checkpoint(row) for row in found)])
    return exits.DONE


def run_lines(run: Mapping[str, Any]) -> list[Line]:
    """Describe a run in two lines, or three where there is a reason."""
    about = [Span(f"run {run['id']}  ", SOFT), make_span(run["status"], describe.STATUS.get(run["status"], BOLD))]
    lines = [
        make_line(make_span(run["title"], BOLD)),
        make_line(*about, Span(f"  {make_span(run['agent']).text}", SOFT)),
    ]
    return lines + ([make_line(make_span(run["reason"], HOLD))] if run["reason"] else [])


def _run(run: Mapping[str, Any]) -> Line:
    status = Span(pad_text(one_line(run["status"], 10), 10), describe.STATUS.get(run["status"], BOLD))
    words = f"  {one_line(run['agent'], 20)}, {describe.ago(run['created_at'])}"
    return make_line(Span(f"{run['id']}  ", SOFT), status, " ", Span(one_line(run["title"], 60)), Span(words, SOFT))


def _checkpoint(checkpoint: Mapping[str, Any]) -> Line:
    after = Span(
        f"  then {one_line(checkpoint['next_step'] or 'the end', 30)}, {describe.ago(checkpoint['at'])} ago", SOFT
    )
    return make_line(Span(f"{checkpoint['seq']}  ", BOLD), make_span(describe.made_by(checkpoint)), after)
