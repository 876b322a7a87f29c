"""A program that begins what was allowed and never comes to its end: started, killed or put to sleep by a test."""

from __future__ import annotations

import sys
import time

from holdpoint import Holdpoint, HoldpointError, StaleToken


def main(gate: int) -> None:
    """Begin it, and stay with it until somebody else has it; then say that it was done after all."""
    with Holdpoint(lease=1.0) as hp, hp.resume(gate) as call:
        say("begun", call.key, call.attempts)
        try:
            while True:
                call.check()
                time.sleep(0.02)
        except StaleToken as stale:
            say("lost", stale)
        try:
            call.done({"id": "tx_late"})
            say("reported")
        except HoldpointError as error:
            say(type(error).__name__, error)


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
