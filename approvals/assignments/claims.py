"""Claims: one person says "I am on it", and others see that.

A claim takes nothing from anybody: whoever may decide may take it over, and is asked to do that before they decide, so
that no two people do the same work and nobody waits for somebody who left. It lapses by itself once its holder has not
had the gate's page in sight for HOLDPOINT_CLAIM_MINUTES, by the database's clock: from that moment it counts for
nobody, and the sweeper tells the pages. A decision of its holder releases it.

Every change locks the gate's row first and is an event that moves the gate, so a decision that reads no such move has
read the claim as it is, see approvals.decisions.deciding.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now

from approvals.audit import evidence
from approvals.gates.reading import GateReading, read
from approvals.models import Gate, GateClaim
from approvals.models.assignments.claim import lasts
from approvals.policy import authority
from checkpoints import actors
from checkpoints.actors import SYSTEM, Actor

from .errors import AlreadyClaimed, GateClosed, MayNot, NotClaimed

LAPSED, RELEASED, TAKEN = "lapsed", "released", "taken"


def holder_of(gate: Gate) -> User | None:
    """Return who holds the gate's live claim, as the gate was read; None for nobody."""
    return User(**{name: value for name, value in gate.holder[0].items() if name != "since"}) if gate.holder else None


def claim(gate: Gate, *, by: User) -> None:
    """Claim a gate for this person; their own claim is renewed. Raises MayNot, AlreadyClaimed and GateClosed."""
    with transaction.atomic():
        reading = _locked(gate.pk, by)
        held = _held(reading)
        if held is not None and held.user_id != by.pk:
            raise AlreadyClaimed(actors.of_user(held.user).name)
        _hold(reading, by, renewed=held is not None, data={})


def take_over(gate: Gate, *, by: User) -> None:
    """Take somebody's claim over. Raises MayNot, NotClaimed and GateClosed.

    Its event tells them, on their open page and by message.
    """
    with transaction.atomic():
        reading = _locked(gate.pk, by)
        held = _held(reading)
        if held is None:
            raise NotClaimed
        taken = {} if held.user_id == by.pk else {"taken_from": f"user:{held.user_id}"}
        _hold(reading, by, renewed=not taken, data=taken)


def release(gate: Gate, *, by: User) -> None:
    """End this person's own claim. Raises MayNot, NotClaimed and GateClosed."""
    with transaction.atomic():
        reading = _locked(gate.pk, by, decides=False)
        if not GateClaim.objects.filter(gate=gate.pk, user=by).delete()[0]:
            reason = authority.reason(reading.stands, reading.gate)
            raise MayNot(reason) if reason else NotClaimed
        _say("gate.released", reading, by=actors.of_user(by), data={"kind": RELEASED, "holder": f"user:{by.pk}"})


def lapse(gate_id: int) -> bool:
    """End a claim whose holder has been away for too long; False where it has not lapsed after all."""
    with transaction.atomic():
        reading = read(gate_id)
        evidence.vouch(reading.proposal)
        if not reading.gate.move():
            return bool(GateClaim.objects.filter(gate=gate_id).delete()[0])
        gone = GateClaim.objects.lapsed().filter(gate=gate_id).first()
        if gone is None:
            transaction.set_rollback(True)  # the gate's version with it
            return False
        gone.delete()
        _say("gate.released", reading, by=SYSTEM, data={"kind": LAPSED, "holder": f"user:{gone.user_id}"})
        return True


def _locked(gate_id: int, by: User, *, decides: bool = True) -> GateReading:
    reading = read(gate_id, user_id=by.pk)
    gate = reading.gate
    if decides and (reason := authority.reason(reading.stands, gate)):
        raise MayNot(reason)
    evidence.check(reading.proposal)
    if (gate.deadline and gate.deadline <= reading.now) or not gate.move():
        raise GateClosed
    return reading


def _held(reading: GateReading) -> GateClaim | None:
    """Return the live claim, under the gate's lock."""
    return GateClaim.objects.live().select_related("user").filter(gate=reading.gate).first()


def _hold(reading: GateReading, by: User, *, renewed: bool, data: dict[str, Any]) -> None:
    times: dict[str, Any] = {"until": Now() + lasts()} | ({} if renewed else {"since": Now()})
    new = {"user": by, "until": Now() + lasts()}
    GateClaim.objects.update_or_create(gate=reading.gate, defaults={"user": by, **times}, create_defaults=new)
    _say("gate.claimed", reading, by=actors.of_user(by), data=data)


def _say(kind: str, reading: GateReading, *, by: Actor, data: dict[str, Any]) -> None:
    reading.gate.say(kind, by=by, data={**data, **evidence.opened(reading.gate, reading.gate.standing())})
