"""How dangerous a refund is, and why, in plain words. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from .refunds_money import shown
from .refunds_rules import FAR_DOWN, Draft
from .refunds_state import Feedback, Order, Proposal, Reason, Ticket
from .refunds_text import blank_stretch, invisible

LEVELS = ("low", "medium", "high", "critical")
# From which amount on a level holds. Kronor are about a tenth of the others' worth.
STEPS = (("medium", Decimal(100)), ("high", Decimal(1_000)), ("critical", Decimal(10_000)))
WORTH = {"SEK": 10}


def assess(
    ticket: Ticket, order: Order, proposal: Proposal, made: Draft, feedback: Sequence[Feedback]
) -> tuple[str, list[str]]:
    """(level, reasons): the highest level that anything calls for."""
    refund = proposal.refund
    found = [("low", "Sends an e-mail, which cannot be undone")]
    for level, step in reversed(STEPS):
        if refund.amount > (limit := step * WORTH.get(refund.currency, 1)):
            found.insert(0, (level, f"Amount over {shown(limit, refund.currency).removesuffix('.00')}"))
            break
    if feedback:
        found.append(("medium", f"Asked again after a no, by {feedback[-1].by}"))
    found += [("high", reason) for reason in _strange(ticket, order, refund.reason)]
    if ticket.wants is not None and ticket.wants != refund.amount:
        found.append(("low", f"The customer asks for {shown(ticket.wants, order.currency)}"))
    if made.unheeded:
        found.append(("medium", f"No rule of the agent reads what {' and '.join(made.unheeded)} wrote"))
    if hidden := invisible(proposal.reply.text) + invisible(proposal.reply.subject):
        found.append(("high", f"{_characters(hidden)} in the reply cannot be seen"))
    found += [("medium", f"The mail was hard to read: {problem}") for problem in ticket.problems[:3]]
    return max((level for level, _ in found), key=LEVELS.index), [reason for _, reason in found]


def _strange(ticket: Ticket, order: Order, reason: Reason) -> list[str]:
    """What an honest mail does not have."""
    found = []
    if (lines := blank_stretch(ticket.text)[0]) > FAR_DOWN:
        found.append(f"The customer's mail hides text behind {lines:,} blank lines")
    if hidden := invisible(ticket.text):
        found.append(f"{_characters(hidden)} in the customer's mail cannot be seen")
    if ticket.from_address.lower() != order.email.lower():
        found.append("The mail does not come from the address of the order")
    if ticket.reply_to.lower() not in ("", ticket.from_address.lower()):
        found.append("The mail wants its answer at another address; the reply does not go there")
    if reason is Reason.RETURNED and not any(item.returned_on for item in order.items):
        found.append("No parcel of this order has come back yet")
    return found


def _characters(count: int) -> str:
    return f"{count} character{'s' if count > 1 else ''}"
