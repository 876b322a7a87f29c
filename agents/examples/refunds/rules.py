"""Computes the refund by the shop's terms and by feedback, finds doubts about it, and rates its risk. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from agents.examples.money import amounts_in, round_to_cents, show_money
from agents.examples.orders import Item, Order
from approvals.english import count_of, join_names
from approvals.presentation.text.invisible import badge_count
from checkpoints.values.characters import one_line

from .mail import FAULTY, find_far, words_in_sight
from .state import Feedback, Reason, Ruling, Ticket

LEVELS = ("low", "medium", "high", "critical")
STEPS = (("critical", 10_000), ("high", 1_000), ("medium", 100))  # a level, and the amount above which it holds
_NOT = re.compile(r"\b(?:not|without|except|keep|no)\b", re.IGNORECASE)
_ONLY = re.compile(r"\b(?:only|just)\b", re.IGNORECASE)
_SHIPPING = re.compile(r"shipping|postage|delivery", re.IGNORECASE)
_SHARE = re.compile(r"\b(?P<half>half)\b|(?<![\d.,])(?P<percent>\d{1,2}|100)\s?(?:%|per ?cent)", re.IGNORECASE)


@dataclass
class Draft:
    """A refund in the making."""

    order: Order
    reason: Reason
    items: list[Item]
    shipping: bool = False
    share: Decimal = Decimal(1)
    fixed: Decimal | None = None  # an amount that a reviewer named
    sorry: bool = False
    refused: bool = False  # a person answered that nothing is to be paid
    feedback: Sequence[Feedback] = ()
    heeded: list[str] = field(default_factory=list)  # "As Ann Okafor asked: only 2 x Titanium frames."
    unheeded: list[str] = field(default_factory=list)  # who wrote what no rule reads

    @property
    def due(self) -> Decimal:
        """Return what the rules give, however much is left of the payment."""
        if self.refused:
            return Decimal(0)
        shipping = self.order.shipping if self.shipping else Decimal(0)
        goods = sum((item.total for item in self.items), shipping)
        return round_to_cents((goods if self.fixed is None else self.fixed) * self.share)

    @property
    def amount(self) -> Decimal:
        """Return what the refund comes to, never more than is left of the payment."""
        return min(self.due, self.order.refundable)


def draft_refund(
    order: Order, reason: Reason, text: str, feedback: Sequence[Feedback] = (), ruling: Ruling = ""
) -> Draft:
    """Work out what the shop gives for this reason, changed by what people wrote since. `text`: of the mail."""
    draft = Draft(order, reason, list(order.items), refused=ruling == "refuse", feedback=feedback)
    if reason is Reason.NEVER_ARRIVED:
        draft.shipping = True
    elif reason is Reason.FAULTY:
        ended = re.sub(r"(?m)^(.{1,50})$", r"\1. ", words_in_sight(text))  # a short line ends a sentence too
        sentences = re.split(r"[.!?;]\s", ended)
        faulty = [sentence for sentence in sentences if re.search(FAULTY, sentence, re.IGNORECASE)]
        draft.items = [item for item in order.items if any(_names(words, item) for words in faulty)] or draft.items
    elif reason is Reason.RETURNED:
        draft.items = [item for item in order.items if item.returned_on] or draft.items
        draft.shipping = all(item.returned_on for item in order.items)
    else:
        draft.share = Decimal("0.10")
    for words in feedback:
        heed_feedback(draft, words)
    return draft


def heed_feedback(draft: Draft, feedback: Feedback) -> None:
    """Change a draft as a reviewer's words ask, and note what was understood."""
    text, order, done = feedback.text, draft.order, list[str]()
    for clause in re.split(rf"[.,:;!?\n]|\bbut\b|(?={_NOT.pattern})", text, flags=re.IGNORECASE):
        items, refuses = [item for item in order.items if _names(clause, item)], bool(_NOT.search(clause))
        if refuses and (dropped := [item for item in draft.items if item in items]):
            draft.items, draft.fixed = [item for item in draft.items if item not in items], None
            done.append(f"without {list_items(dropped)}")
        elif items and not refuses and _ONLY.search(clause):
            draft.items, draft.shipping, draft.fixed = items, False, None
            done.append(f"only {list_items(items)}")
        if _SHIPPING.search(clause):
            draft.shipping = not refuses
            done.append("without shipping" if refuses else "with shipping")
    amount, currency = next(amounts_in(text), (None, ""))
    if amount is not None and currency in ("", order.currency):
        draft.fixed, draft.share, draft.refused = amount, Decimal(1), False
        rest = f", of which only {show_money(order.refundable, order.currency)} is left"
        done.append(show_money(amount, order.currency) + (rest if amount > order.refundable else ""))
    if share := _SHARE.search(text):
        draft.share = Decimal("0.5") if share["half"] else Decimal(share["percent"]) / 100
        done.append(f"{draft.share:.0%} of it")
    if re.search("apolog|sorry", text, re.IGNORECASE):
        draft.sorry = True
        done.append("an apology in the reply")
    if done:
        draft.heeded.append(f"As {feedback.by} asked: {', '.join(done)}.")
    else:
        draft.unheeded.append(feedback.by)


def list_items(items: Sequence[Item]) -> str:
    """Put the items into words: "2 x Titanium frames and Leather case"."""
    return join_names(item.name if item.quantity == 1 else f"{item.quantity} x {item.name}" for item in items)


def _names(text: str, item: Item) -> bool:
    """Tell whether a word of the item's name of four letters or more is in `text`, in the singular or plural."""
    words, names = (re.findall(r"\w{4,}", words.lower()) for words in (text, item.name))
    forms = {form for word in words for form in (word, word.removesuffix("s"), word.removesuffix("es"))}
    return any({name, name.removesuffix("s"), name.removesuffix("es")} & forms for name in names)


def find_doubts(ticket: Ticket, draft: Draft, earlier: Sequence[int]) -> list[str]:
    """Say where the mail, the order and the payment do not agree. `earlier`: runs on the same mail."""
    doubts, order = [], draft.order
    rest = f"{show_money(order.refundable, order.currency)} is left of the payment"
    if earlier:
        doubts.append(f"The same mail came before and is handled in {join_names(f'R-{run}' for run in earlier)}")
    if ticket.from_address.casefold() != order.email.casefold():
        sender = ticket.from_address or "an unknown sender"
        doubts.append(f"The mail comes from {sender}, and order {order.number} was placed with another address")
    if draft.due > order.refundable:
        doubts.append(f"The rules give {show_money(draft.due, order.currency)}, and {rest}")
    if ticket.wants is not None:
        wants = f"The customer asks for {show_money(ticket.wants, ticket.wants_currency or order.currency)}"
        if ticket.wants_currency not in ("", order.currency):
            doubts.append(f"{wants}, and the order was paid in {order.currency}")
        elif ticket.wants > order.refundable:
            doubts.append(f"{wants}, and {rest}")
    return doubts


def assess_risk(ticket: Ticket, wanted: Decimal, draft: Draft, now: Order, doubts: list[str]) -> tuple[str, list[str]]:
    """(level, reasons): the highest level that anything calls for. `now`: the order as its payment stands by now."""
    risks = [("low", "Sends an e-mail, which cannot be undone")]
    if over := next((step for step in STEPS if wanted > step[1]), None):
        risks.insert(0, (over[0], f"Amount over {show_money(Decimal(over[1]), now.currency).removesuffix('.00')}"))
    if now.elsewhere:
        elsewhere = show_money(now.elsewhere, now.currency)
        risks.append(("high", f"{elsewhere} is already refunded on this charge by others"))
    if wanted > now.refundable:
        amount, rest = show_money(wanted, now.currency), show_money(now.refundable, now.currency)
        risks.append(("high", f"{amount} cannot be paid: {rest} is left of the payment"))
    risks += [("high", reason) for reason in (*doubts, *_find_strange(ticket, now, draft.reason))]
    if draft.feedback:
        risks.append(("medium", f"Sent back with feedback by {draft.feedback[-1].by}"))
    if ticket.wants is not None and ticket.wants != wanted:
        asks = show_money(ticket.wants, ticket.wants_currency or now.currency)
        risks.append(("low", f"The customer asks for {asks}"))
    risks += [("medium", f"The mail was hard to read: {problem}") for problem in ticket.problems[:3]]
    return max((level for level, _ in risks), key=LEVELS.index), [reason for _, reason in risks]


def _find_strange(ticket: Ticket, order: Order, reason: Reason) -> Iterator[str]:
    """Yield what an honest mail does not have."""
    if far := find_far(ticket.text):
        yield f"The customer's mail hides text behind {len(far[0]):,} blanks"
    if hidden := badge_count(ticket.text)[0]:
        yield f"{count_of(hidden, 'character')} in the customer's mail cannot be seen"
    if ticket.hidden:
        yield f"Words of the customer's mail may be out of sight: “{one_line(ticket.hidden, 60)}”"
    if ticket.reply_to.lower() not in ("", ticket.from_address.lower()):
        yield "The mail wants its answer at another address; the reply does not go there"
    if reason is Reason.RETURNED and not any(item.returned_on for item in order.items):
        yield "No parcel of this order has come back yet"
