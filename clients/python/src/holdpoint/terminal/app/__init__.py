"""`holdpoint inbox`: the live inbox for the keyboard, with gates, decisions, runs and rewinds. Needs Textual."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from .. import credentials, exits
from ..commands.common import make_parser, parse_and_run
from .base import ReviewApp
from .inbox import InboxScreen


def main(arguments: Sequence[str]) -> int:
    """Open it."""
    return parse_and_run(
        _open, make_parser("inbox", "Review in the terminal: the live inbox, gates, decisions, runs."), arguments
    )


def _open(given: argparse.Namespace) -> int:
    code = ReviewApp(credentials.server(given.server), InboxScreen()).run()
    return exits.DONE if code is None else code
