"""`python -m tests.chaos.people.outside_program`: an agent elsewhere, with the Python client.

It may be killed at any moment. Each item has a key of its own, which is written down first; a program that is started
again goes on with what the one before it had not finished. The orders go to the provider under the key that Holdpoint
gave.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
from holdpoint import Holdpoint, HoldpointError, NotDone, Refused

from ..shared_files import LIMIT, SENDS, WORK, note_send

PAUSE = 1.0  # seconds between two looks at its items
STEP_TIMEOUT = 20.0  # seconds until it looks whether something else is to be done


class Program:
    def __init__(self, work: Path) -> None:
        self.work = work
        self.hp = Holdpoint(patience=10.0, lease=3.0)
        self.rng = random.Random(os.getpid())

    def open_items(self) -> list[str]:
        items: dict[str, bool] = {}
        for line in self.work.read_text().splitlines() if self.work.exists() else []:
            said = json.loads(line)
            items[said["item"]] = said["ended"]
        return [item for item, ended in items.items() if not ended]

    def note(self, item: str, *, ended: str = "") -> None:
        with self.work.open("a") as file:
            file.write(json.dumps({"item": item, "ended": ended}) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def do(self, item: str) -> None:
        """Ask, wait for people, do it, report it; leave it open where that does not work out now."""
        wire = {"to": item, "amount": "120.00"}
        try:
            with self.hp.approve("wire", wire, title=f"Wire to {item}", key=item, idempotent=True, timeout=STEP_TIMEOUT,
                                 agent="teller") as call:  # fmt: skip
                call.done({"id": self.order(call.arguments, call.key)})
            self.note(item, ended="done")
        except Refused as no:
            self.note(item, ended=type(no).__name__)
        except (HoldpointError, httpx.HTTPError) as error:
            sys.stdout.write(f"{item}: {type(error).__name__} {error}\n")
            time.sleep(0.5)

    def order(self, arguments: dict[str, object], key: str) -> str:
        note_send(os.environ[SENDS], "wire", key)
        url = f"{os.environ['SANDBOX_URL']}/orders"
        try:
            found = httpx.post(url, json=arguments, headers={"Idempotency-Key": key}, timeout=10, trust_env=False)
        except httpx.ConnectError as error:
            raise NotDone("the provider cannot be reached", retry=True) from error
        return str(found.raise_for_status().json()["id"])


def serve(program: Program, more: Callable[[], bool]) -> None:
    """Go on with what is open; begin something new while there is little of it."""
    while True:
        items = program.open_items()
        if len(items) < 3 and more():
            item = f"wire-{os.getpid()}-{program.rng.randrange(10**9)}"
            program.note(item)
            items.append(item)
        if not items and not more():
            return
        for item in items:
            program.do(item)
        time.sleep(PAUSE)


if __name__ == "__main__":
    serve(Program(Path(os.environ[WORK])), lambda: not Path(os.environ[LIMIT]).exists())
