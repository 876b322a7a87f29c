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
from agents.examples.nouns import count_invisible
from agents.examples.refunds.mail import MAX_PARTS, MAX_TEXT, find_numbers, read_ticket, words_in_sight
from agents.examples.refunds.state import MAX_MAIL
from tests.harness.examples import first_alone, many

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


def test_the_bundled_mails_are_read_in_their_own_charsets_and_what_is_broken_is_said() -> None:
    for name, sender, subject, words in [
        ("03", "kaethe.muehlbauer@gruenstrasse.example", "bitte um Rückzahlung", "wohnt außer mir\nniemand"),
        ("04", "vera.klimova@pochta-sever.example", "Возврат по заказу 20409", "перьевую ручку и обе бутылки"),
        ("10", "silas.quayle@harbourpost.example", "Saddle returned", "without asking anybody"),
        ("14", "deniz.aral@mektup.example", "Order 20391 never arrived", "Kadıköy twice. Teşekkürler"),
    ]:
        ticket = read_ticket(read(name))
        assert (ticket.from_address, subject in ticket.subject, words in ticket.text) == (sender, True, True), name
        assert ticket.problems == (["its character set is unknown (x-ottoman-8)"] if name == "14" else [])
    broken = read_ticket(read("09"))  # in transit
    assert (broken.from_address, broken.subject[:6]) == ("", "Refund")
    assert "it breaks the rules for mails, so some of it may be missing" in broken.problems
    ticket = read_ticket(read("05"))
    assert ticket.attachments == ["hook.png (image/png, 70 bytes)", "receipt €.pdf (application/pdf, 26 bytes)"]
    assert "PDF" not in ticket.text


def test_of_html_alone_nobody_can_tell_what_a_reader_sees() -> None:
    for hidden in ('<p style="display:none">x9</p>', "<svg><text>x9</text></svg>", "<p>." + "&nbsp;" * 41 + " x9"):
        html = f"<style>p {{}}</style><p>seen</p>{hidden}<p>too</p><script>no()</script>"
        ticket = read_ticket(mail_of(html.encode(), "text/html; charset=utf-8"))
        assert (ticket.text, ticket.problems) == ("", [ODD_LOOK])
        assert [word for word in ticket.hidden.split() if word != "."] == ["seen", "x9", "too"]
    # The digits of two cells were read as one word, so that one lamp for 390.00 cost 1390.00.
    html = "<table><tr><td>1</td><td>390.00 EUR</td></tr><tr><th>2</th><td>8.<b>00</b> EUR</td></tr></table>"
    found = read_ticket(mail_of(html.encode(), "text/html")).hidden
    assert [amount for amount, _ in amounts_in(found)] == [Decimal("390.00"), Decimal("8.00")]


def test_forms_of_a_mail_that_name_other_amounts_or_orders_decide_nothing() -> None:
    """The plain text decided, and mail programs show the HTML."""
    for plain, html in [
        ("Order 20418, refund 80.00 EUR", "<p>Order 20418, refund 8.00 EUR</p>"),
        ("Order 20418, refund 80.00 EUR", "<p>Order 20419, refund 80.00 EUR</p>"),
        ("Order 20418", "<p>Order 20418</p><p style=display:none>refund 80.00 EUR</p>"),
        ("8.00 EUR or 80.00 EUR", "<p>80.00 EUR or 8.00 EUR</p>"),
    ]:
        ticket = read_ticket(forms_of(plain, html))
        assert (ticket.text, plain in ticket.hidden) == ("", True)
        assert "20419" not in html or "20419" in ticket.hidden
        assert "its plain text and its HTML name different amounts or orders" in ticket.problems
    plain = "Order 20418:\nrefund 80.00\nEUR\n\n> order\n> 20410"
    html = "<div>Order 20418:<br>refund <b>80.00 EUR</b></div><blockquote>order 20410</blockquote>"
    ticket = read_ticket(forms_of(plain, html))  # which say the same
    assert (ticket.text, ticket.hidden, ticket.problems) == (plain, "", [])


def test_words_behind_what_looks_blank_do_not_decide() -> None:
    """A filler was taken for a word."""
    for gap in ("\n" * 22, "\n\u3164\n\uffa0\n\u1160" * 7 + "\n", "\n" + "\u00a0\ufe0f\n" * 21, " " * 41,
                "\u2800" * 41, "\xad\u2003" * 21):  # fmt: skip
        ticket = read_ticket(mail_of(f"Order 20418{gap}EUR 80.00".encode()))
        assert (words_in_sight(ticket.text), ticket.wants, "80.00" in ticket.text) == ("Order 20418", None, True)
    text = "Lamp" + " " * 20 + "1" + " " * 12 + "EUR 80.00" + " " * 50 + "\n" * 20 + "Ann" + "\n" * 30
    assert words_in_sight(text) == text  # a table of spaces, some empty paragraphs
    texts = ("plain\ttext\r\n", "\U0001f468\u200d\U0001f469", "\x00a\u3164\ue000")
    assert list(map(count_invisible, texts)) == [0, 0, 3]


REPEATED = [
    " " * 250_000 + "x9", "заказ" * 40_000, ("\n" * 20 + "x") * 9_000, "<style>" * 40_000,
    "\u20ac" + "111 " * 60_000, "order " + "a" * 200_000, "\n " * 100_000, "1-" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("text", first_alone(REPEATED, 4), ids=lambda text: repr(text[:20]))
def test_what_repeats_is_read_in_the_time_that_its_length_takes(text: str) -> None:
    """Each of these was gone through once for each of its characters, so that its worker hung for minutes."""
    assert "Order 20418" in read_ticket(mail_of(f"Order 20418\n{text}".encode())).text
    ticket = read_ticket(forms_of("Order 20418", f"<p>{text}</p>"))
    assert "Order 20418" in ticket.text + ticket.hidden


def test_words_survive_the_charsets_that_programs_know_and_others_decide_nothing() -> None:
    """Any that Python knows was believed, so that 80.00 was read where a reader saw other characters."""
    words = "Grüße aus Köln, ça va"
    for charset in ("utf-8", "windows-1252", "macintosh", "utf-16"):
        subject = Header(words, charset).encode() if charset != "utf-16" else words
        ticket = read_ticket(mail_of(words.encode(charset), f"text/plain; charset={charset}", Subject=subject))
        assert (ticket.text, ticket.subject, ticket.problems) == (words, words, [])
    assert read_ticket(mail_of(b"it\x92s \x80 5", "text/plain; charset=iso-8859-1")).text == "it’s € 5"
    for charset, body in [
        ("unicode_escape", b"I want EUR 8\\x30.00"),
        ("utf-7", b"I want EUR 8+ADA-.00"),
        ("cp037", "I want EUR 80.00".encode("cp037")),
        ("punycode", b"b-" + b"a" * (MAX_MAIL - 500)),  # whose reading takes the square of its length
    ]:
        for kind in ("plain", "html"):
            ticket = read_ticket(mail_of(body, f"text/{kind}; charset={charset}"))
            assert (ticket.text, bool(ticket.hidden)) == ("", True)
            assert f"its character set is unknown ({charset})" in ticket.problems
    # Bytes that their charset does not have were read as UTF-8.
    body = "\u9000\u6b3e".encode("utf-16-le") + b" EUR 80.00 !x"
    ticket = read_ticket(mail_of(body, "text/plain; charset=utf-16le"))
    assert ticket.wants is None
    assert "some of its characters are not what it says they are" in ticket.problems


def test_what_is_no_address_is_none_and_an_encoded_name_brings_none() -> None:
    for odd in ("a\u202e@b.example", "a b@c.example", "no-at-sign", "a@b@c.example", "@"):
        assert read_ticket(mail_of(b"x", From=f"A <{odd}>")).from_address == ""
    # The name was decoded before the address was looked for, so that an encoded comma made another sender.
    name = Header("boss@shop.example, ", "utf-8").encode()
    ticket = read_ticket(mail_of(b"x", From=f"{name} <thief@elsewhere.example>"))
    assert ticket.from_address == "thief@elsewhere.example"


@pytest.mark.parametrize(
    ("text", "numbers", "lookalikes"),
    [
        ("my order 20418 please", ["20418"], []),
        ("по заказу 20409", ["20409"], []),
        ("ring me at 555-20418-77, it is about 20391", ["20391"], []),
        ("on 20 November, order 123, > order 1", [], []),
        ("order 20418 again, D-10115 Berlin, since 2019", ["20418"], []),
        ("order 20418 (ordered on 2026-10-21), order date 2026, order value 1299.00", ["20418"], []),
        ("Order 20418\nit is about order 20391", ["20418", "20391"], []),
        ("order-20418, Bestellung20391, “order 20418”, order 20418\u2019s lamp, no.20391.", ["20418", "20391"], []),
        # 77001 is the only one of these that the shop has.
        ("Please refund order 20418, or was it 77001?", ["20418", "77001"], []),
        ("My lamp 77001, 20418 in Berlin", ["77001"], []),
        # Of these the digits alone were taken.
        ("order 2\u041e418, which is 20391", ["20391"], ["2\u041e418"]),
        ("order 20418\u200b", ["20418"], ["20418\u200b"]),
        ("order \u041020418. It is 20391\u0410.", [], ["\u041020418", "20391\u0410"]),
        ("order A20418", [], []),
        ("order \u202e 88302 \u202c", [], ["88302"]),  # it is shown as 20388
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


def test_hostile_bytes_are_read_too() -> None:
    for raw in (
        b"",
        b"\x00" * 500,
        b"Content-Type: multipart/mixed; boundary=\n\n--\n--\n",
        b"Content-Type: text/plain; charset=unicode_escape\n\n\\ud800",
        b"Content-Transfer-Encoding: uuencode\n\nbegin 666 x\nM!!\n",
        b"From: =?utf-8?b?////?= <=?x?=>\nDate: =?utf-8?q?=ED=A0=80?=\n\nx",
        b"From: <=?unicode_escape?q?=5Cud800?=@b.example>\n\nx",
        b"Content-Type: message/rfc822\n\n" * 3_000,
        b"Content-Type: " + b"(" * 5_000 + b"\n\nx",
        b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (i, i) for i in range(400)),
        b"Content-Type: text/html\n\n" + b"<!--" * 200_000,
        b"Content-Type: text/plain" + b";a=b" * 500_000 + b"\n\nx",
        b"Content-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\nx\n" * 200_000,
    ):
        assert faults(raw) == [], raw[:30]


HEADERS = ("From", "Subject", "Date", "Content-Type", "Content-Transfer-Encoding", "Content-Disposition", "Reply-To")
ODD = (
    '=?utf-8?b? ?= =?koi8-r?q?=C0 < > " @ ( ; = , \\ a ä --b multipart/mixed text/html ;boundary= ;charset= *0*= base64'
)
FRAGMENTS = st.sampled_from([*re.split(" ", ODD), " ", "\r", "\x00", "\ud800", "utf-7''%"])
MARKUP = st.sampled_from(re.split(" ", "< > </ <!-- --> <![ CDATA[ <? & &# ; <p <br> <style> </style> = ' \" a"))
VALUES = st.lists(FRAGMENTS, max_size=8).map("".join)


@given(
    st.lists(st.tuples(st.sampled_from(HEADERS), VALUES), max_size=6),
    st.binary(max_size=600),
    st.lists(MARKUP, max_size=30).map("".join),
)
@settings(max_examples=many(300))
@example([], b"Content-Type: text/html; charset=utf-7\n\n+2AA-<a", "")
def test_arbitrary_headers_bytes_and_markup_never_raise(
    headers: list[tuple[str, str]], body: bytes, markup: str
) -> None:
    head = "".join(f"{name}: {value}\n" for name, value in headers).encode("utf-8", "surrogatepass")
    assert faults(head + b"\n" + body) == faults(body) == faults(mail_of(markup.encode(), "text/html")) == []


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
