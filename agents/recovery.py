"""Recovery gates: what a person is asked when a step failed for good or nobody knows what an effect did."""

from __future__ import annotations

from typing import Any

from approvals.cards import Card, Choice
from approvals.opening import open_gate
from approvals.schemas import resolved
from checkpoints.plans import StepSpec

from . import crash
from .allowances import shown_for
from .models import Effect
from .slices import Slice
from .text import one_line

HAPPENED, NOT_HAPPENED, AGAIN = "happened", "not_happened", "again"
RETRY, SKIP, STOP = "retry", "skip", "stop"


def quarantine(slice: Slice, spec: StepSpec, error: str) -> None:
    """Ask how to go on after a step that failed. Releases the run to waiting. Raises Fenced."""
    choices: list[Choice] = [{"id": RETRY, "label": f"Try {spec.name} again", "needs_value": False}]
    if spec.kind == "step":
        label = f"Go on without {spec.name}; what it writes stays as it is"
        choices.append({"id": SKIP, "label": label, "needs_value": False})
    choices.append({"id": STOP, "label": "Stop the run", "needs_value": False})
    text = f"{spec.name} did not succeed after {slice.attempt} attempts. How should the run go on?"
    if slice.attempt == 1:
        text = f"{spec.name} did not succeed. How should the run go on?"
    reasons = [f"{spec.name} failed, so nothing after it has run"]
    _ask(slice, spec, f"{spec.name} failed:", error, text, choices, risk="medium", reasons=reasons)


def unknown(slice: Slice, spec: StepSpec, effect: Effect, error: str) -> None:
    """Ask what became of an effect. Releases the run to waiting. Raises Fenced."""
    choices: list[Choice] = [
        {"id": HAPPENED, "label": "It happened", "needs_value": True, "schema": result_schema(slice, spec)},
        {"id": NOT_HAPPENED, "label": f"It did not happen: do {spec.name} now", "needs_value": False},
        {"id": AGAIN, "label": f"Do {spec.name} again, whatever became of it", "needs_value": False},
        {"id": STOP, "label": "Stop the run, and leave it open", "needs_value": False},
    ]
    text = (
        f"Nobody knows whether {spec.name} happened: the answer never arrived. "
        f"Look it up at the provider by its key {effect.key}, then say what it was."
    )
    reasons = [f"If {spec.name} happened and is done again, it happens twice"]
    if spec.idempotent:
        reasons = [f"{spec.name} may have happened already"]
    _ask(slice, spec, f"Did {spec.name} happen?", error, text, choices, risk="high", reasons=reasons)


def result_schema(slice: Slice, spec: StepSpec) -> dict[str, Any]:
    """The JSON Schema of what a step returns: an object of the fields that it writes."""
    schema = slice.plan.state_schema
    known = {name: part for name, part in schema.get("properties", {}).items() if name in spec.writes}
    if len(spec.writes) == 1:  # what happened has a result: the only thing that the step returns is not nothing
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


def _ask(
    slice: Slice,
    spec: StepSpec,
    title: str,
    error: str,
    text: str,
    choices: list[Choice],
    *,
    risk: str,
    reasons: list[str],
) -> None:
    card = Card(
        title=one_line(f"{title} {slice.run.title}", 200),
        summary=error,
        resource=f"run {slice.run.pk}",
        risk=risk,
        reasons=reasons + ([f"{spec.name} cannot be undone"] if spec.irreversible else []),
        actions=shown_for(slice, spec),  # an answer may let the effect run: whoever gives it sees with what
        allows=[spec.name] if spec.guarded else [],
        question={"text": text, "choices": choices},
    )
    crash.point("before_gate", spec.name)
    open_gate(
        claim=slice.claim,
        run=slice.run,
        snapshot=slice.snapshot,
        step=spec,
        policy=policy_of(slice, spec),
        card=card,
        kind="recovery",
        by=slice.by,
    )
    crash.point("after_gate", spec.name)


def policy_of(slice: Slice, spec: StepSpec) -> str:
    """Who is asked: for an effect those who may allow it, else the team's default policy."""
    if spec.kind == "gate":
        return spec.policy
    return next((gate.policy for gate in slice.plan.steps if spec.name in gate.allows), "default")
