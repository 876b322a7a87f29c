"""One campaign: start everything, let people work under fire, heal, wait for rest, check."""

from __future__ import annotations

import json
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.harness.session import ROOT

from .checks.checker import violations
from .checks.counts import counted
from .checks.dump import dumped, live
from .checks.rest_checks import not_at_rest
from .checks.violation import Violation
from .faults.catalogue import LANES
from .faults.nemesis import Nemesis, lanes
from .history import History, read
from .installation.stack import Stack
from .outside import Outside
from .people.api import Person
from .people.page import Page
from .people.reviewers import Reviewer
from .people.users import Mover, Signaller, Starter
from .shared_files import LIMIT, WORK

REST_WITHIN = 180.0  # seconds after the last fault until no run is under way
LOOK_EVERY = 0.5
PACE = 0.6  # seconds between two starts
MOVES = 2.0  # seconds between two orders of people who rewind and fork
PROVES = ("errand completed", "trip completed", "decide ok")  # or the campaign tried nothing


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


@dataclass
class Report:
    violations: list[Violation]
    counts: dict[str, Any]
    broken: list[str] = field(default_factory=list)  # what the harness could not do

    @property
    def ok(self) -> bool:
        """Tell whether nothing was found, and everything worked that was tried."""
        return not self.violations and not self.broken


@dataclass
class Campaign:
    """Seconds under fire, a seed, and the folder in which everything is left."""

    seconds: float
    seed: int
    folder: Path
    kinds: Sequence[str]
    gap: float  # seconds between two faults of the workers

    def run(self) -> Report:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.stack = Stack(self.folder)
        self.history = History(self.folder / "history.jsonl")
        self.outside = Outside(self.stack.home, self.folder / "sends.jsonl")
        self.nemesis = Nemesis(self.stack, self.history)
        self.crashed: list[str] = []
        self.people: list[Person] = []
        try:
            people = self.stack.start()
            self._begin(people)
            self._under_fire()
            rested = self._heal_and_rest()
            return self._checked(rested)
        finally:
            for person in self.people:
                person.http.close()
            self.history.close()
            self.stack.stop()

    def _begin(self, people: dict[str, Any]) -> None:
        self.stack.extra["program"] = {
            "HOLDPOINT_URL": self.stack.base,
            "HOLDPOINT_TOKEN": people["program"]["token"],
            WORK: str(self.folder / "program.jsonl"),
            LIMIT: str(self.folder / "no-more"),
            "PYTHONPATH": str(ROOT / "clients" / "python" / "src"),
        }
        self.stack.run("program")

        def person(name: str) -> Person:
            made = Person(name, people[name]["user"], people[name]["token"], self.stack.base, self.history)
            self.people.append(made)
            return made

        bob, seed = person("bob"), str(self.seed)
        pairs = (("ann", "mira"), ("mira", "ann"))
        self.reviewers = [Reviewer(person(me), person(other), self.outside, seed) for me, other in pairs]
        self.page = Page(self.stack.base, people["ann"]["session"], seed)
        self.signaller = Signaller(person("bob"), seed, PACE / 2)
        self.users: list[Starter | Mover] = [Starter(bob, seed, PACE), Mover(person("bob"), seed, MOVES)]

    def _under_fire(self) -> None:
        missing = {each.name: why for lane in LANES for each in lane if (why := each.lacks(self.stack))}
        for name, why in missing.items():
            say(f"left out: {name}, since {why}")
        planned = lanes(self.seed, self.seconds, self.gap, self.kinds, missing)
        say(f"{sum(map(len, planned))} faults in {self.seconds:.0f} s")
        self.stop, self.done_deciding = threading.Event(), threading.Event()
        # Until all runs have come to rest.
        deciding: list[Reviewer | Signaller | Page] = [*self.reviewers, self.signaller, self.page]
        self.threads = [self._thread(each.work, self.done_deciding) for each in deciding]
        users = [self._thread(each.work, self.stop) for each in self.users]
        fire = [self._thread(self.nemesis.work, lane, self.stop) for lane in planned]
        if not any(planned):
            self.stop.wait(self.seconds)
        for thread in fire:  # on a slow machine they take longer than was planned
            thread.join()
        self.stop.set()
        for thread in users:
            thread.join()

    def _heal_and_rest(self) -> float | None:
        """Heal everything; return the seconds until all runs had ended or rested, None where they did not."""
        (self.folder / "no-more").touch()
        for reviewer in self.reviewers:
            reviewer.draining.set()
        for name in self.stack.dead():
            if name != "program":
                self.stack.run(name)
        healed = time.monotonic()
        rested = None
        with self.stack.connect() as connection:
            while time.monotonic() < healed + REST_WITHIN:
                if not live(connection):
                    rested = time.monotonic() - healed
                    break
                time.sleep(LOOK_EVERY)
            else:
                rested = None if not_at_rest(dumped(connection)) else REST_WITHIN
        self.done_deciding.set()
        for thread in self.threads:
            thread.join()
        return rested

    def _checked(self, rested: float | None) -> Report:
        with self.stack.connect() as connection:
            dump = dumped(connection)
        (self.folder / "dump.json").write_text(json.dumps(dump, default=str))
        world = self.outside.rows() | {"heard": self.page.heard}
        (self.folder / "outside.json").write_text(json.dumps(world))
        try:
            self.stack.command("manage.py", "verify")
            audit = ""
        except RuntimeError as error:
            audit = str(error)
        history = read(self.folder / "history.jsonl")
        found = violations(history, world, dump, audit)
        counts = counted(history, world, dump, self.nemesis, rested, found) | {"page": self._page()}
        idle = [f"nothing counts as “{name}”" for name in PROVES if name not in {*counts["runs"], *counts["requests"]}]
        return Report(found, counts, [*self.nemesis.broken, *self.crashed, *idle])

    def _page(self) -> str:
        resets = sum(frame["kind"] == "reset" for frame in self.page.heard)
        return f"{len(self.page.heard) - resets} facts heard, {self.page.drops} drops, {resets} times it started over"

    def _thread(self, work: Callable[..., None], *args: Any) -> threading.Thread:
        def do() -> None:
            try:
                work(*args)
            except Exception:  # noqa: BLE001 - the campaign says so at its end
                self.crashed.append(traceback.format_exc())

        thread = threading.Thread(target=do, daemon=True)
        thread.start()
        return thread
