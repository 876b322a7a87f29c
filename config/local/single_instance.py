"""Commands that need no services: help, and an export of the audit, which any machine verifies by its lines alone.

The settings insist on what every service needs. Such a command gets stand-ins that lead nowhere, for what is not set.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from itertools import pairwise

VALUED = ("--since", "--anchors")  # options of `audit verify` that take the next argument
HELP = frozenset({"help", "-h", "--help", "version", "--version"})
NOWHERE = {"DATABASE_URL": "postgres://nobody@127.0.0.1:9/none?connect_timeout=1", "REDIS_URL": "redis://127.0.0.1:9/0"}


def needs_nothing(arguments: Sequence[str]) -> bool:
    """Tell whether the command reaches no service: help, or a verification that names an export's file."""
    if not arguments or HELP & set(arguments):
        return True
    given = [each for before, each in pairwise(arguments) if before not in VALUED and not each.startswith("-")]
    return tuple(arguments[:2]) == ("audit", "verify") and len(given) > 1


def prepare() -> None:
    """Set what is not set, for a command that needs none of it."""
    for name, value in (NOWHERE | {"HOLDPOINT_SECRET_KEY": secrets.token_hex(32)}).items():
        if not os.environ.get(name):
            os.environ[name] = value
