"""Localised repair: after a refusal the step runs again, then its producers, one ring wider each time.

A step's validators judge the state as the step would leave it; they are run here, never by the step. Ring 0 is
the step itself, with the validators' words. Ring k is the steps that wrote what the steps of ring k - 1 read: the
head moves to before the earliest of them, which runs again, and the steps after it are reused where their inputs come
out the same. Effects and gates are no producers, and a repair never goes back past a change or a decision of a person
that moved the run, nor over an effect that cannot be undone and might be done again. When the plan's rings are used
up, or a ring adds no producer, a person is asked.

The refusal and its consequence are one transaction: a worker that dies before its commit has refused nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

import structlog
from django.db import transaction

from agents.definition import feedback, outputs
from agents.definition.outputs import StepOutput
from agents.errors import OutputRefused
from agents.models import Failure
from agents.session.run_session import RunSession
from approvals.cards.action import Action
from approvals.engine_rules import effects, permissions
from approvals.english import quote_titles
from approvals.models import Outcome
from approvals.schema import redact
from checkpoints import crash_points, store
from checkpoints.actors import Actor
from checkpoints.errors import NoSuchCheckpoint, NotVerified
from checkpoints.models import Checkpoint
from checkpoints.runs.plans import PlanSpec, StepSpec
from checkpoints.store import executions
from checkpoints.store.loading import CheckpointHeader
from checkpoints.values.canonical_json import encode_canonical
from checkpoints.values.checkpoint_kinds import OUTPUT_LANDED

from . import recovery_gate, refusals
from .invoke import call_method
from .memo import StepMemory
from .refusals import LONGEST, SENT

RETURNED = "returned"  # the action that shows a refused output, and by which it may be taken
SHOWN = 64 * 1024  # bytes of a refused output that a gate shows; a larger one cannot be taken as it is
log = structlog.get_logger()


class RepairTarget(NamedTuple):
    """The target of a repair: the checkpoint to go back to, and the step that runs from there."""

    checkpoint: UUID
    step: str


def judged(session: RunSession, spec: StepSpec, output: StepOutput) -> dict[str, str]:
    """Run the validators; return the words of each that refuses the output. Raises what they raise."""
    after = output.over(session.snapshot.state) if spec.validators else {}
    found = {name: _words(name, call_method(session, name, after)) for name in spec.validators}
    return {name: session.clean_of(output.writes, words) for name, words in found.items() if words}


def repair(session: RunSession, spec: StepSpec, output: StepOutput, refused: Mapping[str, str]) -> bool:
    """Run the step or its producers again, or ask a person; True if the session goes on. Raises Fenced."""
    ring = refusals.tried(session, spec.name) // spec.tries
    back = back_to(session, spec, ring) if 0 < ring <= spec.rings else None
    asks = ring > 0 and back is None
    log.warning("step.refused", step=spec.name, validators=list(refused), ring=ring, attempt=session.attempt)
    going = not asks
    with transaction.atomic():
        rows = refusals.keep(session, spec, refused, ring)
        crash_points.point("before_repair", spec.name)
        if asks:
            _ask(session, spec, output, refused)
        elif back is None:
            said = [refusals.words_of(row) for row in rows]
            writes = feedback.append_words(session.agent, spec.feedback, said)
            going = session.save("repair", spec, writes, spec.name)
        else:
            _move(session, spec, back)
    crash_points.point("after_repair", spec.name)
    return going


def back_to(session: RunSession, spec: StepSpec, ring: int) -> RepairTarget | None:
    """Return the target before the earliest producer within this ring; None where this ring adds no producer.

    None too if an effect that cannot be undone lies after it and its result might not be reused: only a person may
    have such an effect done once more.
    """
    places = list(session.path)
    known = {step.name: step for step in session.plan.steps}
    reading, found = {len(places): spec}, set[int]()
    for _ in range(ring):
        makers = {_maker(places, known, at, name) for at, reader in reading.items() for name in reader.reads}
        new = {at for at in makers if at is not None} - found
        if not new:
            return None
        found |= new
        reading = {at: known[places[at].step] for at in new}
    first = min(found)
    executed = [place.step for place in places[first:] if place.kind in OUTPUT_LANDED]
    if effects.crosses_final(session.plan, executed, spec):
        return None
    if places[first].run_id != session.run.pk and permissions.asked_on(places[:first])[1]:
        return None  # a fork, and nobody answers there what the run asked that it came from
    if not Checkpoint.objects.filter(pk=places[first - 1].id).exists():
        return None  # removed by retention
    return RepairTarget(places[first - 1].id, places[first].step)


def said_at_head(session: RunSession, spec: StepSpec) -> dict[str, Any]:
    """Return the write that feeds back the refusals of the step's outputs from this head; {} for none."""
    rows = refusals.at(session.run.pk, spec.name, session.snapshot.id)
    return feedback.append_words(session.agent, spec.feedback, [refusals.words_of(row) for row in rows])


def accept(session: RunSession, spec: StepSpec, outcome: Outcome, *, by: Actor) -> bool:
    """Save the refused output that a person accepted, exactly as the gate showed it. It counts on its children."""
    [shown] = [action for action in outcome.proposal.card.actions if action.id == RETURNED]
    output = outputs.unpacked(shown.arguments)
    next_step = session.plan.next_after(spec.name) if output.goto is None else output.goto
    note = f"Taken as it is by {by.name or by.id}, although it was refused."
    children = [row.pk for row in StepMemory(session, spec).spawning.before.kept.values()]
    return session.save(
        "step", spec, output.writes, next_step, notes=[note], by=by, slice_over=False, children=children
    )


def _words(name: str, returned: Any) -> str:
    """Return a validator's objections as one text; empty where it has none."""
    said = [] if returned is None else [returned] if isinstance(returned, str) else returned
    if not isinstance(said, (list, tuple)) or not all(isinstance(each, str) for each in said):
        raise OutputRefused(f"The validator {name} returned {returned!r:.100}; it returns None, a text or texts.")
    text = "\n".join(each for each in said if each.strip()).encode(errors="replace").decode()
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _maker(places: list[CheckpointHeader], known: Mapping[str, StepSpec], at: int, name: str) -> int | None:
    """Return the place on the path before `at` where the field was last written, if by a plain step.

    None where an effect or a gate wrote it, or where it was written before a person last sent the run on.
    """
    for index in range(at - 1, 0, -1):
        place = places[index]
        if place.kind in SENT:
            return None
        step = known.get(place.step)
        if step is None or place.input_digest is None or not _wrote(place, step, name):
            continue
        return index if step.kind == "step" and place.kind in OUTPUT_LANDED else None
    return None


def _wrote(place: CheckpointHeader, step: StepSpec, name: str) -> bool:
    """Tell whether this execution wrote the field: by its record, else by its plan, which names none for a gate."""
    if step.kind != "gate" and name not in step.writes:
        return False
    try:
        return name in executions.writes_of([place.id])[place.id]
    except (NoSuchCheckpoint, NotVerified):
        return step.kind != "gate"


def _move(session: RunSession, spec: StepSpec, back: RepairTarget) -> None:
    """Move the head to before a producer, with every refusal of the output that its feedback does not hold yet."""
    target = store.load_checkpoint(back.checkpoint)
    there = target.state.get(spec.feedback) or []
    rows = refusals.unaccepted(session.run.pk, spec.name)
    unsaid = [row for row in rows if row.base == session.snapshot.id or _item(session, spec, row) not in there]
    writes = feedback.append_words(session.agent, spec.feedback, [refusals.words_of(row) for row in unsaid])
    session.move("repair", target, spec, writes, next_step=back.step, by=session.by)


def _item(session: RunSession, spec: StepSpec, row: Failure) -> Any:
    """Return the refusal as an item of the state's list; None where there is no such list."""
    return feedback.item(session.agent, spec.feedback, refusals.words_of(row)) if spec.feedback else None


def _ask(session: RunSession, spec: StepSpec, output: StepOutput, refused: Mapping[str, str]) -> None:
    """Ask a person how to go on, showing the output that was refused where it is not too large."""
    packed = outputs.packed(output)
    title, schema = f"What {quote_titles([spec.title])} returned", _schema_of(session.plan, packed)
    shown = [Action(id=RETURNED, title=title, tool=spec.name, arguments=packed, edits=False, schema=schema)]
    said = [f"{validator}: {words}" for validator, words in refused.items()]
    recovery_gate.refused(session, spec, said, shown if len(encode_canonical(packed)) <= SHOWN else [])


def _schema_of(plan: PlanSpec, packed: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema that hides an output's secrets; {} for none. Part of a list is secret if any item may be."""
    veil = redact.veil_marks(plan.state_schema)
    hidden = {name for name in packed if veil.within(name.rstrip(outputs.APPENDED + outputs.SPLICED)).hides}
    return {"type": "object", "properties": {name: {"writeOnly": True} for name in hidden}} if hidden else {}
