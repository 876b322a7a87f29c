"""What people read of a request: the cards of its gates, the agent's answers, and the mail to the customer."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from agents import Action, Card, Precondition, Quote
from agents.examples.money import show_money
from agents.examples.orders import Order
from agents.examples.sending import fix_values
from approvals.english import join_names
from checkpoints.values.characters import one_line

from .rules import Draft, list_items
from .state import Facts, Payment, Proposal, Reason, Refund, Reply, Ticket


def ask_for_facts(ticket: Ticket, facts: Facts) -> Card:
    """Ask for the order's number; nothing is approved without another one."""
    why = f"which order: {' or '.join(ticket.numbers[:5])}" if ticket.numbers[1:] else "no order number found"
    if ticket.lookalikes and facts.order_number in ("", ticket.order_number or ""):
        why = f"the order number “{ticket.lookalikes[0]}” only looks like one"
    elif facts.order_number:
        why = f"order {facts.order_number} is not known"
    return Card(
        title=f"Type the missing facts: {why}",
        summary="I cannot tell which order this mail is about. Its number is enough for me to go on.",
        for_whom=ticket.from_name or ticket.from_address,
        resource=f"the mail “{ticket.subject}” from {ticket.from_address}",
        risk="high" if ticket.hidden else "medium",
        reasons=[why[:1].upper() + why[1:], *(f"The mail was hard to read: {problem}" for problem in ticket.problems)],
        actions=[Action(id="facts", title="Missing facts", tool="facts", pointer="/facts", missing=["/order_number"])],
        quotes=quote_mail(ticket),
    )


def ask_whether_right(ticket: Ticket, draft: Draft, doubts: Sequence[str]) -> Card:
    """Ask whether the refund is right."""
    amount = show_money(draft.amount, draft.order.currency)
    return Card(
        title=f"Is this refund right? {doubts[0]}",
        summary=f"If it is right, I propose {amount} and you see it before it is paid. Nothing is paid until then.",
        for_whom=ticket.from_name or ticket.from_address,
        resource=f"order {draft.order.number}",
        risk="high",
        reasons=doubts,
        question={
            "text": "Is this refund right?",
            "choices": [
                {"id": "refuse", "label": "No: propose a reply that refuses it, and pay nothing"},
                {"id": "pay", "label": f"Yes: propose {amount}"},
            ],
        },
        quotes=quote_mail(ticket),
    )


def ask_to_pay(ticket: Ticket, proposal: Proposal, draft: Draft, now: Order, risk: tuple[str, list[str]]) -> Card:
    """Ask whether to pay and reply. `now`: the order, with what others have given back of its payment by now."""
    refund, name = proposal.refund, now.customer or ticket.from_name
    amount = show_money(refund.amount, now.currency)
    unchanged = "{value} is already refunded on this charge by others, and this has not changed"
    return Card(
        title=f"Refund {amount} and reply to {name}" if refund.amount else f"Reply to {name}, no refund",
        summary=summarise(draft, refund.amount),
        for_whom=", ".join(filter(None, [name, now.company])),
        amount=amount,
        resource=f"order {now.number}",
        risk=risk[0],
        reasons=risk[1],
        actions=[
            Action(id="refund", title="Pay a refund", tool="payments.refund", effect="pay", pointer="/proposal/refund",
                   schema=fix_values(Refund, currency=now.currency, charge=now.charge, card=now.card),
                   pinned=["/amount", "/card"], missing=["/amount"] if refund.amount > now.refundable else []),
            Action(id="reply", title="Send an e-mail", tool="mail.send", effect="reply", pointer="/proposal/reply",
                   schema=fix_values(Reply, to=proposal.reply.to), pinned=["/to"]),
        ],
        quotes=[
            *quote_mail(ticket),
            *(Quote(label=words.by, role="reviewer, sent it back", pointer=f"/feedback/{number}/text")
              for number, words in enumerate(draft.feedback)),
        ],
        preconditions=[
            Precondition(
                id="nothing-else-refunded", observes="refunded", effects=["pay"], preselected=True,
                label=unchanged if now.elsewhere else "Nothing else has been refunded on this charge: {value}",
            )
        ],
    )  # fmt: skip


def quote_mail(ticket: Ticket) -> list[Quote]:
    """Quote the customer's own words, for the reviewer to read beside the agent's summary, not through it."""
    who = one_line(ticket.from_name or ticket.from_address, 100) or "Unknown sender"
    seen = Quote(label=who, role="customer, by mail", pointer="/ticket/text")
    hidden = Quote(label=who, role="may be out of sight in the mail", pointer="/ticket/hidden")
    return [seen, hidden] if ticket.hidden else [seen]


def summarise(draft: Draft, amount: Decimal) -> str:
    """Say what the agent goes by and does about it, in two or three sentences of its own words."""
    words = ["Nothing is to be paid, as was decided." if draft.refused else _explain_reason(draft), *draft.heeded]
    if draft.unheeded:
        words.append(f"I could not apply the feedback from {join_names(draft.unheeded)}; the proposal is unchanged.")
    currency = draft.order.currency
    mine = show_money(draft.amount, currency)
    edited = f"A reviewer made it {show_money(amount, currency)}; I had {mine}."
    return " ".join([*words, f"That makes {mine}." if amount == draft.amount else edited])


def _explain_reason(draft: Draft) -> str:
    if draft.reason is Reason.NEVER_ARRIVED:
        return "The parcel never arrived, so everything is given back, shipping too."
    if draft.reason is Reason.FAULTY:
        return f"The customer reports as faulty: {list_items(draft.items)}. Refund in full; no return needed."
    if draft.reason is Reason.GOODWILL:
        return "No return and nothing missing. Suggest a 10 % goodwill refund."
    back, out = ([item for item in draft.order.items if bool(item.returned_on) is came] for came in (True, False))
    if not back:
        return "The mail says that it was sent back, but no parcel of this order has come in yet."
    rest = f"; {list_items(out)} did not" if out else ", all that was ordered, so shipping is given back too"
    return f"{list_items(back)} came back{rest}."


def write_letter(name: str, draft: Draft) -> str:
    """Write the reply. It names no amount: the statement below it does, and is right after an edit too."""
    number, items = draft.order.number, list_items(draft.items)
    words = {
        Reason.RETURNED: f"thank you for sending back what you ordered as {number}: {items}.",
        Reason.NEVER_ARRIVED: f"we are sorry that order {number} never reached you.",
        Reason.FAULTY: f"we are sorry for the state in which this reached you from order {number}: {items}.",
        Reason.GOODWILL: f"thank you for telling us about order {number}. Please take a part of the price back.",
    }[draft.reason]
    words += " We apologise for the trouble this has given you." if draft.sorry else ""
    paid = f"The money goes back to the card you paid with, ending {draft.order.card}."
    if not draft.amount:
        paid = "Everything that was paid for it has been given back already."
    words += f"\n\n{paid} It can take up to five working days to show. The statement is below."
    if draft.refused:  # whoever wrote may be a stranger, so it tells nothing of the order
        words = (
            f"thank you for your mail. We cannot pay a refund for order {number} as you ask. If you think that this is "
            "wrong, please write to us from the e-mail address that the order was placed with."
        )
    return f"Dear {name or 'customer'},\n\n{words}\n\nKind regards\nYour service team"


def write_statement(order: Order, refund: Refund, payment: Payment | None) -> str:
    """Write what is put below the reply's text."""
    lines = ["-- ", f"Order       {order.number}", f"Refund      {show_money(refund.amount, refund.currency)}"]
    if payment:
        lines += [f"To          card ending {refund.card}", f"Reference   {payment.id}"]
    return "\n".join(lines)
