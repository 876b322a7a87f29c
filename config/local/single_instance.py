"""Lets `manage.py` commands run without services: help, and the verification of an exported audit.

The settings require what every service needs. Such a command gets placeholders for the settings that are not set.
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
    given = [word for before, word in pairwise(arguments) if before not in VALUED and not word.startswith("-")]
    return tuple(arguments[:2]) == ("audit", "verify") and len(given) > 1


def prepare() -> None:
    """Set placeholders for the required settings that are not set."""
    for name, value in (NOWHERE | {"HOLDPOINT_SECRET_KEY": secrets.token_hex(32)}).items():
        if not os.environ.get(name):
            os.environ[name] = value
