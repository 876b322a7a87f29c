"""Lets a fork take over, once a person agrees, an effect that its origin has done with the same input."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django.db import transaction

from agents.definition import outputs
from agents.models import Effect
from agents.session import translate_history
from agents.session.run_path import RunPath
from agents.session.run_session import RunSession
from agents.steps import recovery_gate
from approvals.cards.answer import RecoveryAnswer
from approvals.engine_rules import effects
from approvals.models import Outcome
from checkpoints.actors import Actor
from checkpoints.models import Run
from checkpoints.runs.plans import StepSpec
from checkpoints.values.canonical_json import encode_canonical
from checkpoints.values.checkpoint_kinds import OUTPUT_LANDED

from . import ledger


def origin_of(session: RunSession, spec: StepSpec) -> Effect | None:
    """Return the same effect if another run of the lineage did it, or may have; None once a person answered."""
    if session.run.forked_from is None or _answered(session, spec):
        return None
    digest = session.input_digest(spec)
    others = Run.objects.of_lineage(session.snapshot.lineage).exclude(pk=session.run.pk)
    rows = Effect.objects.filter(run__in=others, undoes__isnull=True, step=spec.name)
    same = rows.filter(input_digest=digest, occurrence=session.path.occurrences(spec.name, digest))
    return next((row for row in same.order_by("-pk") if effects.asked_about(row)), None)


def take(session: RunSession, spec: StepSpec, key: str, *, by: Actor) -> bool:
    """Write the other run's result as this one's; True if the session goes on. Raises Fenced and NotVerified.

    If that result is gone or unusable by now, a person is asked again.
    """
    with transaction.atomic():
        # Locked, so that its own run looks for forks that depend on it either before this or after it.
        origin = Effect.objects.select_for_update(of=("self",)).select_related("run").get(key=key)
        if not (origin.there and translate_history.readable(origin, session.run.plan)):
            session.save("recovery", spec, {}, spec.name, by=by, slice_over=False)
            recovery_gate.take_over(session, spec, origin)
            return False
        origin.verified()
        return _taken(session, spec, origin)


def _taken(session: RunSession, spec: StepSpec, origin: Effect) -> bool:
    output = translate_history.output_of(origin, session.run.plan)
    note = f"Reused from R-{origin.run_id}, done there under the key {origin.key[:8]}; nothing was sent."
    session.hold_token()
    columns = ledger.columns(session, spec, 0)
    result = encode_canonical(outputs.packed(output))
    row = Effect.taken_over(origin, by=session.by, action=origin.action, result=result, **columns)
    going = session.executed(spec, output.writes, output.goto, took=0.0, notes=[note], kind="reused")
    row.landed(session.snapshot.id)
    return going


def _answered(session: RunSession, spec: StepSpec) -> bool:
    """Tell whether a person answered "do it again" since the step last ran."""
    asked = Outcome.objects.filter(gate__run_id=session.run.pk, gate__kind="recovery", gate__step=spec.name)
    found = asked.filter(gate__checkpoint__in=session.path.settled()).select_related("gate")
    said = {each.gate.checkpoint for each in found if (each.answered or {}).get("choice") == RecoveryAnswer.DO_AGAIN}
    return spec.name in done_by_fork(session.path, {(checkpoint, spec.name) for checkpoint in said})


def done_by_fork(path: RunPath, said: Collection[tuple[UUID | None, str]]) -> frozenset[str]:
    """Return the effect steps that a person, since they last ran, told this fork to do itself.

    `said`: (checkpoint, step) of the questions answered so. An answer holds for one execution only.
    """
    own, landed = set(), set()
    for place in reversed(path.places):
        if place.kind == "recovery" and (place.parent, place.step) in said and place.step not in landed:
            own.add(place.step)
        elif place.kind in OUTPUT_LANDED:
            landed.add(place.step)
    return frozenset(own)
