"""Writes an approval into the state: the edit, and what the agent is told of the decision.

The agent reads in its feedback, action by action, what was refused or answered for it; and what was edited, where
its items name the action: an agent that is not told would propose its own call again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from agents.definition import feedback, fields
from agents.definition.feedback import Words
from agents.session.run_session import RunSession
from approvals.cards import answer as answering
from approvals.cards.action import LATER, RESPOND, SettledAction
from approvals.engine_rules.permissions import DECISION
from approvals.models import Gate, Outcome
from approvals.schema import redact
from checkpoints.values import patch
from checkpoints.values.canonical_json import encode_canonical
from checkpoints.values.characters import one_line
from checkpoints.values.ops import DROP
from checkpoints.values.patch import touched_members

SHORT = 200  # characters of a value in a sentence
MOST = 50  # places of one action that are told one by one; all of them are in its arguments


def writes(session: RunSession, gate: Gate, outcome: Outcome) -> dict[str, Any]:
    """Return what an approval writes into the state at the head."""
    state = patch.apply(outcome.state_patch, session.snapshot.state)
    spec = session.plan.step(gate.step)
    lines = list(by_action(session, spec.feedback, gate, outcome))
    words = feedback.append_words(session.agent, spec.feedback, lines)
    edited = {name: state.get(name, DROP) for name in touched_members(outcome.state_patch)}
    return edited | words | describe_decision(session, gate, outcome, state)


def by_action(session: RunSession, field: str, gate: Gate, outcome: Outcome) -> Iterator[Words]:
    """Yield what was said of each single action, in the card's order."""
    edits = outcome.kind in (Outcome.Kind.EDITED, Outcome.Kind.MIXED) and feedback.names_actions(session.agent, field)
    asked, who = gate.asked, outcome.by_name or outcome.by
    for action in outcome.proposal.card.actions:
        common = Words(at=outcome.created_at, gate=gate.pk, action=action.id)
        before = asked.action(action.id)
        if action.settled_as == LATER:
            continue
        if settled := action.masked_settled:
            yield common | Words(text=_refusal(settled), by=settled.by, pointer=action.pointer)
        elif edits and before is not None:
            for row in redact.veil_marks(action.schema).rows(
                patch.list_changes(before.arguments, action.arguments)[:MOST]
            ):
                yield common | Words(text=_edit(row), by=who, pointer=action.pointer + row["pointer"])


def _refusal(settled: SettledAction) -> str:
    if settled.verdict != RESPOND:
        return settled.reason
    return settled.response if isinstance(settled.response, str) else encode_canonical(settled.response).decode()


def _edit(row: dict[str, Any]) -> str:
    was, now = (one_line(encode_canonical(row.get(side)).decode(), SHORT) for side in ("before", "after"))
    return {"added": f"Added {now}.", "removed": f"Removed {was}."}.get(row["kind"], f"Changed from {was} to {now}.")


def describe_decision(session: RunSession, gate: Gate, outcome: Outcome, after: dict[str, Any]) -> dict[str, Any]:
    """Return what the agent is told of the decision, where its state has a place for it."""
    if DECISION not in session.agent.State.model_fields:
        return {}
    values = {
        "gate": gate.step,
        "kind": outcome.kind,
        "by": outcome.by_name or outcome.by,
        # The state has the true values in their fields; these are read where nothing says that they are secret.
        "changes": fields.veil(session.agent.State).rows(patch.list_changes(session.snapshot.state, after)),
        "answer": answering.masked(outcome.gate.asked, outcome.answered),
    }
    if outcome.kind == Outcome.Kind.MIXED:
        known = {action.id: action.masked_settled for action in outcome.proposal.card.actions}
        settled = {name: asdict(action) for name, action in known.items() if action}
        values["verdicts"] = {
            name: {"verdict": verdict, **settled.get(name, {})} for name, verdict in outcome.by_action.items()
        }  # fmt: skip
    return {DECISION: fields.dumped(session.agent.State, DECISION, values)}
