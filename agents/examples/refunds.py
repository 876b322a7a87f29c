"""The refunds agent: it answers customers who want their money back, and pays nothing that nobody agreed to.

Its rules are these, and no model guesses at them:

1. The mail says which order, why, and perhaps how much. Only its words in sight count: not quoted lines, and not
   what stands behind more than 20 blank lines. The order number is the one after "order", "Bestellung", "заказ"
   or "#", else the only number of five digits.
2. What cannot be made out is asked for: a gate stops the run until a person has typed the missing facts.
3. What is given back, by reason:
   - *returned*: what came back, by the shop's own list; shipping too when that was everything. When nothing has
     come back yet, all the goods, and the reviewer is warned;
   - *never arrived*: everything, shipping too;
   - *faulty*: the goods that a sentence of the mail calls so, else all of them;
   - *goodwill*, for everything else: a tenth of the goods.
   It is never more than is left of the payment.
4. A reviewer's feedback changes the proposal, the latest last: "only the frames", "not the lenses", "with shipping",
   "no shipping", an amount ("€1,264.10", "1264.10"), "half", "20 %", "apologise". What no rule reads changes
   nothing, and the agent says so.
5. The money goes to the card that paid the order and the reply to the address that wrote; no edit changes that.
6. Risk: medium over 100, high over 1,000, critical over 10,000; high at least for what an honest mail does not have
   (hidden text, invisible characters, another sender's address, goods said to be returned that are not here).

Orders come from a CSV file (`refunds_orders`), payments go to `SANDBOX_URL`, mail goes through Django.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from agents import (
    Action,
    Agent,
    AgentError,
    Card,
    Jump,
    Precondition,
    Quote,
    StepFailed,
    effect,
    gate,
    observation,
    step,
    undo,
    upcast,
)

from . import refunds_mail, refunds_orders, refunds_payments, refunds_risk, refunds_rules, refunds_words
from .refunds_money import shown
from .refunds_state import (
    Decision,
    Facts,
    Feedback,
    Mail,
    Order,
    Payment,
    Proposal,
    Refund,
    Reply,
    Sent,
    Ticket,
    fixed,
)
from .refunds_text import one_line


class Refunds(Agent):
    """Answer a refund request: read the mail, find the order, propose, ask, pay, reply."""

    name = "refunds"
    version = "2"
    team = "Support"

    class State(BaseModel):
        """What is saved after every step. Later fields are checked against earlier ones."""

        model_config = ConfigDict(extra="forbid")

        mail: Mail
        ticket: Ticket | None = None
        facts: Facts | None = None
        order: Order | None = None
        proposal: Proposal | None = None
        feedback: list[Feedback] = Field(default_factory=list)
        payment: Payment | None = None
        reply_sent: Sent | None = None
        decision: Decision | None = None

        @field_validator("proposal")
        @classmethod
        def goes_where_it_came_from(cls, proposal: Proposal | None, info: ValidationInfo) -> Proposal | None:
            """Rule 5, for whoever edits a proposal."""
            order, facts = info.data.get("order"), info.data.get("facts")
            if proposal and order and facts:
                if _target(proposal.refund) != (order.charge, order.card, order.currency):
                    raise ValueError(f"the money goes back, in {order.currency}, to the card that paid the order")
                if proposal.reply.to != _address(facts, order):
                    raise ValueError("the reply goes to the address that wrote")
            return proposal

    @classmethod
    @upcast("1")
    def from_version_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Version 1 saved the same; it offered no precondition, and never asked what became of a payment."""
        return state

    @classmethod
    def title(cls, state: State) -> str:
        """Who writes, and about what."""
        mail = refunds_mail.parse(state.mail.octets)
        who = mail.from_name or one_line(mail.from_address) or "A sender that cannot be made out"
        return one_line(f"{who}: {mail.subject or 'no subject'}", 150)

    @classmethod
    def inputs_from(cls, path: Path) -> list[dict[str, Any]]:
        """One input for each .eml file of a folder, by name, or for the one file."""
        files = sorted(path.glob("*.eml")) if path.is_dir() else [path]
        if not files:
            raise AgentError(f"There is no .eml file in {path}.")
        return [{"mail": Mail.read(file).model_dump(mode="json")} for file in files]

    @step(title="Read the mail", uses=[refunds_mail.parse, refunds_rules.ticket_of])
    def read_mail(self, mail: Mail) -> dict[str, Any]:
        """Make out of the mail what can be made out."""
        ticket = refunds_rules.ticket_of(refunds_mail.parse(mail.octets))
        for problem in ticket.problems:
            self.note(f"The mail was hard to read: {problem}.")
        facts = Facts(
            order_number=ticket.order_number or "",
            name=ticket.from_name,
            address=ticket.from_address,
            reason=ticket.reason,
        )
        return {"ticket": ticket, "facts": facts}

    @step(title="Find the order", reads_world=True)
    def find_order(self, facts: Facts) -> dict[str, Any]:
        """Look the order up in the shop's file."""
        order = _look_up(facts.order_number)
        self.note(_seen(order) if order else f"There is no order {facts.order_number or 'number in the mail'}.")
        return {"order": order}

    @gate(title="Ask for missing facts", policy="refunds", edits=["facts"], on_skip="propose")
    def ask_facts(self, ticket: Ticket, facts: Facts, order: Order | None) -> Card | None:
        """Ask a person for what the mail does not say."""
        if order:
            return None
        why = f"order {facts.order_number} is not known" if facts.order_number else "no order number found"
        return Card(
            title=f"Type the missing facts: {why}",
            summary="I cannot find the order that this mail is about. Its number is enough for me to go on.",
            for_whom=ticket.from_name or ticket.from_address,
            resource="1 mail",
            risk="medium",
            reasons=[f"The mail was hard to read: {problem}" for problem in ticket.problems] or [why.capitalize()],
            actions=[
                Action(id="facts", title="Missing facts", tool="facts", pointer="/facts", missing=["/order_number"])
            ],
            quotes=[said(ticket)],
        )

    @step(title="Look the order up again", reads_world=True)
    def look_up_again(self, facts: Facts) -> Any:
        """Look for the order that a person named; ask again while there is none."""
        found = _look_up(facts.order_number)
        if found is None:
            self.note(f"There is no order {facts.order_number or 'without a number'}, so a person is asked again.")
            return Jump("ask_facts")
        self.note(_seen(found))
        return {"order": found}

    @step(title="Propose the refund", uses=[refunds_rules.draft, refunds_rules.heed, refunds_words.letter])
    def propose(self, ticket: Ticket, facts: Facts, order: Order, feedback: list[Feedback]) -> dict[str, Any]:
        """Work out an amount and a reply, heeding what reviewers said."""
        made = refunds_rules.draft(order, facts.reason, refunds_rules.words_in_sight(ticket.text), feedback)
        amount = made.amount(order)
        self.note(refunds_words.summary(order, facts.reason, made, amount))
        refund = Refund(
            amount=amount, currency=order.currency, reason=facts.reason, charge=order.charge, card=order.card
        )
        reply = Reply(
            to=_address(facts, order),
            subject=f"Your refund for order {order.number}",
            text=refunds_words.letter(order, facts, made),
        )
        return {"proposal": Proposal(refund=refund, reply=reply)}

    @observation(timeout=30)
    def refunded(self, order: Order) -> str:
        """What others have been given back of the payment. What this run itself paid is no news to it."""
        amount, currency = refunds_payments.refunded(order.charge, but=self.reference)
        return f"{amount:.2f} {currency}"

    @gate(
        title="Review the refund",
        policy="refunds",
        allows=["pay", "reply"],
        edits=["proposal"],
        on_reject="propose",
        observes=["refunded"],
    )
    def review(self, ticket: Ticket, facts: Facts, order: Order, proposal: Proposal, feedback: list[Feedback]) -> Card:
        """Ask whether to pay and reply. One yes allows both."""
        made = refunds_rules.draft(order, facts.reason, refunds_rules.words_in_sight(ticket.text), feedback)
        risk, reasons = refunds_risk.assess(ticket, order, proposal, made, feedback)
        amount = shown(proposal.refund.amount, order.currency)
        name = order.customer or facts.name
        return Card(
            title=f"Refund {amount} and reply to {name}" if proposal.refund.amount else f"Reply to {name}, no refund",
            summary=refunds_words.summary(order, facts.reason, made, proposal.refund.amount),
            for_whom=", ".join(filter(None, [name, order.company])),
            amount=amount,
            resource=f"order {order.number}",
            risk=risk,
            reasons=reasons,
            actions=[
                Action(
                    id="refund",
                    title="Pay a refund",
                    tool="payments.refund",
                    effect="pay",
                    pointer="/proposal/refund",
                    schema=fixed(Refund, currency=order.currency, charge=order.charge, card=order.card),
                    pinned=["/amount", "/card"],
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
                said(ticket),
                *(
                    Quote(label=each.by, role="reviewer, sent it back", pointer=f"/feedback/{number}/text")
                    for number, each in enumerate(feedback)
                ),
            ],
            preconditions=[
                Precondition(
                    id="nothing-else-refunded",
                    label="nothing else has been refunded on this charge since, so still {value}",
                    observes="refunded",
                    effects=["pay"],
                    preselected=True,
                )
            ],
        )

    @effect(title="Pay the refund", undo="cancel_payment", idempotent=True, readable="find_refund")
    def pay(self, order: Order, proposal: Proposal, *, key: str) -> dict[str, Any]:
        """Pay the refund. Nothing is paid for an amount of 0.00."""
        if not proposal.refund.amount:
            self.note("Nothing is to be paid.")
            return {"payment": None}
        payment = refunds_payments.refund(proposal.refund, key, reference=self.reference)
        self.note(f"{shown(payment.amount, payment.currency)} to the card ending {order.card}, as {payment.id}.")
        return {"payment": payment}

    def find_refund(self, proposal: Proposal, *, key: str) -> dict[str, Any] | None:
        """What `pay` would have returned, as the provider tells by the key; None where nothing was paid."""
        if not proposal.refund.amount:
            return {"payment": None}  # there is nothing to find, and nothing that could be missing
        payment = refunds_payments.find(key)
        return {"payment": payment} if payment else None

    @undo(idempotent=True)
    def cancel_payment(self, payment: Payment | None) -> None:
        """Take a paid refund back; as often as it is asked."""
        if payment:
            refunds_payments.cancel(payment.id)

    @property
    def reference(self) -> str:
        """What the provider keeps with this run's refunds, so that they can be told from those of others."""
        return f"holdpoint run {self.run.id}"

    @effect(title="Reply to the customer", irreversible=True)
    def reply(self, order: Order, proposal: Proposal, payment: Payment | None, *, key: str) -> dict[str, Any]:
        """Send the reply, with the statement of the refund below it."""
        said = proposal.reply
        text = f"{said.text}\n\n{refunds_words.statement(order, proposal.refund, payment)}\n"
        return {"reply_sent": refunds_payments.mail(said.to, said.subject, text, key)}


def said(ticket: Ticket) -> Quote:
    """The customer's own words, as the reviewer should read them: beside the agent's summary, not through it."""
    who = one_line(ticket.from_name or ticket.from_address) or "Somebody who cannot be made out"
    return Quote(label=who, role="customer, by mail", pointer="/ticket/text")


def _target(refund: Refund) -> tuple[str, str, str]:
    return refund.charge, refund.card, refund.currency


def _address(facts: Facts, order: Order) -> str:
    return facts.address or order.email


def _look_up(number: str) -> Order | None:
    try:
        return refunds_orders.find(number)
    except refunds_orders.OrdersRefused as error:
        raise StepFailed(str(error)) from error


def _seen(order: Order) -> str:
    back = sum(1 for item in order.items if item.returned_on)
    paid = shown(order.paid, order.currency)
    items = f"{len(order.items)} item{'' if len(order.items) == 1 else 's'}"
    return f"Order {order.number} of {order.customer}: {items}, {back} came back, {paid} paid."
