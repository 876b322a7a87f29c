"""The refunds agent with a validator: what is proposed may not be more than 4.00, and a refusal is repaired."""

from __future__ import annotations

from typing import Any

from agents import step, validator
from agents.examples.orders import Order
from agents.examples.refunds import Refunds as Plain
from agents.examples.refunds import rules, texts
from agents.examples.refunds.state import Facts, Feedback, Proposal, Ruling, Ticket

MOST = "4.00"


class Judged(Plain):
    """Proposes what the refunds agent proposes, until it is told that this is too much."""

    name = "judged"

    @validator
    def modest(self, proposal: Proposal) -> str | None:
        """Words that the rules of the refunds agent understand."""
        return None if proposal.refund.amount <= 4 else f"That is too much, make it {MOST}"

    @step(uses=[rules.draft_refund, rules.heed_feedback, texts.write_letter], validators=[modest], tries=2)
    def propose(
        self, ticket: Ticket, facts: Facts, order: Order, feedback: list[Feedback], ruling: Ruling
    ) -> dict[str, Any]:
        return {"proposal": Plain.propose(self, ticket, facts, order, feedback, ruling)["proposal"]}
