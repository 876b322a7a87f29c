"""A claim on a run, and staying with it: heartbeats beside the work, until it is let go of or lost."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .answers import Beat, Turn
from .errors import HoldpointError, Problem, RunEnded, StaleToken
from .exchange import Keep, Op, Pause, Stop, worker
from .sending import Api

LOG = logging.getLogger("holdpoint")
OnLost = Callable[[HoldpointError], object]
BEAT = 30.0  # seconds between heartbeats at most: after 90 without a word people are told that the program is gone


@dataclass
class Held:
    """A claim: who has it sends its token with everything. `lost`: why it is not held any more, once that is told."""

    api: Api
    run: int
    token: int
    lease: float
    halt: bool = False  # a person asks to stop after the step at hand
    lost: Problem | None = None
    on_lost: OnLost | None = None
    stops: list[Stop] = field(default_factory=list)
    at_work: int = 0  # requests under way that carry the token

    def check(self) -> None:
        """Raises StaleToken or RunEnded where the claim is known to be lost: what was begun must not go on."""
        if self.lost is not None:
            raise self.lost

    def work(self, address: str, body: Mapping[str, Any]) -> Op[Turn]:
        """Say something of the run. It may end the claim before its answer is here: no heartbeat tells that."""
        self.at_work += 1
        try:
            turn = yield from self.api.post(f"runs/{self.run}/{address}", {"token": self.token, **body}, Turn)
            if not turn.next.kind:
                self.let_go()  # the run waits, or has ended: nobody holds it
            return turn
        finally:
            self.at_work -= 1

    def let_go(self) -> None:
        """Send no more heartbeats."""
        while self.stops:
            self.stops.pop()()


def claim(
    api: Api, run: int, *, name: str = "", lease: float = 0.0, on_lost: OnLost | None = None
) -> Op[tuple[Held, Turn]]:
    """Claim a run and stay with it. Raises NotClaimable, RunEnded."""
    lease = lease or api.habits.lease
    turn = yield from api.post(f"runs/{run}/claims", {"worker": name or worker(), "lease": lease}, Turn)
    held = Held(api, run, turn.token, lease, on_lost=on_lost)
    if turn.next.kind:
        held.stops.append((yield Keep(beating(held))))
    return held, turn


def beating(held: Held) -> Op[None]:
    """Say again and again that the program is there, until it is told that the run is not its any more."""
    while True:
        yield Pause(min(held.lease / 3, BEAT))
        try:
            address, body = f"runs/{held.run}/heartbeats", {"token": held.token}
            beat = yield from held.api.post(address, body, Beat, patience=held.lease / 3)
            held.halt = beat.halt
        except (StaleToken, RunEnded) as error:
            if held.at_work or not held.stops:
                continue
            held.lost = error
            LOG.warning("Run %s is lost: %s", held.run, error)
            if held.on_lost is not None:
                held.on_lost(error)
            return
        except HoldpointError as error:
            LOG.warning("No heartbeat for run %s: %s", held.run, error)
