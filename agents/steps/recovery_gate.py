"""Recovery gates: what a person is asked when a step failed for good or nobody knows what an effect did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction

from agents.models import Effect
from agents.session import allowing_gate, translate
from agents.session.allowing_gate import carried, shown_for
from agents.session.run_session import RunSession
from agents.text import one_line
from approvals.cards.action import Action
from approvals.cards.card import AnswerChoice, Card, Question
from approvals.cards.recovery_answers import RecoveryAnswer
from approvals.english import counted, quoted
from approvals.gates import closing
from approvals.gates.opening import open_gate
from approvals.models import Gate
from approvals.schema.walk import resolved
from checkpoints import crash_points
from checkpoints.actors import SYSTEM
from checkpoints.runs.plans import StepSpec, in_words


def quarantine(slice: RunSession, spec: StepSpec, error: str) -> None:
    """Ask how to go on after a step that failed. Releases the run to waiting. Raises Fenced."""
    choices: list[AnswerChoice] = [_choice(RecoveryAnswer.RETRY, f"Try {named(spec)} again")]
    if allowing_gate.may_revise(slice, spec):
        choices.append(_choice(RecoveryAnswer.REVISE, "Change the values first, then approve them again"))
    choices += _without(spec)
    text = f"{named(spec)} did not succeed after {counted(slice.attempt, 'attempt')}. How should the run go on?"
    if slice.attempt == 1:
        text = f"{named(spec)} did not succeed. How should the run go on?"
    reasons = [f"{named(spec)} failed, so nothing after it has run"]
    _ask(slice, spec, f"{named(spec)} failed:", error, text, choices, risk="medium", reasons=reasons)


def refused(slice: RunSession, spec: StepSpec, words: Sequence[str], shown: Sequence[Action]) -> None:
    """Ask how to go on after an output that validators refused to the last. Raises Fenced as `quarantine` does.

    `shown` is the output, which a person may take as it is; empty where it is too large to be shown.
    """
    choices: list[AnswerChoice] = [_choice(RecoveryAnswer.RETRY, f"Try {named(spec)} again")]
    if shown:
        choices.append(_choice(RecoveryAnswer.ACCEPT, f"Take what {named(spec)} returned as it is"))
    choices += _without(spec)
    text = f"What {named(spec)} returns is refused, and no repair has helped. How should the run go on?"
    reasons = [f"What {named(spec)} returned did not pass {quoted(map(in_words, spec.validators))}"]
    title = f"{named(spec)} is refused:"
    _ask(slice, spec, title, "\n".join(words), text, choices, risk="medium", reasons=reasons, shown=shown)


def looping(slice: RunSession, spec: StepSpec, times: int) -> None:
    """Ask whether a step that ran as often as its loop guard allows may run again. Raises Fenced as above."""
    choices: list[AnswerChoice] = [_choice(RecoveryAnswer.RETRY, f"Let {named(spec)} run as often again")]
    choices += _without(spec)
    text = f"{named(spec)} ran {counted(times, 'time')} on this path, which is the most its loop guard allows. Go on?"
    reasons = ["The run may be in an endless loop"]
    _ask(slice, spec, f"{named(spec)} goes round:", "", text, choices, risk="medium", reasons=reasons)


def unknown(slice: RunSession, spec: StepSpec, effect: Effect, error: str, *, lapsed: str = "") -> None:
    """Ask what became of an effect. Releases the run to waiting. Raises Fenced.

    `lapsed`: why it may not be done any more as things are; then no answer permits it, and its gate asks afterwards.
    """
    first = "once it is allowed anew" if lapsed else "now"
    again = f"Do {named(spec)} again{', once it is allowed anew' if lapsed else ''}, whatever became of it"
    choices: list[AnswerChoice] = [
        _choice(RecoveryAnswer.HAPPENED, "It happened", result_schema(slice, spec)),
        _choice(RecoveryAnswer.NOT_HAPPENED, f"It did not happen: do {named(spec)} {first}"),
        _choice(RecoveryAnswer.AGAIN, again),
        _choice(RecoveryAnswer.STOP, "Stop the run, and leave it open"),
    ]
    text = (
        f"Nobody knows whether {named(spec)} happened: the answer never arrived. "
        f"Look it up at the provider by its key {effect.key}, then say what it was."
    )
    reasons = [f"If {named(spec)} happened and is done again, it happens twice"]
    if spec.idempotent:
        reasons = [f"{named(spec)} may have happened already"]
    reasons += [lapsed] if lapsed else []
    allows = () if lapsed else None
    title = f"Did {named(spec)} happen?"
    _ask(slice, spec, title, error, text, choices, risk="high", reasons=reasons, allows=allows, about=effect.key)


def abandoned(slice: RunSession, spec: StepSpec, effect: Effect) -> None:
    """Ask what became of an effect that the run has left behind. Releases the run to waiting. Raises Fenced."""
    undoing = (
        f"{named(spec)} happened; it will be undone" if spec.undo else f"{named(spec)} happened; it cannot be undone"
    )
    choices: list[AnswerChoice] = [
        _choice(RecoveryAnswer.WAS_DONE, undoing, result_schema(slice, spec)),
        _choice(RecoveryAnswer.WAS_NOT_DONE, "It did not happen"),
        _choice(RecoveryAnswer.LEFT_OPEN, "Leave it open, and go on"),
    ]
    text = (
        f"The run went elsewhere while {named(spec)} was under way, and nobody knows whether it happened. "
        f"Look it up at the provider by its key {effect.key}, then say what it was."
    )
    reasons = [f"{named(spec)} may have happened, and is no longer wanted"]
    _ask_aside(slice, spec, f"Did {named(spec)} happen?", effect, effect.error, text, choices, reasons=reasons)


def not_readable(slice: RunSession, spec: StepSpec, effect: Effect, error: str) -> None:
    """Ask what an effect of another version gave. Releases the run to waiting. Raises Fenced."""
    gave: AnswerChoice = _choice(RecoveryAnswer.GAVE, "It gave this", result_schema(slice, spec))
    choices: list[AnswerChoice] = [gave, _choice(RecoveryAnswer.STOP, "Stop the run")]
    text = (
        f"{named(spec)} was done by another version of the agent, and what it gave cannot be brought to this one. "
        f"Look it up at the provider by its key {effect.key}, then say what it was; nothing is done again."
    )
    reasons = [f"{named(spec)} stands in the outside world"]
    title = f"What did {named(spec)} give?"
    _ask(slice, spec, title, error, text, choices, risk="high", reasons=reasons, allows=(), about=effect.key)


def not_undone(slice: RunSession, spec: StepSpec, effect: Effect, error: str) -> None:
    """Ask how to go on after an undo that failed. Releases the run to waiting. Raises Fenced."""
    choices: list[AnswerChoice] = [
        _choice(RecoveryAnswer.UNDO_AGAIN, f"Try again to undo {named(spec)}"),
        _choice(RecoveryAnswer.UNDONE, f"It is undone: somebody took {named(spec)} back by hand"),
        _choice(RecoveryAnswer.KEEP, f"Leave {named(spec)} as it is, done"),
    ]
    text = (
        f"{named(spec)} is no longer part of this run, and it could not be undone. "
        f"The provider knows it by its key {effect.key}."
    )
    reasons = [f"{named(spec)} still stands in the outside world"]
    _ask_aside(slice, spec, f"{named(spec)} is not undone:", effect, error, text, choices, reasons=reasons)


def answered_elsewhere(row: Effect, reason: str) -> None:
    """Withdraw what is asked about an effect, because its worker has reported; in the caller's transaction."""
    asking = Gate.objects.open().filter(run=row.run, step=row.step, kind=Gate.Kind.RECOVERY)
    for gate in list(asking.select_for_update().order_by("pk")):
        if about(gate) == row.key:
            closing.withdraw(gate, by=SYSTEM, reason=reason)


def about(gate: Gate) -> str:
    """Return the key of the effect that a recovery gate asks about; empty where it asks about none."""
    question = gate.asked.question
    return question.get("effect", "") if question else ""


def take_over(slice: RunSession, spec: StepSpec, origin: Effect) -> None:
    """Ask a fork whether it takes over what the run that it came from has done. Raises Fenced."""
    known = origin.there and translate.readable(origin, slice.run.plan)
    take: list[AnswerChoice] = [_choice(RecoveryAnswer.TAKE, "Take over its result; nothing is done")]
    choices: list[AnswerChoice] = [
        *(take if known else []),
        _choice(RecoveryAnswer.DO_AGAIN, f"Do {named(spec)} once more, for this run"),
        _choice(RecoveryAnswer.STOP, "Stop the run"),
    ]
    title = (
        f"R-{origin.run_id} did {named(spec)}:" if origin.there else f"R-{origin.run_id} may have done {named(spec)}:"
    )
    text = f"R-{origin.run_id} has done {named(spec)} with the same input, under its key {origin.key}."
    if not origin.there:
        text = f"R-{origin.run_id} began {named(spec)} with the same input, under its key {origin.key}. "
        text += "Nobody knows whether it stands."
    reasons = [f"Done once more, {named(spec)} happens twice: once for R-{origin.run_id} and once for this run"]
    if origin.there and not known:
        text += " What it gave cannot be brought to this version of the agent, so there is nothing to take over."
    if origin.status == Effect.Status.UNDONE:
        title = f"R-{origin.run_id} took {named(spec)} back:"
        text = f"R-{origin.run_id} has taken {named(spec)} back since, so there is nothing to take over."
        reasons = [f"Done now, {named(spec)} happens for this run alone"]
    _ask(slice, spec, title, "", text, choices, risk="high", reasons=reasons, about=origin.key)


def result_schema(slice: RunSession, spec: StepSpec) -> dict[str, Any]:
    """Return the JSON Schema of what a step returns: an object of the fields that it writes."""
    schema = slice.plan.state_schema
    known = {name: part for name, part in schema.get("properties", {}).items() if name in spec.writes}
    if len(spec.writes) == 1:  # what happened has a result: the step's only field cannot be left out
        known = {name: {**resolved(part, schema)} for name, part in known.items()}
        for part in known.values():
            part.pop("default", None)
    made: dict[str, Any] = {
        "type": "object",
        "properties": known,
        "required": list(spec.writes),
        "additionalProperties": False,
    }
    return made | ({"$defs": schema["$defs"]} if "$defs" in schema else {})


def _without(spec: StepSpec) -> list[AnswerChoice]:
    """Offer to go on without a step, which what follows may bear, or not at all."""
    label = f"Go on without {named(spec)}; what it writes stays as it is"
    skip: AnswerChoice = _choice(RecoveryAnswer.SKIP, label)
    return [skip] * (spec.kind == "step") + [_choice(RecoveryAnswer.STOP, "Stop the run")]


def _ask_aside(
    slice: RunSession,
    spec: StepSpec,
    title: str,
    effect: Effect,
    error: str,
    text: str,
    choices: list[AnswerChoice],
    *,
    reasons: list[str],
) -> None:
    """Ask at a checkpoint of its own: the head may have another gate, which is asked again afterwards."""
    with transaction.atomic():
        asking = Gate.objects.open().filter(run=slice.run)
        gates = list(asking.select_for_update().order_by("pk"))
        slice.save("recovery", spec, {}, slice.snapshot.next_step, counts=False, slice_over=False)
        for gate in gates:
            closing.withdraw(
                gate, by=slice.by, reason=f"{named(spec)} has to be settled first; this is asked again afterwards."
            )
        _ask(slice, spec, title, error, text, choices, risk="high", reasons=reasons, allows=(), about=effect.key)


def _ask(
    slice: RunSession,
    spec: StepSpec,
    title: str,
    error: str,
    text: str,
    choices: list[AnswerChoice],
    *,
    risk: str,
    reasons: list[str],
    allows: Sequence[str] | None = None,
    shown: Sequence[Action] = (),
    about: str = "",
) -> None:
    permits = allows is None and spec.guarded
    run_title = "" if slice.run.title == slice.plan.agent else slice.run.title  # a run without one has its agent's name
    question: Question = {"text": text, "choices": choices}
    if about:
        question["effect"] = about
    card = Card(
        title=one_line(f"{title} {run_title}" if run_title else title.removesuffix(":"), 200),
        summary=error,
        resource=f"run {slice.run.pk}",
        risk=risk,
        reasons=reasons + ([f"{named(spec)} cannot be undone"] if spec.irreversible else []),
        # An answer may let the effect run, so whoever gives it sees the arguments.
        actions=shown or (shown_for(slice, spec) if allows is None else []),
        preconditions=carried(slice, spec) if permits else [],
        allows=[spec.name] if permits else [],
        question=question,
    )
    crash_points.point("before_gate", spec.name)
    open_gate(
        claim=slice.claim,
        run=slice.run,
        snapshot=slice.snapshot,
        step=spec,
        policy=policy_of(slice, spec),
        card=card,
        kind="recovery",
        by=slice.by,
        asked_by=slice.for_whom,
    )
    crash_points.point("after_gate", spec.name)


def named(spec: StepSpec) -> str:
    """Name a step in a sentence, by its title."""
    return quoted([spec.title])


def policy_of(slice: RunSession, spec: StepSpec) -> str:
    """Return the policy for asking: for an effect that of those who may allow it, else the team's default."""
    if spec.kind == "gate":
        return spec.policy
    return next((gate.policy for gate in slice.plan.steps if spec.name in gate.allows), "default")


def _choice(answer: RecoveryAnswer, label: str, schema: dict[str, Any] | None = None) -> AnswerChoice:
    """Return one answer to offer; with a `schema` it takes a value."""
    if schema is None:
        return {"id": answer, "label": label, "needs_value": False}
    return {"id": answer, "label": label, "needs_value": True, "schema": schema}
