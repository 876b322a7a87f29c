"""`holdpoint watch`: writes a line for each event, and goes on where it stopped."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...errors import Problem, Unreachable
from .. import exits, reviewing
from ..lines import BOLD, SOFT, Line, Span, make_line, make_span, write_lines
from .common import as_json, make_parser, open_connection, parse_and_run

GONE = 410


def main(arguments: Sequence[str]) -> int:
    """Watch until it is interrupted."""
    parser = make_parser("watch", "Write a line for each event that you may see, as it happens.")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each event, with its `cursor`")
    parser.add_argument("--after", default="", metavar="CURSOR", help="begin after this event; otherwise with new ones")
    parser.add_argument("--subject", default="", metavar="gate:42|run:7", help="events of this gate or run only")
    parser.add_argument("--cursor-file", default="", metavar="FILE", help="keep the place there, and begin there again")
    parser.add_argument("--once", action="store_true", help="write what there is, and end")
    return parse_and_run(_watch, parser, arguments)


def _watch(given: argparse.Namespace) -> int:
    kept = Path(given.cursor_file) if given.cursor_file else None
    after = given.after or (kept.read_text().strip() if kept and kept.exists() else "") or "now"
    with open_connection(given.server, patience=60.0) as (api, threads, _):
        while True:
            try:
                wait = 0.0 if given.once else reviewing.WAIT
                page = threads.run(reviewing.events(api, after, subject=given.subject, wait=wait))
            except Unreachable as error:
                sys.stderr.write(f"holdpoint: {error} It is tried again.\n")
                continue
            except Problem as refused:
                if refused.status != GONE:
                    raise
                sys.stderr.write(f"holdpoint: {refused.detail}\n")
                after = "now"
                continue
            for event in page["items"]:
                _write(event, as_line=given.json)
                _keep(kept, event["cursor"])  # after its line was written: a line may come twice, and none is lost
            after = page["next"]
            _keep(kept, after)
            if given.once and not page["more"]:
                return exits.DONE


def _write(event: dict[str, Any], *, as_line: bool) -> None:
    if as_line:
        sys.stdout.write(as_json(event))
    else:
        write_lines([_event_line(event)])
    sys.stdout.flush()


def _event_line(event: dict[str, Any]) -> Line:
    title = (
        [Span(f"  “{make_span(event['title']).text}”")] if event["title"] else []
    )  # an event does not say who wrote it
    return make_line(make_span(event["kind"], BOLD), "  ", Span(event["subject"], SOFT), *title)


def _keep(place: Path | None, cursor: str) -> None:
    if place is not None:
        beside = place.with_name(f".{place.name}.new")
        beside.write_text(cursor + "\n")
        beside.replace(place)
