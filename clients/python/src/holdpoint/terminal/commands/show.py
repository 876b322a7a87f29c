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
from ..lines import BOLD, Span, line, said, write
from .common import as_json, parser, run, talking

CHOICES = {"approve": "If you approve", "stop": "If you reject and stop the run", "back": "If you send it back to"}


def main(arguments: Sequence[str]) -> int:
    """Show it."""
    told = parser("show", "Show what a gate asks, who has approved, and what each choice would do.")
    told.add_argument("gate", type=int, help="the gate's number")
    told.add_argument("--json", action="store_true", help="the gate as the API has it, with its choices in `choices`")
    return run(_show, told, arguments)


def _show(given: argparse.Namespace) -> int:
    with talking(given.server) as (api, threads, _):
        gate = threads.run(reviewing.gate(api, given.gate))
        choices = threads.run(reviewing.choices(api, given.gate)) if gate["status"] == "open" else []
        state = threads.run(state_of(api, gate))
    if given.json:
        sys.stdout.write(as_json({**gate, "choices": choices}))
        return exits.DONE
    write(describe.gate(gate, state))
    for each in choices:
        head = CHOICES.get(each["choice"], f"If you answer {each['of']}")
        of = [Span(" "), said(each["of"], BOLD)] if each["choice"] == "back" else []
        write([line(), line(Span(head, BOLD), *of, ":"), *describe.impact(each["impact"], left=each["left"])])
    return exits.DONE


def state_of(api: Api, gate: Mapping[str, Any]) -> Op[dict[str, Any] | None]:
    """Return the state whose words the gate quotes; None where it quotes none, or the reader may not see its run."""
    if not gate["card"].get("quotes"):
        return None
    try:
        found = yield from reviewing.checkpoints(api, gate["run"])
        seq = next((each["seq"] for each in found if each["id"] == gate["checkpoint"]), None)
        return None if seq is None else (yield from reviewing.state(api, gate["run"], seq))
    except Problem:
        return None
