"""`holdpoint gates`: lists the open gates."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence

from .. import describe, exits, reviewing
from ..lines import SOFT, Span, make_line, write_lines
from ..safe import count_columns, one_line, pad_text
from .common import as_json, make_parser, open_connection, parse_and_run


def main(arguments: Sequence[str]) -> int:
    """List them, the longest open first."""
    parser = make_parser("gates", "List the open gates that you may see, the longest open first.")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each, as the API has them")
    return parse_and_run(_list, parser, arguments)


def _list(given: argparse.Namespace) -> int:
    with open_connection(given.server) as (api, threads, _):
        found = threads.run(reviewing.gates(api))
    if given.json:
        sys.stdout.write("".join(map(as_json, found)))
        return exits.DONE
    if not found:
        sys.stderr.write("No gate is open.\n")
    room = shutil.get_terminal_size().columns
    wide = max((len(str(gate["id"])) for gate in found), default=0)
    for gate in found:
        who = f"{one_line(gate['agent'], 20)}, {one_line(gate['team'], 20)}"
        due = f", due in {describe.ago(gate['deadline'])}" if gate["deadline"] else ""
        end = f"  {who}, {describe.ago(gate['opened_at'])}{due}"
        head = [Span(str(gate["id"]).rjust(wide) + "  ", SOFT), describe.risk(gate)]
        used = wide + 2 + count_columns(head[1].text) + 2
        head[1] = Span(pad_text(head[1].text, 8), head[1].style)
        title = describe.title(gate)
        left = max(room - max(used, wide + 12) - count_columns(end), 20)
        write_lines(
            [make_line(*head, "  ", Span(pad_text(one_line(title.text, left), left), title.style), Span(end, SOFT))]
        )
    return exits.DONE
