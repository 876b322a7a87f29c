"""Lets `manage.py` in another terminal find the stack that `make run` started, or do without services.

The stack chooses its servers' addresses and keys by itself, so it writes its processes' environment to a file; a
command without a database in its environment reads that, as long as the stack runs. Variables that are set are kept.

Help and the verification of an exported audit reach no service. The settings require what every service needs, so
such a command gets placeholders for those that are not set.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from config.local import StackRefused
from config.local.home import LOCK, Home

FILE = "environment.json"
# And whatever begins with HOLDPOINT_.
NAMES = ("DATABASE_URL", "REDIS_URL", "SANDBOX_URL", "EMAIL_URL", "PORT", "OPENAI_BASE_URL", "OPENAI_API_KEY")
VALUED = ("--since", "--anchors")  # options of `audit verify` that take the next argument
HELP = frozenset({"help", "-h", "--help", "version", "--version"})
NOWHERE = {"DATABASE_URL": "postgres://nobody@127.0.0.1:9/none?connect_timeout=1", "REDIS_URL": "redis://127.0.0.1:9/0"}


def publish(home: Home, variables: Mapping[str, str]) -> None:
    """Write the environment of the stack's processes to a file that only its owner can read."""
    values = {name: value for name, value in variables.items() if name in NAMES or name.startswith("HOLDPOINT_")}
    withdraw(home)
    with os.fdopen(os.open(home.path / FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(values, file)


def withdraw(home: Home) -> None:
    """Remove the file, when the stack ends."""
    (home.path / FILE).unlink(missing_ok=True)


def join(root: Path) -> None:
    """Take over the environment of the stack that runs on this HOLDPOINT_HOME, unless DATABASE_URL is set.

    Raises StackRefused, which names the folder, where no stack runs.
    """
    home = Home.chosen(root)
    if os.environ.get("DATABASE_URL"):
        return
    if not runs(home):
        how = "HOLDPOINT_HOME" if os.environ.get("HOLDPOINT_HOME") else "the default: HOLDPOINT_HOME is not set"
        raise StackRefused(
            f"No stack runs on {home.path} ({how}), and DATABASE_URL names no database. Start one with `make run`, "
            "or set HOLDPOINT_HOME to the folder of the one that runs."
        )
    try:
        values: dict[str, str] = json.loads((home.path / FILE).read_text())
    except FileNotFoundError:
        raise StackRefused(f"The stack on {home.path} is just starting; try again when it says where it is.") from None
    except OSError as error:
        raise StackRefused(f"The stack on {home.path} is another account's: {error.strerror}.") from None
    for name, value in values.items():
        if not os.environ.get(name):
            os.environ[name] = value


def runs(home: Home) -> bool:
    """Tell whether a running stack holds the folder's lock; the file of a killed one is of no use."""
    try:
        with (home.path / LOCK).open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def needs_nothing(arguments: Sequence[str]) -> bool:
    """Tell whether the command reaches no service: help, or a verification that names an export's file."""
    if not arguments or HELP & set(arguments):
        return True
    given = [word for before, word in pairwise(arguments) if before not in VALUED and not word.startswith("-")]
    return tuple(arguments[:2]) == ("audit", "verify") and len(given) > 1


def fill_in_placeholders() -> None:
    """Set placeholders for the required settings that are not set."""
    for name, value in (NOWHERE | {"HOLDPOINT_SECRET_KEY": secrets.token_hex(32)}).items():
        if not os.environ.get(name):
            os.environ[name] = value
