"""The heartbeat: one thread per worker process renews the leases of the runs that the process holds.

It renews after each third of the lease on a connection of its own, and asks twice a second whether a person wants the
run to halt. When the lease is lost it says so, and the runner drops its work at the next check; the fencing token in
the saving statement makes that safe.

A step that ignores the alarm, or that no alarm reaches, overruns its limit. After the grace its lease is renewed no
more: another worker takes the run over, and what the step still does lands nowhere. The process is ended by SIGKILL
once it has no other run at work; in the pool prefork it never has. The attempt is counted in PostgreSQL.
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog
from django.db import Error, connection

from checkpoints.store import claims
from checkpoints.store.claims import Claim

GRACE = 5.0  # seconds past a step's limit
ALARM_EVERY = 1.0  # seconds between two rings of an alarm
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
        self.alarm: tuple[float, Callable[[], None]] | None = None  # when it rings next, and how

    def overran(self, now: float) -> bool:
        """Tell whether a step runs on past its limit and the grace."""
        return self.kill_at is not None and now >= self.kill_at

    def holds(self) -> bool:
        """Tell whether the run still is this worker's; renew a lease that may have passed by this clock."""
        passed = time.monotonic() - self.renewed >= self.claim.lease
        return not self.lost and (not passed or claims.renew(self.claim))

    def next_look(self) -> float:
        """Return when the thread has to look again."""
        due = [] if self.lost else [self.renewed + self.claim.lease / 3, self.asked + HALT_EVERY]
        if self.alarm is not None:
            due.append(self.alarm[0])
        if self.kill_at is not None:  # and from then on until the others have ended
            due.append(max(self.kill_at, time.monotonic() + HALT_EVERY) if self.lost else self.kill_at)
        return min(due, default=math.inf)

    def look(self) -> None:
        """Ring an alarm that is due, give up a step that overran, renew a lease that is due."""
        now = time.monotonic()
        if (alarm := self.alarm) is not None and now >= alarm[0]:
            self.alarm = (now + ALARM_EVERY, alarm[1])
            alarm[1]()
        if self.lost:
            return
        if self.overran(now):
            log.error("step.overran", run=self.claim.run_id, grace=GRACE)
            self.lost = True
        elif now >= self.renewed + self.claim.lease / 3:
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

    def limit(self, beat: ClaimBeat, seconds: float | None, ring: Callable[[], None] | None = None) -> None:
        """Have `ring` called after `seconds`, and the step given up after the grace; None cancels that."""
        now = time.monotonic()
        with self.changed:
            beat.kill_at = None if seconds is None else now + seconds + GRACE
            beat.alarm = None if seconds is None or ring is None else (now + seconds, ring)
            if seconds is not None and (seconds < HALT_EVERY or seconds + GRACE < beat.claim.lease / 3):
                self.changed.notify()

    def run(self) -> None:
        """Sleep until a beat is due, then look; for ever. The thread's body."""
        while True:
            with self.changed:
                self.wakes = min((beat.next_look() for beat in self.beats), default=math.inf)
                self.changed.wait(None if self.wakes == math.inf else max(0.0, self.wakes - time.monotonic()))
                mine = list(self.beats)
            for beat in mine:
                beat.look()
            self.end_overrun()
            if mine and connection.connection is not None:
                connection.close()  # back to the pool: the next beat is seconds away

    def end_overrun(self) -> None:
        """Kill this process if steps that overran are all that it has at work."""
        now = time.monotonic()
        with self.changed:
            if self.beats and all(beat.overran(now) for beat in self.beats):
                log.error("step.killed", runs=[beat.claim.run_id for beat in self.beats], grace=GRACE)
                os.kill(os.getpid(), signal.SIGKILL)


HEART = HeartbeatThread()
