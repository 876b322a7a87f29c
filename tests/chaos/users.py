"""People who start runs, and people who rewind, fork and cancel them."""

from __future__ import annotations

import random
import secrets
import threading
from typing import Any

from .api import Person
from .customers import mail

MOST_LIVE = 24  # runs at once: two workers and two reviewers are all there is


class Starter:
    """Starts refunds and errands, as long as not too many are under way."""

    def __init__(self, me: Person, seed: str, pause: float) -> None:
        self.me, self.pause = me, pause
        self.rng = random.Random(f"{seed} starter")
        self.count = self.rng.randrange(1000)

    def work(self, stop: threading.Event) -> None:
        """Start one run after the other."""
        while not stop.is_set():
            if self._room():
                self.start()
            stop.wait(self.rng.uniform(0.5, 1.5) * self.pause)

    def start(self) -> None:
        """Start one run."""
        self.count += 1
        if self.rng.random() < 0.4:
            agent, given = "refunds", mail(self.count)
        else:
            item = f"item-{self.count}-{secrets.token_hex(3)}"
            agent, given = "errand", {"item": item, "amount": f"{self.rng.randrange(10, 400)}.00"}
        self.me.insist("start", "runs", {"agent": agent, "input": given, "team": "Support"}, agent=agent)

    def _room(self) -> bool:
        found = self.me.get("runs?limit=100")
        live = [run for run in (found or {}).get("items", []) if run["status"] in ("queued", "running", "waiting")]
        return len(live) < MOST_LIVE


class Mover:
    """Rewinds, edits, forks and cancels runs, whatever state they are in."""

    def __init__(self, me: Person, seed: str, pause: float) -> None:
        self.me, self.pause = me, pause
        self.rng = random.Random(f"{seed} mover")

    def work(self, stop: threading.Event) -> None:
        """Give one order after the other."""
        while not stop.is_set():
            found = self.me.get("runs?limit=60")
            runs = [run for run in (found or {}).get("items", []) if run["agent"] != "teller"]
            if runs:
                self.move(self.rng.choice(runs))
            stop.wait(self.rng.uniform(0.5, 1.5) * self.pause)

    def move(self, run: dict[str, Any]) -> None:
        """Give one order to a run."""
        found = self.me.get(f"runs/{run['id']}/checkpoints?limit=50")
        places = [each["seq"] for each in (found or {}).get("items", []) if each["kind"] in ("input", "step", "gate")]
        if not places:
            return
        at, path = self.rng.choice(places), f"runs/{run['id']}"
        kind = self.rng.choices(("rewind", "fork", "cancel"), (60, 30, 10))[0]
        if kind == "rewind":
            body = {"to": at, "feedback": "once more", "confirm": True}
            self.me.insist("rewind", f"{path}/rewinds", body, run=run["id"], to=at)
        elif kind == "fork":
            self.me.insist("fork", f"{path}/forks", {"at": at}, run=run["id"], to=at)
        else:
            self.me.insist("cancel", f"{path}/cancellations", {"reason": "not wanted"}, run=run["id"])
