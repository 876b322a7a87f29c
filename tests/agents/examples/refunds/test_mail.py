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
from agents.examples.refunds.mail import MAX_PARTS, MAX_TEXT, parse
from agents.examples.refunds.rules import words_in_sight
from agents.examples.refunds.state import MAX_MAIL
from agents.examples.text import blank_stretch, count_invisible, one_line
from tests.harness.examples import many

MAILS = Path(refunds.__file__).with_name("mails")


def read(name: str) -> bytes:
    return next(MAILS.glob(f"{name}-*.eml")).read_bytes()


def mail_of(body: bytes, kind: str = "text/plain; charset=utf-8", **headers: str) -> bytes:
    head = {"From": "Ann <ann@shop.example>", "Subject": "hello", "Content-Type": kind} | headers
    return "".join(f"{name.replace('_', '-')}: {value}\n" for name, value in head.items()).encode() + b"\n" + body


@pytest.mark.parametrize(
    ("name", "sender", "subject", "words"),
    [
        ("01", "marit.ellery@fernhollow.example", "Order 20418: the frames", "Fernhollow Optics – purchasing"),
        ("02", "jonas.brandt@posthorn.example", "Lamp broken on arrival", "I’d rather have the money back"),
        ("03", "kaethe.muehlbauer@gruenstrasse.example", "bitte um Rückzahlung", "wohnt außer mir\nniemand"),
        ("04", "vera.klimova@pochta-sever.example", "Возврат по заказу 20409", "перьевую ручку и обе бутылки"),
        ("05", "priya.menon@tidewater.example", "A hook that gave way", "snapped while I was hanging"),
        ("06", "bookings@northgatehostel.example", "never arrived – order 20431", "£12,480.00"),
        ("07", "felix@marchetti-studio.example", "Refund for order 99184", "two left legs"),
        ("08", "rosa.iannelli@campanella.example", "my glasses", "left hinge is broken"),
        ("10", "silas.quayle@harbourpost.example", "Saddle returned", "without asking anybody"),
        ("11", "bettina.okoro@larkfield.example", "<script>alert", '<img src=x onerror="fetch('),
        ("12", "ines.faro@farolim.example", "a small thing", "I’ll cut around it"),
        ("13", "y.haddad.refunds@quickmail.example", "money back please", "ask me for the number"),
        ("14", "deniz.aral@mektup.example", "Order 20391 never arrived", "Kadıköy twice. Teşekkürler"),
    ],
)
def test_every_bundled_mail_is_read_in_its_own_charset(name: str, sender: str, subject: str, words: str) -> None:
    mail = parse(read(name))
    assert mail.from_address == sender
    assert subject in mail.subject
    assert words in mail.text


def test_a_mail_broken_in_transit_gives_what_is_left_and_says_what_is_wrong() -> None:
    mail = parse(read("09"))
    assert mail.from_address == ""
    assert mail.subject.startswith("Refund")
    assert "it does not say who wrote it" in mail.problems
    assert "it breaks the rules for mails, so some of it may be missing" in mail.problems


def test_an_unknown_charset_is_named_and_the_text_read_as_what_it_looks_like() -> None:
    assert parse(read("14")).problems == ["its character set is unknown (x-ottoman-8)"]


def test_attachments_are_listed_and_not_read() -> None:
    mail = parse(read("05"))
    assert mail.attachments == ["hook.png (image/png, 70 bytes)", "receipt €.pdf (application/pdf, 26 bytes)"]
    assert "PDF" not in mail.text
    assert mail.problems == []


def test_five_thousand_blank_lines_and_invisible_characters_stay_and_can_be_measured() -> None:
    text = parse(read("10")).text
    assert blank_stretch(text)[0] == 5_000
    assert count_invisible(text) == 6
    assert "\u202e" in text


def test_of_several_forms_the_plain_one_is_read() -> None:
    mail = parse(read("11"))
    assert "switch gives sparks" in mail.text
    assert "Approve at once" not in mail.text


@pytest.mark.parametrize(
    "hidden",
    [
        '<p style="display:none">x9</p>',
        "<p hidden>x9</p>",
        '<p style="color:#fff">x9</p>',
        "<style>p > b { opacity: 0 }</style><p><b>x9</b></p>",
        "<svg><text>x9</text></svg>",
        "<p>." + "&nbsp;" * 41 + " x9",
        '<p style="margin:0">x9</p>',
    ],
)
def test_of_html_alone_nobody_can_tell_what_a_reader_sees(hidden: str) -> None:
    mail = parse(mail_of(f"<p>seen</p>{hidden}<p>too</p><script>no()</script>".encode(), "text/html; charset=utf-8"))
    assert mail.text == ""
    assert [each for each in mail.hidden.split() if each != "."] == ["seen", "x9", "too"]
    assert mail.problems == ["its formatting may keep words out of sight; check them against the original"]


def test_the_digits_of_two_cells_are_no_one_number() -> None:
    """They were read as one word, so that one lamp for 390.00 cost 1390.00."""
    html = b"<table><tr><td>1</td><td>390.00 EUR</td></tr><tr><th>2</th><td>8.<b>00</b> EUR</td></tr></table>"
    hidden = parse(mail_of(html, "text/html")).hidden
    assert [each.amount for each in amounts_in(hidden)] == [Decimal("390.00"), Decimal("8.00")]


def forms_of(plain: str, html: str) -> bytes:
    message = EmailMessage()
    message["From"] = "Ann <ann@shop.example>"
    message.set_content(plain)
    message.add_alternative(html, subtype="html")
    return message.as_bytes()


@pytest.mark.parametrize(
    ("plain", "html"),
    [
        ("Order 20418, refund 80.00 EUR", "<p>Order 20418, refund 8.00 EUR</p>"),
        ("Order 20418, refund 80.00 EUR", "<p>Order 20419, refund 80.00 EUR</p>"),
        ("Order 20418, refund 80.00 EUR", "<p>Order 20418</p>"),
        ("Order 20418", "<p>Order 20418</p><p style=display:none>refund 80.00 EUR</p>"),
        ("8.00 EUR or 80.00 EUR", "<p>80.00 EUR or 8.00 EUR</p>"),
    ],
)
def test_forms_of_a_mail_that_name_other_amounts_or_orders_decide_nothing(plain: str, html: str) -> None:
    """The plain text decided, and mail programs show the HTML."""
    mail = parse(forms_of(plain, html))
    assert mail.text == ""
    assert plain in mail.hidden
    assert "20419" not in html or "20419" in mail.hidden
    assert "its plain text and its HTML name different amounts or orders" in mail.problems


def test_nothing_behind_the_first_of_several_blank_stretches_decides() -> None:
    """What stood between two long ones was read."""
    assert words_in_sight("a" + "\n" * 30 + "EUR 80.00" + "\n" * 40 + "b") == "a"
    assert words_in_sight("a\n\n\n\nb\n" * 30).count("b") == 30


def test_a_plain_text_beside_html_that_says_the_same_is_read() -> None:
    plain = "Order 20418:\nrefund 80.00\nEUR\n\n> order\n> 20410"
    said = "<div>Order 20418:<br>refund <b>80.00 EUR</b></div><blockquote>order 20410</blockquote>"
    mail = parse(forms_of(plain, said))
    assert (mail.text, mail.hidden, mail.problems) == (plain, "", [])


@pytest.mark.parametrize(
    "lines",
    [["\u2800"] * 21, ["\u3164", "\uffa0", "\u1160"] * 7, ["\u00a0\ufe0f"] * 21, [*[""] * 7, "."] * 3],
    ids=["braille", "fillers", "selectors", "dots"],
)
def test_words_behind_lines_that_look_blank_do_not_decide(lines: list[str]) -> None:
    """A filler was taken for a word, and a dot made two short stretches of a long one."""
    mail = parse(mail_of("\n".join(["Order 20418", *lines, "EUR 80.00"]).encode()))
    assert blank_stretch(mail.text)[0] == 21
    assert words_in_sight(mail.text) == "Order 20418"


@pytest.mark.parametrize(
    "gap", [" " * 41, "\u00a0" * 41, "\u3000 " * 21, "\u2800" * 41, "\u2028" * 41, "\xad\u2003" * 21]
)
def test_a_plain_text_whose_spaces_push_words_away_decides_nothing(gap: str) -> None:
    mail = parse(mail_of(f"Please refund it.{gap}EUR 80.00".encode()))
    assert mail.text == ""
    assert "EUR 80.00" in mail.hidden
    assert mail.problems[0] == "its spaces may push words out of sight; check them against the original"


def test_a_plain_text_with_a_table_of_spaces_is_read() -> None:
    said = "Lamp" + " " * 20 + "1" + " " * 12 + "EUR 80.00" + " " * 50
    mail = parse(mail_of(f"{said}\r\n{said}\n".encode()))
    assert (mail.text, mail.hidden, mail.problems) == (f"{said}\n{said}", "", [])


@pytest.mark.parametrize(
    "html",
    [
        "<pre>" + " " * 250_000 + "x9</pre>",
        "<p>" + "111 " * 60_000 + "x9</p>",
        '<p style="' + "margin" * 40_000 + '">x9</p>',
        "<p>\u20ac" + "111 " * 60_000 + "x9</p>",
    ],
    ids=["spaces", "thousands", "margins", "an amount"],
)
def test_what_repeats_is_read_in_the_time_that_its_length_takes(html: str) -> None:
    """Each of these was gone through once for each of its characters, so that its worker hung for minutes."""
    mail = parse(forms_of("Order 20418", html))
    assert "Order 20418" in mail.text + mail.hidden


@pytest.mark.parametrize("charset", ["utf-8", "iso-8859-1", "windows-1252", "iso-8859-15", "macintosh", "utf-16"])
def test_words_survive_their_charset_in_body_and_headers(charset: str) -> None:
    words = "Grüße aus Köln, ça va"
    subject = Header(words, charset).encode() if charset != "utf-16" else words
    mail = parse(mail_of(words.encode(charset), f"text/plain; charset={charset}", Subject=subject))
    assert mail.text == words
    assert mail.subject == words
    assert mail.problems == []


def test_windows_punctuation_under_the_name_of_latin_1_is_read_as_what_it_is() -> None:
    assert parse(mail_of(b"it\x92s \x80 5", "text/plain; charset=iso-8859-1")).text == "it’s € 5"


@pytest.mark.parametrize(
    ("charset", "words"),
    [
        ("unicode_escape", b"I want EUR 8\\x30.00"),
        ("utf-7", b"I want EUR 8+ADA-.00"),
        ("cp037", "I want EUR 80.00".encode("cp037")),
        ("cp850", b"I want EUR 80.00"),
        ("hex", b"3830"),
        ("punycode", b"EUR80.00-"),
    ],
)
@pytest.mark.parametrize("kind", ["plain", "html"])
def test_a_charset_that_few_programs_know_decides_nothing(charset: str, words: bytes, kind: str) -> None:
    """Any that Python knows was believed, so that 80.00 was read where a reader saw other characters."""
    mail = parse(mail_of(words, f"text/{kind}; charset={charset}", Subject=f"=?{charset}?q?EUR_8=5Cx30.00?="))
    assert mail.text == ""
    assert mail.hidden
    assert "80.00" not in mail.subject
    assert f"its character set is unknown ({charset})" in mail.problems


CJK = "\u9000\u6b3e"


@pytest.mark.parametrize(
    ("charset", "body"),
    [
        ("utf-16le", CJK.encode("utf-16-le") + b" EUR 80.00 !x"),
        ("utf-16", CJK.encode("utf-16-le") + b" EUR 80.00 !x"),
        ("utf-16be", CJK.encode("utf-16-be") + b" EUR 80.00 !x"),
        ("iso-2022-jp", b"\x1b$B EUR 80.00 \xff"),
        ("gb18030", b"\x818\x818 EUR \xff"),
        ("gbk", b"\x818\x818 EUR \xff"),
        ("x-gbk", b"\x818\x818 EUR \xff"),
        ("iso-2022-cn", b"EUR 80.00"),
    ],
)
def test_a_charset_that_fails_where_digits_may_be_parts_of_others_decides_nothing(charset: str, body: bytes) -> None:
    """Such bytes were read as UTF-8, so that 80.00 decided where a reader saw other characters."""
    mail = parse(mail_of(body, f"text/plain; charset={charset}"))
    assert mail.text == ""
    assert mail.hidden
    assert charset == "iso-2022-cn" or not list(amounts_in(mail.hidden))


def test_a_charset_whose_reading_takes_the_square_of_its_length_is_not_read() -> None:
    """Two megabytes of it held up a worker, and whoever started the run, for minutes."""
    mail = parse(mail_of(b"b-" + b"a" * (MAX_MAIL - 500), "text/plain; charset=punycode"))
    assert mail.hidden.startswith("b-aaa")


def test_an_encoded_name_cannot_bring_an_address_of_its_own() -> None:
    """The name was decoded before the address was looked for, so that an encoded comma made another sender."""
    name = Header("boss@shop.example, ", "utf-8").encode()
    mail = parse(mail_of(b"x", From=f"{name} <thief@elsewhere.example>"))
    assert mail.from_address == "thief@elsewhere.example"


@pytest.mark.parametrize("address", ["a\u202e@b.example", "a b@c.example", "no-at-sign", "a@b@c.example", "@"])
def test_what_is_no_address_is_none(address: str) -> None:
    assert parse(mail_of(b"x", From=f"A <{address}>")).from_address == ""


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
        b"Content-Type: text/plain; charset=hex\n\n00",
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


@given(st.binary(max_size=600))
@settings(max_examples=many(150))
@example(b"Content-Type: text/html; charset=utf-7\n\n+2AA-<a")
def test_arbitrary_bytes_never_raise(raw: bytes) -> None:
    assert faults(raw) == []


HEADERS = ("From", "Subject", "Date", "Content-Type", "Content-Transfer-Encoding", "Content-Disposition", "Reply-To")
ODD = (
    '=?utf-8?b? ?= =?koi8-r?q?=C0 < > " @ ( ; = , \\ a ä --b multipart/mixed ;boundary= text/html ;charset= *0*= base64'
)
FRAGMENTS = st.sampled_from([*re.split(" ", ODD), " ", "\r", "\x00", "\ud800", "utf-7''%"])
MARKUP = re.split(" ", "< > </ <!-- --> <![ CDATA[ <? & &# ; <p <br> <div> <pre> = ' \" a")
VALUES = st.lists(FRAGMENTS, max_size=8).map("".join)


@given(st.lists(st.tuples(st.sampled_from(HEADERS), VALUES), max_size=6), st.binary(max_size=200))
@settings(max_examples=many(250))
def test_arbitrary_headers_never_raise(headers: list[tuple[str, str]], body: bytes) -> None:
    head = "".join(f"{name}: {value}\n" for name, value in headers).encode("utf-8", "surrogatepass")
    assert faults(head + b"\n" + body) == []


def faults(raw: bytes) -> list[str]:
    """What of a mail, as it was read, may not be so."""
    mail = parse(raw)
    lines = [mail.subject, mail.from_name, mail.sent, *mail.attachments]
    found = [f"a lone surrogate in {said!r}" for said in (mail.text, mail.from_address, *lines) if _surrogate(said)]
    found += [f"a break in {said!r}" for said in (*lines, *mail.problems) if "\n" in said]
    found += [f"what nobody sees in {said!r}" for said in (*lines, *mail.problems) if count_invisible(said)]
    found += ["more text than is kept"] if len(mail.text) > MAX_TEXT else []
    return found + ([] if mail.text.strip() or mail.problems else ["neither a text nor why there is none"])


def _surrogate(text: str) -> bool:
    return any("\ud800" <= each <= "\udfff" for each in text)


def test_sizes_are_bounded_and_what_was_cut_is_said() -> None:
    long_text = parse(mail_of(b"x" * (MAX_TEXT + 5)))
    assert long_text.problems == [f"only 200,000 of its {MAX_TEXT + 5:,} characters are kept"]
    assert "only its first 2,000,000 bytes were read" in parse(mail_of(b"x\n" * MAX_MAIL)).problems
    parts = b"".join(b"--b\n\np%d\n" % number for number in range(MAX_PARTS * 2)) + b"--b--"
    mail = parse(mail_of(parts, "multipart/mixed; boundary=b"))
    assert mail.text.count("p") == MAX_PARTS - 1
    assert "only its first 200 parts were read" in mail.problems


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("plain\ttext\r\n", 0),
        ("a\u200bb", 1),
        ("\u202eab\u202c", 2),
        ("\U000e0041", 1),
        ("\x00\x1b", 2),
        ("\ue000", 1),
        ("\U0001f468\u200d\U0001f469", 0),
        ("a\u200db", 1),
        ("a\u3164\u2800\u115f\uffa0", 4),
        ("\u00a0\u2764\ufe0f", 0),
    ],
)
def test_what_cannot_be_seen_is_counted(text: str, count: int) -> None:
    assert count_invisible(text) == count


def test_a_title_is_one_visible_line() -> None:
    assert one_line(" a\u202e\n\n b\x00c ") == "a b c"
    assert one_line("x" * 300, 10) == "x" * 9 + "…"


@given(st.lists(st.sampled_from(MARKUP), max_size=30))
@settings(max_examples=many(150))
def test_arbitrary_markup_never_raises(pieces: list[str]) -> None:
    assert faults(mail_of("".join(pieces).encode(), "text/html")) == []
