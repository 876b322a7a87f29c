"""Recovery gates: questions to a person after a step failed for good or an effect's end is unknown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction

from agents.models import Effect
from agents.session import allowing_gate, translate_history
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
    """Ask how to go on after a step that failed. Releases the run to waiting. Raises Fenced, as all of these do."""
    name = named(spec)
    choices = [_choice(RecoveryAnswer.RETRY, f"Try {name} again")]
    if allowing_gate.may_revise(slice, spec):
        choices.append(_choice(RecoveryAnswer.REVISE, "Change the values first, then approve them again"))
    after = "" if slice.attempt == 1 else f" after {counted(slice.attempt, 'attempt')}"
    text = f"{name} did not succeed{after}. How should the run go on?"
    reasons = [f"{name} failed, so nothing after it has run"]
    _ask(slice, spec, f"{name} failed:", text, [*choices, *_without(spec)], reasons=reasons, error=error)


def refused(slice: RunSession, spec: StepSpec, words: Sequence[str], shown: Sequence[Action]) -> None:
    """Ask how to go on after validators refused an output and no repair helped.

    `shown` is the output, which a person may accept; empty where it is too large to be shown.
    """
    name = named(spec)
    accept = [_choice(RecoveryAnswer.ACCEPT, f"Accept what {name} returned")] if shown else []
    choices = [_choice(RecoveryAnswer.RETRY, f"Try {name} again"), *accept, *_without(spec)]
    text = f"The validators refused what {name} returned, and no repair has helped. How should the run go on?"
    reasons = [f"What {name} returned did not pass {quoted(map(in_words, spec.validators))}"]
    title = f"The result of {name} was refused:"
    _ask(slice, spec, title, text, choices, reasons=reasons, error="\n".join(words), shown=shown)


def looping(slice: RunSession, spec: StepSpec, times: int) -> None:
    """Ask whether a step that ran as often as its loop guard allows may run again."""
    name = named(spec)
    choices = [_choice(RecoveryAnswer.RETRY, f"Let {name} run up to {counted(times, 'more time')}"), *_without(spec)]
    text = (
        f"{name} has run {counted(times, 'time')} on this path, the most that its loop guard allows. May it run again?"
    )
    _ask(slice, spec, f"{name} keeps repeating:", text, choices, reasons=["The run may be in an endless loop"])


def unknown(slice: RunSession, spec: StepSpec, effect: Effect, error: str, *, lapsed: str = "") -> None:
    """Ask whether an effect happened.

    `lapsed`: why its permission no longer holds; then no answer permits it, and its gate asks afterwards.
    """
    name = named(spec)
    when = "after a new approval" if lapsed else "now"
    choices = [
        _choice(RecoveryAnswer.HAPPENED, "It happened", result_schema(slice, spec)),
        _choice(RecoveryAnswer.NOT_HAPPENED, f"It did not happen: do {name} {when}"),
        _choice(RecoveryAnswer.AGAIN, f"Whether it happened or not, do {name} again {when}"),
        _choice(RecoveryAnswer.STOP, "Stop the run, and leave this unanswered"),
    ]
    text = (
        f"Nobody knows whether {name} happened: the provider's answer never arrived. "
        f"Look it up there by its key {effect.key}, then answer."
    )
    reasons = [
        f"{name} may have happened already"
        if spec.idempotent
        else f"If {name} happened and is done again, it happens twice",
        *filter(None, [lapsed]),
    ]
    title = f"Did {name} happen?"
    _ask(slice, spec, title, text, choices, reasons=reasons, error=error, effect=effect, permits=not lapsed)


def abandoned(slice: RunSession, spec: StepSpec, effect: Effect) -> None:
    """Ask whether an effect that the run has left behind happened."""
    name = named(spec)
    undoing = "it will be undone" if spec.undo else "it cannot be undone"
    choices = [
        _choice(RecoveryAnswer.WAS_DONE, f"{name} happened; {undoing}", result_schema(slice, spec)),
        _choice(RecoveryAnswer.WAS_NOT_DONE, "It did not happen"),
        _choice(RecoveryAnswer.LEFT_OPEN, "Leave this unanswered, and go on"),
    ]
    text = (
        f"The run was moved while {name} was under way, and nobody knows whether it happened. "
        f"Look it up at the provider by its key {effect.key}, then answer."
    )
    reasons = [f"{name} may have happened, although the run no longer needs it"]
    title, error = f"Did {name} happen?", effect.error
    with transaction.atomic():
        _step_aside(slice, spec)
        _ask(slice, spec, title, text, choices, reasons=reasons, error=error, effect=effect, permits=False)


def not_readable(slice: RunSession, spec: StepSpec, effect: Effect, error: str) -> None:
    """Ask for the result of an effect of another version, when that result cannot be upgraded to this version."""
    name = named(spec)
    gave = _choice(RecoveryAnswer.GAVE, "This was its result", result_schema(slice, spec))
    choices = [gave, _choice(RecoveryAnswer.STOP, "Stop the run")]
    text = (
        f"{name} was done under another version of the agent, and its result does not fit this version. "
        f"Look it up at the provider by its key {effect.key}, then enter it here. {name} is not done again."
    )
    title, reasons = f"What was the result of {name}?", [f"{name} is done and was not undone"]
    _ask(slice, spec, title, text, choices, reasons=reasons, error=error, effect=effect, permits=False)


def not_undone(slice: RunSession, spec: StepSpec, effect: Effect, error: str) -> None:
    """Ask how to go on after an undo that failed."""
    name = named(spec)
    choices = [
        _choice(RecoveryAnswer.UNDO_AGAIN, f"Try again to undo {name}"),
        _choice(RecoveryAnswer.UNDONE, f"{name} is undone: somebody reversed it by hand"),
        _choice(RecoveryAnswer.KEEP, f"Leave {name} done"),
    ]
    text = f"The run no longer needs {name}, but it could not be undone. The provider knows it by its key {effect.key}."
    reasons = [f"{name} is still done"]
    title = f"{name} is not undone:"
    with transaction.atomic():
        _step_aside(slice, spec)
        _ask(slice, spec, title, text, choices, reasons=reasons, error=error, effect=effect, permits=False)


def take_over(slice: RunSession, spec: StepSpec, origin: Effect) -> None:
    """Ask whether a fork takes over the effect that the run it came from has done, or may have done."""
    name, other = named(spec), f"R-{origin.run_id}"
    known = origin.there and translate_history.readable(origin, slice.run.plan)
    reasons = [f"Done once more, {name} happens twice: once for {other} and once for this run"]
    if origin.status == Effect.Status.UNDONE:
        title = f"{other} undid {name}:"
        text = f"{other} has undone {name}, so there is no result to reuse."
        reasons = [f"Done now, {name} happens for this run alone"]
    elif origin.there:
        title = f"{other} did {name}:"
        text = f"{other} has done {name} with the same input, under its key {origin.key}."
        text += "" if known else " Its result does not fit this version of the agent, so it cannot be reused."
    else:
        title = f"{other} may have done {name}:"
        text = (
            f"{other} began {name} with the same input, under its key {origin.key}. Nobody knows whether it happened."
        )
    take = [_choice(RecoveryAnswer.TAKE, "Reuse its result; nothing is done")] if known else []
    again = _choice(RecoveryAnswer.DO_AGAIN, f"Do {name} once more, for this run")
    choices = [*take, again, _choice(RecoveryAnswer.STOP, "Stop the run")]
    _ask(slice, spec, title, text, choices, reasons=reasons, effect=origin)


def answered_elsewhere(row: Effect, reason: str) -> None:
    """Withdraw the open questions about an effect after its worker has reported; in the caller's transaction."""
    asking = Gate.objects.open().filter(run=row.run, step=row.step, kind=Gate.Kind.RECOVERY)
    for gate in list(asking.select_for_update().order_by("pk")):
        if about(gate) == row.key:
            closing.withdraw(gate, by=SYSTEM, reason=reason)


def about(gate: Gate) -> str:
    """Return the key of the effect that a recovery gate asks about; empty if there is none."""
    question = gate.asked.question
    return question.get("effect", "") if question else ""


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
    """Return the choices to do without the step: skip it, if it is a plain one, or stop the run."""
    skip = _choice(RecoveryAnswer.SKIP, f"Skip {named(spec)}; the fields that it writes stay as they are")
    return [skip] * (spec.kind == "step") + [_choice(RecoveryAnswer.STOP, "Stop the run")]


def _step_aside(slice: RunSession, spec: StepSpec) -> None:
    """Save a checkpoint to ask at and withdraw the run's open gates, in the caller's transaction."""
    asking = Gate.objects.open().filter(run=slice.run)
    gates = list(asking.select_for_update().order_by("pk"))
    slice.save("recovery", spec, {}, slice.snapshot.next_step, slice_over=False)
    for gate in gates:
        closing.withdraw(
            gate, by=slice.by, reason=f"{named(spec)} has to be settled first; this is asked again afterwards."
        )


def _ask(
    slice: RunSession,
    spec: StepSpec,
    title: str,
    text: str,
    choices: list[AnswerChoice],
    *,
    reasons: list[str],
    error: str = "",
    effect: Effect | None = None,
    permits: bool = True,
    shown: Sequence[Action] = (),
) -> None:
    """Open the gate. `effect`: the one it asks about; `permits`: whether an answer may let the step run."""
    grants = permits and spec.guarded
    run_title = "" if slice.run.title == slice.plan.agent else slice.run.title  # a run without one has its agent's name
    question: Question = {"text": text, "choices": choices}
    if effect is not None:
        question["effect"] = effect.key
    card = Card(
        title=one_line(f"{title} {run_title}" if run_title else title.removesuffix(":"), 200),
        summary=error,
        resource=f"run {slice.run.pk}",
        risk="medium" if effect is None else "high",
        reasons=reasons + ([f"{named(spec)} cannot be undone"] if spec.irreversible else []),
        # An answer may let the effect run, so whoever gives it sees the arguments.
        actions=shown or (shown_for(slice, spec) if permits else []),
        preconditions=carried(slice, spec) if grants else [],
        allows=[spec.name] if grants else [],
        question=question,
    )
    crash_points.point("before_gate", spec.name)
    open_gate(
        claim=slice.claim,
        run=slice.run,
        snapshot=slice.snapshot,
        step=spec,
        policy=_policy_of(slice, spec),
        card=card,
        kind="recovery",
        by=slice.by,
        asked_by=slice.for_whom,
    )
    crash_points.point("after_gate", spec.name)


def named(spec: StepSpec) -> str:
    """Return the step's title in quotes."""
    return quoted([spec.title])


def _policy_of(slice: RunSession, spec: StepSpec) -> str:
    """Return the policy for asking: the gate's own, that of the gate which allows the effect, else the default."""
    if spec.kind == "gate":
        return spec.policy
    return next((gate.policy for gate in slice.plan.steps if spec.name in gate.allows), "default")


def _choice(answer: RecoveryAnswer, label: str, schema: dict[str, Any] | None = None) -> AnswerChoice:
    """Return one choice; with a `schema` it takes a value."""
    choice: AnswerChoice = {"id": answer, "label": label, "needs_value": schema is not None}
    return choice if schema is None else {**choice, "schema": schema}
