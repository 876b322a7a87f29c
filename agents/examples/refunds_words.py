"""What the refunds example says: its summary for reviewers, its letter to the customer, the statement below it."""

from __future__ import annotations

from decimal import Decimal

from .refunds_money import shown
from .refunds_rules import Draft, listed
from .refunds_state import Facts, Order, Payment, Reason, Refund


def summary(order: Order, reason: Reason, made: Draft, amount: Decimal) -> str:
    """What the agent found and does about it, two or three sentences in its own words."""
    said = [_found(order, reason, made), *made.heeded]
    if made.unheeded:
        said.append(f"No rule of mine reads what {' and '.join(made.unheeded)} wrote, so that changed nothing.")
    mine = made.amount(order)
    if amount == mine:
        said.append(f"That makes {shown(mine, order.currency)}.")
    else:
        said.append(f"A reviewer made it {shown(amount, order.currency)}; I had {shown(mine, order.currency)}.")
    return " ".join(said)


def letter(order: Order, facts: Facts, made: Draft) -> str:
    """The reply's text. It names no amount: the statement below it does, and is right after an edit too."""
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


def statement(order: Order, refund: Refund, payment: Payment | None) -> str:
    """What is put below the reply's text."""
    lines = [f"Order       {order.number}", f"Refund      {shown(refund.amount, refund.currency)}"]
    if payment:
        lines += [f"To          card ending {refund.card}", f"Reference   {payment.id}"]
    return "\n".join(["-- ", *lines])


def _found(order: Order, reason: Reason, made: Draft) -> str:
    if reason is Reason.NEVER_ARRIVED:
        return "The parcel never arrived, so everything is given back, shipping too."
    if reason is Reason.FAULTY:
        return f"The mail calls {listed(made.items) or 'nothing'} faulty; that is given back, and need not come back."
    if reason is Reason.GOODWILL:
        return "Nothing came back and nothing is missing; a tenth of the goods is a fair thank-you."
    back = [item for item in order.items if item.returned_on]
    if not back:
        return "The mail says that it was sent back, but no parcel of this order has come in yet."
    kept = [item for item in order.items if not item.returned_on]
    rest = f"; {listed(kept)} did not" if kept else ", all that was ordered, so shipping is given back too"
    return f"{listed(back)} came back{rest}."
