"""The sweeper: a process that finds work left over by a crash, a flush of Redis or a timer, and has it done.

Every second it wakes runs whose timer is due, closes gates whose undo window has passed, rings for runs that are due
and for those whose worker is gone, takes gates to the next team of their escalation, ends claims of people who left,
closes gates past their deadline, cancels runs past theirs, carries out what was ordered for the runs that a run
started, takes on runs whose external program is gone, lets idle threads of graphs wait, looks at approved gates that
have not run, seals the audit and rings for a verification of it, and for messages to webhooks and people. A doorbell
carries no authority, so two sweepers, or too many doorbells, do no harm. How often it rang for a run is kept in memory
only: in `wake_at`, a queued run would not be due while its doorbell waits. A mark in Redis that is missing shows a
flush: then it rings for all again. How many messages may wait in a queue is in agents.ringing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import redis
import structlog
from django.db import InterfaceError, OperationalError, connection
from django.db.models import Q
from psycopg import errors

from agents.models import SweeperPass
from agents.moves import cancel as cancelling
from agents.questions import answering
from agents.remote import absent_programs
from agents.ringing import doorbell, due
from agents.ringing.ring_pauses import RecentRings
from agents.runner import version_upgrade
from agents.threads import saving
from approvals.assignments import claims, reassigning
from approvals.channels import webhook
from approvals.decisions.undo_window import settle
from approvals.models import Escalation, Gate, GateClaim
from approvals.notifications import delivering
from checkpoints.actors import SYSTEM
from checkpoints.audit import sealer
from checkpoints.errors import UnfitDatabase
from checkpoints.models import Run, Verification
from checkpoints.postgresql import fitness, xid_offset
from checkpoints.postgresql.sql import run_sql

from . import health_file, sweeps
from .sweeps import ChildSweep, wake_timers

EVERY = 1.0  # seconds between the beginnings of two passes
AT_ONCE = 200  # runs and gates a pass
KEPT_WAITING_EVERY = 10.0  # seconds between two looks for runs that more urgent ones keep waiting
UPGRADES = 20  # runs a pass that are tried out in another version
LOGGED = (
    "woken", "settled", "rung", "kept_waiting", "escalated", "lapsed", "expired", "ended", "children", "upgraded",
    "missed", "withdrawn", "alone", "resting", "unrun",
)  # fmt: skip
HELD_UP = (errors.LockNotAvailable, errors.QueryCanceled, errors.DeadlockDetected)  # by others; the database is there
LOCKED = "500ms"  # how long a pass waits for what somebody else keeps locked
log = structlog.get_logger()


@dataclass
class Sweeper:
    """One sweeper process; several may run at once."""

    bells: RecentRings = field(default_factory=RecentRings)
    kept_waiting: RecentRings = field(default_factory=RecentRings)  # as urgent, though they are not
    looked_for_kept_waiting: float = -KEPT_WAITING_EVERY  # time.monotonic()
    verifying: RecentRings = field(default_factory=RecentRings)
    tried: RecentRings = field(default_factory=RecentRings)  # the runs that were tried out in another version
    alone: RecentRings = field(default_factory=RecentRings)  # external runs that were tried without their program
    sent: RecentRings = field(default_factory=RecentRings)  # webhooks, by what waits
    notified: RecentRings = field(default_factory=RecentRings)  # rings for notices, by what waits
    asked: RecentRings = field(default_factory=RecentRings)  # questions at gates, by their attempts
    unclosed: RecentRings = field(default_factory=RecentRings)  # gates that could not be closed, by their version
    unescalated: RecentRings = field(default_factory=RecentRings)  # levels, by their number
    unended: RecentRings = field(default_factory=RecentRings)  # runs that could not be cancelled, by their token
    children: ChildSweep = field(default_factory=ChildSweep)
    held_up: int = 0  # gates or runs in this part of the pass that others keep locked

    def sweep_once(self) -> dict[str, int]:
        """Do one pass; return how many runs and gates each part touched. Raises the database's errors, UnfitDatabase.

        A part that meets a lock of others is logged, and the next ones run. They run too after one that fails; the pass
        then fails at its end, so that it does not count.
        """
        parts: dict[str, Callable[[], int]] = {
            "woken": partial(wake_timers, self.bells),
            "settled": self.settle_gates,
            "rung": self.ring_due,
            "kept_waiting": self.ring_for_those_kept_waiting,
            "sealed": lambda: int(sealer.seal_once() is not None),
            "verifying": self.ring_for_verifications,
            "sending": self.ring_for_webhooks,
            "telling": self.ring_for_notices,
            "asked": self.ring_for_questions,
            "escalated": self.escalate,
            "lapsed": self.lapse_claims,
            "expired": self.expire_gates,
            "ended": self.end_overdue,
            "children": self.children,
            "upgraded": self.upgrade,
            "missed": absent_programs.miss,
            "withdrawn": self.withdraw_gates,
            "alone": self.go_on_alone,
            "resting": saving.rest,
            "unrun": lambda: sweeps.look(AT_ONCE),
        }
        done, faults = dict.fromkeys(parts, 0), []
        with limit_lock_waits(LOCKED):
            unless_held_up(_refuse_unfit, "guard")  # PostgreSQL may have been away as the process started
            self._look_for_a_flush()
            for part, act in parts.items():
                self.held_up = 0
                try:
                    done[part] = unless_held_up(act, part) or 0
                except (OperationalError, InterfaceError):  # the database itself: the pass ends, and is tried again
                    raise
                except Exception as fault:  # noqa: BLE001 - whatever it is, the others are tried
                    faults.append(fault)
            if faults:
                raise ExceptionGroup("parts of the pass failed", faults)
            SweeperPass.beat()
        return done

    def ring_due(self) -> int:
        """Ring for due runs that are not in their pause, a share in each queue with room; return how many."""
        now, rung = time.monotonic(), 0
        quiet, rooms = self.bells.quiet(now), due.rooms(AT_ONCE)
        for number, room in enumerate(rooms):
            share = max(1, (AT_ONCE - rung) // (len(rooms) - number))
            for run, token, priority in due.first(room, but=quiet, most=share):
                if not doorbell.ring(run, room.queue, priority):
                    return rung  # the broker is down: nothing is lost, the next pass tries again
                self.bells.rang(run, token, now)
                rung += 1
        return rung

    def ring_for_those_kept_waiting(self) -> int:
        """Ring as urgent for runs that more urgent ones have kept waiting for long; return how many."""
        now = time.monotonic()
        if now < self.looked_for_kept_waiting + KEPT_WAITING_EVERY:
            return 0
        self.looked_for_kept_waiting, rung = now, 0
        for run, token, queue in due.kept_waiting(but=self.kept_waiting.quiet(now), most=AT_ONCE):
            if not doorbell.ring(run, queue, 0):
                break
            self.kept_waiting.rang(run, token, now)
            rung += 1
        return rung

    def ring_for_verifications(self) -> int:
        """Ring for verifications of the audit that no worker works on; return how many there were."""
        idle = Verification.objects.idle().values_list("pk", "token")
        return self.verifying.ring_for_each(idle, doorbell.ring_for_verification, most=AT_ONCE)

    def ring_for_webhooks(self) -> int:
        """Ring for webhooks to which something is to be sent now; return how many there were."""
        return self.sent.ring_for_each(webhook.waiting(), doorbell.ring_for_webhook, most=AT_ONCE)

    def ring_for_questions(self) -> int:
        """Ring for questions at gates that no worker has answered; return how many there were."""
        return self.asked.ring_for_each(*answering.idle(AT_ONCE), most=AT_ONCE)

    def ring_for_notices(self) -> int:
        """Ring where people are to be told something; return whether they are. One message is enough for all."""
        return self.notified.ring_for_each(delivering.waiting(), lambda _: doorbell.ring_for_notices(), most=AT_ONCE)

    def upgrade(self) -> int:
        """Wake runs whose version is gone and that can be upgraded; return how many. The others are left alone.

        Each upgrade is tried out first; one that fails is tried again after a pause that doubles.
        """
        now, woken = time.monotonic(), 0
        quiet = self.tried.quiet(now)
        for run in version_upgrade.waiting(limit=UPGRADES, but=[run for run, _ in quiet]):
            self.tried.rang(run.pk, run.token, now)
            woken += bool(self._tried(partial(version_upgrade.wake, run), "run.not_upcast", run=run.pk))
        return woken

    def go_on_alone(self) -> int:
        """Take on external runs that need no program; return how many. One that needs it is tried again later."""
        now, went = time.monotonic(), 0
        quiet = self.alone.quiet(now)
        for run, token in absent_programs.waiting(but=[run for run, _ in quiet]):
            self.alone.rang(run, token, now)
            went += bool(self._tried(partial(absent_programs.go_on, run), "run.not_taken_on", run=run))
        return went

    def settle_gates(self) -> int:
        """Close open gates whose undo window has passed, each in a transaction of its own; return how many."""
        settled = Gate.objects.settled().exclude(self._stuck())[:AT_ONCE]
        return sum(self._closes(gate, partial(settle, gate), "gate.not_settled") for gate in settled)

    def expire_gates(self) -> int:
        """Close open gates past their deadline, or escalate them, each in a transaction of its own; return how many."""
        overdue = Gate.objects.overdue().exclude(self._stuck())[:AT_ONCE]
        return sum(self._closes(gate, partial(reassigning.pass_deadline, gate), "gate.not_expired") for gate in overdue)

    def escalate(self) -> int:
        """Take gates to the next team of their escalation, each in a transaction of its own; return how many."""
        due = Escalation.objects.due().exclude(_any_of(self.unescalated, "number"))[:AT_ONCE]
        return sum(map(self._escalates, due))

    def lapse_claims(self) -> int:
        """End claims whose holders have been away for too long; return how many."""
        lapsed = list(GateClaim.objects.lapsed().values_list("gate", flat=True)[:AT_ONCE])
        return sum(bool(self._tried(partial(claims.lapse, gate), "claim.not_ended", gate=gate)) for gate in lapsed)

    def end_overdue(self) -> int:
        """Cancel runs past their deadline, each in a transaction of its own; return how many."""
        overdue = Run.objects.overdue().exclude(_any_of(self.unended, "token"))
        return sum(map(self._ends, overdue.select_related("plan")[:AT_ONCE]))

    def withdraw_gates(self) -> int:
        """Withdraw the gates of programs that are gone for longer than their policies allow; return how many."""
        forsaken = absent_programs.forsaken().exclude(self._stuck())[:AT_ONCE]
        return sum(
            self._closes(gate, partial(absent_programs.withdraw, gate), "gate.not_withdrawn") for gate in forsaken
        )

    def _escalates(self, level: Escalation) -> bool:
        """Tell whether the gate is escalated. One that cannot be is tried again after a pause that doubles."""
        done = self._tried(partial(reassigning.escalate, level), "gate.not_escalated", gate=level.gate_id)
        if done is None:
            self.unescalated.rang(level.pk, level.number, time.monotonic())
        return bool(done)

    def _stuck(self) -> Q:
        """Return a filter of the gates to leave alone for now: unchanged since they could not be closed."""
        return _any_of(self.unclosed, "version")

    def _ends(self, run: Run) -> bool:
        """Tell whether the run ends. One that cannot, or is in an effect, is tried again after a pause that doubles."""
        token = run.token
        end = partial(cancelling.cancel_once_known, run, by=SYSTEM, reason="Its deadline passed.")
        done = self._tried(end, "run.not_ended", run=run.pk)
        if not done:
            self.unended.rang(run.pk, token, time.monotonic())
        return bool(done)

    def _closes(self, gate: Gate, act: Callable[[], Any], failed: str) -> bool:
        """Tell whether the gate is closed. One that cannot be is tried again after a pause that doubles."""
        done = self._tried(act, failed, gate=gate.pk)
        if done is None:
            self.unclosed.rang(gate.pk, gate.version, time.monotonic())
        return bool(done)

    def _tried(self, act: Callable[[], Any], failed: str, **about: int) -> Any:
        """Call `act` and return its result; None, logged, where it failed, which must not stop the others.

        Raises where the database is away, and at the second lock of others in a part: it may be the whole table's.
        """
        try:
            return act()
        except (OperationalError, InterfaceError) as error:
            self.held_up += 1
            if not isinstance(error.__cause__, HELD_UP) or self.held_up > 1:
                raise
            log.warning(failed, error=str(error), **about)
        except Exception:
            log.exception(failed, **about)
        return None

    def _look_for_a_flush(self) -> None:
        """Forget all pauses if the mark in Redis is missing: Redis was emptied, or a worker began and removed it."""
        try:
            if doorbell.client().set(doorbell.MARK, 1, nx=True):
                self._forget()
        except redis.RedisError as error:
            log.warning("redis.silent", error=str(error))
            self._forget()

    def _forget(self) -> None:
        for rung in (self.bells, self.kept_waiting, self.verifying, self.sent, self.notified, self.asked):
            rung.forget()


def _any_of(pauses: RecentRings, token: str) -> Q:
    """Return a filter of the rows that are in their pause: their number, and what must be unchanged since."""
    return Q(*(Q(pk=pk, **{token: at}) for pk, at in pauses.quiet(time.monotonic())), _connector=Q.OR)


def run_for_ever(stop: Callable[[], bool]) -> None:
    """Sweep every second until `stop()`. A database or a pass that fails is logged and tried again.

    Raises UnfitDatabase.
    """
    sweeper = Sweeper()
    while not stop():
        began = time.monotonic()
        try:
            connection.close_if_unusable_or_obsolete()
            done = sweeper.sweep_once()
            health_file.touch()
            if any(done[part] for part in LOGGED):
                log.info("sweeper.swept", **done)
        except UnfitDatabase:
            raise
        except Exception:
            log.exception("sweeper.failed")
            connection.close()
        time.sleep(max(0.05, EVERY - (time.monotonic() - began)))


def _refuse_unfit() -> None:
    fitness.refuse()
    xid_offset.refuse_ahead()


@contextmanager
def limit_lock_waits(longest: str) -> Iterator[None]:
    """Limit for how long a statement in the block waits for a row or a table that somebody keeps locked.

    No statement is prepared: it is not known yet whether the session is this process's own.
    """
    run_sql("SELECT set_config('lock_timeout', $1, false)", [longest], prepare=False)
    try:
        yield
    finally:
        with suppress(OperationalError, InterfaceError):  # a connection that is lost has kept nothing
            run_sql("RESET lock_timeout", [], prepare=False)


def unless_held_up(act: Callable[[], Any], part: str) -> Any:
    """Call `act` and return its result; None, logged, where a lock of others stopped it."""
    try:
        return act()
    except OperationalError as error:
        if not isinstance(error.__cause__, HELD_UP):
            raise
        log.warning("sweeper.part_held_up", part=part, error=str(error))
        return None
