"""Computes the refund: the mail's request, the shop's terms, and changes by feedback. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from agents.examples.money import amounts_in, cents, shown
from agents.examples.orders import Item, Order
from agents.examples.text import blank_stretch

from .mail import ParsedMail
from .numbers import find_numbers
from .state import Feedback, Reason, Ruling, Ticket

FAR_DOWN = 20  # blank lines; what stands behind more of them was not meant to be read
GOODWILL = Decimal("0.10")
_FAULTY = (
    r"broken|fault|defect|damaged|torn\b|crack|unusable|does(?: not|n't) work|defekt|besch[äa]digt|kaputt|слома|брак"
)
_WORDS = (
    (Reason.NEVER_ARRIVED,
     r"never (?:arrived|came|reached)|(?:not|n't|nothing) (?:arrived?|come|reach)|lost (?:parcel|pallet)"
     r"|nicht angekommen|nie angekommen|не (?:пришл|пришел|пришёл|получил)"),
    (Reason.FAULTY, _FAULTY),
    (Reason.RETURNED,
     r"\bsent (?:it |them |these |this )?back|return|on (?:its|their) way back|zurückge|обратно|возврат"),
)  # fmt: skip
_STOP = r"(?=[.,;!?\n]|\b(?:not|without|except|but|keep|with|plus)\b|$)"
_ONLY = re.compile(rf"\b(?:only|just)\b(?:(?!{_STOP}).)*", re.IGNORECASE | re.DOTALL)
_NOT = re.compile(rf"\b(?:not|without|except|keep|no)\b(?:(?!{_STOP}).)*", re.IGNORECASE | re.DOTALL)
_SHIPPING = re.compile(r"shipping|postage|delivery", re.IGNORECASE)
_SHARE = re.compile(r"\b(?P<half>half)\b|(?<![\d.,])(?P<percent>\d{1,2}|100)\s?(?:%|per ?cent)", re.IGNORECASE)


@dataclass
class Draft:
    """A refund in the making."""

    items: list[Item]
    shipping: bool = False
    share: Decimal = Decimal(1)
    fixed: Decimal | None = None  # an amount that a reviewer named
    sorry: bool = False
    heeded: list[str] = field(default_factory=list)  # "As Ann Okafor asked: only Titanium frames."
    unheeded: list[str] = field(default_factory=list)  # who wrote what no rule reads
    refused: bool = False  # a person said that nothing is to be paid

    def due(self, order: Order) -> Decimal:
        """Return what the rules give, however much is left of the payment."""
        if self.refused:
            return Decimal(0)
        goods = sum((item.total for item in self.items), Decimal(0))
        due = goods + (order.shipping if self.shipping else 0) if self.fixed is None else self.fixed
        return cents(due * self.share)

    def amount(self, order: Order) -> Decimal:
        """Return what the refund comes to, never more than is left of the payment."""
        return min(self.due(order), order.left)


def ticket_of(mail: ParsedMail, is_order: Callable[[str], bool] = lambda number: False) -> Ticket:
    """Return what the mail says and seems to want. Only the words in sight are searched.

    `is_order`: whether the shop has an order of that number.
    """
    words = words_in_sight(mail.text)
    searched = " ".join(f"{mail.subject}\n{words}".split())
    named = find_numbers(mail.subject, words, is_order)
    wants = next((each for each in amounts_in(words) if each.currency), None)
    return Ticket(
        **{name: getattr(mail, name) for name in ("from_address", "from_name", "reply_to", "subject", "sent", "text")},
        order_number=named.only,
        reason=next((reason for reason, told in _WORDS if re.search(told, searched, re.IGNORECASE)), Reason.GOODWILL),
        wants=wants.amount if wants else None,
        wants_currency=wants.currency if wants else "",
        attachments=mail.attachments[:20],
        problems=mail.problems[:20],
        numbers=named.numbers,
        lookalikes=named.lookalikes,
        hidden=mail.hidden,
    )


def words_in_sight(text: str) -> str:
    """Return the text without quoted lines, up to the first stretch of blank lines if they are many in sum."""
    lines, start = blank_stretch(text)
    near = text[:start] if lines > FAR_DOWN else text
    return "\n".join(line for line in near.split("\n") if not line.startswith(">"))


def draft(order: Order, reason: Reason, text: str, feedback: Sequence[Feedback], *, ruling: Ruling = "") -> Draft:
    """Work out what the shop gives for this reason, changed by what people said since. `text`: of the mail."""
    items, words = list(order.items), words_in_sight(text)
    refund = Draft(items, share=GOODWILL)
    if reason is Reason.NEVER_ARRIVED:
        refund = Draft(items, shipping=True)
    elif reason is Reason.FAULTY:
        ended = re.sub(r"(?m)^(.{1,50})$", r"\1. ", words)  # a short line ends a sentence too
        bad = [each for each in re.split(r"[.!?;]\s", ended) if re.search(_FAULTY, each, re.IGNORECASE)]
        refund = Draft([item for item in items if any(mentions(each, item) for each in bad)] or items)
    elif reason is Reason.RETURNED:
        back = [item for item in items if item.returned_on]
        refund = Draft(back or items, shipping=len(back) == len(items))
    refund.refused = ruling == "refuse"
    for each in feedback:
        heed(refund, order, each)
    return refund


def heed(refund: Draft, order: Order, feedback: Feedback) -> None:
    """Change a draft as a reviewer's words ask, and note what was understood."""
    text, done = feedback.text, list[str]()
    if only := next((part for part in _only(text) if any(mentions(part, item) for item in order.items)), ""):
        refund.items = [item for item in order.items if mentions(only, item)]
        refund.shipping, refund.fixed = bool(_SHIPPING.search(only)), None
        done.append(f"only {listed(refund.items)}")
    for refused in _NOT.finditer(text):
        if dropped := [item for item in refund.items if mentions(refused[0], item)]:
            refund.items, refund.fixed = [item for item in refund.items if item not in dropped], None
            done.append(f"without {listed(dropped)}")
        if _SHIPPING.search(refused[0]):
            refund.shipping = False
            done.append("without shipping")
    if _SHIPPING.search(_NOT.sub("", text)):
        refund.shipping = True
        done.append("with shipping")
    named = next(amounts_in(text), None)
    if named and named.currency in ("", order.currency):
        refund.fixed, refund.share, refund.refused = named.amount, Decimal(1), False
        left = f", of which only {shown(order.left, order.currency)} is left" if named.amount > order.left else ""
        done.append(shown(named.amount, order.currency) + left)
    if share := _SHARE.search(text):
        refund.share = Decimal("0.5") if share["half"] else Decimal(share["percent"]) / 100
        done.append(f"{refund.share:.0%} of it")
    if re.search("apolog|sorry", text, re.IGNORECASE):
        refund.sorry = True
        done.append("an apology in the reply")
    if done:
        refund.heeded.append(f"As {feedback.by} asked: {', '.join(done)}.")
    else:
        refund.unheeded.append(feedback.by)


def mentions(text: str, item: Item) -> bool:
    """Tell whether a word of the item's name of four letters or more is in `text`, in the singular or plural."""
    words = {form for word in re.findall(r"\w+", text.lower()) for form in _forms(word)}
    return any(_forms(word) & words for word in re.findall(r"\w{4,}", item.name.lower()))


def listed(items: Sequence[Item]) -> str:
    """Put the items into words: "2 Titanium frames and Leather case"."""
    names = [f"{item.quantity} {_several(item.name)}" if item.quantity > 1 else item.name for item in items]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _several(name: str) -> str:
    """Put the name into the plural; leave one as it is that ends in an s, a number or capitals."""
    return f"{name}s" if name[-1:].islower() and not name.endswith("s") else name


def _forms(word: str) -> set[str]:
    """Return the word, and what it may be the plural of."""
    return {word, word.removesuffix("s"), word.removesuffix("es")}


def _only(text: str) -> Iterator[str]:
    """Yield what stands after each "only", and what stands before it: "only the frames", "frames only"."""
    for found in _ONLY.finditer(text):
        yield found[0]
        yield re.split(r"[.,:;!?\n]", text[: found.start()])[-1]
