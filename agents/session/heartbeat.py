"""The heartbeat: one thread per worker process renews the lease of the run that the process holds.

It renews after each third of the lease on a connection of its own, and asks twice a second whether a person wants the
run to halt. When the lease is lost it says so, and the runner drops its work at the next check; the fencing token in
the saving statement makes that safe. A process whose step ignores the alarm and overruns its limit by the grace is
ended by SIGKILL: the attempt is counted in PostgreSQL.
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from django.db import Error, connection

from checkpoints.store import claims
from checkpoints.store.claims import Claim

GRACE = 5.0  # seconds past a step's limit
HALT_EVERY = 0.5  # seconds between two looks for a person's request that the run halt
log = structlog.get_logger()


class ClaimBeat:
    """The heartbeat's data about one claim: its lease, a request to halt, and the time limit of its step."""

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.lost = False
        self.halt = False
        self.asked = time.monotonic()
        self.renewed = time.monotonic()
        self.kill_at: float | None = None

    def holds(self) -> bool:
        """Tell whether the run still is this worker's; renew a lease that may have passed by this clock."""
        passed = time.monotonic() - self.renewed >= self.claim.lease
        return not self.lost and (not passed or claims.renew(self.claim))

    def next_look(self) -> float:
        """Return when the thread has to look again."""
        due = min(self.renewed + self.claim.lease / 3, self.asked + HALT_EVERY)
        return due if self.kill_at is None else min(due, self.kill_at)

    def look(self) -> None:
        """Kill an overrun process, renew a lease that is due."""
        now = time.monotonic()
        if self.kill_at is not None and now >= self.kill_at:
            log.error("step.killed", run=self.claim.run_id, grace=GRACE)
            os.kill(os.getpid(), signal.SIGKILL)
        if now >= self.renewed + self.claim.lease / 3:
            self.renew(now)
        elif now >= self.asked + HALT_EVERY:
            self.ask(now)

    def ask(self, now: float) -> None:
        """Ask whether somebody wants the run to halt. A database that does not answer is asked again."""
        self.asked = now
        try:
            self.halt = claims.halting(self.claim)
        except Error as error:
            log.warning("halt.not_read", run=self.claim.run_id, error=str(error))

    def renew(self, now: float) -> None:
        """Renew once. A database that does not answer is asked again a moment later."""
        try:
            self.lost = not claims.renew(self.claim)
            self.renewed = now
        except Error as error:
            log.warning("lease.not_renewed", run=self.claim.run_id, error=str(error))
            time.sleep(min(1.0, self.claim.lease / 10))


class HeartbeatThread:
    """The heartbeat's thread, started on first use in each process."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.beats: list[ClaimBeat] = []
        self.wakes = math.inf  # when the thread looks next
        self.pid = 0

    @contextmanager
    def watch(self, claim: Claim) -> Iterator[ClaimBeat]:
        """Keep `claim` alive inside the block.

        A thread that looks in time anyway is not woken: it would take the interpreter from the run that begins.
        """
        beat = ClaimBeat(claim)
        with self.changed:
            if self.pid != os.getpid():  # a forked worker inherits the object but not the thread
                self.pid, self.beats = os.getpid(), []
                threading.Thread(target=self.run, name="heartbeat", daemon=True).start()
            self.beats.append(beat)
            if beat.next_look() < self.wakes:
                self.changed.notify()
        try:
            yield beat
        finally:
            with self.changed:
                self.beats.remove(beat)

    def limit(self, beat: ClaimBeat, seconds: float | None) -> None:
        """Have the process killed once `seconds` from now and the grace have passed; None cancels that."""
        with self.changed:
            beat.kill_at = None if seconds is None else time.monotonic() + seconds + GRACE
            if seconds is not None and seconds + GRACE < beat.claim.lease / 3:
                self.changed.notify()

    def run(self) -> None:
        """Sleep until a beat is due, then look; for ever. The thread's body."""
        while True:
            with self.changed:
                self.wakes = min((beat.next_look() for beat in self.beats if not beat.lost), default=math.inf)
                self.changed.wait(None if self.wakes == math.inf else max(0.0, self.wakes - time.monotonic()))
                mine = [beat for beat in self.beats if not beat.lost]
            for beat in mine:
                beat.look()
            if mine and connection.connection is not None:
                connection.close()  # back to the pool: the next beat is seconds away


HEART = HeartbeatThread()
