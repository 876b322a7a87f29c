"""Hands a gate over: names the person or team that should act, with a reason. That gives nobody any right.

A team that does not review the gate can be named too, by somebody with the permission to add reviewers: then it becomes
one of this gate's reviewers, beside the others.

It also takes a gate to the next team of its policy's escalation: at its time, or at the deadline, which moves on then.

The team's people are reviewers of this gate from then on, beside all who were before. After the last level the deadline
does what the policy says. The sweeper calls this; the gate's lock makes it safe twice, and settles the race with a
decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import Group, User
from django.db import transaction
from django.db.models.functions import Now

from approvals.audit import evidence
from approvals.gates import closing, projection
from approvals.gates.reading import GateReading, read
from approvals.models import AddedTeam, Assignee, Escalation, Gate, GateClaim
from approvals.policy import authority, required, separation, working_time
from checkpoints import actors
from checkpoints.access.permissions import (
    ADD_REVIEWERS,
    DECIDE_GATE,
    may_in_team,
    members_where,
    say_missing_permission,
)
from checkpoints.actors import SYSTEM
from checkpoints.postgresql.sql import make_storable

from .errors import GateClosed, MayNot, NotAsked

MOST = 1_000  # characters of a reason
OFFERED = 200  # people or teams in a list


@dataclass(frozen=True)
class Choices:
    """The people and teams to whom a person may hand a gate over."""

    people: list[User]
    teams: list[Group]  # that review the gate
    others: list[Group]  # that would be added to its reviewers


def choices(gate: Gate, *, by: User) -> Choices:
    """List whom this person may hand the gate over to. Raises MayNot."""
    reading = read(gate.pk, user_id=by.pk)
    adds = _check(reading, by)
    able = User.objects.filter(pk__in=authority.deciders(reading.gate) - {by.pk})
    people = able.order_by("first_name", "last_name", "pk")
    review = Group.objects.filter(pk__in=reading.gate.reviewer_ids).order_by("name")
    others = Group.objects.exclude(pk__in=reading.gate.reviewer_ids).order_by("name") if adds else Group.objects.none()
    deciding = members_where(DECIDE_GATE, teams=others.values_list("pk", flat=True)) if adds else {}
    return Choices(list(people[:OFFERED]), list(review), [team for team in others if deciding[team.pk]][:OFFERED])


def check(gate: Gate, *, by: User) -> None:
    """Raise MayNot for somebody who may not hand the gate over to anybody."""
    _check(read(gate.pk, user_id=by.pk), by)


def reassign(gate: Gate, *, to: User | Group, reason: str, by: User) -> None:
    """Ask this person or team to act on the gate; adds the team where it does not review it.

    The claim of who hands it over ends. Raises MayNot, NotAsked and GateClosed.
    """
    said = make_storable(" ".join(reason.split()))
    if not said or len(said) > MOST:
        raise NotAsked(f"Write a reason of 1 to {MOST:,} characters.")
    with transaction.atomic():
        reading = read(gate.pk, user_id=by.pk)
        adds = _check(reading, by)
        evidence.check(reading.proposal)
        held = reading.gate
        if (held.deadline and held.deadline <= reading.now) or not held.move():
            raise GateClosed
        added = _added(held, to, adds=adds, by=by) if isinstance(to, Group) else _person(held, to)
        actor = actors.of_user(by)
        asked = {"user": None, "team": to} if isinstance(to, Group) else {"user": to, "team": None}
        named = {**asked, "by": actor.id, "by_name": actor.name, "at": Now()}
        Assignee.objects.update_or_create(gate=held, defaults=named)
        GateClaim.objects.filter(gate=held.pk, user=by).delete()
        subject = f"team:{to.pk}" if isinstance(to, Group) else f"user:{to.pk}"
        standing = held.standing()
        data = {"to": subject, "added": added, **evidence.opened(held, standing)}
        told = held.entry("gate.reassigned", by=actor, data=data, text=said)
        projection.reconsider(held, standing, told=[told])


def _check(reading: GateReading, by: User) -> bool:
    """Tell whether this person may add reviewers. Raises MayNot where they may neither do that nor decide.

    Whoever may not decide by separation of duties does not choose who does.
    """
    gate = reading.gate
    adds = by.is_active and may_in_team(by, gate.team_id, ADD_REVIEWERS)
    if apart := adds and separation.why_apart(by.pk, gate):
        raise MayNot(apart)
    if not adds and (reason := authority.reason(reading.stands, gate)):
        raise MayNot(reason)
    return adds


def _person(gate: Gate, one: User) -> bool:
    if reason := authority.why_not(one, gate):
        raise NotAsked(f"{actors.of_user(one).name} may not decide this gate: {reason}")
    return False


def _added(gate: Gate, team: Group, *, adds: bool, by: User) -> bool:
    """Tell whether the team was added to the reviewers just now."""
    if team.pk in gate.reviewer_ids:
        return False
    if not adds:
        raise MayNot(say_missing_permission(by, ADD_REVIEWERS, gate.team))
    if not members_where(DECIDE_GATE, teams=[team.pk])[team.pk]:
        raise NotAsked(f"Nobody in {team.name} may decide gates.")
    AddedTeam.objects.create(gate=gate, team=team, by=actors.of_user(by).id)
    gate.added_ids = None
    return True


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
            until = working_time.after(reading.gate.policy, reading.now, level.extend) if level.extend else None
            if _take(reading, level, until):
                return True
            transaction.set_rollback(True)
    return closing.expire(gate) is not None


def _is_planned(level: Escalation, reading: GateReading) -> bool:
    """Tell whether the gate's policy plans this level: a row by itself asks nobody. Raises NotVerified."""
    evidence.check(reading.proposal)
    known = dict(enumerate(required.levels(reading.gate.policy), 1)).get(level.number)
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
        gate.alter(deadline=until)
    team = Group.objects.filter(pk=level.team_id).values_list("name", flat=True).first()
    data = {"level": level.number, "team": team, "until": until.isoformat() if until else None}
    standing = gate.standing()  # somebody may have edited it since
    told = gate.entry("gate.escalated", by=SYSTEM, data={**data, **evidence.opened(gate, standing)})
    projection.reconsider(gate, standing, told=[told])
    return True
