"""Approves a gate by a rule of its policy, where the rule says so in that word; a share is shown to people anyway.

Never what people have rejected before or approved in another form, a question, what lacks a value, what an external
program alone describes, what would be done a second time, nor where a rule could not be evaluated or a password is
asked. The share that people see is drawn by a keyed digest of what is proposed, by its key fields where it has them,
and of the policy's version: neither the agent nor its author can tell beforehand what it will be, and whoever asks for
the same again draws the same again. A draw that was withdrawn or expired goes to the agent's next request of the same
tools under that policy, until people have decided one.
"""

from __future__ import annotations

import hmac

from django.conf import settings

from approvals.audit import evidence
from approvals.cards.card import Card
from approvals.consequences.gate import GateImpacts
from approvals.models import Gate, Policy, Proposal
from approvals.models.outcome import BY_RULE
from approvals.policy.requirements import Requirements
from checkpoints.actors import Actor

from . import closing
from .reading import read


def offered(needs: Requirements, card: Card, *, kind: str, attempt: int, external: bool) -> bool:
    """Tell whether a rule may approve a new gate by itself. Pure."""
    own_words = external and not card.registered_risk
    return (
        needs.auto
        and kind == Gate.Kind.REVIEW
        and attempt == 1
        and not (needs.unclear or needs.step_up or needs.second_look or own_words)
        and not (card.question or card.reopened or card.unfilled(card) or card.untaken(card))
    )


def drawn(proposed: str, policy: Policy) -> bool:
    """Tell whether a proposal is in the policy's share that people see although a rule would approve it.

    `proposed`: a digest of what is proposed, which names neither the run nor the gate.
    """
    text = f"holdpoint.sample.{policy.pk}.{proposed}"  # each version of a policy is a row
    digest = hmac.digest(settings.SECRET_KEY.encode(), text.encode(), "sha256")
    return int.from_bytes(digest[:8], "big") % 10_000 < policy.auto_sample * 100


def approve(gate_id: int, proposal: Proposal) -> None:
    """Approve a new gate where a rule says so and it was not drawn. Joins the transaction that opened it."""
    needs = Requirements.from_text(proposal.requirements) if proposal.requirements else None
    if needs is None or not needs.auto or needs.sampled:
        return
    reading = read(gate_id)
    evidence.check(reading.proposal)
    gate, first = reading.gate, reading.proposal
    if reading.acted and GateImpacts(gate, first.card, first.state_patch).approve().repeats:
        return
    if gate.move():
        closing.approve(gate, first, by=actor(gate.policy, needs))


def actor(policy: Policy, needs: Requirements) -> Actor:
    """Return the rule as the actor of its approval."""
    rules = ", ".join(needs.rules)
    return Actor(f"{BY_RULE}{policy.pk}", f"the rule {rules} of {policy.name}")
