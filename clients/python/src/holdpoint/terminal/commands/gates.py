"""`holdpoint gates`: lists the open gates."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence

from .. import describe, exits, reviewing
from ..lines import SOFT, Span, line, write
from ..safe import columns, one_line, padded
from .common import as_json, parser, run, talking


def main(arguments: Sequence[str]) -> int:
    """List them, the longest open first."""
    told = parser("gates", "List the open gates that you may see, the longest open first.")
    told.add_argument("--json", action="store_true", help="a line of JSON for each, as the API has them")
    return run(_list, told, arguments)


def _list(given: argparse.Namespace) -> int:
    with talking(given.server) as (api, threads, _):
        found = threads.run(reviewing.gates(api))
    if given.json:
        sys.stdout.write("".join(map(as_json, found)))
        return exits.DONE
    if not found:
        sys.stderr.write("No gate is open.\n")
    room = shutil.get_terminal_size().columns
    wide = max((len(str(each["id"])) for each in found), default=0)
    for each in found:
        who = f"{one_line(each['agent'], 20)}, {one_line(each['team'], 20)}"
        due = f", due in {describe.ago(each['deadline'])}" if each["deadline"] else ""
        end = f"  {who}, {describe.ago(each['opened_at'])}{due}"
        head = [Span(str(each["id"]).rjust(wide) + "  ", SOFT), describe.risk(each)]
        used = wide + 2 + columns(head[1].text) + 2
        head[1] = Span(padded(head[1].text, 8), head[1].style)
        title = describe.title(each)
        left = max(room - max(used, wide + 12) - columns(end), 20)
        write([line(*head, "  ", Span(padded(one_line(title.text, left), left), title.style), Span(end, SOFT))])
    return exits.DONE
