# ruff: noqa: RUF001
"""Any mail is read as far as it goes, and none makes the reader fail."""

from __future__ import annotations

import re
from decimal import Decimal
from email.header import Header
from email.message import EmailMessage
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agents.examples import refunds
from agents.examples.money import amounts_in
from agents.examples.refunds.mail import MAX_PARTS, MAX_TEXT, find_numbers, read_ticket, words_in_sight
from agents.examples.refunds.state import MAX_MAIL
from agents.examples.text import count_invisible
from tests.harness.examples import many

MAILS = Path(refunds.__file__).with_name("mails")
ODD_LOOK = "its formatting may keep words out of sight; check them against the original"


def read(name: str) -> bytes:
    return next(MAILS.glob(f"{name}-*.eml")).read_bytes()


def mail_of(body: bytes, kind: str = "text/plain; charset=utf-8", **headers: str) -> bytes:
    head = {"From": "Ann <ann@shop.example>", "Subject": "hello", "Content-Type": kind} | headers
    return "".join(f"{name.replace('_', '-')}: {value}\n" for name, value in head.items()).encode() + b"\n" + body


def forms_of(plain: str, html: str) -> bytes:
    message = EmailMessage()
    message["From"] = "Ann <ann@shop.example>"
    message.set_content(plain)
    message.add_alternative(html, subtype="html")
    return message.as_bytes()


@pytest.mark.parametrize(
    ("name", "sender", "subject", "words"),
    [
        ("01", "marit.ellery@fernhollow.example", "Order 20418: the frames", "Fernhollow Optics – purchasing"),
        ("02", "jonas.brandt@posthorn.example", "Lamp broken on arrival", "I’d rather have the money back"),
        ("03", "kaethe.muehlbauer@gruenstrasse.example", "bitte um Rückzahlung", "wohnt außer mir\nniemand"),
        ("04", "vera.klimova@pochta-sever.example", "Возврат по заказу 20409", "перьевую ручку и обе бутылки"),
        ("05", "priya.menon@tidewater.example", "A hook that gave way", "snapped while I was hanging"),
        ("06", "bookings@northgatehostel.example", "never arrived – order 20431", "£12,480.00"),
        ("10", "silas.quayle@harbourpost.example", "Saddle returned", "without asking anybody"),
        ("11", "bettina.okoro@larkfield.example", "<script>alert", '<img src=x onerror="fetch('),
        ("12", "ines.faro@farolim.example", "a small thing", "I’ll cut around it"),
        ("14", "deniz.aral@mektup.example", "Order 20391 never arrived", "Kadıköy twice. Teşekkürler"),
    ],
)
def test_every_bundled_mail_is_read_in_its_own_charset(name: str, sender: str, subject: str, words: str) -> None:
    ticket = read_ticket(read(name))
    assert ticket.from_address == sender
    assert subject in ticket.subject
    assert words in ticket.text
    assert ticket.problems == (["its character set is unknown (x-ottoman-8)"] if name == "14" else [])


def test_a_mail_broken_in_transit_gives_what_is_left_and_says_what_is_wrong() -> None:
    ticket = read_ticket(read("09"))
    assert ticket.from_address == ""
    assert ticket.subject.startswith("Refund")
    assert "it breaks the rules for mails, so some of it may be missing" in ticket.problems


def test_attachments_are_listed_and_not_read() -> None:
    ticket = read_ticket(read("05"))
    assert ticket.attachments == ["hook.png (image/png, 70 bytes)", "receipt €.pdf (application/pdf, 26 bytes)"]
    assert "PDF" not in ticket.text


@pytest.mark.parametrize(
    "hidden", ['<p style="display:none">x9</p>', "<svg><text>x9</text></svg>", "<p>." + "&nbsp;" * 41 + " x9"]
)
def test_of_html_alone_nobody_can_tell_what_a_reader_sees(hidden: str) -> None:
    html = f"<style>p {{}}</style><p>seen</p>{hidden}<p>too</p><script>no()</script>"
    ticket = read_ticket(mail_of(html.encode(), "text/html; charset=utf-8"))
    assert ticket.text == ""
    assert [word for word in ticket.hidden.split() if word != "."] == ["seen", "x9", "too"]
    assert ticket.problems == [ODD_LOOK]


def test_the_digits_of_two_cells_are_no_one_number() -> None:
    """They were read as one word, so that one lamp for 390.00 cost 1390.00."""
    html = b"<table><tr><td>1</td><td>390.00 EUR</td></tr><tr><th>2</th><td>8.<b>00</b> EUR</td></tr></table>"
    hidden = read_ticket(mail_of(html, "text/html")).hidden
    assert [amount for amount, _ in amounts_in(hidden)] == [Decimal("390.00"), Decimal("8.00")]


@pytest.mark.parametrize(
    ("plain", "html"),
    [
        ("Order 20418, refund 80.00 EUR", "<p>Order 20418, refund 8.00 EUR</p>"),
        ("Order 20418, refund 80.00 EUR", "<p>Order 20419, refund 80.00 EUR</p>"),
        ("Order 20418", "<p>Order 20418</p><p style=display:none>refund 80.00 EUR</p>"),
        ("8.00 EUR or 80.00 EUR", "<p>80.00 EUR or 8.00 EUR</p>"),
    ],
)
def test_forms_of_a_mail_that_name_other_amounts_or_orders_decide_nothing(plain: str, html: str) -> None:
    """The plain text decided, and mail programs show the HTML."""
    ticket = read_ticket(forms_of(plain, html))
    assert ticket.text == ""
    assert plain in ticket.hidden
    assert "20419" not in html or "20419" in ticket.hidden
    assert "its plain text and its HTML name different amounts or orders" in ticket.problems


def test_a_plain_text_beside_html_that_says_the_same_is_read() -> None:
    plain = "Order 20418:\nrefund 80.00\nEUR\n\n> order\n> 20410"
    html = "<div>Order 20418:<br>refund <b>80.00 EUR</b></div><blockquote>order 20410</blockquote>"
    ticket = read_ticket(forms_of(plain, html))
    assert (ticket.text, ticket.hidden, ticket.problems) == (plain, "", [])


@pytest.mark.parametrize(
    "gap",
    [
        *("\n" * 22, "\n" + "\u2800\n" * 21, "\n\u3164\n\uffa0\n\u1160" * 7 + "\n", "\n" + "\u00a0\ufe0f\n" * 21),
        *(" " * 41, "\u3000 " * 21, "\u2800" * 41, "\u2028" * 41, "\xad\u2003" * 21),
    ],
)
def test_words_behind_what_looks_blank_do_not_decide(gap: str) -> None:
    """A filler was taken for a word."""
    ticket = read_ticket(mail_of(f"Order 20418{gap}EUR 80.00".encode()))
    assert (words_in_sight(ticket.text), ticket.wants) == ("Order 20418", None)
    assert "80.00" in ticket.text


def test_a_table_of_spaces_and_some_empty_paragraphs_are_in_sight() -> None:
    text = "Lamp" + " " * 20 + "1" + " " * 12 + "EUR 80.00" + " " * 50 + "\n" * 20 + "Ann" + "\n" * 30
    assert words_in_sight(text) == text


@pytest.mark.parametrize(
    "text",
    [
        *(" " * 250_000 + "x9", "111 " * 60_000, "\u20ac" + "111 " * 60_000, "заказ" * 40_000, "#" * 200_000),
        *("order " + "a" * 200_000, "\n " * 100_000, ("\n" * 20 + "x") * 9_000, "1-" * 100_000, "<style>" * 40_000),
    ],
    ids=lambda text: repr(text[:20]),
)
def test_what_repeats_is_read_in_the_time_that_its_length_takes(text: str) -> None:
    """Each of these was gone through once for each of its characters, so that its worker hung for minutes."""
    assert "Order 20418" in read_ticket(mail_of(f"Order 20418\n{text}".encode())).text
    ticket = read_ticket(forms_of("Order 20418", f"<p>{text}</p>"))
    assert "Order 20418" in ticket.text + ticket.hidden


@pytest.mark.parametrize("charset", ["utf-8", "iso-8859-1", "windows-1252", "iso-8859-15", "macintosh", "utf-16"])
def test_words_survive_their_charset_in_body_and_headers(charset: str) -> None:
    words = "Grüße aus Köln, ça va"
    subject = Header(words, charset).encode() if charset != "utf-16" else words
    ticket = read_ticket(mail_of(words.encode(charset), f"text/plain; charset={charset}", Subject=subject))
    assert (ticket.text, ticket.subject, ticket.problems) == (words, words, [])


def test_windows_punctuation_under_the_name_of_latin_1_is_read_as_what_it_is() -> None:
    assert read_ticket(mail_of(b"it\x92s \x80 5", "text/plain; charset=iso-8859-1")).text == "it’s € 5"


@pytest.mark.parametrize(
    ("charset", "words"),
    [
        ("unicode_escape", b"I want EUR 8\\x30.00"),
        ("utf-7", b"I want EUR 8+ADA-.00"),
        ("cp037", "I want EUR 80.00".encode("cp037")),
        ("hex", b"3830"),
        ("punycode", b"b-" + b"a" * (MAX_MAIL - 500)),  # whose reading takes the square of its length
    ],
)
@pytest.mark.parametrize("kind", ["plain", "html"])
def test_a_charset_that_few_programs_know_decides_nothing(charset: str, words: bytes, kind: str) -> None:
    """Any that Python knows was believed, so that 80.00 was read where a reader saw other characters."""
    ticket = read_ticket(mail_of(words, f"text/{kind}; charset={charset}"))
    assert ticket.text == ""
    assert ticket.hidden
    assert f"its character set is unknown ({charset})" in ticket.problems


def test_bytes_that_their_charset_does_not_have_are_shown_as_missing() -> None:
    """They were read as UTF-8, so that 80.00 decided where a reader saw other characters."""
    body = "\u9000\u6b3e".encode("utf-16-le") + b" EUR 80.00 !x"
    ticket = read_ticket(mail_of(body, "text/plain; charset=utf-16le"))
    assert ticket.wants is None
    assert "some of its characters are not what it says they are" in ticket.problems


def test_an_encoded_name_cannot_bring_an_address_of_its_own() -> None:
    """The name was decoded before the address was looked for, so that an encoded comma made another sender."""
    name = Header("boss@shop.example, ", "utf-8").encode()
    assert (
        read_ticket(mail_of(b"x", From=f"{name} <thief@elsewhere.example>")).from_address == "thief@elsewhere.example"
    )


@pytest.mark.parametrize("address", ["a\u202e@b.example", "a b@c.example", "no-at-sign", "a@b@c.example", "@"])
def test_what_is_no_address_is_none(address: str) -> None:
    assert read_ticket(mail_of(b"x", From=f"A <{address}>")).from_address == ""


@pytest.mark.parametrize(
    ("text", "numbers", "lookalikes"),
    [
        ("my order 20418 please", ["20418"], []),
        ("Bestellung Nr. 20402", ["20402"], []),
        ("по заказу 20409", ["20409"], []),
        ("#20388", ["20388"], []),
        ("ring me at 555-20418-77, it is about 20391", ["20391"], []),
        ("on 20 November, order 123, > order 1", [], []),
        ("order 20418 again, D-10115 Berlin, since 2019", ["20418"], []),
        ("order 20418 (ordered on 2026-10-21), order date 2026, order value 1299.00", ["20418"], []),
        ("order 20418 came broken.\n\nMarit Ellery\n10115 Berlin", ["20418"], []),
        ("20391 or 20418?", ["20391", "20418"], []),
        ("Order 20418\nit is about order 20391", ["20418", "20391"], []),
        ("order-20418, Bestellung20391, “order 20418”, order 20418\u2019s lamp, no.20391.", ["20418", "20391"], []),
        ("Bestellungsnummer20418, OrderID20418, Order:20418|Name, заказ20418", ["20418"], []),
        # 77001 is the only one of these that the shop has.
        ("Please refund order 20418, or was it 77001?", ["20418", "77001"], []),
        ("order 20418/77001", ["20418", "77001"], []),
        ("Order 20418\nThank you.\n\nOr is it 77001?", ["20418", "77001"], []),
        ("My lamp 77001, 20418 in Berlin", ["77001"], []),
        # Of these the digits alone were taken.
        ("order 2\u041e418, which is 20391", ["20391"], ["2\u041e418"]),
        ("order \uff12\uff10\uff14\uff11\uff18", [], ["\uff12\uff10\uff14\uff11\uff18"]),
        ("order 20\u200b418", [], ["20\u200b418"]),
        ("order 20418\u200b", ["20418"], ["20418\u200b"]),
        ("order \u041020418. It is 20391\u0410.", [], ["\u041020418", "20391\u0410"]),
        ("order A20418", [], []),
        # It is shown as 20388.
        ("order \u202e 88302 \u202c", [], ["88302"]),
    ],
)
def test_every_number_is_named_and_what_only_looks_like_one(
    text: str, numbers: list[str], lookalikes: list[str]
) -> None:
    assert find_numbers(text, {"77001"}.__contains__) == (numbers, lookalikes)


def test_an_order_number_is_taken_from_the_words_in_sight_where_it_is_the_only_one() -> None:
    ticket = read_ticket(mail_of(b"> order 20391\nmy order 20418" + b"\n" * 30 + b"order 20402"))
    assert ticket.order_number == "20418"
    assert read_ticket(mail_of(b"order 20418 or 2\xd0\x9e391")).order_number is None
    assert read_ticket(mail_of(b"order 20418", Subject="order 20391")).order_number is None


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x00" * 500,
        b"\xff\xfe" * 500,
        b"From: x",
        b"\n\n\n",
        b"Content-Type: multipart/mixed; boundary=\n\n--\n--\n",
        b"Content-Type: text/html\n\n<![x[",
        b"Content-Type: text/plain; charset=unicode_escape\n\n\\ud800",
        b"Content-Type: text/plain; charset=utf-7\n\n+2AA-",
        b"Content-Type: text/html; charset=utf-7\n\n+2AA-<a",
        b"Content-Transfer-Encoding: uuencode\n\nbegin 666 x\nM!!\n",
        b"From: =?utf-8?b?////?= <=?x?=>\nDate: =?utf-8?q?=ED=A0=80?=\n\nx",
        b"From: <=?unicode_escape?q?=5Cud800?=@b.example>\n\nx",
        b"Content-Type: message/rfc822\n\n" * 3_000,
        b"Content-Type: " + b"(" * 5_000 + b"\n\nx",
        b"Content-Transfer-Encoding: " + b"(" * 5_000 + b"\n\nx",
        b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (i, i) for i in range(400)),
        b"Content-Type: text/html\n\n" + b"<div>" * 4_000 + b"x",
        b"Content-Type: text/html\n\n" + b"<!--" * 200_000,
        b"Content-Type: text/plain" + b";a=b" * 500_000 + b"\n\nx",
        b"Content-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\nx\n" * 200_000,
    ],
    ids=lambda raw: repr(raw[:30]),
)
def test_hostile_bytes_are_read_too(raw: bytes) -> None:
    assert faults(raw) == []


HEADERS = ("From", "Subject", "Date", "Content-Type", "Content-Transfer-Encoding", "Content-Disposition", "Reply-To")
ODD = (
    '=?utf-8?b? ?= =?koi8-r?q?=C0 < > " @ ( ; = , \\ a ä --b multipart/mixed text/html ;boundary= ;charset= *0*= base64'
)
FRAGMENTS = st.sampled_from([*re.split(" ", ODD), " ", "\r", "\x00", "\ud800", "utf-7''%"])
MARKUP = st.sampled_from(re.split(" ", "< > </ <!-- --> <![ CDATA[ <? & &# ; <p <br> <style> </style> = ' \" a"))
VALUES = st.lists(FRAGMENTS, max_size=8).map("".join)


@given(st.lists(st.tuples(st.sampled_from(HEADERS), VALUES), max_size=6), st.binary(max_size=600))
@settings(max_examples=many(300))
@example([], b"Content-Type: text/html; charset=utf-7\n\n+2AA-<a")
def test_arbitrary_headers_and_bytes_never_raise(headers: list[tuple[str, str]], body: bytes) -> None:
    head = "".join(f"{name}: {value}\n" for name, value in headers).encode("utf-8", "surrogatepass")
    assert faults(head + b"\n" + body) == faults(body) == []


@given(st.lists(MARKUP, max_size=30))
@settings(max_examples=many(150))
def test_arbitrary_markup_never_raises(pieces: list[str]) -> None:
    assert faults(mail_of("".join(pieces).encode(), "text/html")) == []


def faults(raw: bytes) -> list[str]:
    """What of a mail, as it was read, may not be so."""
    ticket = read_ticket(raw)
    lines = [ticket.subject, ticket.from_name, ticket.sent, *ticket.attachments]
    texts = (ticket.text, ticket.hidden, ticket.from_address, *lines)
    found = [f"a lone surrogate in {text!r}" for text in texts if re.search("[\ud800-\udfff]", text)]
    found += [f"a break in {line!r}" for line in (*lines, *ticket.problems) if "\n" in line]
    found += ["more text than is kept"] if len(ticket.text) > MAX_TEXT else []
    return found + ([] if ticket.text.strip() or ticket.problems else ["neither a text nor why there is none"])


def test_sizes_are_bounded_and_what_was_cut_is_said() -> None:
    long_text = read_ticket(mail_of(b"x" * (MAX_TEXT + 5)))
    assert long_text.problems == [f"only 200,000 of its {MAX_TEXT + 5:,} characters are kept"]
    assert "only its first 2,000,000 bytes were read" in read_ticket(mail_of(b"x\n" * MAX_MAIL)).problems
    parts = b"".join(b"--b\n\np%d\n" % number for number in range(MAX_PARTS * 2)) + b"--b--"
    ticket = read_ticket(mail_of(parts, "multipart/mixed; boundary=b"))
    assert ticket.text.count("p") == MAX_PARTS - 1
    assert "only its first 200 parts were read" in ticket.problems


def test_what_the_pages_mark_is_counted() -> None:
    texts = ("plain\ttext\r\n", "\U0001f468\u200d\U0001f469", "\x00a\u3164\ue000")
    assert list(map(count_invisible, texts)) == [0, 0, 3]
