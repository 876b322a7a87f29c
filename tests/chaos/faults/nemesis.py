"""The nemesis: a schedule of faults that the seed alone gives, in lanes that run side by side."""

from __future__ import annotations

import random
import threading
import time
import traceback
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from ..history import History
from ..installation.stack import Stack
from .breaking import bit
from .catalogue import GAPS, LANES, Fault

LOOK_EVERY = 0.25  # seconds
LONG, SHARE = 20.0, 0.05  # seconds of a fault, and what share of a campaign a longer one may take
AFTER_A_CRASH = 2.0  # seconds that a crash point's process goes on


@dataclass(frozen=True)
class Planned:
    """One fault to come: `pause` seconds after the one before was healed, for `lasts` seconds."""

    fault: Fault
    pause: float
    lasts: float
    seed: int


def plan(seed: str, faults: Sequence[Fault], seconds: float, gap: float) -> list[Planned]:
    """Return the faults of one lane. Each kind comes once before any comes again."""
    rng = random.Random(seed)
    planned: list[Planned] = []
    bag: list[Fault] = []
    at = 0.0
    while faults:
        bag = bag or rng.sample(faults, len(faults))
        fault = bag.pop()
        pause, lasts = rng.uniform(0.3, 1.7) * gap, rng.uniform(fault.least, fault.most)
        at += pause + lasts
        if at > seconds:
            break
        planned.append(Planned(fault, pause, lasts, rng.randrange(2**32)))
    return planned


@dataclass
class Nemesis:
    stack: Stack
    history: History
    done: Counter[str] = field(default_factory=Counter)
    bitten: Counter[str] = field(default_factory=Counter)  # crash points that were reached
    broken: list[str] = field(default_factory=list)  # what the nemesis itself could not do

    def work(self, planned: Sequence[Planned], stop: threading.Event) -> None:
        for each in planned:
            if stop.wait(each.pause):
                return
            self.strike(each, stop)

    def strike(self, planned: Planned, stop: threading.Event) -> None:
        fault = planned.fault
        op = self.history.invoke("fault", fault=fault.name, lasts=round(planned.lasts, 2))
        try:
            said = fault.begin(self.stack, random.Random(planned.seed))
            reached = self._wait(planned, said, stop)
            fault.heal(self.stack, said)
        except Exception:  # noqa: BLE001 - the others go on, and the campaign says so at its end
            self.broken.append(f"{fault.name}: {traceback.format_exc()}")
            self.history.complete(op, "unknown", "fault", fault=fault.name)
            return
        if fault.name == "deliver thrice" and said == "0 copied":
            self.history.complete(op, "fail", "fault", fault=fault.name, said=said)
            return
        self.done[fault.name.removesuffix(" too").removesuffix(" once more")] += 1
        if reached:
            self.bitten[said.split(" ")[1].rpartition(":")[0]] += 1
        self.history.complete(op, "ok", "fault", fault=fault.name, said=said, reached=reached)

    def _wait(self, planned: Planned, said: str, stop: threading.Event) -> bool:
        """Wait for as long as the fault lasts; a crash that has happened, only a little longer. Tell whether it has."""
        until = time.monotonic() + planned.lasts
        crashes = planned.fault.name.startswith("crash")
        while (left := until - time.monotonic()) > 0 and not stop.wait(min(left, LOOK_EVERY)):
            if crashes and bit(self.stack, said):
                until = min(until, time.monotonic() + AFTER_A_CRASH)
                crashes = False
        return planned.fault.name.startswith("crash") and bit(self.stack, said)


def lanes(
    seed: int, seconds: float, gap: float, kinds: Sequence[str] = (), without: Collection[str] = ()
) -> list[list[Planned]]:
    """Return the plans of all lanes; `gap` is the first one's. `kinds`: only faults of these names.

    A long fault that would take much of the campaign is left out, unless it is named.
    """
    short = [
        [each for each in lane if each.name in kinds or each.least <= max(LONG, seconds * SHARE)] for lane in LANES
    ]
    named = [[each for each in lane if each.name not in without] for lane in short]
    chosen = [[each for each in lane if not kinds or each.name in kinds] for lane in named]
    return [plan(f"{seed} {n}", lane, seconds, gap * GAPS[n]) for n, lane in enumerate(chosen)]
