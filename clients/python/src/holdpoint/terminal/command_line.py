"""Calls and ends the commands: their parsers, the server that they talk to, and the exit codes for scripts."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..drivers import Threads
from ..errors import HoldpointError, NotConfigured, Problem, Unreachable
from ..sending import Api
from . import credentials
from .lines import make_visible

DONE, FAILED, USAGE, NOT_FOUND, NO_TOKEN, NOT_ALLOWED, CHANGED, INVALID, UNREACHABLE = range(9)
MORE_NEEDED, INTERRUPTED = 10, 130
MEANINGS = {
    DONE: "done",
    FAILED: "the server has a fault, or answered what this version does not know",
    USAGE: "the command was called wrongly",
    NOT_FOUND: "there is no such thing, or you may not see it",
    NO_TOKEN: "there is no valid token: run `holdpoint login`",
    NOT_ALLOWED: "you, or your token, may not do this",
    CHANGED: "somebody decided first, the proposal changed, or it is closed; nothing was recorded",
    INVALID: "something is missing or wrong in what was sent; nothing was recorded",
    UNREACHABLE: "the server did not answer",
    MORE_NEEDED: "decide: recorded, and more people must approve",
    INTERRUPTED: "interrupted",
}
BY_STATUS = {400: INVALID, 401: NO_TOKEN, 403: NOT_ALLOWED, 404: NOT_FOUND, 409: CHANGED, 410: CHANGED, 422: INVALID}


class Wrong(HoldpointError):
    """The command was called wrongly; the sentence says how it is called."""


def make_parser(name: str, does: str) -> argparse.ArgumentParser:
    """Return a parser with what every command takes."""
    codes = "\n".join(f"  {code:>3}  {words}" for code, words in MEANINGS.items())
    parser = argparse.ArgumentParser(
        prog=f"holdpoint {name}", description=does, epilog=f"exit codes:\n{codes}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument(
        "--server", default="", metavar="URL", help="the server; otherwise HOLDPOINT_URL, or your login"
    )
    return parser


def parse_and_run(
    command: Callable[[argparse.Namespace], int], parser: argparse.ArgumentParser, arguments: Sequence[str]
) -> int:
    """Parse the arguments and run the command; errors become sentences and exit codes."""
    given = parser.parse_args(list(arguments))
    try:
        code = command(given)
        sys.stdout.flush()
        return code
    except Wrong as wrong:
        parser.error(str(wrong))
    except HoldpointError as error:
        sys.stderr.write(f"holdpoint: {make_visible(error, lines=True)}\n")
        return code_of(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever read it has enough; Python flushes once more as it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE


def code_of(error: HoldpointError) -> int:
    if isinstance(error, NotConfigured):
        return NO_TOKEN
    if isinstance(error, Unreachable):
        return UNREACHABLE
    if isinstance(error, Problem):
        return UNREACHABLE if error.status in (429, 503) else BY_STATUS.get(error.status, FAILED)
    return FAILED


@contextmanager
def open_connection(url: str, *, patience: float = 15.0) -> Iterator[tuple[Api, Threads, credentials.Server]]:
    """Give (the requests, what sends them, the server), with the person's token.

    Interrupted, it closes nothing: the signal may have come just as the pool of connections took its lock, and closing
    the pool would wait for that lock for ever. The process ends next.
    """
    server = credentials.server(url)
    threads = Threads(server.url, server.token)
    try:
        yield server.api(patience=patience), threads, server
    except KeyboardInterrupt:
        raise
    except BaseException:
        threads.close()
        raise
    threads.close()


def as_json(value: Any) -> str:
    """Return a line of JSON; it holds ASCII only, so that no terminal obeys it."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False) + "\n"


def read_json(given: str, what: str) -> Any:
    """Return JSON from the command line, from `@file`, or from stdin for `-`. Raises Wrong."""
    try:
        text = sys.stdin.read() if given == "-" else Path(given[1:]).read_text() if given.startswith("@") else given
        return json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise Wrong(f"{what} is no JSON ({error})") from None


def ask_to_confirm(question: str) -> bool:
    """Ask on the terminal; False unless the answer is yes."""
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
