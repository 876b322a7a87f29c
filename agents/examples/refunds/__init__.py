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
    upcast,
)
from agents.examples import orders as refunds_orders
from agents.examples.money import exchanged, shown
from agents.examples.nouns import Noun
from agents.examples.orders import Order
from approvals.english import counted

from . import cards as refunds_cards
from . import doubts as refunds_doubts
from . import explaining as refunds_explaining
from . import payments as refunds_payments
from . import risk as refunds_risk
from . import rules as refunds_rules
from . import twins as refunds_twins
from . import words as refunds_words
from .reading import mail as refunds_mail
from .reading.text import one_line
from .state import Decision, Facts, Feedback, Mail, Payment, Proposal, Refund, Reply, Ruling, Sent, Ticket


class Refunds(Agent):
    """Answer a refund request: read the mail, find the order, propose, ask, pay, reply."""

    name = "refunds"
    version = "6"
    team = "Support"

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
                if _target(proposal.refund) != (order.charge, order.card, order.currency):
                    raise ValueError(f"the money goes back, in {order.currency}, to the card that paid the order")
                if proposal.refund.amount > order.left:
                    raise ValueError(f"only {shown(order.left, order.currency)} is left of the payment")
                if proposal.reply.to != _address(facts, order):
                    raise ValueError("the reply goes to the address that wrote")
            return proposal

    @classmethod
    @upcast("1")
    def from_version_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Version 1 saved the same; it offered no precondition, and never asked what became of a payment."""
        return state

    @classmethod
    @upcast("2")
    def from_version_2(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Version 2 saved the same; it raised no doubts."""
        return state

    @classmethod
    @upcast("3")
    def from_version_3(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Version 3 saved the same; it asked for facts at medium risk where words of the mail may be out of sight."""
        return state

    @classmethod
    @upcast("4")
    def from_version_4(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Version 4 saved the same; its card for missing facts named no mail."""
        return state

    @classmethod
    @upcast("5")
    def from_version_5(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Version 5 saved the same; of two numbers it took the one behind "order", and digits out of any word."""
        return state

    @classmethod
    def title(cls, state: State) -> str:
        """Say who writes, and about what."""
        mail = refunds_mail.parse(state.mail.octets)
        who = mail.from_name or one_line(mail.from_address) or "Unknown sender"
        return one_line(f"{who}: {mail.subject or 'no subject'}", 150)

    @classmethod
    def inputs_from(cls, path: Path) -> list[dict[str, Any]]:
        """One input for each .eml file of a folder, by name, or for the one file."""
        files = sorted(path.glob("*.eml")) if path.is_dir() else [path]
        if not files:
            raise AgentError(f"There is no .eml file in {path}.")
        return [{"mail": Mail.read(file).model_dump(mode="json")} for file in files]

    @step(title="Read the mail", reads_world=True, uses=[refunds_mail.parse, refunds_rules.ticket_of])
    def read_mail(self, mail: Mail) -> dict[str, Any]:
        """Make out of the mail what can be made out: of the numbers in it the shop's file says which are orders."""
        try:
            orders = refunds_orders.numbers()
        except refunds_orders.OrdersRefused as error:
            raise StepFailed(str(error)) from error
        ticket = refunds_rules.ticket_of(refunds_mail.parse(mail.octets), orders.__contains__)
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
        return {"order": order, "earlier": refunds_twins.earlier(self.run.id, self.name, mail)}

    @gate(
        title="Ask for missing facts",
        policy="refunds",
        edits=["facts"],
        on_skip="ask_doubts",
        uses=[refunds_cards.facts],
    )
    def ask_facts(self, ticket: Ticket, facts: Facts, order: Order | None) -> Card | None:
        """Ask a person for what the mail does not say."""
        if order:
            return None
        return refunds_cards.facts(ticket, facts)

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
        uses=[refunds_doubts.doubts, refunds_cards.doubts],
    )
    def ask_doubts(self, ticket: Ticket, facts: Facts, order: Order, earlier: list[int]) -> Card | None:
        """Ask a person where the mail, the order and the payment do not fit together."""
        made = refunds_rules.draft(order, facts.reason, refunds_rules.words_in_sight(ticket.text), [])
        doubts = refunds_doubts.doubts(ticket, order, made, earlier)
        if not doubts:
            return None
        return refunds_cards.doubts(ticket, order, made, doubts)

    @step(title="Take the answer")
    def take_ruling(self, decision: Decision | None) -> dict[str, Any]:
        """Take down what was answered."""
        choice = (decision.answer or {}).get("choice", "") if decision else ""
        if choice not in ("pay", "refuse"):
            raise StepFailed("Nobody said whether the refund is right.")
        return {"ruling": choice}

    @step(title="Propose the refund", uses=[refunds_rules.draft, refunds_rules.heed, refunds_words.letter])
    def propose(
        self, ticket: Ticket, facts: Facts, order: Order, feedback: list[Feedback], ruling: Ruling
    ) -> dict[str, Any]:
        """Work out an amount and a reply, heeding what reviewers said."""
        words = refunds_rules.words_in_sight(ticket.text)
        made = refunds_rules.draft(order, facts.reason, words, feedback, ruling=ruling)
        amount = made.amount(order)
        self.note(refunds_words.summary(order, facts.reason, made, amount))
        refund = Refund(
            amount=amount, currency=order.currency, reason=facts.reason, charge=order.charge, card=order.card
        )
        reply = Reply(
            to=_address(facts, order),
            subject=f"{'About your request' if made.refused else 'Your refund'} for order {order.number}",
            text=refunds_words.letter(order, facts, made),
        )
        return {"proposal": Proposal(refund=refund, reply=reply)}

    @observation(timeout=30)
    def refunded(self, order: Order) -> str:
        """What others have been given back of the payment. What this run itself paid is no news to it."""
        amount, currency = refunds_payments.refunded(order.charge, but=self.reference)
        return shown(amount, currency)

    @gate(
        title="Review the refund",
        policy="refunds",
        allows=["pay", "reply"],
        edits=["proposal"],
        on_reject="propose",
        observes=["refunded"],
        uses=[refunds_cards.refund],
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
        words = refunds_rules.words_in_sight(ticket.text)
        made = refunds_rules.draft(order, facts.reason, words, feedback, ruling=ruling)
        doubts = refunds_doubts.doubts(ticket, order, made, earlier)
        standing = refunds_risk.Standing.of(order, observed["refunded"])
        judged = refunds_risk.assess(ticket, order, proposal, made, feedback, doubts=doubts, standing=standing)
        return refunds_cards.refund(ticket, facts, order, proposal, feedback, made, judged, standing)

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
        """Return what `pay` would have returned, as the provider tells by the key; None if nothing was paid."""
        if not proposal.refund.amount:
            return {"payment": None}  # there is nothing to find, and nothing that could be missing
        payment = refunds_payments.find(key)
        return {"payment": payment} if payment else None

    @undo(idempotent=True)
    def cancel_payment(self, payment: Payment | None) -> None:
        """Take a paid refund back; as often as it is asked."""
        if payment:
            refunds_payments.cancel(payment.id)

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
            return refunds_explaining.lacking(ticket, facts)
        made = refunds_rules.draft(
            order, facts.reason, refunds_rules.words_in_sight(ticket.text), feedback, ruling=ruling
        )
        now = question.state.get("proposal") or proposal
        shown = None if now is None else Proposal.model_validate(now)
        return refunds_explaining.explained(question.text, ticket, facts, order, shown, made)

    def _look_up(self, number: str) -> Order | None:
        """Return the order, with what others were given back of its payment; None if there is no such order.

        Raises StepFailed where the orders cannot be read.
        """
        try:
            order = refunds_orders.find(number)
        except refunds_orders.OrdersRefused as error:
            raise StepFailed(str(error)) from error
        if order is None:
            return None
        amount, currency = refunds_payments.refunded(order.charge, but=self.reference)
        return order.model_copy(update={"elsewhere": exchanged(amount, currency, order.currency)})

    @property
    def reference(self) -> str:
        """Return what the provider keeps with this run's refunds, so that they can be told from those of others."""
        return f"holdpoint run {self.run.id}"

    @effect(title="Reply to the customer", irreversible=True)
    def reply(self, order: Order, proposal: Proposal, payment: Payment | None, *, key: str) -> dict[str, Any]:
        """Send the reply, with the statement of the refund below it."""
        said = proposal.reply
        text = f"{said.text}\n\n{refunds_words.statement(order, proposal.refund, payment)}\n"
        return {"reply_sent": refunds_payments.mail(said.to, said.subject, text, key)}


def _target(refund: Refund) -> tuple[str, str, str]:
    return refund.charge, refund.card, refund.currency


def _address(facts: Facts, order: Order) -> str:
    return facts.address or order.email


def _seen(order: Order) -> str:
    back = sum(1 for item in order.items if item.returned_on)
    paid = shown(order.paid, order.currency)
    items = counted(len(order.items), "item")
    return f"Order {order.number} of {order.customer}: {items}, {back} came back, {paid} paid."
