"""Parses a mail (RFC 5322, MIME: RFC 2045 to 2047) as far as it can be read.

`parse` never raises. It lists in `problems`, in plain words, whatever it could not read, and returns the rest as it is:
no character of the text is dropped or made up but U+FFFD, which stands for bytes that are no text. Bidi controls,
zero-width characters and blank lines stay: the code that shows the text measures and marks them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.errors import MessageError
from email.header import decode_header
from email.message import Message
from email.utils import parseaddr
from itertools import islice
from typing import Any, TypeVar

from bs4.exceptions import ParserRejectedMarkup

from agents.examples.money import amounts_in

from . import MAX_MAIL
from . import blanks as refunds_blanks
from . import charsets as refunds_charsets
from . import numbers as refunds_numbers
from .parsed_mail import ParsedMail
from .text import invisible, one_line, words_of

Read = TypeVar("Read")
MAX_TEXT = 200_000  # characters
MAX_HIDDEN = 20_000
MAX_HTML = 300_000  # characters
MAX_TAGS = 5_000  # html.parser and bs4 take time with the square of what is nested or left open
MAX_HEADER = 2_000  # characters of one header; so do the parsers of structured headers
MAX_DASHES = 2_000  # lines that may begin a part
MAX_DEPTH = 12
MAX_PARTS = 200

# The email package raises all of these on hostile input, whatever its pages say.
UNREADABLE = (AssertionError, AttributeError, LookupError, MessageError, RecursionError, TypeError, ValueError)

_SURROGATES = re.compile("[\ud800-\udfff]")
_ENCODED_WORDS = re.compile(r"(?:=\?[^?\s]{1,60}\?[bqBQ]\?[^?\s]*\?=\s*)+")
_DEFECTS = {
    "NoBoundaryInMultipartDefect": "it says that it has parts, but not where they begin",
    "StartBoundaryNotFoundDefect": "its parts do not begin where it says",
    "CloseBoundaryNotFoundDefect": "it ends in the middle of a part",
    "MultipartInvariantViolationDefect": "it says that it has parts, and has none",
    "InvalidBase64PaddingDefect": "some of its base64 is cut",
    "InvalidBase64CharactersDefect": "some of its base64 is damaged",
    "InvalidBase64LengthDefect": "some of its base64 is cut",
    "MissingHeaderBodySeparatorDefect": "its headers are damaged",
    "FirstHeaderLineIsContinuationDefect": "its headers are damaged",
    "MisplacedEnvelopeHeaderDefect": "its headers are damaged",
    "InvalidMultipartContentTransferEncodingDefect": "it encodes its parts twice",
}


def parse(raw: bytes) -> ParsedMail:
    """Read a mail. Any bytes will do."""
    mail = ParsedMail()
    if len(raw) > MAX_MAIL:
        mail.complain(f"only its first {MAX_MAIL:,} bytes were read")
        raw = raw[:MAX_MAIL]
    dashes = [found.start() for found in islice(re.finditer(rb"\n--", raw), MAX_DASHES + 1)]
    if len(dashes) > MAX_DASHES:
        mail.complain(f"it has more than {MAX_DASHES:,} parts; the rest was not read")
        raw = raw[: dashes[-1]]
    try:
        message: Message = message_from_bytes(raw, policy=_Lenient())
    except UNREADABLE as error:
        mail.complain(f"it cannot be taken apart ({type(error).__name__})")
        mail.text = _bounded(raw.decode("utf-8", "replace"), mail)
        return mail
    _read_headers(message, mail)
    mail.text = _bounded(_text_of(message, mail, _Budget(), 0).strip("\n"), mail)
    if not mail.text.strip() and not mail.hidden:
        mail.complain("it has no text")
    return mail


class _Lenient(policy.EmailPolicy):
    """The default policy, but headers are bounded before anybody parses them, and a header never raises."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        return name, value[: MAX_HEADER + 1]

    def header_fetch_parse(self, name: str, value: str) -> Any:
        try:
            return super().header_fetch_parse(name, value)
        except UNREADABLE:
            return str(value)


@dataclass
class _Budget:
    parts: int = MAX_PARTS


def _read_headers(message: Message, mail: ParsedMail) -> None:
    raw = [(name.lower(), str(value)) for name, value in message.raw_items()]
    mail.subject = one_line(_unfolded(_header(raw, "subject", mail), mail), MAX_HEADER)
    mail.sent = one_line(_unfolded(_header(raw, "date", mail), mail))
    mail.from_name, mail.from_address = _address(_header(raw, "from", mail), mail)
    mail.reply_to = _address(_header(raw, "reply-to", mail), mail)[1]
    if not mail.from_address:
        mail.complain("it does not say who wrote it")
    if sum(name == "from" for name, _ in raw) > 1:
        mail.complain("it names more than one sender")


def _header(raw: list[tuple[str, str]], name: str, mail: ParsedMail) -> str:
    """Return the first header of that name on one line, bounded, still encoded."""
    value = next((value for key, value in raw if key == name), "")
    if len(value) > MAX_HEADER:
        mail.complain(f"its {name} header has more than {MAX_HEADER:,} characters")
    return re.sub(r"[\r\n]+[ \t]?", " ", value[:MAX_HEADER])


def _unfolded(value: str, mail: ParsedMail) -> str:
    """Read a header's text: its encoded words by RFC 2047, the rest from the bytes it came as."""
    text, end = "", 0
    for found in _ENCODED_WORDS.finditer(value):
        text += _decoded(_bytes(value[end : found.start()]), "utf-8", mail)
        try:
            pieces = decode_header(found.group())
        except UNREADABLE:
            mail.complain("some of its headers are damaged")
            pieces = [(found.group(), None)]
        text += "".join(_decoded(_bytes(piece), charset or "utf-8", mail) for piece, charset in pieces)
        end = found.end()
    return text + _decoded(_bytes(value[end:]), "utf-8", mail)


def _bytes(text: bytes | str) -> bytes:
    """Turn what the email package holds as text back into the bytes it came as."""
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")


def _address(header: str, mail: ParsedMail) -> tuple[str, str]:
    """(name, address) of the first mailbox; the address is empty unless it looks like one.

    It is taken apart before its words are decoded: else an encoded name could bring an address of its own.
    """
    name, address = _readable(lambda: parseaddr(header), (header, ""))
    name, address = one_line(_unfolded(name, mail)), _unfolded(address, mail)
    if not re.fullmatch(r"[^\s@<>\"(),;:]{1,64}@[^\s@<>\"(),;:]{1,189}", address) or invisible(address):
        return name or one_line(_unfolded(header, mail)), ""
    return name, address


def _text_of(part: Message, mail: ParsedMail, budget: _Budget, depth: int) -> str:
    """Return the text of a part and of what is in it; list everything else as an attachment."""
    budget.parts -= 1
    if depth > MAX_DEPTH or budget.parts < 0:
        mail.complain("it has parts in parts in parts; the innermost were not read")
        return ""
    kind = _kind(part)
    inner = part.get_payload() if part.is_multipart() else None
    if isinstance(inner, list) and kind.startswith("multipart/"):
        _note_defects(part, mail)
        children = [child for child in inner if isinstance(child, Message)]
        if kind == "multipart/alternative":
            return _one_of(children, mail, budget, depth)
        return "\n\n".join(filter(None, (_text_of(child, mail, budget, depth + 1).strip("\n") for child in children)))
    if isinstance(inner, list) or _is_attachment(part, kind):
        mail.attachments.append(_attachment(part, kind))
        return ""
    charset = _readable(part.get_content_charset, None) or "utf-8"
    payload = _payload(part, mail)
    text = _decoded(payload, charset, mail)
    _note_defects(part, mail)
    if not refunds_charsets.in_sight(payload, charset):
        return _hide(text, mail)
    return _from_html(text, mail) if kind == "text/html" else _from_plain(text, mail)


def _one_of(children: list[Message], mail: ParsedMail, budget: _Budget, depth: int) -> str:
    """Of several forms of one text the plain one, unless nothing stands in it.

    Mail programs show another one, so where that names other amounts or orders none of them is in sight.
    """
    forms = []
    for child in sorted(children, key=lambda child: _kind(child) != "text/plain"):
        form = ParsedMail(attachments=mail.attachments, problems=mail.problems)
        form.text = _text_of(child, form, budget, depth + 1)
        if form.text.strip() or form.hidden:
            forms.append(form)
    if len({_named(f"{form.text}\n{form.hidden}") for form in forms}) > 1:
        mail.complain("its plain text and its HTML name different amounts or orders")
        return _hide("\n".join(f"{form.text}\n{form.hidden}" for form in forms), mail)
    if forms and not forms[0].text.strip():
        return _hide(forms[0].hidden, mail)
    return forms[0].text if forms else ""


def _named(text: str) -> tuple[object, ...]:
    """Return the amounts and order numbers of a text, in their order, however its lines are broken and quoted."""
    words = " ".join(re.sub(r"(?m)^[> ]+", "", text).split())
    named = refunds_numbers.named("", words)
    return (*amounts_in(words), *named.numbers, *named.lookalikes)


def _readable(read: Callable[[], Read], otherwise: Read) -> Read:
    """Return what the email package reads, or `otherwise` where it raises."""
    try:
        return read()
    except UNREADABLE:
        return otherwise


def _kind(part: Message) -> str:
    return _readable(part.get_content_type, "text/plain")


def _is_attachment(part: Message, kind: str) -> bool:
    # Parts that could not be told apart are read as one text: somebody may still make something out.
    text = kind in ("text/plain", "text/html") or kind.startswith("multipart/")
    return _readable(lambda: part.get_content_disposition() == "attachment" or not text, False)


def _payload(part: Message, mail: ParsedMail) -> bytes:
    try:
        payload = part.get_payload(decode=True)
    except UNREADABLE:
        mail.complain("some of it is encoded in no known way")
        payload = part.get_payload()
    return payload if isinstance(payload, bytes) else _bytes(str(payload or ""))


def _attachment(part: Message, kind: str) -> str:
    name, size = _readable(
        lambda: (part.get_filename() or "without a name", len(part.get_payload(decode=True) or b"")),
        ("without a readable name", 0),
    )
    return f"{one_line(name)} ({one_line(kind, 60)}, {size:,} bytes)"


def _decoded(data: bytes, charset: str, mail: ParsedMail) -> str:
    text, wrong = refunds_charsets.decoded(data, charset)
    for problem in wrong:
        mail.complain(problem)
    return _SURROGATES.sub("\ufffd", text)


def _note_defects(part: Message, mail: ParsedMail) -> None:
    for defect in part.defects:
        mail.complain(_DEFECTS.get(type(defect).__name__, "it breaks the rules for mails"))


def _from_plain(text: str, mail: ParsedMail) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not refunds_blanks.far_apart(text):
        return text
    mail.complain("its spaces may push words out of sight; check them against the original")
    return _hide(text, mail)


def _from_html(html: str, mail: ParsedMail) -> str:
    if len(html) > MAX_HTML:
        mail.complain(f"only {MAX_HTML:,} of its {len(html):,} characters of HTML were read")
    if html[:MAX_HTML].count("<") > MAX_TAGS:
        mail.complain("its HTML is overgrown, and what is in sight of it cannot be told")
        return _hide(re.sub(r"<[^<>]*>", " ", html[:MAX_HTML]), mail)
    try:
        words, in_sight = words_of(html[:MAX_HTML])
    except (ParserRejectedMarkup, *UNREADABLE):
        mail.complain("its HTML cannot be read and is shown as it came")
        return _hide(html[:MAX_HTML], mail)
    if in_sight:
        return words
    mail.complain("its formatting may keep words out of sight; check them against the original")
    return _hide(words, mail)


def _hide(words: str, mail: ParsedMail) -> str:
    """Put words among those that are hidden; nothing of them is in sight."""
    mail.hidden = _SURROGATES.sub("\ufffd", f"{mail.hidden}\n{words.strip()}".strip()[:MAX_HIDDEN])
    return ""


def _bounded(text: str, mail: ParsedMail) -> str:
    if len(text) > MAX_TEXT:
        mail.complain(f"only {MAX_TEXT:,} of its {len(text):,} characters are kept")
    return _SURROGATES.sub("\ufffd", text[:MAX_TEXT])
