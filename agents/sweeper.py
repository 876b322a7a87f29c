"""The sweeper: a small process of its own that finds what a crash, a flush or a clock left lying.

Every second it wakes runs whose timer is due, rings for those that are due and for those whose worker is gone, closes
gates past their deadline, takes on runs whose program elsewhere is gone, seals the audit and rings for a verification
of it, and for messages to webhooks. A ring carries nothing, so that two sweepers, or one too many rings, do no harm.
How often it rang for a run is its own affair and dies with it: were that kept in `wake_at`, a queued run would not be
due while its bell rings. A mark in Redis shows a flush, which makes it ring for all again. How many may wait in a
queue, and what cannot be closed, is in agents.ringing.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import redis
import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import Count

from approvals.models import Delivery, Gate
from checkpoints import sealer
from checkpoints.actors import SYSTEM
from checkpoints.errors import RestoredDatabase
from checkpoints.events import offset
from checkpoints.models import Run, Verification
from checkpoints.models.run import RunQuerySet

from . import doorbell, registry, upgrades
from .models import SweeperPass
from .outside import presence, unattended
from .ringing import bells
from .ringing.bells import Bells
from .serving import health_file

AT_ONCE = 200  # runs and gates a pass
UPGRADES = 20  # runs a pass that are tried out in another version
MARK = "holdpoint.sweeper"
NOT_QUIET = """NOT EXISTS (
    SELECT FROM unnest(%s::bigint[], %s::bigint[]) AS quiet (run, token)
    WHERE quiet.run = checkpoints_run.id AND quiet.token = checkpoints_run.token)"""
log = structlog.get_logger()


@dataclass
class Sweeper:
    """One sweeper process; safe twice."""

    bells: Bells = field(default_factory=Bells)
    verifying: Bells = field(default_factory=Bells)
    tried: Bells = field(default_factory=Bells)  # the runs that were tried out in another version
    alone: Bells = field(default_factory=Bells)  # the runs elsewhere that were tried to go on without their program
    sent: Bells = field(default_factory=Bells)  # deliveries, by their attempts
    unclosed: Bells = field(default_factory=Bells)  # gates that could not be closed, by their version

    def __post_init__(self) -> None:
        self.redis = redis.Redis.from_url(settings.REDIS_URL, socket_timeout=0.5, socket_connect_timeout=0.5)

    def sweep_once(self) -> dict[str, int]:
        """One pass; how many runs and gates each part touched. Raises the database's errors and RestoredDatabase."""
        offset.refuse_stored_ahead()  # PostgreSQL may have been away as the process started
        self._look_for_a_flush()
        done = {
            "woken": wake_timers(),
            "expired": self.expire_gates(),
            "upgraded": self.upgrade(),
            "rung": self.ring_due(),
        }
        done |= {"missed": presence.miss(), "withdrawn": self.withdraw_gates(), "alone": self.go_on_alone()}
        done["sealed"] = int(sealer.seal_once() is not None)
        done["verifying"] = self.ring_for_verifications()
        done["sending"] = self.ring_for_deliveries()
        SweeperPass.beat()
        return done

    def ring_due(self) -> int:
        """Ring for runs that a worker should look at and was not just asked to."""
        now = time.monotonic()
        due = Run.objects.due().exclude(status=Run.Status.WAITING).filter(plan__external=False)
        with transaction.atomic():
            quiet = self.bells.quiet(now)
            pairs = [[run for run, _ in quiet], [token for _, token in quiet]]
            heard = due.extra(where=[NOT_QUIET], params=pairs)  # noqa: S610 - a constant; the pairs are parameters
            found: list[Run] = []
            for status in (Run.Status.RUNNING, Run.Status.QUEUED):  # a lost worker's first: no message speaks of them
                some = heard.filter(status=status).select_related("plan")
                found += some.select_for_update(skip_locked=True, of=("self",))[: AT_ONCE - len(found)]
        room = bells.room(due_by_queue(due, found)) if found else {}
        rung = 0
        for run in found:
            queue = registry.queue_for(run.plan)
            if room[queue] == 0:
                continue  # enough messages wait there
            if not doorbell.ring(run.pk, queue):
                break  # the broker is down: nothing is lost, the next pass tries again
            self.bells.rang(run.pk, run.token, now)
            room[queue] -= 1
            rung += 1
        return rung

    def ring_for_verifications(self) -> int:
        """Ring for a verification of the audit that no worker has in hand; how many there were."""
        now = time.monotonic()
        quiet = set(self.verifying.quiet(now))
        idle = [each for each in Verification.objects.idle().values_list("pk", "token") if each not in quiet]
        for verification, token in idle:
            if doorbell.ring_for_verification(verification):
                self.verifying.rang(verification, token, now)
        return len(idle)

    def ring_for_deliveries(self) -> int:
        """Ring for messages to webhooks that are due and that no worker was just asked to send."""
        now = time.monotonic()
        quiet = set(self.sent.quiet(now))
        waiting = Delivery.objects.first_due()
        queue = settings.CELERY_TASK_DEFAULT_QUEUE
        most = bells.room({queue: len(waiting)})[queue] if waiting else 0
        due = [each for each in waiting if each not in quiet][: min(AT_ONCE, most)]
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
            woken += bool(_tried(partial(upgrades.wake, run), "run.not_upcast", run=run.pk))
        return woken

    def go_on_alone(self) -> int:
        """Take runs elsewhere on that need no program; how many. One that needs it first is tried again later."""
        now, went = time.monotonic(), 0
        quiet = self.alone.quiet(now)
        for run, token in unattended.waiting(but=[run for run, _ in quiet]):
            self.alone.rang(run, token, now)
            went += bool(_tried(partial(unattended.go_on, run), "run.not_taken_on", run=run))
        return went

    def expire_gates(self) -> int:
        """Close open gates past their deadline, each in a transaction of its own; how many."""
        overdue = Gate.objects.overdue().exclude(pk__in=self._stuck())[:AT_ONCE]
        return sum(self._closes(gate, gate.expire, "gate.not_expired") for gate in overdue)

    def withdraw_gates(self) -> int:
        """Withdraw the gates of programs that are gone for longer than their policies allow; how many."""
        forsaken = presence.forsaken(but=self._stuck())
        return sum(self._closes(gate, partial(presence.withdraw, gate), "gate.not_withdrawn") for gate in forsaken)

    def _stuck(self) -> list[int]:
        return [gate for gate, _ in self.unclosed.quiet(time.monotonic())]

    def _closes(self, gate: Gate, act: Callable[[], Any], failed: str) -> bool:
        """Whether the gate is closed. One that cannot be is tried again after a pause that doubles."""
        done = _tried(act, failed, gate=gate.pk)
        if done is None:
            self.unclosed.rang(gate.pk, gate.version, time.monotonic())
        return bool(done)

    def _look_for_a_flush(self) -> None:
        """Redis without the mark was flushed or restarted empty: every bell that was in it is gone."""
        try:
            if self.redis.set(MARK, 1, nx=True):
                self._forget()
        except redis.RedisError as error:
            log.warning("redis.silent", error=str(error))
            self._forget()

    def _forget(self) -> None:
        for rung in (self.bells, self.verifying, self.sent):
            rung.forget()


def due_by_queue(due: RunQuerySet, found: Sequence[Run]) -> dict[str, int]:
    """How many runs are due in each queue of these runs."""
    plans = {run.plan_id: registry.queue_for(run.plan) for run in found}
    number: Counter[str] = Counter()
    for plan, runs in due.filter(plan__in=plans).order_by().values_list("plan").annotate(Count("pk")):
        number[plans[plan]] += runs
    return number


def wake_timers() -> int:
    """Queue waiting runs whose timer is due; how many."""
    with transaction.atomic():
        due = Run.objects.due().filter(status=Run.Status.WAITING).select_related("plan")
        return sum(run.wake(by=SYSTEM) for run in due.select_for_update(skip_locked=True, of=("self",))[:AT_ONCE])


def run_for_ever(stop: Callable[[], bool], *, every: float = 1.0) -> None:
    """Sweep every second until `stop()`. A database or a pass that fails is logged and tried again.

    Raises RestoredDatabase.
    """
    sweeper = Sweeper()
    while not stop():
        began = time.monotonic()
        try:
            connection.close_if_unusable_or_obsolete()
            done = sweeper.sweep_once()
            health_file.touch()
            if any(done[part] for part in ("woken", "expired", "upgraded", "rung", "missed", "withdrawn", "alone")):
                log.info("sweeper.swept", **done)
        except RestoredDatabase:
            raise
        except Exception:
            log.exception("sweeper.failed")
            connection.close()
        time.sleep(max(0.05, every - (time.monotonic() - began)))


def _tried(act: Callable[[], Any], failed: str, **about: int) -> Any:
    """What `act` returned; None where this gate or run is at fault, which must not stop the others."""
    try:
        return act()
    except (OperationalError, InterfaceError):  # the database itself: the pass ends, and is tried again
        raise
    except Exception:
        log.exception(failed, **about)
        return None
