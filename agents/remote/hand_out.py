"""Hands the approval of a question out, to one caller: its program only asked, so no grant says that it was used.

The record is an event of the gate, written under its lock before the answer is sent. Whoever is killed in between has
been told by the record and knows nothing, so that people are asked again rather than one approval counted twice.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import NamedTuple

from django.db import transaction

from agents.work_errors import WorkRefused
from approvals.models import Gate, Outcome
from checkpoints.actors import Actor
from checkpoints.models import Event
from checkpoints.values import canonical_json

KIND = "gate.handed_out"
APPROVES = (Outcome.Kind.APPROVED, Outcome.Kind.EDITED)


class HandedOut(NamedTuple):
    """The record of an approval: when it was handed out, whether to this caller, and whether just now."""

    at: datetime
    yours: bool
    first: bool


def hand_out(gate_id: int, *, to: str, by: Actor) -> HandedOut:
    """Hand the approval at a gate out to the caller of this name, unless somebody has it. Raises WorkRefused.

    One transaction, or part of the caller's.
    """
    mark = hashlib.sha256(to.encode()).hexdigest()
    with transaction.atomic():
        gate = Gate.objects.select_for_update(of=["self"]).select_related("run", "policy", "team").get(pk=gate_id)
        outcome: Outcome | None = getattr(gate, "outcome", None)
        if outcome is None or outcome.kind not in APPROVES:
            raise WorkRefused("There is no approval at this gate to hand out. Read its outcome.")
        if outcome.lets_run:
            raise WorkRefused("What this gate approved is done by its run, once: claim the run and begin its effect.")
        record = Event.objects.filter(run_id=gate.run_id, kind=KIND, subject=gate.subject)
        if first := not record.exists():
            gate.say("gate.handed_out", by=by, data={"to": mark})
        event = record.earliest("pk")
        return HandedOut(event.at, canonical_json.decode_canonical(bytes(event.data))["to"] == mark, first)
