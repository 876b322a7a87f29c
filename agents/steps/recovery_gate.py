"""Recovery gates: questions to a person after a step failed for good or an effect's end is unknown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction

from agents.models import Effect
from agents.session import allowing_gate, gates_beside, translate_history
from agents.session.allowing_gate import carried, shown_for
from agents.session.run_session import RunSession
from approvals.cards.action import Action
from approvals.cards.answer import RecoveryAnswer
from approvals.cards.card import AnswerChoice, Card, Question
from approvals.english import count_of, quote_titles
from approvals.gates import closing
from approvals.gates.opening import open_gate
from approvals.models import Gate, Grant
from approvals.schema.walk import resolve_part
from checkpoints import crash_points
from checkpoints.actors import SYSTEM
from checkpoints.runs.plans import StepSpec, in_words
from checkpoints.values.characters import one_line


def quarantine(session: RunSession, spec: StepSpec, error: str) -> None:
    """Ask how to go on after a step that failed. Releases the run to waiting. Raises Fenced, as all of these do."""
    step = named(spec)
    choices = [choice(RecoveryAnswer.RETRY, f"Try {step} again")]
    if allowing_gate.may_revise(session, spec):
        choices.append(choice(RecoveryAnswer.REVISE, "Change the values first, then approve them again"))
    tries = f" after {count_of(session.attempt, 'attempt')}" if session.attempt > 1 else ""
    text = f"{step} did not succeed{tries}. How should the run go on?"
    reasons = [f"{step} failed, so nothing after it has run"]
    choices += _without(spec)
    ask(session, spec, f"{step} failed:", text, choices, reasons=reasons, error=error)


def refused(session: RunSession, spec: StepSpec, words: Sequence[str], shown: Sequence[Action]) -> None:
    """Ask how to go on after validators refused an output and no repair helped.

    `shown` is the output, which a person may accept; empty where it is too large to be shown.
    """
    step = named(spec)
    accept = [choice(RecoveryAnswer.ACCEPT, f"Accept what {step} returned")] if shown else []
    choices = [choice(RecoveryAnswer.RETRY, f"Try {step} again"), *accept, *_without(spec)]
    text = f"The validators refused what {step} returned, and no repair has helped. How should the run go on?"
    reasons = [f"What {step} returned did not pass {quote_titles(map(in_words, spec.validators))}"]
    title, error = f"The result of {step} was refused:", "\n".join(words)
    ask(session, spec, title, text, choices, reasons=reasons, error=error, shown=shown)


def looping(session: RunSession, spec: StepSpec, times: int) -> None:
    """Ask whether a step that ran as often as its loop guard allows may run again."""
    step = named(spec)
    more = f"Let {step} run up to {count_of(times, 'more time')}"
    text = (
        f"{step} has run {count_of(times, 'time')} on this path, the most that its loop guard allows. May it run again?"
    )
    choices, reasons = [choice(RecoveryAnswer.RETRY, more), *_without(spec)], ["The run may be in an endless loop"]
    ask(session, spec, f"{step} keeps repeating:", text, choices, reasons=reasons)


def unknown(session: RunSession, spec: StepSpec, effect: Effect, error: str, *, lapsed: str = "") -> None:
    """Ask whether an effect happened.

    `lapsed`: why its permission no longer holds; then no answer permits it, and its gate asks afterwards.
    """
    step = named(spec)
    do, again = f"It did not happen: do {step} now", f"Whether it happened or not, do {step} again now"
    if lapsed:
        do = f"It did not happen: do {step} after a new approval"
        again = f"Whether it happened or not, do {step} again after a new approval"
    choices = [
        choice(RecoveryAnswer.HAPPENED, "It happened", result_schema(session, spec)),
        choice(RecoveryAnswer.NOT_HAPPENED, do),
        choice(RecoveryAnswer.AGAIN, again),
        choice(RecoveryAnswer.STOP, "Stop the run, and leave this unanswered"),
    ]
    text = (
        f"Nobody knows whether {step} happened: the provider's answer never arrived. Look it up there by its key "
        f"{effect.key}, then answer."
    )
    twice = f"If {step} happened and is done again, it happens twice"
    reasons, title = [f"{step} may have happened already" if spec.idempotent else twice], f"Did {step} happen?"
    ask(session, spec, title, text, choices, reasons=reasons, error=error, effect=effect, lapsed=lapsed)


def abandoned(session: RunSession, spec: StepSpec, effect: Effect) -> None:
    """Ask whether an effect that the run has left behind happened."""
    step = named(spec)
    happened = f"{step} happened; it will be undone" if spec.undo else f"{step} happened; it cannot be undone"
    choices = [
        choice(RecoveryAnswer.WAS_DONE, happened, result_schema(session, spec)),
        choice(RecoveryAnswer.WAS_NOT_DONE, "It did not happen"),
        choice(RecoveryAnswer.LEFT_OPEN, "Leave this unanswered, and go on"),
    ]
    text = (
        f"The run was moved while {step} was under way, and nobody knows whether it happened. Look it up at the "
        f"provider by its key {effect.key}, then answer."
    )
    reasons = [f"{step} may have happened, although the run no longer needs it"]
    title, error = f"Did {step} happen?", effect.error
    with transaction.atomic():
        _step_aside(session, spec)
        ask(session, spec, title, text, choices, reasons=reasons, error=error, effect=effect, permits=False)


def not_readable(session: RunSession, spec: StepSpec, effect: Effect, error: str) -> None:
    """Ask for the result of an effect of another version, when that result cannot be upgraded to this version."""
    step = named(spec)
    gave = choice(RecoveryAnswer.GAVE, "This was its result", result_schema(session, spec))
    choices = [gave, choice(RecoveryAnswer.STOP, "Stop the run")]
    text = (
        f"{step} was done under another version of the agent, and its result does not fit this version. Look it up "
        f"at the provider by its key {effect.key}, then enter it here. {step} is not done again."
    )
    title, reasons = f"What was the result of {step}?", [f"{step} is done and was not undone"]
    ask(session, spec, title, text, choices, reasons=reasons, error=error, effect=effect, permits=False)


def not_undone(session: RunSession, spec: StepSpec, effect: Effect, error: str) -> None:
    """Ask how to go on after an undo that failed."""
    step = named(spec)
    choices = [
        choice(RecoveryAnswer.UNDO_AGAIN, f"Try again to undo {step}"),
        choice(RecoveryAnswer.UNDONE, f"{step} is undone: somebody reversed it by hand"),
        choice(RecoveryAnswer.KEEP, f"Leave {step} done"),
    ]
    text = f"The run no longer needs {step}, but it could not be undone. The provider knows it by its key {effect.key}."
    title, reasons = f"{step} is not undone:", [f"{step} is still done"]
    with transaction.atomic():
        _step_aside(session, spec)
        ask(session, spec, title, text, choices, reasons=reasons, error=error, effect=effect, permits=False)


def take_over(session: RunSession, spec: StepSpec, origin: Effect) -> None:
    """Ask whether a fork takes over the effect that the run it came from has done, or may have done."""
    step = named(spec)
    run = f"R-{origin.run_id}"
    known = origin.there and translate_history.readable(origin, session.run.plan)
    reasons = [f"Done once more, {step} happens twice: once for {run} and once for this run"]
    if origin.status == Effect.Status.UNDONE:
        title = f"{run} undid {step}:"
        text = f"{run} has undone {step}, so there is no result to reuse."
        reasons = [f"Done now, {step} happens for this run alone"]
    elif origin.there:
        title = f"{run} did {step}:"
        text = f"{run} has done {step} with the same input, under its key {origin.key}."
        if not known:
            text += " Its result does not fit this version of the agent, so it cannot be reused."
    else:
        title = f"{run} may have done {step}:"
        text = f"{run} began {step} with the same input, under its key {origin.key}. Nobody knows whether it happened."
    take = [choice(RecoveryAnswer.TAKE, "Reuse its result; nothing is done")] if known else []
    again = choice(RecoveryAnswer.DO_AGAIN, f"Do {step} once more, for this run")
    choices = [*take, again, choice(RecoveryAnswer.STOP, "Stop the run")]
    ask(session, spec, title, text, choices, reasons=reasons, effect=origin)


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


def result_schema(session: RunSession, spec: StepSpec) -> dict[str, Any]:
    """Return the JSON Schema of what a step returns: an object of the fields that it writes."""
    schema = session.plan.state_schema
    known = {name: part for name, part in schema.get("properties", {}).items() if name in spec.writes}
    if len(spec.writes) == 1:  # what happened has a result: the step's only field cannot be left out
        known = {name: {**resolve_part(part, schema)} for name, part in known.items()}
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
    skip = choice(RecoveryAnswer.SKIP, f"Skip {named(spec)}; the fields that it writes stay as they are")
    return [skip] * (spec.kind == "step") + [choice(RecoveryAnswer.STOP, "Stop the run")]


def _step_aside(session: RunSession, spec: StepSpec) -> None:
    """Save a checkpoint to ask at and withdraw the gate that is open at the head, in the caller's transaction.

    The gates beside it are locked too: that they are looked at once the run waits comes after the run's row is locked.
    """
    gates_beside.lock(session.run.pk)
    asking = Gate.objects.open().filter(run=session.run).exclude(checkpoint__in=list(session.asking))
    gates = list(asking.order_by("pk"))
    session.save("recovery", spec, {}, session.snapshot.next_step, slice_over=False)
    reason = f"{named(spec)} has to be settled first; this is asked again afterwards."
    for gate in gates:
        closing.withdraw(gate, by=session.by, reason=reason)


def ask(
    session: RunSession,
    spec: StepSpec,
    title: str,
    text: str,
    choices: list[AnswerChoice],
    *,
    reasons: list[str],
    error: str = "",
    effect: Effect | None = None,
    permits: bool = True,
    lapsed: str = "",
    shown: Sequence[Action] = (),
    runs: Sequence[int] = (),
) -> None:
    """Open a recovery gate.

    `effect`, `runs`: what it asks about; `permits`: whether an answer may let the step run; `lapsed`: why none may.
    """
    reasons = [*reasons, *filter(None, [lapsed])]
    if spec.irreversible:
        reasons.append(f"{named(spec)} cannot be undone")
    permits = permits and not lapsed
    grants = permits and spec.guarded
    run_title = session.run.title if session.run.title != session.plan.agent else ""  # without one, its agent's name
    question: Question = {"text": text, "choices": choices}
    if effect is not None:
        question["effect"] = effect.key
    if runs:
        question["runs"] = list(runs)
    card = Card(
        title=one_line(f"{title} {run_title}" if run_title else title.removesuffix(":"), 200),
        summary=error,
        resource=f"run {session.run.pk}",
        risk="high" if effect or runs else "medium",
        reasons=reasons,
        # An answer may let the effect run, so whoever gives it sees the arguments.
        actions=shown or (shown_for(session, spec) if permits else []),
        preconditions=carried(session, spec) if grants else [],
        allows=[spec.name] if grants else [],
        question=question,
    )
    crash_points.point("before_gate", spec.name)
    with gates_beside.falling_asleep(session.run, session.asking):
        open_gate(
            claim=session.claim,
            run=session.run,
            snapshot=session.snapshot,
            step=spec,
            policy=_policy_of(session, spec, effect),
            card=card,
            kind="recovery",
            by=session.by,
            asked_by=session.for_whom,
        )
    crash_points.point("after_gate", spec.name)


def named(spec: StepSpec) -> str:
    """Return the step's title in quotes."""
    return quote_titles([spec.title])


def _policy_of(session: RunSession, spec: StepSpec, effect: Effect | None) -> str:
    """Return the policy for asking: the gate's own, or the one by which the effect was approved last.

    Else that of the first gate which allows it, or the default. An answer may let the effect run once more.
    """
    if spec.kind == "gate":
        return spec.policy
    given = Grant.objects.filter(outcome__gate__run=session.run, effect=spec.name)
    if effect is not None and effect.grant_id is not None:
        given = Grant.objects.filter(pk=effect.grant_id)
    if approved := given.order_by("-pk").values_list("outcome__gate__policy__name", flat=True).first():
        return approved
    return next((gate.policy for gate in session.plan.steps if spec.name in gate.allows), "default")


def choice(answer: RecoveryAnswer, label: str, schema: dict[str, Any] | None = None) -> AnswerChoice:
    """Return one choice; with a `schema` it takes a value."""
    made: AnswerChoice = {"id": answer, "label": label, "needs_value": schema is not None}
    return made if schema is None else {**made, "schema": schema}
