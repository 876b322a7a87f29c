"""`holdpoint show GATE`: shows what a gate asks, and what each choice would do."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import Problem
from ...exchange import Op
from ...sending import Api
from .. import describe, exits, reviewing
from ..lines import BOLD, Span, make_line, make_span, write_lines
from .common import as_json, make_parser, open_connection, parse_and_run

CHOICES = {"approve": "If you approve", "stop": "If you reject and stop the run", "back": "If you send it back to"}


def main(arguments: Sequence[str]) -> int:
    """Show it."""
    parser = make_parser("show", "Show what a gate asks, who has approved, and what each choice would do.")
    parser.add_argument("gate", type=int, help="the gate's number")
    parser.add_argument("--json", action="store_true", help="the gate as the API has it, with its choices in `choices`")
    return parse_and_run(_show, parser, arguments)


def _show(given: argparse.Namespace) -> int:
    with open_connection(given.server) as (api, threads, _):
        gate = threads.run(reviewing.gate(api, given.gate))
        choices = threads.run(reviewing.choices(api, given.gate)) if gate["status"] == "open" else []
        state = threads.run(state_of(api, gate))
    if given.json:
        sys.stdout.write(as_json({**gate, "choices": choices}))
        return exits.DONE
    write_lines(describe.gate(gate, state))
    for choice in choices:
        head = CHOICES.get(choice["choice"], f"If you answer {choice['of']}")
        of = [Span(" "), make_span(choice["of"], BOLD)] if choice["choice"] == "back" else []
        write_lines(
            [
                make_line(),
                make_line(Span(head, BOLD), *of, ":"),
                *describe.impact(choice["impact"], missing=choice["left"]),
            ]
        )
    return exits.DONE


def state_of(api: Api, gate: Mapping[str, Any]) -> Op[dict[str, Any] | None]:
    """Return the state whose words the gate quotes; None where it quotes none, or the reader may not see its run."""
    if not gate["card"].get("quotes"):
        return None
    try:
        found = yield from reviewing.checkpoints(api, gate["run"])
        seq = next((checkpoint["seq"] for checkpoint in found if checkpoint["id"] == gate["checkpoint"]), None)
        return None if seq is None else (yield from reviewing.state(api, gate["run"], seq))
    except Problem:
        return None
