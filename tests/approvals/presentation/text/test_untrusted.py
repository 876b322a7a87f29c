"""What somebody else wrote is shown as text, and what it hides is said."""

from __future__ import annotations

import time
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from approvals.presentation.text import invisible, spelled_out, state_tree, unseen_characters, untrusted
from approvals.templatetags.holdpoint import untrusted_brief

BADGES = [
    ("a\u202eb", "U+202E right-to-left override"),
    ("a\u2066b", "U+2066 left-to-right isolate"),
    ("pay\u200bpal", "U+200B zero-width space"),
    ("a\u200b\u200b\u200bb", "U+200B zero-width space, 3 times"),
    ("a\u00adb", "U+00AD soft hyphen"),
    ("a\x00b", "U+0000 null"),
    ("a\x1b[31mred", "U+001B escape"),
    ("a\u3164b", "U+3164 hangul filler"),
    ("a\u2800b", "U+2800 braille pattern blank"),
    ("a\ufdd0b", "U+FDD0 no character"),
    ("a\u0378b", "U+0378 no character"),
    ("a\u180bb", "U+180B mongolian free variation selector one"),
    ("a\ufe0fb", "U+FE0F variation selector-16"),
    ("\U000e0070\U000e0061\U000e0079", "3 tag characters: “pay”"),
    ("z" + "\u0301" * 30, "30 combining marks"),
    ("1\u03360", "U+0336 combining long stroke overlay"),
    ("x\u20e0", "U+20E0 combining enclosing circle backslash"),
    ("a\ud7ffb\ue000", "U+E000 private character"),
    ("a\u2028b", "U+2028 line separator"),
]
HONEST = [
    "naïve café",
    "Kad\u0131köy, þetta, Straße, 3\u00d74cm, A\u222aB, co\u2011op, 東京Tower",
    "日本語のメール",
    "👩‍👩‍👧 ❤️ 1️⃣",
    "Zo\u00eb",
    "\u0915\u093c",
    "x\u0302 and q\u0323",
    "tab\tand\nlines",
    "«fr» — 5 €",
    "שלום",
    "e.g. file.txt v1.2",
    "5 µm, 3 kΩ, 1ª vez, ½ ™ №",
    "Москва и Köln",
    "s3-eu-west-1 web2.example",
    "\u0420\u0430\u0441\u0430 \u0438 \u0440\u043e\u0441\u0430: \u0441\u043e\u0440\u043e\u043a "
    "\u0443\u0445\u043e \u0432 \u043b\u0435\u0441\u0443, \u0441\u0443\u043c\u043c\u0430 \u0438 "
    "\u043d\u043e\u043c\u0435\u0440 \u043f\u043e \u0441\u0447\u0451\u0442\u0443.",
    "\u041d\u041e\u041c\u0415\u0420 \u0421\u0427\u0401\u0422\u0410, \u0421\u0423\u041c\u041c\u0410",
    "\u03ba\u03b1\u03b9 \u03bd\u03b1 \u03b3\u03b9\u03b1 \u03c4\u03b7\u03bd \u03b1\u03c5\u03c4\u03cc "
    "\u03c0\u03bf\u03c5 \u03cc\u03c0\u03bf\u03c5",
    "Größe, schön.Wir zahlen 5 € für co\u2010operative Bücher, 2020\u20132024",
    "\u603b\u4ef7 \uff11\uff10\uff10 \u5143\uff0c\u4eca\u5929\u4ed8\u6b3e\u3002",
    "\u5b66\u4f1a\u3067\u3059\uff0e\u307e\u305f\u660e\u65e5",
    "a \u2260 b, x\u0304",
]
LETTERS = [
    ("Micr\u0d20soft asks", "only looks like ASCII: U+0D20 is malayalam letter ttha"),
    ("g\u101d\u101dgle", "only looks like ASCII: U+101D is myanmar letter wa"),
    ("\u144c\u144eITED", "only looks like ASCII: U+144C is canadian syllabics te"),
    ("paypa\u2223", "only looks like ASCII: U+2223 is divides"),
    ("Acm\u212e", "only looks like ASCII: U+212E is estimated symbol"),
    ("P\u0430yPal asks", "mixes alphabets: U+0430 is cyrillic small letter a"),
    ("\u0391pprove", "mixes alphabets: U+0391 is greek capital letter alpha"),
    ("\U0001d400pproved by ann", "styled letters, U+1D400 is mathematical bold capital a"),
    ("\uff21pprove", "styled letters, U+FF21 is fullwidth latin capital letter a"),
    ("pay \u0440\u0430\u0443\u0440\u0430\u04cf now", "cyrillic letters that read \u201cpaypai\u201d"),
    ("\u0421\u043e\u0440\u0430", "cyrillic letters that read \u201cCopa\u201d"),
    ("\u039d\u0391\u03a4\u039f", "greek letters that read \u201cNATO\u201d"),
    ("pay 1\uff10\uff100.00", "not plain ASCII: U+FF10 is fullwidth digit zero"),
    ("pay 1\u0660\u0660", "not plain ASCII: U+0660 is arabic-indic digit zero"),
    ("write to \u0430dmin@shop.example", "mixes alphabets: U+0430 is cyrillic small letter a"),
]
MARKUP = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7*7 }}{% now %}", "&lt;b&gt;", "<!-- -->"]
HOSTS = [
    ("https://fernh\u043ellow.example/x", "mixes alphabets: U+043E is cyrillic small letter o"),
    ("write to me@p\u0430ypal.com", "mixes alphabets: U+0430 is cyrillic small letter a"),
    ("\u0430\u0440\u0440\u04cf\u0435.com", "written in cyrillic letters"),
    ("https://paypal.com\u2215login.evil.example/", "not plain ASCII: U+2215 is division slash"),
    ("evil.com\u2215x", "not plain ASCII: U+2215 is division slash"),
    ("evil\uff0ecom", "not plain ASCII: U+FF0E is fullwidth full stop"),
    ("pay\u2010pal.com", "not plain ASCII: U+2010 is hyphen"),
    ("b\u00fccher.example", "not plain ASCII: U+00FC is latin small letter u with diaeresis"),
    ("me@m\u00fcller.de", "not plain ASCII: U+00FC is latin small letter u with diaeresis"),
    (
        "http://\u043f\u0440\u0438\u043c\u0435\u0440.\u0440\u0444/",
        "not plain ASCII: U+043F is cyrillic small letter pe",
    ),
    ("lukas@see\u0261ass.example", "a letter of transcriptions: U+0261 is latin small letter script g"),
    ("http://xn--pple-43d.com", "an encoded name (punycode)"),
    ("pay@fernhol1ow.example", "a digit stands among its letters"),
]


@pytest.mark.parametrize(("text", "badge"), BADGES)
def test_a_character_that_cannot_be_seen_becomes_a_badge(text: str, badge: str) -> None:
    shown = untrusted.render(text)
    assert badge in shown
    assert not any(unseen_characters.is_hidden(char) for char in shown)


@pytest.mark.parametrize(
    ("text", "badge"),
    [
        ("Zoe\u0308", "not in normal form: 1 place"),
        ("Zoe\u0308 from Ko\u0308ln", "not in normal form: 2 places"),
        ("Zoe\u0308" + "a" * 20_000 + "Ko\u0308ln", "not in normal form: 2 places"),
    ],
    ids=["one", "two", "folded"],
)
def test_letters_in_two_parts_that_have_a_character_of_their_own_are_counted(text: str, badge: str) -> None:
    for shown in (untrusted.render(text), untrusted.line(text[:100]), untrusted.plain(text[:5])):
        assert "not in normal form: " in shown
    assert untrusted.render(text).count(f"{badge}</span>") == 1
    assert invisible.badge_count(text) == (0, 0)


@pytest.mark.parametrize("text", HONEST)
def test_honest_text_of_any_language_is_left_alone(text: str) -> None:
    assert untrusted.render(text) == text.replace("«", "«")
    assert invisible.badge_count(text) == (0, 0)


@pytest.mark.parametrize("text", MARKUP)
def test_markup_is_shown_as_text(text: str) -> None:
    for shown in (
        untrusted.render(text),
        untrusted.line(text),
        state_tree.render({"x": text}, notes={}, open=set(), whole=""),
    ):
        assert "<script" not in shown
        assert "<img" not in shown
        assert "<!--" not in shown
        assert "&lt;" in shown or "&amp;" in shown or "{{" in shown


@pytest.mark.parametrize(("text", "why"), HOSTS)
def test_a_host_that_only_looks_like_another_is_named(text: str, why: str) -> None:
    assert f"look-alike host, {why}" in untrusted.render(text)


@pytest.mark.parametrize(("text", "why"), LETTERS)
def test_a_word_whose_letters_only_look_like_others_is_named(text: str, why: str) -> None:
    assert why in untrusted.render(text)


@pytest.mark.parametrize("text", ["https://ok.example/a", "www.ok.example"])
def test_an_address_is_text_and_never_a_link(text: str) -> None:
    shown = untrusted.render(text)
    assert 'class="link-off"' in shown
    assert "<a" not in shown
    assert "look-alike" not in shown


def test_what_comes_after_five_thousand_blank_lines_is_shown_beside_their_number() -> None:
    shown = untrusted.render("hello" + "\n" * 5001 + "pay everybody")
    assert "5,000 blank lines collapsed" in shown
    assert "then 1 more line follows" in shown
    assert shown.endswith("pay everybody")


@pytest.mark.parametrize("blank", [" \n", "\u00a0\n", "\t\n"])
def test_lines_of_spaces_are_blank_lines(blank: str) -> None:
    assert "blank lines collapsed" in untrusted.render("a\n" + blank * 40 + "b")


def test_spaces_that_push_text_out_of_sight_are_measured() -> None:
    assert "500 spaces collapsed" in untrusted.render("ok" + " " * 500 + "evil")


def test_a_long_text_keeps_its_beginning_and_its_end_and_counts_the_rest() -> None:
    text = "B" + "m" * 50_000 + "E"
    shown = untrusted.render(text)
    hidden = len(text) - invisible.HEAD - invisible.TAIL
    assert f"{hidden:,} characters are not shown here" in shown
    assert shown.endswith("E")
    assert shown.count("m") >= 50_000, "the middle is one step away"


def test_ten_megabytes_cost_what_is_shown_of_them() -> None:
    text = "x" * 10_000_000 + "end"
    started = time.thread_time()
    shown = untrusted.render(text, whole="/gates/1/values/?at=/mail")
    assert time.thread_time() - started < 1
    assert len(shown) < 20_000
    assert 'href="/gates/1/values/?at=/mail"' in shown
    assert shown.endswith("end")


def test_a_danger_between_two_deserts_of_blank_lines_is_shown() -> None:
    shown = untrusted.render("\n" * 2_000_000 + "danger" + "\n" * 2_000_000 + "end")
    assert ">danger<" in shown.replace("</span>danger", ">danger")
    assert len(shown) < 2_000


@pytest.mark.parametrize("word", ["a" * 200_000 + ".", "a." * 100_000, "a-" * 100_000 + "x.", "x@" * 60_000])
def test_no_word_makes_the_search_for_hosts_slow(word: str) -> None:
    # A pattern for host names took a second on 6,000 letters: its time grew with the square of the word.
    started = time.thread_time()
    untrusted.render(word, clamp=False)
    assert time.thread_time() - started < 3


def test_a_title_stays_on_one_line_and_cannot_turn_its_surroundings_around() -> None:
    shown = untrusted.line("Refund\n\n\n\u202eevil")
    assert shown.startswith("<bdi>")
    assert "\n" not in shown
    assert "U+202E" in shown


def test_a_pages_title_writes_hidden_characters_out() -> None:
    assert untrusted.plain("a\u202eb") == "a[U+202E right-to-left override]b"
    assert untrusted.plain("x" * 1500).endswith("… and 1,300 more characters")


def test_a_deep_and_wide_state_is_drawn_within_its_budget() -> None:
    deep: object = "bottom"
    for _ in range(120):
        deep = {"in": deep}
    shown = state_tree.render({"deep": deep, "wide": list(range(100_000))}, notes={}, open=set(), whole="/v/")
    assert len(shown) < 60_000
    assert "99,940 more not drawn here" in shown
    assert 'href="/v/?at=/wide"' in shown
    assert ">99999<" in shown, "the end of a list is what happened last"


def test_a_number_with_more_digits_than_python_writes_is_still_shown() -> None:
    assert state_tree.scalar(10**5000).startswith("0x")


def test_spaces_are_not_counted_as_blank_lines() -> None:
    assert invisible.badge_count("fine" + " " * 38_000 + "pay\nnow\n") == (0, 0)


@given(st.text(max_size=60) | st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60))
@example("a <b> & 'c' \"d\"")
@example("pay.example or www.x and http://y.z/ 1.5")
@example("one  two   three\r\n four")
@example("p\u0430ypal")
def test_a_text_reads_the_same_from_memory_as_anew(text: str) -> None:
    with mock.patch.object(untrusted, "unmarked", return_value=None):
        anew = untrusted.line(text), untrusted.render(text), untrusted.exact(text)
    for _ in range(2):
        assert (untrusted.line(text), untrusted.render(text), untrusted.exact(text)) == anew


@pytest.mark.parametrize("part", ["\u202e\u2066x", "p\u0430ypal ", " " * 30 + "x", "www.p\u0430ypal.com "])
def test_a_text_of_nothing_but_tricks_is_marked_at_its_first_thousand(part: str) -> None:
    """Two million characters that cannot be seen made a page of 340 MB in half a minute."""
    text = part * 3_000
    drawn = untrusted.render(text, clamp=False)
    assert drawn.count('class="codepoint"') + drawn.count('class="collapsed"') <= invisible.NOTED + 1
    assert "more places that cannot be seen or only look alike, not marked above" in drawn
    assert untrusted.render(part * 30, clamp=False).count("not marked above") == 0
    visible = part.strip().replace("\u202e\u2066", "")
    assert drawn.count(visible) == 3_000


def test_a_middle_that_no_address_shows_is_counted_and_not_carried_along() -> None:
    text = "".join(f"word {number} " for number in range(40_000))
    drawn = untrusted.render(text)
    assert len(drawn) < 20_000
    assert "characters are not shown here" in drawn


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("\u22125.00", "U+2212 is minus sign"),
        ("\uff11\uff10\uff10.00", "U+FF11 is fullwidth digit one"),
        ("ACME\u20102024", "U+2010 is hyphen"),
        ("DE02\u041e3", "U+041E is cyrillic capital letter o"),
        ("\u0440\u0430\u0443", "U+0440 is cyrillic small letter er"),
    ],
)
def test_in_amounts_and_identifiers_whatever_is_not_ascii_is_marked(text: str, wrong: str) -> None:
    assert f"look-alike letters, not plain ASCII: {wrong}" in untrusted.exact(text)


@pytest.mark.parametrize(
    "text", ["€1,284.00", "1\u00a0284,00 €", "1\u2019284.00 CHF", "12 \u20bd", "order_12", "a.b-c"]
)
def test_signs_of_currencies_and_what_groups_digits_are_usual_in_an_amount(text: str) -> None:
    assert "look-alike" not in untrusted.exact(text)


def test_a_pinned_identifier_and_a_name_of_an_argument_are_held_to_ascii() -> None:
    assert "U+2010 is hyphen" in spelled_out.out("INV\u20107")
    assert "look-alike" not in spelled_out.out("Jörg Müller")
    assert "U+043E is cyrillic small letter o" in spelled_out.out({"t\u043e": "ACME"})
    assert "U+0441 is cyrillic small letter es" in state_tree.render(
        {"\u0441\u043e": 1}, notes={}, open=set(), whole=""
    )


@pytest.mark.parametrize(
    "text",
    [
        "\u05e9\u05dc\u05d5\u05dd12", "100 \u05e9\u05f4\u05d7", "\u05e9\u05dd", "\u05e9\u05b8\u05dc\u05d5\u05b9\u05dd7",
        "\u0627\u0633\u064512", "\u0438\u043c\u044f", "\u03c0\u03bf\u03c3\u03cc\u03bd", "\u540d\u524d7",
        "\u30c6\u30b9\u30c8\u4f1a\u793e", "\ud55c\uad6d7", "Gr\u00f6\u00dfe", "caf\u00e93", "\u0928\u093e\u092e",
    ],
)  # fmt: skip
def test_an_ordinary_word_of_one_alphabet_is_no_look_alike_where_it_has_to_be_exact(text: str) -> None:
    """A recipient, an amount or an argument's name in Hebrew had the badge "look-alike letters"."""
    assert "codepoint" not in untrusted.exact(text)


@pytest.mark.parametrize(
    "text",
    [
        "G\u05e1\u05e1gle12", "\u05d1-ACME2", "p\u0430y7", "\u0440\u0430\u0443", "1\u041e0", "adm\u0131n7",
        "pay\uff11", "\u0661\u0660\u0660", "ACME\u0301 7", "\u0441\u043e", "\ufb01sh7",
    ],
)  # fmt: skip
def test_what_mixes_alphabets_or_reads_as_ascii_still_is(text: str) -> None:
    assert "codepoint" in untrusted.exact(text)


def test_two_commands_on_one_line_are_told_apart_by_a_mark_that_no_text_can_hold() -> None:
    """A shell command of two lines read as one (its line break was a blank)."""
    mark = '<span class="line-break"><span aria-hidden="true">⏎</span><span class="sr">line break</span></span>'
    assert untrusted.brief("ls # \nrm -rf build") == f"<bdi>ls # {mark} rm -rf build</bdi>"
    assert '<span class="line-break">' not in untrusted.brief('ls ⏎ <span class="line-break">⏎</span> rm')
    assert "2 line breaks" in untrusted.brief("a\r\n \r\nb")
    assert "and 3 more characters" in untrusted.brief("a\n" + "b" * 301)


def test_a_blank_beside_a_line_break_is_still_shown_as_what_it_is() -> None:
    assert "U+2028" in untrusted.brief("a\n\u2028b")


@pytest.mark.parametrize("value", ["ls\nrm", "ls\rrm", "\nls", "ls\n"])
def test_every_line_break_of_a_brief_value_is_marked(value: str) -> None:
    assert untrusted_brief(value).count("line-break") == 1


ORDINARY = [
    "发票12.pdf", "发票 12.pdf", "T恤", "ACME株式会社", "発注書_v2_最終.docx", "東京タワー2F", "佐々木7", "ｶﾌﾞｼｷ12",
    "משה@x.org", "имя@x.org", "Москва-12.pdf", "отчет_v2.xlsx", "\u0645\u0631\u062d\u0628\u064112.docx",
    "e01nvoice.pdf", "5\u201310", "2019\u20132024", "1.000\u20132.000", "§5", "100‰", "10½", "№ 12",
]  # fmt: skip
DECEIVING = [
    "p\u0430ypal", "g\u03bfogle", "p\u0430ypal12.pdf", "\u0430\u0440\u0440\u04cf\u0435@x.org", "pay\uff11",
    "x@p\u0430y.org", "user_\u0430@x", "\u0441\u043e\u0440\u0443.pdf", "Москв\u0061.pdf",
    "发票@g\u03bfogle.com", "\uff30ay12",
]  # fmt: skip


@pytest.mark.parametrize("text", ORDINARY)
def test_a_character_that_cannot_be_taken_for_another_in_its_word_has_no_badge(text: str) -> None:
    """An invoice's name in Chinese, a Hebrew name at a Latin domain and a range had the badge "look-alike"."""
    for shown in (untrusted.exact(text), untrusted.line(text), untrusted.render(text), str(untrusted_brief(text))):
        assert "codepoint" not in shown


@pytest.mark.parametrize("text", DECEIVING)
def test_one_that_can_be_taken_for_another_has_its_badge_wherever_words_part(text: str) -> None:
    for shown in (untrusted.exact(text), untrusted.line(text), str(untrusted_brief(text))):
        assert "look-alike" in shown


@pytest.mark.parametrize(
    "text", ["\uff11\uff12", "5\u201310\u2013", "\u20135", "INV\u20137", "1\u2212\u20132", "a\u4e28\u4e28ce7"]
)
def test_a_dash_is_one_of_a_range_only_between_digits_and_digits_of_another_width_are_odd(text: str) -> None:
    assert "look-alike" in untrusted.exact(text)
