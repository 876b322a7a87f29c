"""The texts of the refunds example: the summary for reviewers, the letter to the customer, the statement below it."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from agents.examples.money import shown
from agents.examples.orders import Item, Order
from approvals import english

from .rules import Draft, listed
from .state import Facts, Payment, Reason, Refund, Ticket


def summary(order: Order, reason: Reason, draft: Draft, amount: Decimal) -> str:
    """Say what the agent found and does about it, in two or three sentences of its own words."""
    said = ["Nothing is to be paid, as was decided." if draft.refused else _found(order, reason, draft), *draft.heeded]
    if draft.unheeded:
        said.append(
            f"I could not apply the feedback from {english.join_names(draft.unheeded)}; the proposal is unchanged."
        )
    mine, due, left = (shown(each, order.currency) for each in (draft.amount(order), draft.due(order), order.left))
    if draft.due(order) > order.left:
        said.append(f"That would be {due}, and only {left} is left of the payment.")
    edited = f"A reviewer made it {shown(amount, order.currency)}; I had {mine}."
    return " ".join([*said, f"That makes {mine}." if amount == draft.amount(order) else edited])


def letter(order: Order, facts: Facts, draft: Draft) -> str:
    """Write the reply. It names no amount: the statement below it does, and is right after an edit too."""
    if draft.refused:  # whoever wrote may be a stranger, so it tells nothing of the order
        return (
            f"Dear {facts.name or 'customer'},\n\nthank you for your mail. We cannot pay a refund for order "
            f"{order.number} as you ask. If you think that this is wrong, please write to us from the e-mail address "
            "that the order was placed with.\n\nKind regards\nYour service team"
        )
    opening = {
        Reason.RETURNED: f"thank you for sending {listed(draft.items)} of order {order.number} back.",
        Reason.NEVER_ARRIVED: f"we are sorry that order {order.number} never reached you.",
        Reason.FAULTY: f"we are sorry that {listed(draft.items)} of order {order.number} reached you in that state.",
        Reason.GOODWILL: f"thank you for telling us about order {order.number}.",
    }[facts.reason]
    sorry = " We apologise for the trouble this has given you." if draft.sorry else ""
    thanks = " Please take a part of the price back, with our thanks." if facts.reason is Reason.GOODWILL else ""
    paid = f"The money goes back to the card you paid with, ending {order.card}."
    if not draft.amount(order):
        paid = "Everything that was paid for it has been given back already."
    return (
        f"Dear {order.customer or facts.name},\n\n{opening}{sorry}{thanks}\n\n{paid} It can take up to five working "
        "days to show. The statement is below.\n\nKind regards\nYour service team"
    )


def missing(ticket: Ticket, facts: Facts) -> tuple[str, str]:
    """(what is missing, how that came): why the order cannot be told."""
    if ticket.lookalikes and facts.order_number in ("", ticket.order_number or ""):
        alike = f"the order number “{ticket.lookalikes[0]}” only looks like one"
        return alike, ": not all of its characters are digits"
    if facts.order_number:
        return f"order {facts.order_number} is not known", ""
    if len(ticket.numbers) > 1:
        return f"which order: {' or '.join(ticket.numbers[:5])}", ", since it names more than one"
    return "no order number found", ""


def explanation(ticket: Ticket, facts: Facts, order: Order, draft: Draft, amount: Decimal) -> str:
    """Answer a reviewer's question with all that the agent went by."""
    paid, left, back = (
        shown(each, order.currency) for each in (order.paid, order.left, order.refunded + order.elsewhere)
    )
    return "\n".join([
        summary(order, facts.reason, draft, amount),
        f"Order {order.number}: {english.join_names([_item(item, order) for item in order.items])}.",
        f"{paid} was paid on {order.paid_on}. {back} was given back, {left} is left.",
        f"The money goes back to the card ending {order.card}.",
        f"I read the mail of {facts.name or ticket.from_address or 'a stranger'} as “{facts.reason}”.",
        "I have no model, so I can only tell what I went by.",
    ])  # fmt: skip


def statement(order: Order, refund: Refund, payment: Payment | None) -> str:
    """Write what is put below the reply's text."""
    lines = [f"Order       {order.number}", f"Refund      {shown(refund.amount, refund.currency)}"]
    if payment:
        lines += [f"To          card ending {refund.card}", f"Reference   {payment.id}"]
    return "\n".join(["-- ", *lines])


def _found(order: Order, reason: Reason, draft: Draft) -> str:
    if reason is Reason.NEVER_ARRIVED:
        return "The parcel never arrived, so everything is given back, shipping too."
    if reason is Reason.FAULTY:
        return f"The customer reports {_the(draft.items)} as faulty. Refund in full; no return needed."
    if reason is Reason.GOODWILL:
        return "No return and nothing missing. Suggest a 10 % goodwill refund."
    back = [item for item in order.items if item.returned_on]
    if not back:
        return "The mail says that it was sent back, but no parcel of this order has come in yet."
    kept = [item for item in order.items if not item.returned_on]
    rest = f"; {listed(kept)} did not" if kept else ", all that was ordered, so shipping is given back too"
    return f"{listed(back)} came back{rest}."


def _item(item: Item, order: Order) -> str:
    came = f"came back on {item.returned_on}" if item.returned_on else "has not come back"
    many = f"{item.quantity} times " if item.quantity != 1 else ""
    return f"{many}{item.name} ({shown(item.total, order.currency)}, {came})"


def _the(items: Sequence[Item]) -> str:
    """Put the items into the middle of a sentence: "the paper table lamp". Only the first letter is made small."""
    said = listed(items) or "goods"
    return f"the {said[0].lower()}{said[1:]}"
