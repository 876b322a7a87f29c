"""A claim on a run, kept by heartbeats beside the work until it is released or lost."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .answers import Beat, Turn
from .errors import HoldpointError, Problem, RunEnded, StaleToken
from .exchange import Keep, Op, Pause, Stop, worker_name
from .sending import Api

LOG = logging.getLogger("holdpoint")
OnLost = Callable[[HoldpointError], object]
BEAT = 30.0  # seconds between heartbeats at most: after 90 without one people are told that the program is gone


@dataclass
class Held:
    """A claim, whose token is sent with everything. `lost`: why the claim was lost, once that is known."""

    api: Api
    run: int
    token: int
    lease: float
    halt: bool = False  # a person asks to stop after the current step
    lost: Problem | None = None
    on_lost: OnLost | None = None
    stops: list[Stop] = field(default_factory=list)
    at_work: int = 0  # requests under way that carry the token

    def check(self) -> None:
        """Raise StaleToken or RunEnded if the claim is known to be lost: work in progress must not go on."""
        if self.lost is not None:
            raise self.lost

    def work(self, address: str, body: Mapping[str, Any]) -> Op[Turn]:
        """Send something about the run. It may end the claim before its answer arrives; heartbeats ignore that."""
        self.at_work += 1
        try:
            turn = yield from self.api.post(f"runs/{self.run}/{address}", {"token": self.token, **body}, Turn)
            if not turn.next.kind:
                self.let_go()  # the run waits, or has ended: nobody holds it
            return turn
        finally:
            self.at_work -= 1

    def let_go(self) -> None:
        """Stop the heartbeats."""
        while self.stops:
            self.stops.pop()()


def claim_run(
    api: Api, run: int, *, name: str = "", lease: float = 0.0, on_lost: OnLost | None = None
) -> Op[tuple[Held, Turn]]:
    """Claim a run and keep it by heartbeats. Raises NotClaimable, RunEnded."""
    lease = lease or api.habits.lease
    turn = yield from api.post(f"runs/{run}/claims", {"worker": name or worker_name(), "lease": lease}, Turn)
    held = Held(api, run, turn.token, lease, on_lost=on_lost)
    if turn.next.kind:
        held.stops.append((yield Keep(beating(held))))
    return held, turn


def beating(run_claim: Held) -> Op[None]:
    """Send heartbeats until the server says that the claim is lost."""
    while True:
        yield Pause(min(run_claim.lease / 3, BEAT))
        try:
            address, body = f"runs/{run_claim.run}/heartbeats", {"token": run_claim.token}
            beat = yield from run_claim.api.post(address, body, Beat, patience=run_claim.lease / 3)
            run_claim.halt = beat.halt
        except (StaleToken, RunEnded) as error:
            if run_claim.at_work or not run_claim.stops:
                continue
            run_claim.lost = error
            LOG.warning("Run %s is lost: %s", run_claim.run, error)
            if run_claim.on_lost is not None:
                run_claim.on_lost(error)
            return
        except HoldpointError as error:
            LOG.warning("No heartbeat for run %s: %s", run_claim.run, error)
