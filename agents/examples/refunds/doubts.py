"""Finds the doubts for which the agent asks a person whether the refund is right, before it proposes one. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from agents.examples.money import shown
from agents.examples.orders import Order
from agents.examples.refunds.reading.text import one_line

from .rules import Draft
from .state import Ticket


def doubts(ticket: Ticket, order: Order, made: Draft, earlier: Sequence[int]) -> list[str]:
    """A sentence for each; none where the mail, the order and the payment agree. `earlier`: runs on the same mail."""
    return [*_twice(earlier), *_sender(ticket, order), *_currency(ticket, order), *_left(ticket, order, made)]


def _twice(earlier: Sequence[int]) -> list[str]:
    runs = " and ".join(f"R-{each}" for each in earlier)
    return [f"The same mail came before and is handled in {runs}"] if earlier else []


def _sender(ticket: Ticket, order: Order) -> list[str]:
    """Return a doubt if the mail comes from another address than the order's.

    A mail without a sender raises none: the reply goes to the order's own address.
    """
    if not ticket.from_address or ticket.from_address.casefold() == order.email.casefold():
        return []
    sender = one_line(ticket.from_address)
    if not sender.isascii():
        return [f"The sender {sender} is not the address of order {order.number}: some of its letters only look alike"]
    return [f"The mail comes from {sender}, and order {order.number} was placed with another address"]


def _currency(ticket: Ticket, order: Order) -> list[str]:
    if ticket.wants is None or ticket.wants_currency in ("", order.currency):
        return []
    wants = shown(ticket.wants, ticket.wants_currency)
    return [f"The customer asks for {wants}, and the order was paid in {order.currency}"]


def _left(ticket: Ticket, order: Order, made: Draft) -> list[str]:
    left = shown(order.left, order.currency)
    found = []
    if made.due(order) > order.left:
        due = shown(made.due(order), order.currency)
        found.append(f"The rules give {due}, and {left} is left of the payment")
    if ticket.wants is not None and ticket.wants_currency in ("", order.currency) and ticket.wants > order.left:
        wants = shown(ticket.wants, order.currency)
        found.append(f"The customer asks for {wants}, and {left} is left of the payment")
    return found
