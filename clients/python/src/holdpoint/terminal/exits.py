"""Exit codes of the commands, by which a script knows what happened."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from ..errors import HoldpointError, NotConfigured, Problem, Unreachable
from .safe import make_visible

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


def code_of(error: HoldpointError) -> int:
    """Return the exit code for an error."""
    if isinstance(error, NotConfigured):
        return NO_TOKEN
    if isinstance(error, Unreachable):
        return UNREACHABLE
    if isinstance(error, Problem):
        return UNREACHABLE if error.status in (429, 503) else BY_STATUS.get(error.status, FAILED)
    return FAILED


def ending(command: Callable[[], int]) -> int:
    """Run a command; write its error to stderr as a sentence, and return the exit code."""
    try:
        code = command()
        sys.stdout.flush()
        return code
    except HoldpointError as error:
        sys.stderr.write(f"holdpoint: {make_visible(error, lines=True)}\n")
        return code_of(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever read it has enough; Python flushes once more as it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE


def table() -> str:
    """Return the codes and what they mean, for --help."""
    return "exit codes:\n" + "\n".join(f"  {code:>3}  {words}" for code, words in MEANINGS.items())
