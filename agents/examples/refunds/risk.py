"""Rates the risk of a refund, with its reasons in plain words. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Self

from agents.examples.money import amounts_in, exchanged, shown
from agents.examples.orders import Order
from agents.examples.refunds.reading.blanks import blank_stretch
from agents.examples.refunds.reading.text import invisible, one_line
from approvals.english import counted, listed

from .rules import FAR_DOWN, Draft
from .state import Feedback, Proposal, Reason, Refund, Ticket

LEVELS = ("low", "medium", "high", "critical")
# From which amount on a level holds. Kronor are about a tenth of the others' worth.
STEPS = (("medium", Decimal(100)), ("high", Decimal(1_000)), ("critical", Decimal(10_000)))
WORTH = {"SEK": 10}


Judged = tuple[str, list[str]]  # (level, reasons)


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How the payment stands at the provider as the gate opens."""

    elsewhere: Decimal = Decimal(0)  # what others gave back of it
    left: Decimal

    @classmethod
    def of(cls, order: Order, refunded: str) -> Self:
        """From what is `refunded` by now; the order says what was when it was looked up."""
        named = next(amounts_in(refunded))
        elsewhere = exchanged(named.amount, named.currency, order.currency)
        return cls(elsewhere=elsewhere, left=max(order.left + order.elsewhere - elsewhere, Decimal(0)))


def assess(
    ticket: Ticket,
    order: Order,
    proposal: Proposal,
    made: Draft,
    feedback: Sequence[Feedback],
    *,
    doubts: Sequence[str] = (),
    standing: Standing,
) -> Judged:
    """(level, reasons): the highest level that anything calls for."""
    refund = proposal.refund
    found = [("low", "Sends an e-mail, which cannot be undone")]
    found += [("high", each) for each in (*_given(order, refund, standing), *doubts)]
    for level, step in reversed(STEPS):
        if refund.amount > (limit := step * WORTH.get(refund.currency, 1)):
            found.insert(0, (level, f"Amount over {shown(limit, refund.currency).removesuffix('.00')}"))
            break
    if feedback:
        before = "Rejected before by" if feedback[-1].gate else "Sent back with feedback by"  # a rewind is no rejection
        found.append(("medium", f"{before} {feedback[-1].by}"))
    found += [("high", reason) for reason in _strange(ticket, order, refund.reason)]
    wants = ticket.wants, ticket.wants_currency or order.currency
    if ticket.wants is not None and wants != (refund.amount, order.currency):
        found.append(("low", f"The customer asks for {shown(ticket.wants, wants[1])}"))
    if made.unheeded:
        found.append(("medium", f"The feedback from {listed(made.unheeded)} could not be applied"))
    if hidden := invisible(proposal.reply.text) + invisible(proposal.reply.subject):
        found.append(("high", f"{counted(hidden, 'character')} in the reply cannot be seen"))
    found += [("medium", f"The mail was hard to read: {problem}") for problem in ticket.problems[:3]]
    return max((level for level, _ in found), key=LEVELS.index), [reason for _, reason in found]


def _given(order: Order, refund: Refund, standing: Standing) -> Iterator[str]:
    """Yield what of the payment was given back already, and whether too little of it is left."""
    if standing.elsewhere:
        yield f"{shown(standing.elsewhere, order.currency)} is already refunded on this charge by others"
    if refund.amount > standing.left:
        amount, left = shown(refund.amount, order.currency), shown(standing.left, order.currency)
        yield f"{amount} cannot be paid: {left} is left of the payment"


def _strange(ticket: Ticket, order: Order, reason: Reason) -> list[str]:
    """List what an honest mail does not have."""
    found = []
    if (lines := blank_stretch(ticket.text)[0]) > FAR_DOWN:
        found.append(f"The customer's mail hides text behind {lines:,} blank lines")
    if hidden := invisible(ticket.text):
        found.append(f"{counted(hidden, 'character')} in the customer's mail cannot be seen")
    if ticket.hidden:
        found.append(f"Words of the customer's mail may be out of sight: “{one_line(ticket.hidden, 60)}”")
    if ticket.from_address.lower() != order.email.lower():
        found.append("The mail does not come from the address of the order")
    if ticket.reply_to.lower() not in ("", ticket.from_address.lower()):
        found.append("The mail wants its answer at another address; the reply does not go there")
    if reason is Reason.RETURNED and not any(item.returned_on for item in order.items):
        found.append("No parcel of this order has come back yet")
    return found
