"""Reads a mail with the standard library's email package: any bytes become a ticket, with what was hard to read in it.

Only plain text decides. Whatever a reader may see otherwise goes into `hidden`, for people to compare: HTML without a
plain text, texts that contradict each other, odd charsets. docs/refunds.md says what counts as an order's number.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from contextlib import suppress
from email import message_from_bytes, policy
from email.errors import MessageError
from html import unescape
from itertools import islice
from typing import Any

from holdpoint.unseen_characters import is_hidden

from agents.examples.money import amounts_in
from approvals.presentation.text import lookalikes as characters
from checkpoints import store
from checkpoints.errors import CheckpointError
from checkpoints.models import Run
from checkpoints.values.characters import one_line

from .state import MAX_MAIL, Reason, Ticket

MAX_TEXT, MAX_HIDDEN, MAX_HTML, MAX_HEADER = 200_000, 20_000, 300_000, 2_000  # characters
MAX_PARTS = 200
_FAR = re.compile(r"\n(?: *\n){21,}|(?<! ) {41,}+(?!\n)")  # what stands behind was not meant to be read
# The email package raises all of these on hostile input, whatever its pages say.
UNREADABLE = (AssertionError, AttributeError, LookupError, MessageError, RecursionError, TypeError, ValueError)
# What mail programs read. Python knows more (utf-7, punycode, EBCDIC), in which a reader sees other words.
CHARSETS = re.compile(
    r"utf-8|utf-16(-[bl]e)?|ascii|iso8859-\d+|cp125\d|koi8-[ru]|mac-\w+|gb\w+|big5|euc_\w+|iso2022_jp|shift_jis"
)

FAULTY = (
    r"broken|fault|defect|damaged|torn\b|crack|unusable|does(?: not|n't) work|defekt|besch[äa]digt|kaputt|слома|брак"
)
_REASONS = {
    Reason.NEVER_ARRIVED: r"never (?:arrived|came|reached)|(?:not|n't|nothing) (?:arrived?|come|reach)"
    r"|lost (?:parcel|pallet)|nicht angekommen|nie angekommen|не (?:пришл|пришел|пришёл|получил)",
    Reason.FAULTY: FAULTY,
    Reason.RETURNED: r"\bsent (?:it |them |these |this )?back|return|on (?:its|their) way back|zurückge|обратно"
    r"|возврат",
}

_ORDER = r"(?:(?:order|bestell(?:ung)?|auftrag|заказ[^\W\da-z]{0,8})(?:s?-?(?:nummer|number|nr|no|id))?|[#№]|\bn[or]\.)"
_DIGITS = r"((?!(?:19|20)\d\d\b)[0-9]{4,8})(?![\w-]|\.\d)"  # a whole word, and no year
_NUMBER = re.compile(rf"(?<![\w-])(?<!\d\.){_DIGITS}")
_ORDERED = re.compile(rf"{_ORDER}(?:[^\d\n]{{0,12}}?[^\w\n])?{_DIGITS}", re.IGNORECASE)
_WORD = re.compile("[\\w\u200b-\u206f-]+")
_TURNED = re.compile("[\u202a-\u202e\u2066-\u2069].*")  # shows the digits behind it in another order


class _Lenient(policy.EmailPolicy):
    """The default policy, with headers bounded before they are parsed: that takes time with the square of them."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        return name, value[:MAX_HEADER]


def read_ticket(raw: bytes, is_order: Callable[[str], bool] = lambda number: False) -> Ticket:
    """Read a mail; any bytes will do. `is_order`: whether the shop has an order of that number."""
    ticket = Ticket()
    if len(raw) > MAX_MAIL:
        ticket.problems.append(f"only its first {MAX_MAIL:,} bytes were read")
    raw = raw[:MAX_MAIL]
    try:
        if raw.count(b"\n--") > 10 * MAX_PARTS:
            raise ValueError("too many parts")
        message: Any = message_from_bytes(raw, policy=_Lenient())
        _read_headers(message, ticket)
        _read_parts(message, ticket)
    except UNREADABLE as error:
        ticket.problems.append(f"it cannot be taken apart ({type(error).__name__})")
        ticket.hidden = _clean(raw.decode(errors="replace"))
    if len(ticket.text) > MAX_TEXT:
        ticket.problems.append(f"only {MAX_TEXT:,} of its {len(ticket.text):,} characters are kept")
    if not ticket.text.strip() and not ticket.hidden:
        ticket.problems.append("it has no text")
    ticket.text, ticket.hidden = ticket.text[:MAX_TEXT], ticket.hidden.strip()[:MAX_HIDDEN]
    ticket.problems = list(dict.fromkeys(ticket.problems))[:20]

    words = words_in_sight(ticket.text)
    searched = " ".join(f"{ticket.subject}\n{words}".split())
    reasons = (reason for reason, pattern in _REASONS.items() if re.search(pattern, searched, re.IGNORECASE))
    ticket.reason = next(reasons, Reason.GOODWILL)
    ticket.numbers, ticket.lookalikes = find_numbers(f"{ticket.subject}\n{words}", is_order)
    if len(ticket.numbers) == 1 and not ticket.lookalikes:
        [ticket.order_number] = ticket.numbers
    wanted = ((amount, currency) for amount, currency in amounts_in(words) if currency)
    ticket.wants, ticket.wants_currency = next(wanted, (None, ""))
    return ticket


def words_in_sight(text: str) -> str:
    """Return the text without quoted lines, up to the first stretch that puts the rest out of sight."""
    far = find_far(text)
    near = text[: far.start()] if far else text
    return "\n".join(line for line in near.split("\n") if not line.startswith(">"))


def find_far(text: str) -> re.Match[str] | None:
    """Find the first stretch of over 20 blank lines or 40 spaces with words behind it, whatever draws the blanks."""
    blanks = {ord(char): " " for char in set(text) - {"\n"} if char.isspace() or is_hidden(char)}
    return _FAR.search(text.translate(blanks).rstrip())


def find_numbers(text: str, is_order: Callable[[str], bool]) -> tuple[list[str], list[str]]:
    """(order numbers, what only looks like one): what the subject and the words in sight name, each once."""
    seen = _TURNED.sub("", text)
    numbers = _NUMBER.findall(seen)
    named = [*_ORDERED.findall(seen), *filter(is_order, numbers)] or [number for number in numbers if len(number) == 5]
    words = [word[:40] for word in _WORD.findall(seen) if sum(map(str.isdigit, word)) >= 3]
    alike = [*filter(characters.in_exact, words), *_NUMBER.findall(" ".join(_TURNED.findall(text)))]
    return list(dict.fromkeys(named))[:20], list(dict.fromkeys(alike))[:20]


def find_earlier(run_id: int, ticket: Ticket) -> list[int]:
    """Return the ids of the team's earlier runs on this very mail, but for those that came to nothing.

    Their title names sender and subject, and the words are compared: a mail that is sent again has another date. This
    run's own lineage, which forks share, is left out.
    """
    mine = Run.objects.select_related("plan").get(pk=run_id)
    root = mine.lineage or mine.pk
    alike = Run.objects.filter(plan__agent=mine.plan.agent, team=mine.team_id, title=mine.title, pk__lt=mine.pk)
    alike = alike.exclude(status__in=[Run.Status.FAILED, Run.Status.CANCELLED]).exclude(lineage=root).exclude(pk=root)
    earlier = list[int]()
    for run in alike.order_by("-pk")[:20]:
        with suppress(CheckpointError, KeyError, TypeError):  # not read yet, or gone: its title is the same
            if store.load(run).state["ticket"]["text"] != ticket.text:
                continue
        earlier.insert(0, run.pk)
    return earlier


def _read_headers(message: Any, ticket: Ticket) -> None:
    subject, date = (one_line(_clean(str(message.get(name, ""))), MAX_HEADER) for name in ("subject", "date"))
    ticket.subject, ticket.sent, ticket.reply_to = subject, date, _read_mailbox(message, "reply-to")[1]
    ticket.from_name, ticket.from_address = _read_mailbox(message, "from")


def _read_mailbox(message: Any, header: str) -> tuple[str, str]:
    """(name, address) of the first mailbox of a header; the address is empty unless it looks like one."""
    mailbox: Any = next(iter(getattr(message[header], "addresses", ())), None)
    name, address = (_clean(str(mailbox.display_name)), _clean(mailbox.addr_spec)) if mailbox else ("", "")
    if not re.fullmatch(r"[^\s@<>\"(),;:]{1,64}@[^\s@<>\"(),;:]{1,189}", address) or any(map(is_hidden, address)):
        address = ""
    return one_line(name or _clean(str(message.get(header, ""))).partition("<")[0], 100), address


def _read_parts(message: Any, ticket: Ticket) -> None:
    """Read the plain text of a mail; hide what may not be seen, and list everything else as an attachment."""
    plain, pages, hidden = list[str](), list[str](), list[str]()
    parts = list(islice(message.walk(), MAX_PARTS + 1))
    if len(parts) > MAX_PARTS:
        ticket.problems.append(f"only its first {MAX_PARTS} parts were read")
    for part in parts[:MAX_PARTS]:
        if part.defects:
            ticket.problems.append("it breaks the rules for mails, so some of it may be missing")
        if part.is_multipart():
            continue
        kind, body = part.get_content_type(), part.get_payload(decode=True) or b""
        is_text = kind.startswith(("text/plain", "text/html", "multipart/"))  # the last could not be taken apart
        if not is_text or part.get_content_disposition() == "attachment":
            name = one_line(_clean(str(part.get_filename() or "without a name")), 100)
            ticket.attachments = [*ticket.attachments, f"{name} ({one_line(kind, 60)}, {len(body):,} bytes)"][:20]
            continue
        text, is_sure = _decode(body, str(part.get_content_charset() or "utf-8"), ticket)
        text = _clean(text).replace("\r\n", "\n").replace("\r", "\n").strip("\n")
        if not is_sure:
            hidden.append(text)
        elif kind == "text/html":
            pages.append(_words_of(text[:MAX_HTML]))
        else:
            plain.append(text)
    text, page = ("\n\n".join(filter(str.strip, forms)) for forms in (plain, pages))
    if page and not text:
        hidden.append(page)
        ticket.problems.append("its formatting may keep words out of sight; check them against the original")
    elif page and _figures_of(text) != _figures_of(page):
        hidden += [text, page]
        text = ""
        ticket.problems.append("its plain text and its HTML name different amounts or orders")
    ticket.text, ticket.hidden = text, "\n".join(hidden)


def _decode(data: bytes, charset: str, ticket: Ticket) -> tuple[str, bool]:
    """(bytes as text, whether a reader is sure to see the same).

    They are read by the charset that they claim. In one that nobody knows, programs show what the bytes look like.
    """
    try:
        name = codecs.lookup(charset).name
    except (LookupError, ValueError):
        name = ""
    codec = {"ascii": "utf-8", "iso8859-1": "cp1252"}.get(name, name)  # what such mails mean
    is_usual = bool(CHARSETS.fullmatch(codec))
    text = data.decode(codec if is_usual else "utf-8", "replace")
    if not is_usual:
        ticket.problems.append(f"its character set is unknown ({one_line(charset, 40)})")
    if "\ufffd" in text:
        ticket.problems.append("some of its characters are not what it says they are")
    return text, is_usual or not name


def _figures_of(text: str) -> list[object]:
    """Return the amounts and long numbers of a text, in their order, however its lines are broken and quoted."""
    words = " ".join(re.sub(r"(?m)^[> ]+", "", text).split())
    return [*amounts_in(words), *re.findall(r"\d{4,}", words)]


def _words_of(html: str) -> str:
    """Return the words of a page, without those of style sheets and scripts."""
    hidden = r"<(style|script)\b(?:(?!</\1).)*+"
    inline = r"</?(?:a|b|i|u|em|strong|span|font)\b[^<>]*>"
    html = re.sub(rf"{hidden}|{inline}", "", html, flags=re.IGNORECASE | re.DOTALL)
    words = unescape(re.sub(r"<[^<>]*>", "\n", html))
    return _clean("\n".join(filter(None, (" ".join(line.split()) for line in words.split("\n")))))


def _clean(text: str) -> str:
    """Read what the email package hid in surrogates as UTF-8; no state holds a surrogate."""
    text = re.sub("[\ud800-\udc7f\udd00-\udfff]", "\ufffd", text)
    return text.encode(errors="surrogateescape").decode(errors="replace")
