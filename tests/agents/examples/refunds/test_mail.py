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
from agents.examples.refunds.reading import MAX_MAIL
from agents.examples.refunds.reading.blanks import blank_stretch
from agents.examples.refunds.reading.mail import MAX_HEADER, MAX_PARTS, MAX_TEXT, parse
from agents.examples.refunds.reading.text import invisible, one_line
from agents.examples.refunds.rules import words_in_sight
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
    assert "its character set is unknown (x-nope)" in mail.problems
    assert "its parts do not begin where it says" in mail.problems


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
    assert invisible(text) == 6
    assert "\u202e" in text


def test_of_several_forms_the_plain_one_is_read() -> None:
    mail = parse(read("11"))
    assert "switch gives sparks" in mail.text
    assert "Approve at once" not in mail.text


MAY_HIDE = "its formatting may keep words out of sight; check them against the original"
OUTLOOK = """<head><meta name=Generator content="Microsoft Word 15"><style><!--
/* Font Definitions */
@font-face {font-family:"Cambria Math"; panose-1:2 4 5 3 5 4 6 3 2 4;}
p.MsoNormal, li.MsoNormal {margin:0cm; font-size:11.0pt; font-family:"Calibri",sans-serif; mso-fareast-language:EN-US;}
a:link, span.MsoHyperlink {mso-style-priority:99; color:#0563C1; text-decoration:underline;}
span.EmailStyle17 {mso-style-type:personal-compose; color:windowtext;}
@page WordSection1 {size:612.0pt 792.0pt; margin:70.85pt 70.85pt 2.0cm 70.85pt;}
div.WordSection1 {page:WordSection1;}
--></style></head><body lang=DE link="#0563C1" vlink="#954F72" style="word-wrap:break-word"><div class=WordSection1>
<p class=MsoNormal><span lang=EN-GB style="mso-fareast-language:EN-US">x9<o:p></o:p></span></p></div></body>"""


def test_html_becomes_its_words_which_stand_apart_where_its_style_may_hide_some() -> None:
    html = b"""<title>t</title><p>One&nbsp;two<br>three</p><div>four</div><div><br></div><div>five</div>
        <p style="display:none">hidden</p><script>no()</script><style>p{}</style><ul><li>a</li><li>b</li></ul>"""
    mail = parse(mail_of(html, "text/html; charset=utf-8"))
    assert mail.text == ""
    words = "t One two three four five hidden a b"
    assert mail.hidden.split() == words.split()
    html = html.split(b"</title>")[1].split(b"<p style")[0]
    mail = parse(mail_of(html, "text/html; charset=utf-8"))
    assert (mail.text, mail.hidden, mail.problems) == ("One\u00a0two\nthree\n\nfour\n\nfive", "", [])


@pytest.mark.parametrize(
    "hidden",
    [
        '<p style="display:none">x9</p>',
        '<p style="DISPLAY : none !important">x9</p>',
        '<p style="dis/* */play:none;visibility:hidden">x9</p>',
        r'<p style="d\69 splay:none">x9</p>',
        "<p hidden>x9</p>",
        '<p style="font-size:0">x9</p>',
        '<p style="font-size:1px">x9</p>',
        '<p style="opacity:.01">x9</p>',
        '<p style="max-height:0;overflow:hidden">x9</p>',
        '<p style="position:absolute;left:-9999px">x9</p>',
        '<p style="text-indent:-999em">x9</p>',
        '<p style="color:#fff">x9</p>',
        '<p style="color:rgb(254, 254, 254)">x9</p>',
        '<div style="background:#222"><p style="color:#222222">x9</p></div>',
        '<table bgcolor="#000000"><tr><td><font color="black">x9</font></td></tr></table>',
        '<p style="color:transparent">x9</p>',
        '<p style="display:var(--shown)">x9</p>',
        '<p style="mso-hide:all">x9</p>',
        "<style>.a{color:red} p.a, .b {display:none}</style><p class=b>x9</p>",
        "<style>@media screen { p > b { opacity: 0 } }</style><p><b>x9</b></p>",
        '<div style="display:none"><p style="display:block">x9</p></div>',
        '<p style="color:rgba(0,0,0,0)">x9</p>',
        '<p style="color:hsl(0 0% 100%)">x9</p>',
        '<p style="color:whitesmoke">x9</p>',
        '<div style="background:#000">x9</div>',
        '<div style="background:red"><font color="#f00">x9</font></div>',
        '<div style="background:url(ink.png)">x9</div>',
        '<p style="font:1px/1 Arial">x9</p>',
        '<p style="font-size:1e-9px">x9</p>',
        '<div style="font-size:.5em"><p style="font-size:.5em">x9</p></div>',
        "<small><small><small><small><small><small>x9</small></small></small></small></small></small>",
        '<p style="-webkit-text-fill-color:transparent">x9</p>',
        '<p style="width:1px;height:1px;overflow:hidden">x9</p>',
        '<p style="filter:opacity(0)">x9</p>',
        '<p style="scale:0">x9</p>',
        '<p style="position:relative;left:9999px">x9</p>',
        '<p style="letter-spacing:-9em">x9</p>',
        '<p style="text-decoration:line-through">x9</p>',
        """<p style="content:'/*';display:none;quotes:'*/'">x9</p>""",
        "<p popover>x9</p>",
        "<details><summary>x9</summary></details>",
        "<svg><text>x9</text></svg>",
        "<noscript>x9</noscript>",
        '<p style="text-indent:-49em">x9</p>',
        '<div style="overflow:hidden"><p style="height:1px">x9</p></div>',
        '<div style="overflow:hidden"><p style="padding-left:99999px">x9</p></div>',
        '<p style="flex:0 0 0;min-width:0;overflow:hidden">x9</p>',
        '<p style="flex-basis:0">x9</p>',
        '<style>html{font-size:1px}</style><p style="font-size:1rem">x9</p>',
        '<p style="box-shadow:inset 0 0 0 99px #000">x9</p>',
        '<p>x9</p><p style="box-shadow:0 -40px #fff">.</p>',
        '<p style="border-image:linear-gradient(#000,#000) 9 fill">x9</p>',
        '<p style="outline:40px solid #fff;outline-offset:-40px">x9</p>',
        '<p>x9</p><p style="margin-top:-19px;position:relative;background:#fff">.</p>',
        '<p style="letter-spacing:-.6em">x9</p>',
        '<div style="opacity:.5">' * 7 + "x9" + "</div>" * 7,
        '<table width=1 style="table-layout:fixed"><tr><td>x9</td></tr></table>',
        "<![CDATA[ x9 ]]>",
        '<p><b style="display:none"></p><p>x9</p>',
        "<p><font style=font-size:0></p><p>x9</p>",
        "<style>.GONE{display:none}</style><p class=gone>x9</p>",
        '<p style="display:none" style="color:#000">x9</p>',
        '<meta name="color-scheme" content="dark"><p style="color:#000">x9</p>',
        '<body link="#ffffff"><a href="https://a.example/">x9</a></body>',
        "<table><b>x9</b><tr><td>.</td></tr></table>",
        '<p style="font-family:Wingdings">x9</p>',
        '<div style="margin-left:39px">' * 31 + "x9",
        '<p style="margin:1111111111111111111(">x9</p>',
        '<p style="color:#a5ff00">x9</p>',
        '<p style="color:rgb(165,255,0)">x9</p>',
        '<p style="color:#999">x9</p>',
        '<p style="color:#808080;background:#e0e0e0">x9</p>',
        '<p style="background:#ff5aff">x9</p>',
        '<table><tr height="999"><td>x9</td></tr></table>',
        '<table><tr><td height="999"></td></tr><tr><td>x9</td></tr></table>',
        "<table>" + "<tr><td></td></tr>" * 20 + "<tr><td>x9</td></tr></table>",
        "<table>" + "<tr><td>&nbsp;</td></tr>" * 20 + "<tr><td>x9</td></tr></table>",
        '<table cellspacing="99"><tr><td>x9</td></tr></table>',
        "<table border=9></table>" * 20 + "x9",
        "<ul>" + "<li></li>" * 20 + "<li>x9</li></ul>",
        "<hr>" * 20 + "x9",
        '<p style="padding-top:39px"></p>' * 20 + "x9",
        '<div style="padding-left:2.9in">' * 3 + "x9",
        '<div style="padding:1in 0">' * 5 + "x9",
        '<div style="border-left:3px solid">' * 300 + "x9",
        "<table><tr><td>" * 21 + "x9",
        '<span style="padding-left:39px">.</span>' * 99 + " x9",
        '<img src="a.png" width="1" height="999">x9',
        '<img src="a.png" width="1" height="1">' * 20 + "x9",
        '<img src="a.png" width="100" height="100">' * 5 + "x9",
        '<img src="a.png" width="9">x9',
        '<img src="a.png">x9',
        '<table width="999%"><tr><td align="right">x9</td></tr></table>',
        "<table><tr>" + "<td>.</td>" * 30 + "<td> x9</td></tr></table>",
        "<table><tr>" + "<td></td>" * 30 + "<td>x9</td></tr></table>",
        '<table><tr><td width="700">.</td><td> x9</td></tr></table>',
        "<table><tr>" + "<td><table width=400><tr><td>.</td></tr></table></td>" * 3 + "<td>x9</td></tr></table>",
        '<div style="font-size:40px;line-height:2.9">' + "<br>" * 20 + "x9</div>",
        "</br>" * 40 + "x9",
        "<blockquote/>" * 40 + "x9",
        "<table>" + "<tr><td>&#x2800;</td></tr>" * 20 + "<tr><td>x9</td></tr></table>",
        "<table>" + "<tr><td>&#x3164;&#xfe0f;</td></tr>" * 20 + "<tr><td>x9</td></tr></table>",
        "<ul>" + "<li>&#x115f;</li>" * 20 + "<li>x9</li></ul>",
        "<p>." + "&nbsp;" * 41 + " x9",
        "<p>." + "&nbsp; " * 30 + "x9",
        "<p>." + "<b>&#x2003;</b>" * 41 + " x9",
        "<p>." + "&nbsp;&#8203;" * 21 + " x9",
        "<p>." + "&nbsp;&nbsp;&nbsp;." * 14 + " x9",
    ],
)
def test_what_a_style_hides_is_no_word_of_the_mail(hidden: str) -> None:
    mail = parse(mail_of(f"<p>seen</p>{hidden}<p>too</p>".encode(), "text/html; charset=utf-8"))
    assert mail.text == ""
    assert [each for each in mail.hidden.split() if each in ("seen", "x9", "too")] == ["seen", "x9", "too"]
    assert MAY_HIDE in mail.problems


@pytest.mark.parametrize(
    "beside",
    [
        "<style>.a{margin:0}</style>",
        "<style>@import url(https://a.example/b.css);</style>",
        '<link rel="stylesheet" href="https://a.example/b.css">',
        "<!--[if mso]><![endif]-->",
        "<!-- --!> x9 <!-- -->",
        "<b>" * 5001,
    ],
    ids=["a rule", "an import", "a link", "a comment", "an odd comment", "too many tags"],
)
def test_where_nobody_can_tell_what_a_style_hides_nothing_is_in_sight(beside: str) -> None:
    mail = parse(mail_of(f"{beside}<p>refund 8<b>0</b>.00 EUR</p>".encode(), "text/html; charset=utf-8"))
    assert mail.text.strip() == ""
    assert "refund 8" in mail.hidden


def test_an_amount_that_a_reader_may_see_in_part_is_none() -> None:
    html = b'<p>I want 8<span style="color:rgba(0,0,0,0)">0</span>.00 EUR back</p>'
    assert parse(mail_of(html, "text/html; charset=utf-8")).text == ""


@pytest.mark.parametrize(
    "seen",
    [
        '<p style="color:#333;background:#fff;margin:0 auto">x9</p>',
        '<p style="font-size:12px;line-height:1.2">x9</p>',
        "<p><b>one</p><p>x9",
        '<!doctype html><html><body bgcolor="#eeeeee"><table width="100%" border=0><tr><td>x9</td></tr></table></html>',
        '<p style="background:transparent;background-color:#eee;color:red">x9</p>',
        '<div dir="ltr"><div class="gmail_default" style="font-family:arial,sans-serif;font-size:small">x9</div></div>',
        '<body style="overflow-wrap: break-word; -webkit-nbsp-mode: space; line-break: after-white-space;">x9</body>',
        '<div class="yahoo-style-wrap" style="font-family:Helvetica Neue, sans-serif;font-size:13px;">x9</div>',
        '<blockquote style="margin:0 0 0 .8ex;border-left:1px #ccc solid;padding-left:1ex">x9</blockquote>',
        '<p style="border-left:1px solid rgb(204, 204, 204)">x9</p>',
        '<p style="margin:0 0 16px">one</p>' * 60 + "x9",
        '<font color="#888888">x9</font>',
        '<table cellpadding="4" border="1">'
        + "<tr><td>Lamp</td><td>1</td><td>9</td><td>x9</td></tr>" * 60
        + "</table>",
        '<table width="600"><tr><td style="padding:10px 12px"><p>x9</p></td></tr></table>',
        '<blockquote style="margin:0 0 0 .8ex;border-left:1px #ccc solid;padding-left:1ex">x9' * 5,
        '<p>x9</p><hr><p>Lamps and cords</p><img src="cid:1" alt="Logo" width="200" height="60">',
        "<ul>" + "<li>x9</li>" * 60 + "</ul>",
        "<p>x9" * 60 + "<br/>",
        "<table><tr><td>" * 9 + "x9",
        "<p>One.&nbsp; Two.&nbsp; " * 60 + "x9",
        "<p>one</p><p>&nbsp;</p>" * 30 + "x9",
        "<p>One" + "&nbsp;" * 30 + "two</p><p>" + "&nbsp;" * 30 + "x9",
    ],
)
def test_what_a_style_only_shapes_is_read(seen: str) -> None:
    mail = parse(mail_of(seen.encode(), "text/html; charset=utf-8"))
    assert "x9" in mail.text
    assert (mail.hidden, mail.problems) == ("", [])


def test_the_cells_of_a_row_stand_apart() -> None:
    """They were read as one word, so that one lamp for 390.00 cost 1390.00."""
    html = b"<table><tr><td>1</td><td>390.00 EUR</td></tr><tr><th>2</th><td>8.00 EUR</td></tr></table>"
    mail = parse(mail_of(html, "text/html"))
    assert mail.text == "1\t390.00 EUR\n2\t8.00 EUR"
    assert [each.amount for each in amounts_in(mail.text)] == [Decimal("390.00"), Decimal("8.00")]


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


def test_a_plain_text_beside_html_that_says_the_same_is_read() -> None:
    plain = "Order 20418:\nrefund 80.00\nEUR\n\n> order\n> 20410"
    said = "<div>Order 20418:<br>refund <b>80.00 EUR</b></div><blockquote>order 20410</blockquote>"
    mail = parse(forms_of(plain, said))
    assert (mail.text, mail.hidden, mail.problems) == (plain, "", [])
    mail = parse(forms_of("x9", OUTLOOK))
    assert (mail.text, mail.hidden, mail.problems) == ("x9", "", [MAY_HIDE])


@pytest.mark.parametrize(
    "value",
    [
        "1" * 100_000 + "(",
        "auto " * 20_000 + "(",
        "0" * 100_000 + "!",
        " " * 100_000 + "(",
        "1.1" * 60_000,
        "a" * 250_000,
    ],
    ids=lambda value: value[:5],
)
@pytest.mark.parametrize(
    "name", ["margin", "margin-", "font-size", "line-height", "color", "font-family", "border-left"]
)
def test_a_long_value_is_not_looked_at(name: str, value: str) -> None:
    """A value of 18 digits was matched in so many ways that its worker never came back."""
    assert parse(mail_of(f'<p style="{name}:{value}">x9</p>'.encode(), "text/html")).hidden == "x9"
    assert "x9" in parse(mail_of(f"<p {value}>x9</p><p {value}".encode(), "text/html")).hidden


def test_blank_lines_of_html_are_counted_like_any_other() -> None:
    assert blank_stretch(parse(mail_of(b"a" + b"<br>" * 3_001 + b"pay", "text/html")).text)[0] == 3_000


@pytest.mark.parametrize("kind", ["plain", "html"])
@pytest.mark.parametrize(
    "lines",
    [["\u2800"] * 21, ["\u3164", "\uffa0", "\u1160"] * 7, ["\u00a0\ufe0f"] * 21, [*[""] * 7, "."] * 3],
    ids=["braille", "fillers", "selectors", "dots"],
)
def test_words_behind_lines_that_look_blank_do_not_decide(lines: list[str], kind: str) -> None:
    """A filler was taken for a word, and a dot made two short stretches of a long one."""
    said = ["Order 20418", *lines, "EUR 80.00"]
    body = "<br>".join(said) if kind == "html" else "\n".join(said)
    mail = parse(mail_of(body.encode(), f"text/{kind}; charset=utf-8"))
    assert blank_stretch(mail.text)[0] == 21
    assert words_in_sight(mail.text) == "Order 20418"


def test_nothing_behind_the_first_of_several_blank_stretches_decides() -> None:
    """What stood between two long ones was read."""
    assert words_in_sight("a" + "\n" * 30 + "EUR 80.00" + "\n" * 40 + "b") == "a"
    assert words_in_sight("a\n\n\n\nb\n" * 30).count("b") == 30


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


@pytest.mark.parametrize(
    "charset", ["unicode", "UCS-2", "iso-10646-ucs-2", "csunicode", "unicodefeff", "unicodefffe", "gbk", "gb2312"]
)
def test_a_charset_is_read_as_browsers_read_its_label(charset: str) -> None:
    said = {"unicodefffe": "utf-16-be", "gbk": "gb18030", "gb2312": "gb18030"}.get(charset, "utf-16-le")
    mail = parse(mail_of(f"{CJK}\u0e3f 5".encode(said), f"text/plain; charset={charset}"))
    assert (mail.text, mail.problems) == (f"{CJK}\u0e3f 5", [])
    assert not list(amounts_in(parse(mail_of(b"EUR 80.00 ", f"text/plain; charset={charset}")).text)) or "gb" in charset


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
    found += [f"what nobody sees in {said!r}" for said in (*lines, *mail.problems) if invisible(said)]
    found += ["more text than is kept"] if len(mail.text) > MAX_TEXT else []
    return found + ([] if mail.text.strip() or mail.problems else ["neither a text nor why there is none"])


def _surrogate(text: str) -> bool:
    return any("\ud800" <= each <= "\udfff" for each in text)


def test_sizes_are_bounded_and_what_was_cut_is_said() -> None:
    long_text = parse(mail_of(b"x" * (MAX_TEXT + 5)))
    assert long_text.problems == [f"only 200,000 of its {MAX_TEXT + 5:,} characters are kept"]
    assert parse(mail_of(b"x", Subject="s" * 9_000)).subject == "s" * MAX_HEADER
    assert "only its first 2,000,000 bytes were read" in parse(mail_of(b"x\n" * MAX_MAIL)).problems
    parts = b"".join(b"--b\n\np%d\n" % number for number in range(MAX_PARTS * 2)) + b"--b--"
    many = parse(mail_of(parts, "multipart/mixed; boundary=b"))
    assert many.text.count("p") == MAX_PARTS - 1
    assert "it has parts in parts in parts; the innermost were not read" in many.problems


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
    assert invisible(text) == count


def test_a_title_is_one_visible_line() -> None:
    assert one_line(" a\u202e\n\n b\x00c ") == "a b c"
    assert one_line("x" * 300, 10) == "x" * 9 + "…"


@given(st.lists(st.sampled_from(MARKUP), max_size=30))
@settings(max_examples=many(150))
def test_arbitrary_markup_never_raises(pieces: list[str]) -> None:
    assert faults(mail_of("".join(pieces).encode(), "text/html")) == []
