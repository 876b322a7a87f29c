"""The refunds agent: it answers customers who want their money back, and pays only what a person approved.

It reads the mail, finds the order, asks a person for missing facts, asks whether the refund is right where something
does not fit, proposes an amount and a reply, asks for approval, pays and answers. It uses no model: its rules are in
one table, docs/refunds.md, and a test checks every row of it.

Orders come from a CSV file (`agents.examples.orders`), payments go to `SANDBOX_URL`, mail goes through Django.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
from pydantic import Field, ValidationInfo, field_validator

from agents import Agent, AgentError, Card, Jump, ReviewerQuestion, effect, gate, observation, step, undo
from agents.errors import EffectFailed, EffectUnknown
from agents.examples import orders
from agents.examples.money import amounts_in, exchange_money, show_money
from agents.examples.nouns import Noun, keep_state
from agents.examples.orders import Order
from agents.examples.sending import ask_provider, open_provider, read_facts, send_mail
from checkpoints.values.characters import one_line

from . import rules, texts
from .mail import find_earlier, read_ticket
from .state import Facts, Feedback, Mail, Payment, Proposal, Refund, Reply, Ruling, Ticket


class Refunds(Agent):
    """Answer a refund request: read the mail, find the order, propose, ask, pay, reply."""

    name = "refunds"
    version = "8"
    team = "Support"

    from_1, from_2, from_3, from_4, from_5, from_6, from_7 = map(keep_state, "1234567")  # what they saved is the same

    class State(Noun):
        """What is saved after every step. Later fields are checked against earlier ones."""

        mail: Mail
        ticket: Ticket | None = None
        facts: Facts | None = None
        order: Order | None = None
        proposal: Proposal | None = None
        feedback: list[Feedback] = Field(default_factory=list)
        payment: Payment | None = None
        reply_sent: dict[str, str] | None = None
        decision: dict[str, Any] | None = None  # how the last gate ended; the runner fills it in
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
                if refund.amount > order.refundable:
                    raise ValueError(f"only {show_money(order.refundable, order.currency)} is left of the payment")
                if proposal.reply.to != (facts.address or order.email):
                    raise ValueError("the reply goes to the address that wrote")
            return proposal

    @classmethod
    def title(cls, state: State) -> str:
        """Name who writes, and about what."""
        ticket = read_ticket(state.mail.octets)
        who = ticket.from_name or ticket.from_address or "Unknown sender"
        return one_line(f"{who}: {ticket.subject or 'no subject'}", 150)

    @classmethod
    def inputs_from(cls, path: Path) -> list[dict[str, Any]]:
        """One input for each .eml file of a folder, by name, or for the one file."""
        files = sorted(path.glob("*.eml")) if path.is_dir() else [path]
        if not files:
            raise AgentError(f"There is no .eml file in {path}.")
        return [{"mail": Mail.read(file).model_dump(mode="json")} for file in files]

    @step(title="Read the mail", reads_world=True, uses=[read_ticket])
    def read_mail(self, mail: Mail) -> dict[str, Any]:
        """Make out of the mail what can be made out: of the numbers in it the shop's file says which are orders."""
        ticket = read_ticket(mail.octets, orders.numbers().__contains__)
        for problem in ticket.problems:
            self.note(f"The mail was hard to read: {problem}.")
        known = {"name": ticket.from_name, "address": ticket.from_address, "reason": ticket.reason}
        return {"ticket": ticket, "facts": Facts.model_validate({"order_number": ticket.order_number or "", **known})}

    @step(title="Find the order", reads_world=True)
    def find_order(self, ticket: Ticket, facts: Facts) -> dict[str, Any]:
        """Look the order up in the shop's file, and whether the same mail came before."""
        return {"order": self._look_up(facts.order_number), "earlier": find_earlier(self.run.id, ticket)}

    @gate(title="Ask for missing facts", policy="refunds", edits=["facts"], on_skip="ask_doubts",
          uses=[texts.ask_for_facts])  # fmt: skip
    def ask_facts(self, ticket: Ticket, facts: Facts, order: Order | None) -> Card | None:
        """Ask a person for what the mail does not say."""
        return None if order else texts.ask_for_facts(ticket, facts)

    @step(title="Look the order up again", reads_world=True)
    def look_up_again(self, facts: Facts) -> Any:
        """Look for the order that a person named; ask again while there is none."""
        order = self._look_up(facts.order_number)
        return {"order": order} if order else Jump("ask_facts")

    @gate(title="Ask whether the refund is right", policy="refunds", on_skip="propose",
          uses=[rules.find_doubts, texts.ask_whether_right])  # fmt: skip
    def ask_doubts(self, ticket: Ticket, facts: Facts, order: Order, earlier: list[int]) -> Card | None:
        """Ask a person where the mail, the order and the payment do not fit together."""
        draft = rules.draft_refund(order, facts.reason, ticket.text)
        doubts = rules.find_doubts(ticket, draft, earlier)
        return texts.ask_whether_right(ticket, draft, doubts) if doubts else None

    @step(title="Take the answer")
    def take_ruling(self, decision: dict[str, Any]) -> dict[str, Any]:
        """Take down what was answered."""
        return {"ruling": decision["answer"]["choice"]}

    @step(title="Propose the refund", uses=[rules.draft_refund, rules.heed_feedback, texts.write_letter])
    def propose(
        self, ticket: Ticket, facts: Facts, order: Order, feedback: list[Feedback], ruling: Ruling
    ) -> dict[str, Any]:
        """Work out an amount and a reply, heeding what reviewers said."""
        draft = rules.draft_refund(order, facts.reason, ticket.text, feedback, ruling)
        self.note(texts.summarise(draft, draft.amount))
        refund = Refund(
            amount=draft.amount, currency=order.currency, reason=facts.reason, charge=order.charge, card=order.card
        )
        reply = Reply(
            to=facts.address or order.email,
            subject=f"{'About your request' if draft.refused else 'Your refund'} for order {order.number}",
            text=texts.write_letter(facts.name if draft.refused else order.customer or facts.name, draft),
        )
        return {"proposal": Proposal(refund=refund, reply=reply)}

    @observation(timeout=30)
    def refunded(self, order: Order) -> str:
        """What others have been given back of the payment. What this run itself paid is no news to it."""
        return show_money(self._refunded_elsewhere(order).elsewhere, order.currency)

    @gate(title="Review the refund", policy="refunds", allows=["pay", "reply"], edits=["proposal"], on_reject="propose",
          observes=["refunded"], uses=[rules.assess_risk, texts.ask_to_pay])  # fmt: skip
    def review(
        self, ticket: Ticket, facts: Facts, order: Order, proposal: Proposal, feedback: list[Feedback],
        earlier: list[int], ruling: Ruling, *, observed: dict[str, Any],
    ) -> Card:  # fmt: skip
        """Ask whether to pay and reply. One yes allows both."""
        draft = rules.draft_refund(order, facts.reason, ticket.text, feedback, ruling)
        now = order.model_copy(update={"elsewhere": next(amounts_in(observed["refunded"]))[0]})
        doubts = rules.find_doubts(ticket, draft, earlier)
        risk = rules.assess_risk(ticket, proposal.refund.amount, draft, now, doubts)
        return texts.ask_to_pay(ticket, proposal, draft, now, risk)

    def answer(self, question: ReviewerQuestion) -> str:
        """Answer a reviewer from the state, as people have edited it."""
        state = self.State.model_validate(question.state)
        if not (state.ticket and state.facts and state.order):
            return "I have found no order to look at."
        draft = rules.draft_refund(state.order, state.facts.reason, state.ticket.text, state.feedback, state.ruling)
        words = texts.summarise(draft, state.proposal.refund.amount if state.proposal else draft.amount)
        return f"{words} I read the mail as “{draft.reason}”. I have no model, so that is all I can tell."

    @effect(title="Pay the refund", undo="cancel_payment", idempotent=True, readable="find_refund")
    def pay(self, order: Order, proposal: Proposal, *, key: str) -> dict[str, Any]:
        """Pay the refund. Nothing is paid for an amount of 0.00."""
        if not proposal.refund.amount:
            self.note("Nothing is to be paid.")
            return {"payment": None}
        body = proposal.refund.model_dump(mode="json", include={"charge", "amount", "currency", "reason"})
        payment = ask_provider("/refunds", body | {"reference": self.reference}, Payment, key=key)
        if payment.status != "succeeded":
            raise EffectFailed(f"The refund {payment.id} was {payment.status} after it had been made.")
        self.note(f"{show_money(payment.amount, payment.currency)} to the card ending {order.card}, as {payment.id}.")
        return {"payment": payment}

    def find_refund(self, *, key: str) -> dict[str, Any] | None:
        """Return what `pay` returned, as the provider tells by the key; None if nothing was paid.

        Raises EffectUnknown where the provider does not say. Only its own words count as a no: if a 404 of something
        else on the way were taken for one, the money would be paid twice.
        """
        try:
            with open_provider() as client:
                answer = client.get(f"/refunds/by-key/{quote(key, safe='')}")
            if answer.status_code == httpx.codes.NOT_FOUND and answer.json() == {"error": "there is no such refund"}:
                return None
            payment = read_facts(answer.raise_for_status(), Payment)
        except (httpx.HTTPError, ValueError) as error:
            raise EffectUnknown(f"The provider did not say: {error!r}") from error
        return {"payment": payment} if payment.status == "succeeded" else None

    @undo(idempotent=True)
    def cancel_payment(self, payment: Payment | None) -> None:
        """Take a paid refund back; as often as it is asked."""
        if payment:
            ask_provider(f"/refunds/{payment.id}/cancel", {}, Payment)

    @effect(title="Reply to the customer", irreversible=True)
    def reply(self, order: Order, proposal: Proposal, payment: Payment | None, *, key: str) -> dict[str, Any]:
        """Send the reply, with the statement of the refund below it."""
        to, subject = proposal.reply.to, proposal.reply.subject
        text = f"{proposal.reply.text}\n\n{texts.write_statement(order, proposal.refund, payment)}\n"
        return {"reply_sent": {"to": to, "message_id": send_mail(subject, text, key=key, to=[to])}}

    @property
    def reference(self) -> str:
        """Return what the provider keeps with this run's refunds, so that they can be told from those of others."""
        return f"holdpoint run {self.run.id}"

    def _look_up(self, number: str) -> Order | None:
        """Return the order, with what others were given back of its payment; None if there is no such order."""
        order = orders.find(number)
        if order is None:
            self.note(f"There is no order {number or 'number'}, so a person is asked for it.")
            return None
        self.note(f"Order {order.number} of {order.customer}, {show_money(order.paid, order.currency)} paid.")
        return self._refunded_elsewhere(order)

    def _refunded_elsewhere(self, order: Order) -> Order:
        """Return the order with what the provider gave back of its payment for others than this run."""
        with open_provider() as client:
            facts = client.get(f"/charges/{quote(order.charge, safe='')}").raise_for_status().json()
        others = [it for it in facts["refunds"] if it["status"] == "succeeded" and it["reference"] != self.reference]
        taken = sum((Decimal(refund["taken"]) for refund in others), Decimal(0))
        return order.model_copy(update={"elsewhere": exchange_money(taken, facts["currency"], order.currency)})
