"""Finds amounts and names in a program's words about its request that no argument supports. Pure.

Where some arguments name money or a recipient by their real names, only these count: an attacker who writes "€10.00"
puts 10.00 into another argument. This only helps a reader: the real call is shown beside the words in any case, so that
wording which is not recognized here misleads nobody who reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice

from approvals.cards.card import Card
from approvals.presentation.text.exact_call import (
    AT_GATE,
    FIGURES,
    CallLeaf,
    TooMany,
    alike,
    is_number,
    leaves,
    money,
    readings,
    short,
)

LONGEST = 1_000  # characters of a title that are read
MOST = 8  # amounts in one text, and as many names
TOLD = 8  # sentences
RECIPIENTS = frozenset(
    {
        "to", "recipient", "recipients", "payee", "beneficiary", "creditor", "account", "iban", "bic", "email", "mail",
        "address", "customer", "name", "destination", "target", "receiver", "supplier", "vendor", "user", "client",
        "card", "phone", "cc", "bcc", "whom", "merchant", "empfänger", "konto",
    }
)  # fmt: skip
CODES = "EUR|USD|GBP|CHF|JPY|CNY|SEK|NOK|DKK|PLN|CZK|HUF|RON|BGN|TRY|INR|CAD|AUD|NZD|BRL|MXN|ZAR|SGD|HKD|KRW|ILS|AED"
CURRENCY = rf"(?:[$£¥€₹₩₽₺₴₪₫฿₿]|\b(?:{CODES})\b)"
UNITS = rf"(?:{CURRENCY}|(?:euros?|dollars?|pounds?|francs?|yen)\b)"
SCALE = r"(?:\s?(?:k|m|mio|mn|bn|thousand|million|billion)\b)?"
AMOUNT = re.compile(
    rf"(?:{CURRENCY}\s?{FIGURES}{SCALE}|{FIGURES}{SCALE}\s?{UNITS}|(?<![\d.,])\d{{1,15}}[.,]\d\d(?![\d.,]*\d))",
    re.IGNORECASE,
)
_NAME = r"[^\W\d_a-zß-ÿ][\w&.'\u2019-]*(?:\s+(?:[^\W\d_a-zß-ÿ][\w&.'\u2019-]*|&|of|and|und|de|van|von|der))*"
NAMED = re.compile(rf"(?:\b(?:[Tt]o|TO|an|à|[Pp]ay|[Ww]ire|[Rr]efund|[Rr]eimburse|[Cc]redit)\s+)[\"“„«']?({_NAME})")
ABOUT = re.compile(rf"(?:\b(?:[Ff]or|FOR|für|pour)\s+)[\"“„«']?({_NAME})")
MAIL = re.compile(r"[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+")
IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?:\s?[A-Z0-9]){10,30}\b")


@dataclass(frozen=True)
class _Said:
    """One text of a program about its request."""

    where: str  # what follows its quote in a sentence: ` in the title`
    text: str


def found(card: Card) -> list[str]:
    """List a sentence for each amount and name in the card's words that no argument supports, in their order."""
    running = [action for action in card.actions if action.settled is None]
    if not running:
        return []
    try:
        known = leaves(*running, masked=AT_GATE)
    except TooMany:
        return ["There are too many arguments to compare the title with: read what would run."]
    paid = [leaf for action in running for leaf in money(leaf for leaf in known if leaf.action is action)]
    who = [leaf for leaf in known if leaf.words & RECIPIENTS and isinstance(leaf.value, str)]
    told: dict[str, str] = {}  # quote -> sentence, so that each quote is reported once
    for said in _said(card):
        for match in islice(AMOUNT.finditer(said.text), MOST):
            quote = match[0].strip()
            for sentence in _of_amount(said, quote, paid, known):
                told.setdefault(quote, sentence)
        for quote, anybody in _names(said.text):
            for sentence in _of_name(said, quote, [] if anybody else who, known):
                told.setdefault(quote, sentence)
    if whom := card.for_whom[:LONGEST]:
        for sentence in _of_name(_Said("", whom), whom, [], known):
            told.setdefault(whom, sentence)
    return list(told.values())[:TOLD]


def _said(card: Card) -> Iterator[_Said]:
    yield _Said(" in the title", card.title[:LONGEST])
    yield _Said(" in the amount", card.amount[:LONGEST])
    for number, action in enumerate(card.actions, 1):
        told = action.settled is None and action.in_own_words(external=True)
        if told and action.title not in (card.title, action.tool):
            where = f" in the title of action {number}" if len(card.actions) > 1 else " in the action's title"
            yield _Said(where, action.title[:LONGEST])


def _names(text: str) -> Iterator[tuple[str, bool]]:
    """Yield (a name, whether any argument may support it): recipients need one that names a recipient, subjects any."""
    for pattern, whole in ((NAMED, False), (ABOUT, True)):
        for match in islice(pattern.finditer(text), MOST):
            name = match[1].strip(" .,'\u2019-")
            if name and not AMOUNT.fullmatch(name) and not re.fullmatch(CODES, name):
                yield name, whole
    for pattern in (MAIL, IBAN):
        for match in islice(pattern.finditer(text), MOST):
            yield match[0], False


def _of_amount(said: _Said, quote: str, paid: Sequence[CallLeaf], known: Sequence[CallLeaf]) -> Iterator[str]:
    wanted = readings(quote)
    if any(wanted & leaf.numbers for leaf in paid) or wanted & _sums(paid):
        return
    counted = {leaf.key for leaf in paid}
    elsewhere = [leaf for leaf in known if leaf.key not in counted and wanted & leaf.numbers]
    if paid or not elsewhere:
        yield _sentence(said, quote, paid, elsewhere)


def _of_name(said: _Said, quote: str, who: Sequence[CallLeaf], known: Sequence[CallLeaf]) -> Iterator[str]:
    plain = alike(quote)

    def bears(leaf: CallLeaf) -> bool:
        return plain in leaf.plain or _squeezed(plain) in _squeezed(leaf.plain)

    counted = who or known
    together = {word for leaf in counted if isinstance(leaf.value, str) for word in leaf.plain.split()}
    if any(map(bears, counted)) or together.issuperset(plain.split()):
        return
    there = {leaf.key for leaf in counted}
    yield _sentence(said, quote, who, [leaf for leaf in known if leaf.key not in there and bears(leaf)])


def _sentence(said: _Said, quote: str, instead: Sequence[CallLeaf], elsewhere: Sequence[CallLeaf]) -> str:
    """Write `“€10.00” in the title is in no argument …`, with the values that the arguments have instead."""
    first = f"“{short(quote)}”{said.where}"
    if not instead:
        return f"{first} is in no argument that runs."
    arguments = (f"{leaf.name} is {short(leaf.value)}" for leaf in instead[:3])
    told = f"{first} is not what runs: {' and '.join(arguments)}."
    if not elsewhere:
        return told
    only = f"It appears only in {', '.join(leaf.name for leaf in elsewhere[:3])}."
    return f"{told} {only}"


def _sums(paid: Sequence[CallLeaf]) -> set[Decimal]:
    """Return the sums of amounts of the same name, where several actions or lines have one."""
    by_name: dict[str, list[Decimal]] = {}
    for leaf in paid:
        if is_number(leaf.value):
            by_name.setdefault(leaf.name.rpartition(".")[2], []).extend(leaf.numbers)
    return {sum(values, Decimal()) for values in by_name.values() if len(values) > 1}


def _squeezed(text: str) -> str:
    return text.replace(" ", "")
