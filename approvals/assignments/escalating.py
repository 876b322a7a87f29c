"""Takes a gate to the next team of its policy's escalation: at its time, or at the deadline, which moves on then.

The team's people are reviewers of this gate from then on, beside all who were before. After the last level the deadline
does what the policy says. The sweeper calls this; the gate's lock makes it safe twice, and settles the race with a
decision.
"""

from __future__ import annotations

from datetime import datetime

from django.contrib.auth.models import Group
from django.db import transaction

from approvals.audit import evidence
from approvals.gates import closing, projection
from approvals.gates.reading import GateReading, read
from approvals.models import AddedTeam, Escalation, Gate
from approvals.policy import calendars, escalation
from checkpoints.actors import SYSTEM

Status = Escalation.Status


def escalate(level: Escalation) -> bool:
    """Take the gate of a level whose time has come to its team; False where the gate closed, or it was done before.

    Raises NotVerified, and leaves the level as it is, where the gate is not as its last event tells.
    """
    with transaction.atomic():
        reading = read(level.gate_id)
        if not _is_planned(level, reading) or not reading.gate.move():
            Escalation.objects.filter(pk=level.pk, status=Status.PLANNED).update(status=Status.DROPPED)
            return False
        if not _take(reading, level, None):
            transaction.set_rollback(True)  # the gate's version with it
            return False
        return True


def pass_deadline(gate: Gate) -> bool:
    """Take a gate past its deadline to its next level, or expire it; False where it is closed or not due.

    Raises NotVerified as `escalate` does.
    """
    with transaction.atomic():
        reading = read(gate.pk)
        level = Escalation.objects.at_deadline().filter(gate=gate.pk).first()
        if level is not None:
            if not _is_planned(level, reading):
                return bool(Escalation.objects.at_deadline().filter(pk=level.pk).update(status=Status.DROPPED))
            if not reading.gate.move(due=True):
                return False
            until = calendars.after(reading.gate.policy, reading.now, level.extend) if level.extend else None
            if _take(reading, level, until):
                return True
            transaction.set_rollback(True)
    return closing.expire(gate) is not None


def _is_planned(level: Escalation, reading: GateReading) -> bool:
    """Tell whether the gate's policy plans this level: a row by itself asks nobody. Raises NotVerified."""
    evidence.check(reading.proposal)
    known = dict(enumerate(escalation.levels(reading.gate.policy), 1)).get(level.number)
    return known is not None and (known.team, known.after is None, known.extend) == (
        level.team_id, level.due_at is None, level.extend
    )  # fmt: skip


def _take(reading: GateReading, level: Escalation, until: datetime | None) -> bool:
    """Take the gate, whose row is locked, to this level; False where somebody has done it."""
    if not Escalation.objects.filter(pk=level.pk, status=Status.PLANNED).update(status=Status.DONE):
        return False
    gate = reading.gate
    if level.team_id not in gate.reviewer_ids:
        AddedTeam.objects.get_or_create(
            gate=gate, team_id=level.team_id, defaults={"level": level.number, "by": SYSTEM.id}
        )
        gate.added_ids = None
    if until is not None:
        Gate.objects.filter(pk=gate.pk).update(deadline=until)
        gate.deadline = until
    team = Group.objects.filter(pk=level.team_id).values_list("name", flat=True).first()
    data = {"level": level.number, "team": team, "until": until.isoformat() if until else None}
    standing = gate.standing()  # somebody may have edited it since
    told = gate.entry("gate.escalated", by=SYSTEM, data={**data, **evidence.opened(gate, standing)})
    projection.reconsider(gate, standing, told=[told])
    return True
