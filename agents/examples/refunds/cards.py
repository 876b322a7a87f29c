"""The cards of the refunds agent: for missing facts, for doubts about the request, and for the refund."""

from __future__ import annotations

from collections.abc import Sequence

from agents import Action, Card, Precondition, Quote
from agents.examples.money import shown
from agents.examples.orders import Order
from agents.examples.refunds.reading.text import one_line
from agents.examples.sending import fixed

from . import words as refunds_words
from .risk import Judged, Standing
from .rules import Draft
from .state import Facts, Feedback, Proposal, Refund, Reply, Ticket


def facts(ticket: Ticket, known: Facts) -> Card:
    """Ask for the order's number; nothing is approved without another one."""
    why, more = refunds_words.missing(ticket, known)
    return Card(
        title=f"Type the missing facts: {why}",
        summary=f"I cannot tell which order this mail is about{more}. Its number is enough for me to go on.",
        for_whom=ticket.from_name or ticket.from_address,
        resource=f"the mail “{ticket.subject}” from {ticket.from_address}",
        risk="high" if ticket.hidden else "medium",
        reasons=[
            f"{why[:1].upper()}{why[1:]}",
            *(f"The mail was hard to read: {problem}" for problem in ticket.problems),
        ],
        actions=[Action(id="facts", title="Missing facts", tool="facts", pointer="/facts", missing=["/order_number"])],
        quotes=said(ticket),
    )


def doubts(ticket: Ticket, order: Order, made: Draft, found: Sequence[str]) -> Card:
    """Ask whether the refund is right."""
    amount = shown(made.amount(order), order.currency)
    return Card(
        title=f"Is this refund right? {found[0]}",
        summary=f"If it is right, I propose {amount} and you see it before it is paid. Nothing is paid until then.",
        for_whom=ticket.from_name or ticket.from_address,
        resource=f"order {order.number}",
        risk="high",
        reasons=found,
        question={
            "text": "Is this refund right?",
            "choices": [
                {"id": "refuse", "label": "No: propose a reply that refuses it, and pay nothing"},
                {"id": "pay", "label": f"Yes: propose {amount}"},
            ],
        },
        quotes=said(ticket),
    )


def refund(
    ticket: Ticket,
    known: Facts,
    order: Order,
    proposal: Proposal,
    feedback: Sequence[Feedback],
    made: Draft,
    judged: Judged,
    standing: Standing,
) -> Card:
    """Ask whether to pay and reply."""
    amount, name = shown(proposal.refund.amount, order.currency), order.customer or known.name
    risk, reasons = judged
    sent_back = [
        Quote(label=each.by, role="reviewer, sent it back", pointer=f"/feedback/{number}/text")
        for number, each in enumerate(feedback)
    ]
    return Card(
        title=f"Refund {amount} and reply to {name}" if proposal.refund.amount else f"Reply to {name}, no refund",
        summary=refunds_words.summary(order, known.reason, made, proposal.refund.amount),
        for_whom=", ".join(filter(None, [name, order.company])),
        amount=amount,
        resource=f"order {order.number}",
        risk=risk,
        reasons=reasons,
        actions=_actions(order, proposal, standing),
        quotes=[*said(ticket), *sent_back],
        preconditions=[
            Precondition(
                id="nothing-else-refunded",
                label=refunds_words.still(standing.elsewhere),
                observes="refunded",
                effects=["pay"],
                preselected=True,
            )
        ],
    )


def _actions(order: Order, proposal: Proposal, standing: Standing) -> list[Action]:
    return [
        Action(
            id="refund",
            title="Pay a refund",
            tool="payments.refund",
            effect="pay",
            pointer="/proposal/refund",
            schema=fixed(Refund, currency=order.currency, charge=order.charge, card=order.card),
            pinned=["/amount", "/card"],
            missing=["/amount"] if proposal.refund.amount > standing.left else [],
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
    ]


def said(ticket: Ticket) -> list[Quote]:
    """Quote the customer's own words, for the reviewer to read beside the agent's summary, not through it."""
    who = one_line(ticket.from_name or ticket.from_address) or "Unknown sender"
    in_sight = Quote(label=who, role="customer, by mail", pointer="/ticket/text")
    hidden = Quote(label=who, role="may be out of sight in the mail", pointer="/ticket/hidden")
    return [in_sight, *([hidden] if ticket.hidden else [])]
