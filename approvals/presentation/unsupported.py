"""Amounts and names in what a program says of its own request that no argument bears out. Pure.

Arguments that speak of money, or of who gets something, by their real names are the ones that count where there are
any: an attacker who writes "€10.00" puts 10.00 into another argument. It helps a reader to look; what runs stands
beside the words in any case, so a form of words that is not known here misleads nobody who reads that.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from approvals.cards import Card

from .calls import LEAVES, MINOR, Leaf, is_number, leaves, money, short

LONGEST = 1_000  # characters of a title that are read
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
FIGURES = r"\d(?:[\d.,'\u2019\u00a0\u202f ]{0,40}\d)?"
SCALE = r"(?:\s?(?:k|m|mio|mn|bn|thousand|million|billion)\b)?"
AMOUNT = re.compile(
    rf"(?:{CURRENCY}\s?{FIGURES}{SCALE}|{FIGURES}{SCALE}\s?{UNITS}|(?<![\d.,])\d{{1,15}}[.,]\d\d(?![\d.,]*\d))",
    re.IGNORECASE,
)
SCALES = {"k": 3, "thousand": 3, "m": 6, "mio": 6, "mn": 6, "million": 6, "bn": 9, "billion": 9}
_NAME = r"[^\W\d_a-zß-ÿ][\w&.'\u2019-]*(?:\s+(?:[^\W\d_a-zß-ÿ][\w&.'\u2019-]*|&|of|and|und|de|van|von|der))*"
NAMED = re.compile(rf"(?:\b(?:[Tt]o|TO|an|à|[Pp]ay|[Ww]ire|[Rr]efund|[Rr]eimburse|[Cc]redit)\s+)[\"“„«']?({_NAME})")
ABOUT = re.compile(rf"(?:\b(?:[Ff]or|FOR|für|pour)\s+)[\"“„«']?({_NAME})")
MAIL = re.compile(r"[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+")
IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?:\s?[A-Z0-9]){10,30}\b")


@dataclass(frozen=True)
class _Said:
    """One thing that a program says of its request."""

    where: str  # what our sentence calls the place
    text: str


def found(card: Card) -> list[str]:
    """A sentence for each amount and name in the card's words that no argument bears out, in their order."""
    running = [action for action in card.actions if action.settled is None]
    known = [leaf for action in running for leaf in leaves(action)]
    if not running:
        return []
    if len(known) >= LEAVES:
        return ["There are too many arguments to compare the title with: read what would run."]
    paid = [leaf for action in running for leaf in money(action)]
    sentences: dict[str, None] = {}
    for said in _said(card):
        for quote in _amounts(said.text):
            sentences |= dict.fromkeys(_of_amount(said, quote, paid, known))
        for quote, whole in _names(said.text):
            sentences |= dict.fromkeys(_of_name(said, quote, _who(known) if not whole else [], known))
    if card.for_whom:
        sentences |= dict.fromkeys(_of_name(_Said("“for whom”", card.for_whom), card.for_whom[:LONGEST], [], known))
    return list(sentences)[:TOLD]


def _said(card: Card) -> Iterator[_Said]:
    yield _Said("title", card.title[:LONGEST])
    yield _Said("amount", card.amount[:LONGEST])
    for number, action in enumerate(card.actions, 1):
        if action.settled is None and not action.registered and action.title not in (card.title, action.tool):
            where = "action's title" if len(card.actions) == 1 else f"title of action {number}"
            yield _Said(where, action.title[:LONGEST])


def _amounts(text: str) -> list[str]:
    return [match[0].strip() for match in AMOUNT.finditer(text)]


def _names(text: str) -> Iterator[tuple[str, bool]]:
    """(a name, whether any argument may bear it out): who gets something, and what it is about."""
    for pattern, whole in ((NAMED, False), (ABOUT, True)):
        for match in pattern.finditer(text):
            name = match[1].strip(" .,'\u2019-")
            if name and not AMOUNT.fullmatch(name) and not re.fullmatch(CODES, name):
                yield name, whole
    for pattern in (MAIL, IBAN):
        for match in pattern.finditer(text):
            yield match[0], False


def _who(known: Sequence[Leaf]) -> list[Leaf]:
    return [leaf for leaf in known if leaf.words & RECIPIENTS and isinstance(leaf.value, str)]


def _of_amount(said: _Said, quote: str, paid: Sequence[Leaf], known: Sequence[Leaf]) -> Iterator[str]:
    wanted = readings(quote)
    if any(wanted & _values(leaf) for leaf in paid) or wanted & _sums(paid):
        return
    elsewhere = [leaf for leaf in known if leaf not in paid and wanted & _values(leaf)]
    if paid or not elsewhere:
        yield _sentence(said, quote, paid, elsewhere)


def _of_name(said: _Said, quote: str, who: Sequence[Leaf], known: Sequence[Leaf]) -> Iterator[str]:
    plain = _plain(quote)

    def bears(leaf: Leaf) -> bool:
        return plain in _plain(str(leaf.value)) or _squeezed(plain) in _squeezed(_plain(str(leaf.value)))

    counted = who or known
    together = _plain(" ".join(str(leaf.value) for leaf in counted if isinstance(leaf.value, str)))
    if any(map(bears, counted)) or all(word in together.split() for word in plain.split()):
        return
    yield _sentence(said, quote, who, [leaf for leaf in known if leaf not in counted and bears(leaf)])


def _sentence(said: _Said, quote: str, instead: Sequence[Leaf], elsewhere: Sequence[Leaf]) -> str:
    """`“€10.00” in the title is in no argument …`, with what the arguments say in its place."""
    first = f"“{short(quote)}” in the {said.where}" if said.where != "“for whom”" else f"“{short(quote)}”"
    if not instead:
        return f"{first} is in no argument that runs."
    is_ = " and ".join(f"{leaf.name} is {short(leaf.value)}" for leaf in instead[:3])
    beside = f" It stands only in {', '.join(leaf.name for leaf in elsewhere[:3])}." if elsewhere else ""
    return f"{first} is not what runs: {is_}.{beside}"


def readings(text: str) -> set[Decimal]:
    """The numbers that an amount in a text may mean: "1.284" is 1284 or 1.284, according to who writes."""
    figures = re.search(FIGURES, text)
    if figures is None:
        return set()
    digits = re.sub(r"['\u2019\s\u00a0\u202f]", "", figures[0])
    scale = re.search(rf"({'|'.join(SCALES)})\b", text[figures.end() :].strip().lower())
    power = SCALES[scale[1]] if scale and text[figures.end() :].strip().lower().startswith(scale[1]) else 0
    last = max(digits.rfind("."), digits.rfind(","))
    if last < 0:
        forms = {digits}
    else:
        plain = re.sub("[.,]", "", digits)
        pointed = re.sub("[.,]", "", digits[:last]) + "." + digits[last + 1 :]
        mixed, groups = {".", ","} <= set(digits), len(digits) - last - 1 == 3
        several = digits.count(digits[last]) > 1
        forms = {plain} if several else {pointed} if mixed or not groups else {plain, pointed}
    return {Decimal(each).scaleb(power) for each in forms if len(each) <= 60}


def _values(leaf: Leaf) -> set[Decimal]:
    """The numbers that a value says; of a text that is no number, those in it."""
    if isinstance(leaf.value, bool):
        return set()
    if is_number(leaf.value):
        try:
            value = Decimal(str(leaf.value))
        except (InvalidOperation, ValueError):
            return set()
        return {value.scaleb(-2) if leaf.words & MINOR else value}
    text = str(leaf.value)[: LONGEST * 10]
    return {each for match in re.finditer(FIGURES, text) for each in readings(match[0])}


def _sums(paid: Sequence[Leaf]) -> set[Decimal]:
    """What the amounts of one name come to together, where several actions or lines have one."""
    by_name: dict[str, list[Decimal]] = {}
    for leaf in paid:
        if is_number(leaf.value):
            by_name.setdefault(leaf.name.rpartition(".")[2], []).extend(_values(leaf))
    return {sum(values, Decimal()) for values in by_name.values() if len(values) > 1}


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text[: LONGEST * 10]).casefold().split())


def _squeezed(text: str) -> str:
    return text.replace(" ", "")
