"""The texts of the refunds example: the summary for reviewers, the letter to the customer, the statement below it."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from agents.examples.money import shown
from agents.examples.orders import Item, Order
from approvals import english

from .rules import Draft, listed
from .state import Facts, Payment, Reason, Refund, Ticket


def summary(order: Order, reason: Reason, made: Draft, amount: Decimal) -> str:
    """Say what the agent found and does about it, in two or three sentences of its own words."""
    said = ["Nothing is to be paid, as was decided." if made.refused else _found(order, reason, made), *made.heeded]
    if made.unheeded:
        said.append(f"I could not apply the feedback from {english.listed(made.unheeded)}; the proposal is unchanged.")
    if made.due(order) > order.left:
        due, left = shown(made.due(order), order.currency), shown(order.left, order.currency)
        said.append(f"That would be {due}, and only {left} is left of the payment.")
    mine = made.amount(order)
    if amount == mine:
        said.append(f"That makes {shown(mine, order.currency)}.")
    else:
        said.append(f"A reviewer made it {shown(amount, order.currency)}; I had {shown(mine, order.currency)}.")
    return " ".join(said)


def letter(order: Order, facts: Facts, made: Draft) -> str:
    """The reply's text. It names no amount: the statement below it does, and is right after an edit too."""
    if made.refused:
        return refusal(order, facts)
    name = order.customer or facts.name
    opening = {
        Reason.RETURNED: f"thank you for sending {listed(made.items)} of order {order.number} back.",
        Reason.NEVER_ARRIVED: f"we are sorry that order {order.number} never reached you.",
        Reason.FAULTY: f"we are sorry that {listed(made.items)} of order {order.number} reached you in that state.",
        Reason.GOODWILL: f"thank you for telling us about order {order.number}.",
    }[facts.reason]
    paid = f"The money goes back to the card you paid with, ending {order.card}."
    if not made.amount(order):
        paid = "Everything that was paid for it has been given back already."
    sorry = ["We apologise for the trouble this has given you."] if made.sorry else []
    thanks = ["Please take a part of the price back, with our thanks."] if facts.reason is Reason.GOODWILL else []
    body = " ".join([opening, *sorry, *thanks])
    after = "It can take up to five working days to show. The statement is below."
    return f"Dear {name},\n\n{body}\n\n{paid} {after}\n\nKind regards\nYour service team"


def refusal(order: Order, facts: Facts) -> str:
    """Write the reply's text if nothing is paid.

    Whoever wrote may be a stranger, so it tells nothing of the order.
    """
    return (
        f"Dear {facts.name or 'customer'},\n\nthank you for your mail. We cannot pay a refund for order {order.number} "
        "as you ask. If you think that this is wrong, please write to us from the e-mail address that the order was "
        "placed with.\n\nKind regards\nYour service team"
    )


def missing(ticket: Ticket, facts: Facts) -> tuple[str, str]:
    """(what is missing, how that came): why the order cannot be told."""
    if ticket.lookalikes and facts.order_number in ("", ticket.order_number or ""):
        return (
            f"the order number “{ticket.lookalikes[0]}” only looks like one",
            ": not all of its characters are digits",
        )
    if facts.order_number:
        return f"order {facts.order_number} is not known", ""
    if len(ticket.numbers) > 1:
        return f"which order: {' or '.join(ticket.numbers[:5])}", ", since it names more than one"
    return "no order number found", ""


def still(elsewhere: Decimal) -> str:
    """Say what must still be so when the refund is paid; `{value}` is what others were given back."""
    if elsewhere:
        return "{value} is already refunded on this charge by others, and this has not changed"
    return "Nothing else has been refunded on this charge: {value}"


def statement(order: Order, refund: Refund, payment: Payment | None) -> str:
    """Write what is put below the reply's text."""
    lines = [f"Order       {order.number}", f"Refund      {shown(refund.amount, refund.currency)}"]
    if payment:
        lines += [f"To          card ending {refund.card}", f"Reference   {payment.id}"]
    return "\n".join(["-- ", *lines])


def _found(order: Order, reason: Reason, made: Draft) -> str:
    if reason is Reason.NEVER_ARRIVED:
        return "The parcel never arrived, so everything is given back, shipping too."
    if reason is Reason.FAULTY:
        return f"The customer reports {_the(made.items)} as faulty. Refund in full; no return needed."
    if reason is Reason.GOODWILL:
        return "No return and nothing missing. Suggest a 10 % goodwill refund."
    back = [item for item in order.items if item.returned_on]
    if not back:
        return "The mail says that it was sent back, but no parcel of this order has come in yet."
    kept = [item for item in order.items if not item.returned_on]
    rest = f"; {listed(kept)} did not" if kept else ", all that was ordered, so shipping is given back too"
    return f"{listed(back)} came back{rest}."


def _the(items: Sequence[Item]) -> str:
    """Put the items into the middle of a sentence: "the paper table lamp". Only the first letter is made small."""
    said = listed(items) or "goods"
    return f"the {said[0].lower()}{said[1:]}"
