"""The answers to a gate's question. Pure.

Also here: the answers to a recovery gate, which opens when a step failed, or when an effect's outcome is unknown.

The runner offers them and carries them out, the impact previews each, and the timeline says what was answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from approvals.errors import Invalid, Problem, make_problem
from approvals.schema import redact, validate
from checkpoints.errors import ValueRefused
from checkpoints.values import canonical_json

from .card import AnswerChoice, Card


class RecoveryAnswer(StrEnum):
    """The id of one answer, as gates, events and the API carry it."""

    # About an effect whose outcome is unknown.
    HAPPENED = "happened"
    NOT_HAPPENED = "not_happened"
    AGAIN = "again"
    # About a step that failed for good.
    RETRY = "retry"
    REVISE = "revise"
    SKIP = "skip"
    STOP = "stop"
    ACCEPT = "accept"  # take the output that a validator refused
    WITHDRAW = "withdraw"  # have what another version started undone, and try the step again
    # About an effect that the run left behind: its outcome, or that of its undo.
    WAS_DONE = "was_done"
    WAS_NOT_DONE = "was_not_done"
    LEFT_OPEN = "left_open"
    UNDO_AGAIN = "undo_again"
    UNDONE = "undone"
    KEEP = "keep"
    GAVE = "gave"  # the result of an effect, where this version cannot read the recorded one
    # In a fork, about an effect of the run that it came from.
    TAKE = "take"
    DO_AGAIN = "do_again"


# Answer -> the status that it gives an effect that was left behind. It also ends an undo that was begun.
STATUS_BY_ANSWER: dict[str, str] = {
    RecoveryAnswer.WAS_DONE: "done",
    RecoveryAnswer.WAS_NOT_DONE: "failed",
    RecoveryAnswer.LEFT_OPEN: "kept",
    RecoveryAnswer.UNDO_AGAIN: "done",
    RecoveryAnswer.UNDONE: "undone",
    RecoveryAnswer.KEEP: "kept",
}
# Answers after which the step is tried again.
TRIED_AGAIN = frozenset(
    {
        RecoveryAnswer.RETRY,
        RecoveryAnswer.NOT_HAPPENED,
        RecoveryAnswer.AGAIN,
        RecoveryAnswer.DO_AGAIN,
        RecoveryAnswer.WITHDRAW,
    }
)
# Answers after which the gate's effects may be performed.
GRANTING = frozenset({RecoveryAnswer.RETRY, RecoveryAnswer.NOT_HAPPENED, RecoveryAnswer.AGAIN})


def answered(card: Card, answer: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the answer in its one form, {"choice": id, "value": …}. Raises Invalid."""
    if card.question is None:
        raise Invalid([make_problem("This gate asks no question; approve, edit or reject it.")])
    chosen = (answer or {}).get("choice")
    choice = next((c for c in card.question["choices"] if c["id"] == chosen), None)
    if choice is None:
        raise Invalid([make_problem("Choose one of the answers.", pointer="/choice")])
    value = (answer or {}).get("value")
    faults = _faults(choice, value)
    if faults:
        raise Invalid(faults)
    return {"choice": choice["id"], "value": value if choice.get("needs_value") else None}


def grants(card: Card, answer: Mapping[str, Any] | None) -> bool:
    """Tell whether an answer lets the gate's effects run."""
    if answer is None or card.question is None:
        return False
    if not card.rejects:
        return answer["choice"] in GRANTING
    return any(choice["id"] == answer["choice"] and choice.get("grants", False) for choice in card.question["choices"])


def redaction(card: Card, answer: Mapping[str, Any]) -> redact.Redaction:
    """Return what of the value of an answer is hidden from whoever decides."""
    choices = card.question["choices"] if card.question else []
    schemas = (choice.get("schema") or {} for choice in choices if choice["id"] == answer["choice"])
    return redact.veil(next(schemas, {}), card.source)


def masked(card: Card, answer: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return an answer with what is secret in its value masked."""
    return answer and {**answer, "value": redaction(card, answer).masked(answer.get("value"))}


def row(card: Card, changed: Mapping[str, Any]) -> dict[str, Any]:
    """Mask one row of a difference between two answers, by the schemas of all choices."""
    for choice in card.question["choices"] if card.question else []:
        schema = choice.get("schema") or {}
        changed = redact.veil({"properties": {"value": schema}}, card.source, schema).row(changed)
    return dict(changed)


def _faults(choice: AnswerChoice, value: Any) -> list[Problem]:
    if not choice.get("needs_value"):
        return [] if value is None else [make_problem("This answer takes no value.", pointer="/value")]
    if value is None:
        return [make_problem("This answer needs a value.", pointer="/value")]
    try:
        canonical_json.encode_canonical(value)
    except ValueRefused as refused:
        return [make_problem(refused.reason, pointer="/value" + refused.pointer)]
    found = validate.faults_of(choice.get("schema") or {}, value)
    return [make_problem(said, pointer="/value" + place) for place, said in found]
