"""The requirements of a gate's proposal: the policy's own, or those that its rules gave and that the proposal keeps."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from approvals.cards.card import Card
from approvals.models import Gate, Policy, Proposal
from checkpoints.models import Run
from checkpoints.values.canonical_json import decode_canonical

from .requirements import Requirements, Role, Rule, Stage, Unclear, combined, required, stages_of
from .rules import expressions, facts
from .rules.facts import GateFacts


def own(policy: Policy) -> Requirements:
    """Return what a policy asks where no rule says otherwise."""
    if policy.stages:
        stages = stages_of(decode_canonical(policy.stages.encode()))
    else:
        role = Role(quorum=max(1, policy.quorum), teams=tuple(policy.reviewer_ids), people=tuple(policy.person_ids))
        stages = (Stage(roles=(role,)),)
    return Requirements(
        stages=stages,
        step_up=policy.step_up,
        deadline=None if policy.deadline is None else int(policy.deadline.total_seconds()),
        on_expiry=policy.on_expiry,
    )


@lru_cache(maxsize=1024)
def rules_of(text: str) -> tuple[Rule, ...]:
    """Read a policy's rules."""
    return tuple(Rule(**each) for each in decode_canonical(text.encode())) if text else ()


def of(proposal: Proposal, policy: Policy) -> Requirements:
    """Return what a proposal needs; frozen with it where the policy has rules."""
    return Requirements.from_text(proposal.requirements) if proposal.requirements else own(policy)


def at(gate: Gate, needs: Requirements) -> Requirements:
    """Return what votes at this gate are counted by: people of the teams that were added to it may fill any role."""
    return needs.widened(gate.reviewer_ids[len(gate.policy.reviewer_ids) :])


def asked(policy: Policy, card: Card, gate: GateFacts, *, before: Requirements | None = None) -> Requirements:
    """Compute what a new proposal needs. `before`: what the one that it replaces needed, which still counts."""
    if not policy.rules:
        return own(policy)
    made = required(own(policy), rules_of(policy.rules), facts.of_proposal(card, gate), matches)
    return combined(before, made) if before else made


def frozen(policy: Policy, requirements: Requirements) -> str:
    """Return the text to store with the proposal; "" where the policy alone says what it needs."""
    return requirements.to_text() if policy.rules else ""


def matches(rule: Rule, known: Mapping[str, Any]) -> bool:
    """Tell whether a rule is true of an action. Raises Unclear."""
    try:
        return expressions.checked(rule.when).is_true(known)
    except expressions.WrongExpression as wrong:  # stored by another release of the library, or by hand
        raise Unclear(f"its condition cannot be read: {wrong}") from None


def gate_facts(run: Run, step: str, *, asked_by: Any, attempt: int) -> GateFacts:
    """Return what rules know of a gate. `asked_by`: the person who answers for the external program, or None."""
    person = asked_by or run.started_by
    return GateFacts(
        agent=run.plan.agent,
        step=step,
        requester=person.username if person else "",
        attempt=attempt,
        external=run.plan.external,
    )
