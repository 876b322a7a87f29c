"""Finds the doubts about a request, and rates the risk of a refund, both in plain words. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from agents.examples.money import amounts_in, exchanged, shown
from agents.examples.orders import Order
from agents.examples.text import blank_stretch, count_invisible, one_line
from approvals.english import count_of, join_names

from .rules import FAR_DOWN, Draft
from .state import Feedback, Proposal, Reason, Ticket

LEVELS = ("low", "medium", "high", "critical")
STEPS = (("critical", 10_000), ("high", 1_000), ("medium", 100))  # a level, and the amount above which it holds
WORTH = {"SEK": 10}  # kronor are about a tenth of the others' worth


def find_doubts(ticket: Ticket, order: Order, draft: Draft, earlier: Sequence[int]) -> list[str]:
    """Say where the mail, the order and the payment do not agree. `earlier`: runs on the same mail."""
    doubts = []
    if earlier:
        doubts.append(f"The same mail came before and is handled in {' and '.join(f'R-{run}' for run in earlier)}")
    sender, left = one_line(ticket.from_address), shown(order.left, order.currency)
    if sender and sender.casefold() != order.email.casefold():
        other = f"The mail comes from {sender}, and order {order.number} was placed with another address"
        alike = f"The sender {sender} is not the address of order {order.number}: some of its letters only look alike"
        doubts.append(other if sender.isascii() else alike)
    if ticket.wants is not None and ticket.wants_currency not in ("", order.currency):
        wants = shown(ticket.wants, ticket.wants_currency)
        doubts.append(f"The customer asks for {wants}, and the order was paid in {order.currency}")
    if draft.due(order) > order.left:
        doubts.append(f"The rules give {shown(draft.due(order), order.currency)}, and {left} is left of the payment")
    if ticket.wants is not None and ticket.wants_currency in ("", order.currency) and ticket.wants > order.left:
        wants = shown(ticket.wants, order.currency)
        doubts.append(f"The customer asks for {wants}, and {left} is left of the payment")
    return doubts


def read_standing(order: Order, refunded: str) -> tuple[Decimal, Decimal]:
    """(given back by others, left of the payment), from what is `refunded` as the gate opens."""
    named = next(amounts_in(refunded))
    elsewhere = exchanged(named.amount, named.currency, order.currency)
    return elsewhere, max(order.left + order.elsewhere - elsewhere, Decimal(0))


def assess(
    ticket: Ticket,
    order: Order,
    proposal: Proposal,
    draft: Draft,
    feedback: Sequence[Feedback],
    doubts: Sequence[str],
    standing: tuple[Decimal, Decimal],
) -> tuple[str, list[str]]:
    """(level, reasons): the highest level that anything calls for."""
    refund, (elsewhere, left) = proposal.refund, standing
    found = [("low", "Sends an e-mail, which cannot be undone")]
    if elsewhere:
        given = shown(elsewhere, order.currency)
        found.append(("high", f"{given} is already refunded on this charge by others"))
    if refund.amount > left:
        amount, rest = shown(refund.amount, order.currency), shown(left, order.currency)
        found.append(("high", f"{amount} cannot be paid: {rest} is left of the payment"))
    found += [("high", doubt) for doubt in doubts]
    limits = [(level, step * WORTH.get(refund.currency, 1)) for level, step in STEPS]
    if over := next(((level, limit) for level, limit in limits if refund.amount > limit), None):
        limit = shown(Decimal(over[1]), refund.currency).removesuffix(".00")
        found.insert(0, (over[0], f"Amount over {limit}"))
    if feedback:
        before = "Rejected before by" if feedback[-1].gate else "Sent back with feedback by"  # a rewind is no rejection
        found.append(("medium", f"{before} {feedback[-1].by}"))
    found += [("high", reason) for reason in _find_strange(ticket, order, refund.reason)]
    wants = ticket.wants, ticket.wants_currency or order.currency
    if ticket.wants is not None and wants != (refund.amount, order.currency):
        found.append(("low", f"The customer asks for {shown(ticket.wants, wants[1])}"))
    if draft.unheeded:
        found.append(("medium", f"The feedback from {join_names(draft.unheeded)} could not be applied"))
    if hidden := count_invisible(proposal.reply.text + proposal.reply.subject):
        found.append(("high", f"{count_of(hidden, 'character')} in the reply cannot be seen"))
    found += [("medium", f"The mail was hard to read: {problem}") for problem in ticket.problems[:3]]
    return max((level for level, _ in found), key=LEVELS.index), [reason for _, reason in found]


def _find_strange(ticket: Ticket, order: Order, reason: Reason) -> Iterator[str]:
    """Yield what an honest mail does not have."""
    if (lines := blank_stretch(ticket.text)[0]) > FAR_DOWN:
        yield f"The customer's mail hides text behind {lines:,} blank lines"
    if hidden := count_invisible(ticket.text):
        yield f"{count_of(hidden, 'character')} in the customer's mail cannot be seen"
    if ticket.hidden:
        yield f"Words of the customer's mail may be out of sight: “{one_line(ticket.hidden, 60)}”"
    if ticket.from_address.lower() != order.email.lower():
        yield "The mail does not come from the address of the order"
    if ticket.reply_to.lower() not in ("", ticket.from_address.lower()):
        yield "The mail wants its answer at another address; the reply does not go there"
    if reason is Reason.RETURNED and not any(item.returned_on for item in order.items):
        yield "No parcel of this order has come back yet"
