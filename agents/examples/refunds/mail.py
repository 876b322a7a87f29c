"""Reads a mail with the standard library's email package, as far as it can be read.

`parse` never raises. It lists in `problems`, in plain words, what it could not read. The agent's rules use `text`
alone: plain text in a charset that every mail program reads the same way. Whatever a reader may see otherwise goes into
`hidden`: HTML without a plain text, which can hide words in more ways than a program can judge; texts that contradict
each other; odd charsets; words behind a stretch of spaces.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.errors import MessageError
from email.message import EmailMessage
from html.parser import HTMLParser
from itertools import islice
from typing import Any

from agents.examples.money import amounts_in
from agents.examples.text import count_invisible, is_far_apart, one_line

from .numbers import find_numbers
from .state import MAX_MAIL

MAX_TEXT, MAX_HIDDEN, MAX_HTML, MAX_HEADER = 200_000, 20_000, 300_000, 2_000  # characters
MAX_PARTS = 200
MAX_TAGS = 5_000  # the parser takes time with the square of those that are left open
# The email package raises all of these on hostile input, whatever its pages say.
UNREADABLE = (AssertionError, AttributeError, LookupError, MessageError, RecursionError, TypeError, ValueError)
# What mail programs read. Python knows more (utf-7, punycode, EBCDIC), in which a reader sees other words.
CHARSETS = frozenset(
    [f"iso8859-{number}" for number in range(1, 17)]
    + [f"cp125{number}" for number in range(9)]
    + ["utf-8", "utf-16", "utf-16-le", "utf-16-be", "koi8-r", "koi8-u", "mac-roman", "mac-cyrillic"]
    + ["gb18030", "big5", "euc_jp", "iso2022_jp", "shift_jis", "euc_kr"]
)
# In these a byte of a digit may be a part of another character, which a reader sees, however broken the rest is.
DIGITS_MAY_BE_PARTS = ("utf-16", "utf-16-le", "utf-16-be", "iso2022_jp", "gb18030")
ODD_LOOK = "its formatting may keep words out of sight; check them against the original"


@dataclass
class ParsedMail:
    """What could be made out of a mail; an empty string where nothing could."""

    from_address: str = ""
    from_name: str = ""
    reply_to: str = ""
    subject: str = ""
    sent: str = ""
    text: str = ""
    hidden: str = ""  # words of which nobody can tell whether a reader sees them
    attachments: list[str] = field(default_factory=list)  # "hook.png (image/png, 2,048 bytes)"
    problems: list[str] = field(default_factory=list)

    def hide(self, words: str, problem: str = "") -> None:
        self.hidden = f"{self.hidden}\n{words.strip()}".strip()[:MAX_HIDDEN]
        self.problems += [problem] if problem else []


class _Lenient(policy.EmailPolicy):
    """The default policy, with headers bounded before they are parsed: that takes time with the square of them."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        return name, value[:MAX_HEADER]


def parse(raw: bytes) -> ParsedMail:
    """Read a mail. Any bytes will do."""
    mail = ParsedMail()
    if len(raw) > MAX_MAIL:
        mail.problems.append(f"only its first {MAX_MAIL:,} bytes were read")
    raw = raw[:MAX_MAIL]
    try:
        if raw.count(b"\n--") > 10 * MAX_PARTS:
            raise ValueError("too many parts")
        message: Any = message_from_bytes(raw, policy=_Lenient())
        _read_headers(message, mail)
        text = _read_parts(message, mail)
    except UNREADABLE as error:
        mail.hide(_clean(raw.decode(errors="replace")), f"it cannot be taken apart ({type(error).__name__})")
        text = ""
    if len(text) > MAX_TEXT:
        mail.problems.append(f"only {MAX_TEXT:,} of its {len(text):,} characters are kept")
    mail.text = text[:MAX_TEXT]
    if not mail.text.strip() and not mail.hidden:
        mail.problems.append("it has no text")
    mail.problems = list(dict.fromkeys(mail.problems))
    return mail


def _read_headers(message: EmailMessage, mail: ParsedMail) -> None:
    subject = _header(message, "subject")
    mail.subject, mail.sent = one_line(_clean(subject), MAX_HEADER), one_line(_clean(_header(message, "date")))
    mail.from_name, mail.from_address = _mailbox(message, "from")
    mail.reply_to = _mailbox(message, "reply-to")[1]
    if not mail.from_address:
        mail.problems.append("it does not say who wrote it")
    if len([name for name, _ in message.raw_items() if name.lower() == "from"]) > 1:
        mail.problems.append("it names more than one sender")
    for charset in re.findall(r"=\?([^?\s]{1,60})\?", dict(message.raw_items()).get("Subject", "")):
        if _codec(charset) not in ("", *CHARSETS):
            mail.subject = ""
            mail.hide(subject, f"its character set is unknown ({one_line(charset, 40)})")


def _header(message: EmailMessage, name: str) -> str:
    try:
        return str(message.get(name, ""))
    except UNREADABLE:
        return ""


def _mailbox(message: EmailMessage, header: str) -> tuple[str, str]:
    """(name, address) of the first mailbox of a header; the address is empty unless it looks like one."""
    try:
        [first, *_] = message[header].addresses
        name, address = _clean(str(first.display_name)), _clean(str(first.addr_spec))
    except UNREADABLE:
        name, address = "", ""
    if not re.fullmatch(r"[^\s@<>\"(),;:]{1,64}@[^\s@<>\"(),;:]{1,189}", address) or count_invisible(address):
        address = ""
    return one_line(name or _clean(_header(message, header).partition("<")[0])), address


def _read_parts(message: EmailMessage, mail: ParsedMail) -> str:
    """Return the plain text of a mail; hide what may not be seen, and list everything else as an attachment."""
    plain, pages = list[str](), list[str]()
    parts = list(islice(message.walk(), MAX_PARTS + 1))
    if len(parts) > MAX_PARTS:
        mail.problems.append(f"only its first {MAX_PARTS} parts were read")
    for part in parts[:MAX_PARTS]:
        if part.defects:
            mail.problems.append("it breaks the rules for mails, so some of it may be missing")
        if part.is_multipart():
            continue
        kind, payload = part.get_content_type(), part.get_payload(decode=True)
        body = payload if isinstance(payload, bytes) else str(part.get_payload()).encode(errors="surrogateescape")
        # Parts that could not be told apart are read as one text: somebody may still make something out.
        is_text = kind in ("text/plain", "text/html") or kind.startswith("multipart/")
        if not is_text or part.get_content_disposition() == "attachment":
            name = one_line(_clean(str(part.get_filename() or "without a name")))
            mail.attachments.append(f"{name} ({one_line(kind, 60)}, {len(body):,} bytes)")
            continue
        text, in_sight = _decode(body, str(part.get_content_charset() or "utf-8"), mail)
        text = text.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
        if not in_sight:
            mail.hide(text)
        elif kind == "text/html":
            pages.append(_words_of(text[:MAX_HTML]))
        elif is_far_apart(text):
            mail.hide(text, "its spaces may push words out of sight; check them against the original")
        else:
            plain.append(text)
    text, page = ("\n\n".join(filter(str.strip, forms)) for forms in (plain, pages))
    if page and not text:
        mail.hide(page, ODD_LOOK)
    elif page and _named_in(text) != _named_in(page):
        mail.hide(f"{text}\n{page}", "its plain text and its HTML name different amounts or orders")
        return ""
    return text


def _named_in(text: str) -> tuple[object, ...]:
    """Return the amounts and order numbers of a text, in their order, however its lines are broken and quoted."""
    words = " ".join(re.sub(r"(?m)^[> ]+", "", text).split())
    named = find_numbers("", words)
    return (*amounts_in(words), *named.numbers, *named.lookalikes)


class _Words(HTMLParser):
    """Collects the words of a page, without those of style sheets and scripts."""

    words = ""
    skipped = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.skipped += tag in ("script", "style")
        self.words += "" if tag in ("a", "b", "i", "u", "em", "strong", "span", "font") else "\n"

    def handle_endtag(self, tag: str) -> None:
        self.skipped -= tag in ("script", "style") and self.skipped > 0

    def handle_data(self, data: str) -> None:
        self.words += "" if self.skipped else data


def _words_of(html: str) -> str:
    if html.count("<") > MAX_TAGS:
        html = re.sub(r"<[^<>]*>", " ", html).replace("<", " ")
    reader = _Words()
    reader.feed(html)
    reader.close()
    return _clean("\n".join(filter(None, (" ".join(line.split()) for line in reader.words.split("\n")))))


def _codec(charset: str) -> str:
    """Return Python's name of a charset, "" for one that nobody knows; some browsers know more names than Python."""
    label = charset.strip("\"' ").lower()
    try:
        name = codecs.lookup("gbk" if label == "x-gbk" else label).name
    except (LookupError, ValueError):
        return label if label.startswith(("iso-2022-", "ucs-2", "unicode", "csunicode")) else ""
    return {"ascii": "utf-8", "gb2312": "gb18030", "gbk": "gb18030"}.get(name, name)


def _decode(data: bytes, charset: str, mail: ParsedMail) -> tuple[str, bool]:
    """(bytes as text, whether a reader is sure to see the same).

    They are read by the charset that they claim, else as UTF-8, else as Windows-1252, in which every byte means
    something. A charset that nobody knows does no harm: each program shows such words as what their bytes look like.
    """
    codec = _codec(charset)
    if codec not in CHARSETS:
        mail.problems.append(f"its character set is unknown ({one_line(charset, 40)})")
    if codec == "iso8859-1" and re.search(rb"[\x80-\x9f]", data):
        codec = "cp1252"  # what such mails mean
    for candidate in (codec if codec in CHARSETS else "utf-8", "utf-8"):
        try:
            return _clean(data.decode(candidate)), codec in ("", *CHARSETS)
        except ValueError:
            mail.problems.append("some of its characters are not what it says they are")
            if codec in DIGITS_MAY_BE_PARTS:
                return data.decode(codec, "replace"), False
    return data.decode("windows-1252", "replace"), codec in ("", *CHARSETS)


def _clean(text: str) -> str:
    """Read what the email package hid in surrogates as UTF-8; no state holds a surrogate."""
    text = re.sub("[\ud800-\udc7f\udd00-\udfff]", "\ufffd", text)
    return text.encode(errors="surrogateescape").decode(errors="replace")
