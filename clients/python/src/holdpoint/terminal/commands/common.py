"""Parts that the commands share: how they are called, and the server that they talk to."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...drivers import Threads
from ...errors import HoldpointError
from ...sending import Api
from .. import credentials, exits


class Wrong(HoldpointError):
    """The command was called wrongly; the sentence says how it is called."""


def make_parser(name: str, does: str) -> argparse.ArgumentParser:
    """Return a parser with what every command takes."""
    made = argparse.ArgumentParser(
        prog=f"holdpoint {name}",
        description=does,
        epilog=exits.table(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--server", default="", metavar="URL", help="the server; otherwise HOLDPOINT_URL, or your login")
    return made


def parse_and_run(
    command: Callable[[argparse.Namespace], int], parser: argparse.ArgumentParser, arguments: Sequence[str]
) -> int:
    """Parse the arguments and run the command; errors become sentences and exit codes."""
    given = parser.parse_args(list(arguments))

    def go() -> int:
        try:
            return command(given)
        except Wrong as wrong:
            parser.error(str(wrong))

    return exits.ending(go)


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
