"""`holdpoint logout`: revokes the token, and removes it from the file."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from .. import credentials, device_flow, exits
from .common import Wrong, make_parser, open_connection, parse_and_run


def main(arguments: Sequence[str]) -> int:
    """Sign out."""
    return parse_and_run(_logout, make_parser("logout", "Revoke the token of this terminal, and remove it."), arguments)


def _logout(given: argparse.Namespace) -> int:
    if os.environ.get("HOLDPOINT_TOKEN"):  # perhaps an agent's, which would stop
        raise Wrong("HOLDPOINT_TOKEN is set, and is not what login stored: unset it to sign out")
    with open_connection(given.server) as (api, threads, server):
        was_valid = threads.run(device_flow.revoked(api))
        credentials.forget(server.url)
    sys.stderr.write("The token is revoked.\n" if was_valid else "The token was not valid any more.\n")
    return exits.DONE
