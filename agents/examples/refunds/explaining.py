"""Answers reviewers' questions about a refund from the facts that the gate shows. No model: words pick the facts."""

from __future__ import annotations

import re
from collections.abc import Callable

from agents.examples.money import shown
from agents.examples.orders import Item, Order
from approvals.english import listed

from . import words
from .rules import Draft
from .state import Facts, Proposal, Ticket


def explained(question: str, ticket: Ticket, facts: Facts, order: Order, proposal: Proposal | None, made: Draft) -> str:
    """Say how the proposal came about, and the facts that the question names; all of them where it names none."""
    topics: dict[str, Callable[[], str]] = {
        r"item|goods|returned|came back|parcel|which|what": lambda: _items(order),
        r"paid|left|payment|charge|earlier|already|order|price|amount|much": lambda: _payment(order),
        r"card|where|account|goes|who gets|money": lambda: f"The money goes back to the card ending {order.card}.",
        r"mail|customer|said|says|wrote|reason|want|ask|why": lambda: _mail(ticket, facts),
    }
    if proposal is not None:
        reply = proposal.reply
        topics[r"reply|letter|answer|send|sent"] = lambda: f"The reply goes to {reply.to}: “{reply.subject}”."
    named = [say for pattern, say in topics.items() if re.search(rf"\b(?:{pattern})", question, re.IGNORECASE)]
    amount = made.amount(order) if proposal is None else proposal.refund.amount
    said = [words.summary(order, facts.reason, made, amount)]
    said += [say() for say in named or topics.values()]
    if not named:
        said.append("I have no model, so I can only tell what I went by.")
    return "\n".join(said)


def lacking(ticket: Ticket, facts: Facts) -> str:
    """Say what is missing where there is no order yet."""
    what, how = words.missing(ticket, facts)
    return f"I have found no order to look at: {what}{how}.\n{_mail(ticket, facts)}"


def _items(order: Order) -> str:
    return f"Order {order.number}: {listed([_item(each, order) for each in order.items])}."


def _item(item: Item, order: Order) -> str:
    came = f"came back on {item.returned_on}" if item.returned_on else "has not come back"
    many = f"{item.quantity} times " if item.quantity != 1 else ""
    return f"{many}{item.name} ({shown(item.total, order.currency)}, {came})"


def _payment(order: Order) -> str:
    paid, left = shown(order.paid, order.currency), shown(order.left, order.currency)
    shipping = shown(order.shipping, order.currency)
    back = shown(order.refunded + order.elsewhere, order.currency)
    return f"{paid} was paid on {order.paid_on}, {shipping} of it for shipping. {back} was given back, {left} is left."


def _mail(ticket: Ticket, facts: Facts) -> str:
    wants = f", and names {ticket.wants} {ticket.wants_currency}".rstrip() if ticket.wants is not None else ""
    return f"I read the mail of {facts.name or 'somebody without a name'} as “{facts.reason}”{wants}."
