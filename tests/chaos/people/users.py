"""People who start runs, send signals to them, wake them, and people who rewind, edit, fork and cancel them."""

from __future__ import annotations

import random
import secrets
import threading
from collections import Counter
from typing import Any

from ..installation.customers import mail
from ..shared_files import SIGNAL
from .api import Person

MOST_LIVE = 36  # runs at once, children among them: two workers and two reviewers are all there is
EARLY = 3  # signals to a run that does not wait for one yet


class User:
    """Somebody who acts again and again, with a pause."""

    def __init__(self, me: Person, seed: str, pause: float) -> None:
        self.me, self.pause = me, pause
        self.rng = random.Random(f"{seed} {type(self).__name__.lower()}")

    def work(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self.act()
            stop.wait(self.rng.uniform(0.5, 1.5) * self.pause)

    def act(self) -> None:
        raise NotImplementedError

    def runs(self, limit: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (self.me.get(f"runs?limit={limit}") or {}).get("items", [])
        return found

    def live_runs(self) -> list[dict[str, Any]]:
        return [run for run in self.runs(100) if run["status"] in ("queued", "running", "waiting")]


class Starter(User):
    """Starts runs, as long as not too many are under way."""

    def __init__(self, me: Person, seed: str, pause: float) -> None:
        super().__init__(me, seed, pause)
        self.count = self.rng.randrange(1000)

    def act(self) -> None:
        if len(self.live_runs()) < MOST_LIVE:
            self.count += 1
            agent = self.rng.choices(("refunds", "errand", "trip"), (35, 45, 20))[0]
            given = {"refunds": self._mail, "errand": self._errand, "trip": self._trip}[agent]()
            self.me.insist("start", "runs", {"agent": agent, "input": given, "team": "Support"}, agent=agent)

    def _mail(self) -> dict[str, Any]:
        return mail(self.count)

    def _errand(self) -> dict[str, Any]:
        return {"item": self._item(), "amount": self._amount()}

    def _trip(self) -> dict[str, Any]:
        items, amounts = [self._item() for _ in range(3)], [self._amount() for _ in range(2)]
        return {"items": items, "amounts": amounts, "need": self.rng.choice((3, 3, 2)), "nap": self.rng.uniform(0.5, 6)}

    def _item(self) -> str:
        return f"item-{self.count}-{secrets.token_hex(3)}"

    def _amount(self) -> str:
        return f"{self.rng.randrange(10, 400)}.00"


class Mover(User):
    """Rewinds, edits, forks and cancels runs, whatever state they are in."""

    def act(self) -> None:
        if runs := [run for run in self.runs(60) if run["agent"] != "teller"]:
            self.move(self.rng.choice(runs))

    def move(self, run: dict[str, Any]) -> None:
        found = self.me.get(f"runs/{run['id']}/checkpoints?limit=50")
        places = [each["seq"] for each in (found or {}).get("items", []) if each["kind"] in ("input", "step", "gate")]
        if not places:
            return
        at, path = self.rng.choice(places), f"runs/{run['id']}"
        kind = self.rng.choices(("rewind", "fork", "cancel"), (60, 30, 10))[0]
        if run["agent"] == "trip":
            kind = self.rng.choices(("edit", "rewind", "fork", "cancel"), (30, 30, 15, 25))[0]
            at = min(places) if self.rng.random() < 0.6 else at  # before it fans out
        if kind == "edit":
            other = f"item-other-{secrets.token_hex(3)}"
            patch = [{"op": "replace", "path": f"/items/{self.rng.randrange(3)}", "value": other}]
            self.me.insist("edit", f"{path}/edits", {"at": at, "patch": patch}, run=run["id"], to=at)
        elif kind == "rewind":
            body = {"to": at, "feedback": "once more", "confirm": True}
            self.me.insist("rewind", f"{path}/rewinds", body, run=run["id"], to=at)
        elif kind == "fork":
            self.me.insist("fork", f"{path}/forks", {"at": at}, run=run["id"], to=at)
        else:
            self.me.insist("cancel", f"{path}/cancellations", {"reason": "not wanted"}, run=run["id"])


class Signaller(User):
    """Sends signals to trips: before they wait, when they wait, under one key twice, and more than are needed."""

    def __init__(self, me: Person, seed: str, pause: float) -> None:
        super().__init__(me, seed, pause)
        self.sent = Counter[int]()

    def act(self) -> None:
        if trips := [run for run in self.live_runs() if run["agent"] == "trip"]:
            self.look(self.rng.choice(trips))

    def look(self, run: dict[str, Any]) -> None:
        """Send a trip what it waits for, or something before that; wake one that sleeps, now and then."""
        waits = run["status"] == "waiting" and "signal" in run["reason"]
        if run["status"] == "waiting" and "until" in run["reason"] and self.rng.random() < 0.5:
            self.me.insist("wake", f"runs/{run['id']}/wakes", {}, run=run["id"])
        if waits or self.sent[run["id"]] < EARLY:
            self.sent[run["id"]] += 1
            self.send(run["id"])

    def send(self, run: int) -> None:
        """Send a signal: once, twice under one key, or another one at once."""
        key, word = secrets.token_hex(6), secrets.token_hex(6)
        self._send(run, key, word)
        how = self.rng.random()
        if how < 0.3:
            self._send(run, key, word)
        elif how < 0.4:
            self._send(run, secrets.token_hex(6), secrets.token_hex(6))

    def _send(self, run: int, key: str, word: str) -> None:
        body = {"value": {"word": word}, "key": key}
        self.me.insist("signal", f"runs/{run}/signals/{SIGNAL}", body, run=run, named=key, word=word)
