"""The sweeper: a small process of its own that finds what a crash, a flush or a clock left lying.

Every second it wakes runs whose timer is due, rings for those that are due and for those whose worker is gone, closes
gates past their deadline, takes on runs whose program elsewhere is gone, seals the audit and rings for a verification
of it, and for messages to webhooks. A ring carries nothing, so that two sweepers, or one too many rings, do no harm.
How often it rang for a run is its own affair and dies with it: were that kept in `wake_at`, a queued run would not be
due while its bell rings. A mark in Redis shows a flush, which makes it ring for all again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import redis
import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction

from approvals.models import Delivery, Gate
from checkpoints import sealer
from checkpoints.actors import SYSTEM
from checkpoints.models import Run, Verification

from . import doorbell, registry, upgrades
from .models import SweeperPass
from .outside import presence, unattended

AT_ONCE = 200  # runs and gates a pass
UPGRADES = 20  # runs a pass that are tried out in another version
FIRST, LONGEST = 1.0, 60.0  # seconds until a run that is still due is rung for again
MARK = "holdpoint.sweeper"
NOT_QUIET = """NOT EXISTS (
    SELECT FROM unnest(%s::bigint[], %s::bigint[]) AS quiet (run, token)
    WHERE quiet.run = checkpoints_run.id AND quiet.token = checkpoints_run.token)"""
log = structlog.get_logger()


@dataclass
class Bells:
    """Which runs were rung for, at which token, and when again: monotonic time and the pause that follows.

    A run that was claimed since has another token: what is due then is news, and starts with the first pause.
    """

    rung: dict[tuple[int, int], tuple[float, float]] = field(default_factory=dict)

    def quiet(self, now: float) -> list[tuple[int, int]]:
        """The (run, token) to leave alone for now. Those long past are forgotten."""
        self.rung = {key: (at, pause) for key, (at, pause) in self.rung.items() if now < at + pause + LONGEST}
        return [key for key, (at, pause) in self.rung.items() if now < at + pause]

    def rang(self, run: int, token: int, now: float) -> None:
        """Double the pause for this run."""
        _, pause = self.rung.get((run, token), (now, FIRST / 2))
        self.rung[run, token] = (now, min(LONGEST, pause * 2))

    def forget(self) -> None:
        """Whatever was rung for is lost."""
        self.rung.clear()


@dataclass
class Sweeper:
    """One sweeper process; safe twice."""

    bells: Bells = field(default_factory=Bells)
    tried: Bells = field(default_factory=Bells)  # the runs that were tried out in another version
    alone: Bells = field(default_factory=Bells)  # the runs elsewhere that were tried to go on without their program
    sent: Bells = field(default_factory=Bells)  # deliveries, by their attempts

    def __post_init__(self) -> None:
        self.redis = redis.Redis.from_url(settings.REDIS_URL, socket_timeout=0.5, socket_connect_timeout=0.5)

    def sweep_once(self) -> dict[str, int]:
        """One pass; how many runs and gates each part touched. Raises the database's errors."""
        self._look_for_a_flush()
        done = {"woken": wake_timers(), "expired": expire_gates(), "upgraded": self.upgrade(), "rung": self.ring_due()}
        done |= {"missed": presence.miss(), "withdrawn": withdraw_gates(), "alone": self.go_on_alone()}
        done["sealed"] = int(sealer.seal_once() is not None)
        done["verifying"] = ring_for_verifications()
        done["sending"] = self.ring_for_deliveries()
        SweeperPass.beat()
        return done

    def ring_due(self) -> int:
        """Ring for runs that a worker should look at and was not just asked to."""
        now = time.monotonic()
        with transaction.atomic():
            quiet = self.bells.quiet(now)
            pairs = [[run for run, _ in quiet], [token for _, token in quiet]]
            working = Run.objects.due().exclude(status=Run.Status.WAITING).filter(plan__external=False)
            due = working.extra(where=[NOT_QUIET], params=pairs)  # noqa: S610 - a constant; the pairs are parameters
            found = list(due.select_related("plan").select_for_update(skip_locked=True, of=("self",))[:AT_ONCE])
        for run in found:
            if not doorbell.ring(run.pk, registry.queue_for(run.plan)):
                break  # the broker is down: nothing is lost, the next pass tries again
            self.bells.rang(run.pk, run.token, now)
        return len(found)

    def ring_for_deliveries(self) -> int:
        """Ring for messages to webhooks that are due and that no worker was just asked to send."""
        now = time.monotonic()
        quiet = set(self.sent.quiet(now))
        due = [each for each in Delivery.objects.first_due() if each not in quiet][:AT_ONCE]
        for delivery, attempts in due:
            if not doorbell.ring_for_delivery(delivery):
                break  # the broker is down: nothing is lost, the next pass tries again
            self.sent.rang(delivery, attempts, now)
        return len(due)

    def upgrade(self) -> int:
        """Wake runs whose version is gone, where a newer one takes them; how many. What cannot go over is left alone.

        Each is tried out first, and one that cannot is tried again after the pause of a doorbell that nobody heard.
        """
        now, woken = time.monotonic(), 0
        quiet = self.tried.quiet(now)
        for run in upgrades.waiting(limit=UPGRADES, but=[run for run, _ in quiet]):
            self.tried.rang(run.pk, run.token, now)
            woken += bool(_tried(partial(upgrades.wake, run), "run.not_upcast"))
        return woken

    def go_on_alone(self) -> int:
        """Take runs elsewhere on that need no program; how many. One that needs it first is tried again later."""
        now, went = time.monotonic(), 0
        quiet = self.alone.quiet(now)
        for run, token in unattended.waiting(but=[run for run, _ in quiet]):
            self.alone.rang(run, token, now)
            went += bool(_tried(partial(unattended.go_on, run), "run.not_taken_on"))
        return went

    def _look_for_a_flush(self) -> None:
        """Redis without the mark was flushed or restarted empty: every bell that was in it is gone."""
        try:
            if self.redis.set(MARK, 1, nx=True):
                self.bells.forget()
                self.sent.forget()
        except redis.RedisError as error:
            log.warning("redis.silent", error=str(error))
            self.bells.forget()


def ring_for_verifications() -> int:
    """Ring for a verification of the audit that no worker has in hand; how many there were."""
    idle = list(Verification.objects.idle().values_list("pk", flat=True))
    for verification in idle:
        doorbell.ring_for_verification(verification)
    return len(idle)


def wake_timers() -> int:
    """Queue waiting runs whose timer is due; how many."""
    with transaction.atomic():
        due = Run.objects.due().filter(status=Run.Status.WAITING).select_related("plan")
        return sum(run.wake(by=SYSTEM) for run in due.select_for_update(skip_locked=True, of=("self",))[:AT_ONCE])


def expire_gates() -> int:
    """Close open gates past their deadline, each in a transaction of its own; how many."""
    return sum(_tried(gate.expire, "gate.not_expired") is not None for gate in Gate.objects.overdue()[:AT_ONCE])


def withdraw_gates() -> int:
    """Withdraw the gates of programs that are gone for longer than their policies allow; how many."""
    return sum(bool(_tried(partial(presence.withdraw, gate), "gate.not_withdrawn")) for gate in presence.forsaken())


def run_for_ever(stop: Callable[[], bool], *, every: float = 1.0) -> None:
    """Sweep every second until `stop()`. A database or a pass that fails is logged and tried again."""
    sweeper = Sweeper()
    while not stop():
        began = time.monotonic()
        try:
            connection.close_if_unusable_or_obsolete()
            done = sweeper.sweep_once()
            if any(done[part] for part in ("woken", "expired", "upgraded", "rung", "missed", "withdrawn", "alone")):
                log.info("sweeper.swept", **done)
        except Exception:
            log.exception("sweeper.failed")
            connection.close()
        time.sleep(max(0.05, every - (time.monotonic() - began)))


def _tried(act: Callable[[], Any], failed: str) -> Any:
    """What `act` returned; None where this gate or run is at fault, which must not stop the others."""
    try:
        return act()
    except (OperationalError, InterfaceError):  # the database itself: the pass ends, and is tried again
        raise
    except Exception:
        log.exception(failed)
        return None
