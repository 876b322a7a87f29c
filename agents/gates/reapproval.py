"""Reapproval: whether an earlier approval still holds when the run comes to its gate again.

It holds where the gate shows exactly what it showed then, over the same input, and every effect that it allowed is
done: then nothing is left to permit, and asking again would only cost a person time. It never gives a grant twice.
"""

from __future__ import annotations

from typing import Any

from agents.session import reuse
from agents.session.run_session import RunSession
from approvals import tools
from approvals.cards.card import Card, completed
from approvals.engine_rules import permissions
from approvals.gates.opening import body_of
from approvals.models import Gate, Outcome, Policy
from checkpoints.runs.plans import StepSpec
from checkpoints.values.canonical_json import encode_canonical

from . import outcome_writes

NOT_COMPARED = ("checkpoint", "reopened")  # parts of a card that tell where the gate was opened, not what it asks


def passed(session: RunSession, spec: StepSpec, card: Card | None, took: float) -> bool | None:
    """Write what the gate's earlier outcome wrote; True if the session goes on, None where the gate has to ask."""
    head = session.path.head
    if not session.branched or head.kind == "reopen" or session.path.forced(spec.name):
        return None
    if card is None:
        twin = reuse.twin_of(session, spec)
        return None if twin is None else session.executed(spec, {}, spec.on_skip or None, took=took, kind="reused")
    gate = _same(session, spec, card)
    if gate is None or not stands(gate.outcome):
        return None
    writes = outcome_writes.writes(session, gate, gate.outcome)
    note = f"Gate {gate.pk} was approved for exactly this, and everything it allowed is done: the approval is reused."
    return session.executed(spec, writes, None, took=took, notes=[note], kind="reused")


def stands(outcome: Outcome) -> bool:
    """Tell whether the outcome answers its gate once more."""
    grants = outcome.grants.select_related("effect_row")
    return permissions.stands(outcome.kind, (getattr(grant, "effect_row", None) for grant in grants))


def _same(session: RunSession, spec: StepSpec, card: Card) -> Gate | None:
    """Find the newest gate of this step that people closed, where it asked exactly this over the same input."""
    asked = _shown(_body(session, spec, card))
    closed = Gate.objects.filter(run=session.run, step=spec.name, kind=Gate.Kind.REVIEW, status=Gate.Status.DECIDED)
    kind = "gate" if spec.waits else "asked"
    bases = {row.parent: row.input_digest for row in session.recorded_of(kind, spec.name)}
    digest = session.input_digest(spec)
    for gate in closed.select_related("outcome").order_by("-pk"):
        if bases.get(gate.checkpoint) == digest and _shown(gate.proposals.get(number=1).content) == asked:
            return gate
    return None


def _body(session: RunSession, spec: StepSpec, card: Card) -> dict[str, Any]:
    whole = completed(card, step=spec, plan=session.plan, state=session.snapshot.state)
    policy = Policy.objects.named(spec.policy, team=session.run.team)
    whole = tools.draw_card(whole, team=session.run.team, policy=policy, plan=session.plan)
    return body_of(whole, run=session.run, step=spec, checkpoint="")


def _shown(body: dict[str, Any]) -> bytes:
    return encode_canonical({name: value for name, value in body.items() if name not in NOT_COMPARED})
