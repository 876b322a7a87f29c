"""The refunds agent: it answers customers who want their money back, and pays only what a person approved.

It reads the mail, finds the order, asks a person for missing facts, asks whether the refund is right where something
does not fit, proposes an amount and a reply, asks for approval, pays and answers. It uses no model: its rules are in
one table, docs/refunds.md, and a test checks every row of it.

Orders come from a CSV file (`agents.examples.orders`), payments go to `SANDBOX_URL`, mail goes through Django.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field, ValidationInfo, field_validator

from agents import (
    Agent,
    AgentError,
    Card,
    Jump,
    ReviewerQuestion,
    StepFailed,
    effect,
    gate,
    observation,
    step,
    undo,
)
from agents.examples import orders
from agents.examples.money import exchanged, shown
from agents.examples.nouns import Noun, keep_state
from agents.examples.orders import Order
from agents.examples.sending import deliver
from agents.examples.text import one_line
from approvals.english import count_of

from . import cards, payments, risk, rules, twins, words
from .mail import parse
from .state import Decision, Facts, Feedback, Mail, Payment, Proposal, Refund, Reply, Ruling, Sent, Ticket


class Refunds(Agent):
    """Answer a refund request: read the mail, find the order, propose, ask, pay, reply."""

    name = "refunds"
    version = "7"
    team = "Support"

    # Versions 1 to 6 saved the same fields: what changed is how mails are read, and when people are asked.
    from_1, from_2, from_3, from_4, from_5, from_6 = map(keep_state, "123456")

    class State(Noun):
        """What is saved after every step. Later fields are checked against earlier ones."""

        mail: Mail
        ticket: Ticket | None = None
        facts: Facts | None = None
        order: Order | None = None
        proposal: Proposal | None = None
        feedback: list[Feedback] = Field(default_factory=list)
        payment: Payment | None = None
        reply_sent: Sent | None = None
        decision: Decision | None = None
        earlier: list[int] = Field(default_factory=list)  # runs that have the same mail
        ruling: Ruling = ""

        @field_validator("proposal")
        @classmethod
        def goes_where_it_came_from(cls, proposal: Proposal | None, info: ValidationInfo) -> Proposal | None:
            """Refuse what no edit may change: where the money and the reply go, and how much there is."""
            order, facts = info.data.get("order"), info.data.get("facts")
            if proposal and order and facts:
                refund = proposal.refund
                if (refund.charge, refund.card, refund.currency) != (order.charge, order.card, order.currency):
                    raise ValueError(f"the money goes back, in {order.currency}, to the card that paid the order")
                if proposal.refund.amount > order.left:
                    raise ValueError(f"only {shown(order.left, order.currency)} is left of the payment")
                if proposal.reply.to != _address(facts, order):
                    raise ValueError("the reply goes to the address that wrote")
            return proposal

    @classmethod
    def title(cls, state: State) -> str:
        """Say who writes, and about what."""
        mail = parse(state.mail.octets)
        who = mail.from_name or one_line(mail.from_address) or "Unknown sender"
        return one_line(f"{who}: {mail.subject or 'no subject'}", 150)

    @classmethod
    def inputs_from(cls, path: Path) -> list[dict[str, Any]]:
        """One input for each .eml file of a folder, by name, or for the one file."""
        files = sorted(path.glob("*.eml")) if path.is_dir() else [path]
        if not files:
            raise AgentError(f"There is no .eml file in {path}.")
        return [{"mail": Mail.read(file).model_dump(mode="json")} for file in files]

    @step(title="Read the mail", reads_world=True, uses=[parse, rules.ticket_of])
    def read_mail(self, mail: Mail) -> dict[str, Any]:
        """Make out of the mail what can be made out: of the numbers in it the shop's file says which are orders."""
        try:
            known = orders.numbers()
        except orders.OrdersRefused as error:
            raise StepFailed(str(error)) from error
        ticket = rules.ticket_of(parse(mail.octets), known.__contains__)
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
    def find_order(self, mail: Mail, facts: Facts) -> dict[str, Any]:
        """Look the order up in the shop's file, and whether the same mail came before."""
        order = self._look_up(facts.order_number)
        self.note(_seen(order) if order else f"There is no order {facts.order_number or 'number in the mail'}.")
        return {"order": order, "earlier": twins.find_earlier(self.run.id, self.name, mail)}

    @gate(
        title="Ask for missing facts",
        policy="refunds",
        edits=["facts"],
        on_skip="ask_doubts",
        uses=[cards.ask_for_facts],
    )
    def ask_facts(self, ticket: Ticket, facts: Facts, order: Order | None) -> Card | None:
        """Ask a person for what the mail does not say."""
        return None if order else cards.ask_for_facts(ticket, facts)

    @step(title="Look the order up again", reads_world=True)
    def look_up_again(self, facts: Facts) -> Any:
        """Look for the order that a person named; ask again while there is none."""
        found = self._look_up(facts.order_number)
        if found is None:
            self.note(f"There is no order {facts.order_number or 'without a number'}, so a person is asked again.")
            return Jump("ask_facts")
        self.note(_seen(found))
        return {"order": found}

    @gate(
        title="Ask whether the refund is right",
        policy="refunds",
        on_skip="propose",
        uses=[risk.find_doubts, cards.ask_whether_right],
    )
    def ask_doubts(self, ticket: Ticket, facts: Facts, order: Order, earlier: list[int]) -> Card | None:
        """Ask a person where the mail, the order and the payment do not fit together."""
        draft = rules.draft(order, facts.reason, ticket.text, [])
        doubts = risk.find_doubts(ticket, order, draft, earlier)
        return cards.ask_whether_right(ticket, order, draft, doubts) if doubts else None

    @step(title="Take the answer")
    def take_ruling(self, decision: Decision | None) -> dict[str, Any]:
        """Take down what was answered."""
        choice = (decision.answer or {}).get("choice", "") if decision else ""
        if choice not in ("pay", "refuse"):
            raise StepFailed("Nobody said whether the refund is right.")
        return {"ruling": choice}

    @step(title="Propose the refund", uses=[rules.draft, rules.heed, words.letter])
    def propose(
        self, ticket: Ticket, facts: Facts, order: Order, feedback: list[Feedback], ruling: Ruling
    ) -> dict[str, Any]:
        """Work out an amount and a reply, heeding what reviewers said."""
        draft = rules.draft(order, facts.reason, ticket.text, feedback, ruling=ruling)
        amount = draft.amount(order)
        self.note(words.summary(order, facts.reason, draft, amount))
        refund = Refund(
            amount=amount, currency=order.currency, reason=facts.reason, charge=order.charge, card=order.card
        )
        reply = Reply(
            to=_address(facts, order),
            subject=f"{'About your request' if draft.refused else 'Your refund'} for order {order.number}",
            text=words.letter(order, facts, draft),
        )
        return {"proposal": Proposal(refund=refund, reply=reply)}

    @observation(timeout=30)
    def refunded(self, order: Order) -> str:
        """What others have been given back of the payment. What this run itself paid is no news to it."""
        amount, currency = payments.refunded(order.charge, but=self.reference)
        return shown(amount, currency)

    @gate(
        title="Review the refund",
        policy="refunds",
        allows=["pay", "reply"],
        edits=["proposal"],
        on_reject="propose",
        observes=["refunded"],
        uses=[cards.ask_to_pay],
    )
    def review(
        self,
        ticket: Ticket,
        facts: Facts,
        order: Order,
        proposal: Proposal,
        feedback: list[Feedback],
        earlier: list[int],
        ruling: Ruling,
        *,
        observed: dict[str, Any],
    ) -> Card:
        """Ask whether to pay and reply. One yes allows both."""
        draft = rules.draft(order, facts.reason, ticket.text, feedback, ruling=ruling)
        doubts = risk.find_doubts(ticket, order, draft, earlier)
        standing = risk.read_standing(order, observed["refunded"])
        judged = risk.assess(ticket, order, proposal, draft, feedback, doubts, standing)
        return cards.ask_to_pay(ticket, facts, order, proposal, feedback, draft, judged, standing)

    @effect(title="Pay the refund", undo="cancel_payment", idempotent=True, readable="find_refund")
    def pay(self, order: Order, proposal: Proposal, *, key: str) -> dict[str, Any]:
        """Pay the refund. Nothing is paid for an amount of 0.00."""
        if not proposal.refund.amount:
            self.note("Nothing is to be paid.")
            return {"payment": None}
        payment = payments.refund(proposal.refund, key, reference=self.reference)
        self.note(f"{shown(payment.amount, payment.currency)} to the card ending {order.card}, as {payment.id}.")
        return {"payment": payment}

    def find_refund(self, proposal: Proposal, *, key: str) -> dict[str, Any] | None:
        """Return what `pay` would have returned, as the provider tells by the key; None if nothing was paid."""
        if not proposal.refund.amount:
            return {"payment": None}  # there is nothing to find, and nothing that could be missing
        payment = payments.find(key)
        return {"payment": payment} if payment else None

    @undo(idempotent=True)
    def cancel_payment(self, payment: Payment | None) -> None:
        """Take a paid refund back; as often as it is asked."""
        if payment:
            payments.cancel(payment.id)

    def answer(
        self,
        question: ReviewerQuestion,
        ticket: Ticket,
        facts: Facts,
        order: Order | None,
        proposal: Proposal | None,
        feedback: list[Feedback],
        ruling: Ruling,
    ) -> str:
        """Answer a reviewer from the facts, and from the proposal as people have edited it."""
        if order is None:
            what, how = words.missing(ticket, facts)
            return f"I have found no order to look at: {what}{how}."
        draft = rules.draft(order, facts.reason, ticket.text, feedback, ruling=ruling)
        now = question.state.get("proposal") or proposal
        amount = Proposal.model_validate(now).refund.amount if now else draft.amount(order)
        return words.explanation(ticket, facts, order, draft, amount)

    def _look_up(self, number: str) -> Order | None:
        """Return the order, with what others were given back of its payment; None if there is no such order.

        Raises StepFailed where the orders cannot be read.
        """
        try:
            order = orders.find(number)
        except orders.OrdersRefused as error:
            raise StepFailed(str(error)) from error
        if order is None:
            return None
        amount, currency = payments.refunded(order.charge, but=self.reference)
        return order.model_copy(update={"elsewhere": exchanged(amount, currency, order.currency)})

    @property
    def reference(self) -> str:
        """Return what the provider keeps with this run's refunds, so that they can be told from those of others."""
        return f"holdpoint run {self.run.id}"

    @effect(title="Reply to the customer", irreversible=True)
    def reply(self, order: Order, proposal: Proposal, payment: Payment | None, *, key: str) -> dict[str, Any]:
        """Send the reply, with the statement of the refund below it."""
        reply = proposal.reply
        text = f"{reply.text}\n\n{words.statement(order, proposal.refund, payment)}\n"
        return {"reply_sent": Sent(to=reply.to, message_id=deliver(reply.subject, text, key=key, to=[reply.to]))}


def _address(facts: Facts, order: Order) -> str:
    return facts.address or order.email


def _seen(order: Order) -> str:
    back = sum(1 for item in order.items if item.returned_on)
    paid = shown(order.paid, order.currency)
    items = count_of(len(order.items), "item")
    return f"Order {order.number} of {order.customer}: {items}, {back} came back, {paid} paid."
