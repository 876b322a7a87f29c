"""The cards of the refunds agent: for missing facts, for doubts about the request, and for the refund."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from agents import Action, Card, Precondition, Quote
from agents.examples.money import shown
from agents.examples.orders import Order
from agents.examples.sending import fixed
from agents.examples.text import one_line

from . import words
from .rules import Draft
from .state import Facts, Feedback, Proposal, Refund, Reply, Ticket


def ask_for_facts(ticket: Ticket, known: Facts) -> Card:
    """Ask for the order's number; nothing is approved without another one."""
    why, more = words.missing(ticket, known)
    return Card(
        title=f"Type the missing facts: {why}",
        summary=f"I cannot tell which order this mail is about{more}. Its number is enough for me to go on.",
        for_whom=ticket.from_name or ticket.from_address,
        resource=f"the mail “{ticket.subject}” from {ticket.from_address}",
        risk="high" if ticket.hidden else "medium",
        reasons=[f"{why[:1].upper()}{why[1:]}", *(f"The mail was hard to read: {each}" for each in ticket.problems)],
        actions=[Action(id="facts", title="Missing facts", tool="facts", pointer="/facts", missing=["/order_number"])],
        quotes=quote_mail(ticket),
    )


def ask_whether_right(ticket: Ticket, order: Order, draft: Draft, doubts: Sequence[str]) -> Card:
    """Ask whether the refund is right."""
    amount = shown(draft.amount(order), order.currency)
    return Card(
        title=f"Is this refund right? {doubts[0]}",
        summary=f"If it is right, I propose {amount} and you see it before it is paid. Nothing is paid until then.",
        for_whom=ticket.from_name or ticket.from_address,
        resource=f"order {order.number}",
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


def ask_to_pay(
    ticket: Ticket,
    known: Facts,
    order: Order,
    proposal: Proposal,
    feedback: Sequence[Feedback],
    draft: Draft,
    judged: tuple[str, list[str]],
    standing: tuple[Decimal, Decimal],
) -> Card:
    """Ask whether to pay and reply. `standing`: what others gave back of the payment, and what is left of it."""
    refund, name = proposal.refund, order.customer or known.name
    amount, (elsewhere, left) = shown(refund.amount, order.currency), standing
    still = "{value} is already refunded on this charge by others, and this has not changed"
    return Card(
        title=f"Refund {amount} and reply to {name}" if refund.amount else f"Reply to {name}, no refund",
        summary=words.summary(order, known.reason, draft, refund.amount),
        for_whom=", ".join(filter(None, [name, order.company])),
        amount=amount,
        resource=f"order {order.number}",
        risk=judged[0],
        reasons=judged[1],
        actions=[
            Action(
                id="refund",
                title="Pay a refund",
                tool="payments.refund",
                effect="pay",
                pointer="/proposal/refund",
                schema=fixed(Refund, currency=order.currency, charge=order.charge, card=order.card),
                pinned=["/amount", "/card"],
                missing=["/amount"] if refund.amount > left else [],
            ),
            Action(
                id="reply",
                title="Send an e-mail",
                tool="mail.send",
                effect="reply",
                pointer="/proposal/reply",
                schema=fixed(Reply, to=proposal.reply.to),
                pinned=["/to"],
            ),
        ],
        quotes=[
            *quote_mail(ticket),
            *(
                Quote(label=each.by, role="reviewer, sent it back", pointer=f"/feedback/{number}/text")
                for number, each in enumerate(feedback)
            ),
        ],
        preconditions=[
            Precondition(
                id="nothing-else-refunded",
                label=still if elsewhere else "Nothing else has been refunded on this charge: {value}",
                observes="refunded",
                effects=["pay"],
                preselected=True,
            )
        ],
    )


def quote_mail(ticket: Ticket) -> list[Quote]:
    """Quote the customer's own words, for the reviewer to read beside the agent's summary, not through it."""
    who = one_line(ticket.from_name or ticket.from_address) or "Unknown sender"
    seen = Quote(label=who, role="customer, by mail", pointer="/ticket/text")
    hidden = Quote(label=who, role="may be out of sight in the mail", pointer="/ticket/hidden")
    return [seen, hidden] if ticket.hidden else [seen]
