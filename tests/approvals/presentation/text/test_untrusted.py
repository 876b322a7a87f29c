"""What somebody else wrote is shown as text, and what it hides is said, on pages and in the terminal alike."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
from holdpoint import unseen_characters
from holdpoint.terminal import lines as terminal_lines
from hypothesis import example, given
from hypothesis import strategies as st
from wcwidth import table_grapheme, table_vs15, table_vs16

from approvals.presentation.text import invisible, line_diff, state_tree, untrusted
from approvals.templatetags import holdpoint as tags
from approvals.templatetags.holdpoint import untrusted_brief
from tests.factories import ann, make_action, make_card, make_gate
from tests.harness.signed_in_clients import signed_in

BADGES = [
    ("a\u202eb", "U+202E right-to-left override"), ("pay\u200bpal", "U+200B zero-width space"),
    ("a\u200b\u200b\u200bb", "U+200B zero-width space, 3 times"), ("a\x1b[31mred", "U+001B escape"),
    ("a\u3164b", "U+3164 hangul filler"), ("a\ufdd0b", "U+FDD0 no character"),
    ("a\ufe0fb", "U+FE0F variation selector-16"), ("\U000e0070\U000e0061\U000e0079", "3 tag characters: “pay”"),
    ("z" + "\u0301" * 30, "30 combining marks"), ("x\u20e0", "U+20E0 combining enclosing circle backslash"),
    ("a\ud7ffb\ue000", "U+E000 private character"),
]  # fmt: skip
HONEST = [
    "naïve café",
    "Kad\u0131köy, þetta, Straße, 3\u00d74cm, A\u222aB, co\u2011op, 東京Tower",
    "👩‍👩‍👧 ❤️ 1️⃣",
    "x\u0302 and q\u0323",
    "«fr» — 5 €",
    "5 µm, 3 kΩ, 1ª vez, ½ ™ №",
    "\u0420\u0430\u0441\u0430 \u0438 \u0440\u043e\u0441\u0430: \u0441\u043e\u0440\u043e\u043a "
    "\u0443\u0445\u043e \u0432 \u043b\u0435\u0441\u0443, \u0441\u0443\u043c\u043c\u0430 \u0438 "
    "\u043d\u043e\u043c\u0435\u0440 \u043f\u043e \u0441\u0447\u0451\u0442\u0443.",
    "\u03ba\u03b1\u03b9 \u03bd\u03b1 \u03b3\u03b9\u03b1 \u03c4\u03b7\u03bd \u03b1\u03c5\u03c4\u03cc "
    "\u03c0\u03bf\u03c5 \u03cc\u03c0\u03bf\u03c5",
    "Größe, schön.Wir zahlen 5 € für co\u2010operative Bücher, 2020\u20132024",
    "\u603b\u4ef7 \uff11\uff10\uff10 \u5143\uff0c\u4eca\u5929\u4ed8\u6b3e\u3002",
    "a \u2260 b, x\u0304",
]
LETTERS = [
    ("Micr\u0d20soft asks", "only looks like ASCII: U+0D20 is malayalam letter ttha"),
    ("paypa\u2223", "only looks like ASCII: U+2223 is divides"),
    ("P\u0430yPal asks", "mixes alphabets: U+0430 is cyrillic small letter a"),
    ("\U0001d400pproved by ann", "styled letters, U+1D400 is mathematical bold capital a"),
    ("pay \u0440\u0430\u0443\u0440\u0430\u04cf now", "cyrillic letters that read \u201cpaypai\u201d"),
    ("\u039d\u0391\u03a4\u039f", "greek letters that read \u201cNATO\u201d"),
    ("pay 1\uff10\uff100.00", "not plain ASCII: U+FF10 is fullwidth digit zero"),
]
MARKUP = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7*7 }}{% now %}", "&lt;b&gt;", "<!-- -->"]
HOSTS = [
    ("https://fernh\u043ellow.example/x", "mixes alphabets: U+043E is cyrillic small letter o"),
    ("\u0430\u0440\u0440\u04cf\u0435.com", "written in cyrillic letters"),
    ("https://paypal.com\u2215login.evil.example/", "not plain ASCII: U+2215 is division slash"),
    ("b\u00fccher.example", "not plain ASCII: U+00FC is latin small letter u with diaeresis"),
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


def test_letters_in_two_parts_that_have_a_character_of_their_own_are_counted() -> None:
    for text, places in (("Zoe\u0308", "1 place"), ("Zoe\u0308" + "a" * 20_000 + "Ko\u0308ln", "2 places")):
        for shown in (untrusted.render(text), untrusted.line(text[:100]), untrusted.plain(text[:5])):
            assert "not in normal form: " in shown
        assert untrusted.render(text).count(f"not in normal form: {places}</span>") == 1
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


@pytest.mark.parametrize(("text", "why"), [*LETTERS, *((text, f"look-alike host, {why}") for text, why in HOSTS)])
def test_a_word_or_a_host_that_only_looks_like_another_is_named(text: str, why: str) -> None:
    assert why in untrusted.render(text)


@pytest.mark.parametrize("text", ["https://ok.example/a", "www.ok.example"])
def test_an_address_is_text_and_never_a_link(text: str) -> None:
    shown = untrusted.render(text)
    assert 'class="link-off"' in shown
    assert "<a" not in shown
    assert "look-alike" not in shown


def test_what_comes_far_behind_is_shown_beside_a_count_of_the_blank_that_pushed_it_away() -> None:
    shown = untrusted.render("hello" + "\n" * 5001 + "pay everybody")
    assert "5,000 blank lines collapsed" in shown
    assert "then 1 more line follows" in shown
    assert shown.endswith("pay everybody")

    assert "500 spaces collapsed" in untrusted.render("ok" + " " * 500 + "evil")


def test_a_long_text_keeps_its_beginning_and_its_end_and_counts_the_rest() -> None:
    text = "B" + "m" * 50_000 + "E"
    shown = untrusted.render(text)
    hidden = len(text) - invisible.HEAD - invisible.TAIL
    assert f"{hidden:,} characters are not shown here" in shown
    assert shown.endswith("E")
    assert shown.count("m") >= 50_000, "the middle is one step away"

    drawn = untrusted.render("".join(f"word {number} " for number in range(40_000)))
    assert len(drawn) < 20_000
    assert "characters are not shown here" in drawn


def test_a_danger_between_two_deserts_of_blank_lines_is_shown() -> None:
    shown = untrusted.render("\n" * 2_000_000 + "danger" + "\n" * 2_000_000 + "end")
    assert ">danger<" in shown.replace("</span>danger", ">danger")
    assert len(shown) < 2_000


def test_a_title_stays_on_one_line_and_writes_hidden_characters_out() -> None:
    shown = untrusted.line("Refund\n\n\n\u202eevil")
    assert shown.startswith("<bdi>")
    assert "\n" not in shown
    assert "U+202E" in shown

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


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("\u22125.00", "U+2212 is minus sign"),
        ("ACME\u20102024", "U+2010 is hyphen"),
        ("DE02\u041e3", "U+041E is cyrillic capital letter o"),
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
    assert "U+2010 is hyphen" in state_tree.spell_out("INV\u20107")
    assert "look-alike" not in state_tree.spell_out("Jörg Müller")
    assert "U+043E is cyrillic small letter o" in state_tree.spell_out({"t\u043e": "ACME"})
    assert "U+0441 is cyrillic small letter es" in state_tree.render(
        {"\u0441\u043e": 1}, notes={}, open=set(), whole=""
    )


def test_two_commands_on_one_line_are_told_apart_by_a_mark_that_no_text_can_hold() -> None:
    """A shell command of two lines read as one (its line break was a blank)."""
    mark = '<span class="line-break"><span aria-hidden="true">⏎</span><span class="sr">line break</span></span>'
    assert untrusted.brief("ls # \nrm -rf build") == f"<bdi>ls # {mark} rm -rf build</bdi>"
    assert '<span class="line-break">' not in untrusted.brief('ls ⏎ <span class="line-break">⏎</span> rm')
    assert "2 line breaks" in untrusted.brief("a\r\n \r\nb")
    assert "and 3 more characters" in untrusted.brief("a\n" + "b" * 301)

    assert "U+2028" in untrusted.brief("a\n\u2028b")


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


SPACES = [chr(point) for point in range(0x21, 0x3001) if unicodedata.category(chr(point)) == "Zs"]
# Each as prose and as a value: the code points that are marked.
UNSEEN = [
    "rm -rf /srv/cache.[\ufe0f]/old", "DE89 3704[\ufe0f] 0044", "a.[\ufe0f\ufe0f\ufe0f\ufe0f]b",
    "evil.example/[\ufe0f]", "@[\ufe0f]ann", "x;[\ufe0f]y", "#[\ufe0f]!",
    "12[\ufe0f]34[\ufe0f]56", "-[\ufe0f]5", "5[\ufe0f]", "a[\ufe0f]\u20e3",
    "5[\ufe0f\ufe0f]\u20e3", "\u2764[\ufe0f\ufe0f]", "\U0001f600[\ufe0f]", "\u2190[\ufe0f]", "[\ufe0f]\u2764",
    "1[\u200d]\u2764", "/[\u200d]\u2714 x", "\u2764[\u200d]1", "\u00b0[\u200d]\u2764", "\u2764[\u200d\u200d]\u2764",
    "\U0001f469[\u200d]", "[\u200d]\U0001f469", "\u2764[\ufe0e]", "^[\u200d]\u2764", "\U0001f469[\u200b]\U0001f469",
    "a[\u3000]b", "Tokyo[\u3000]\u6771\u4eac", "a[\u00a0\u00a0]!", "5[\u3000]000",
    "a\n[\u2003]b", "x[\u2003]y", "a[\u00a0\u00a0]b",
    "https://[\u202e]user@www.shop.example/", "https://us[\u200b]er@www.shop.example", "www[\u200b]://www.shop.example",
]  # fmt: skip
# As a value alone: in prose they are ordinary.
PROSE = [
    "12[\u202f]000[\u00a0]\u20ac", "bonjour[\u00a0]!", "\u00ab[\u00a0]bonjour[\u202f]\u00bb", "5[\u00a0]%",
    "5[\u00a0]km", "\u5c71\u7530[\u3000]\u592a\u90ce", "\u306f\u3044\u3002[\u3000]\u4eca\u65e5",
    "Hello,\n[\u00a0]\nyours", "/srv/tmp[\u00a0]/srv/keep", "broken[\u00a0]\u2013 it", "x[\u202f]y", "a.[\u00a0] B",
    "a. [\u00a0]B", "1[\u2009]000",
]  # fmt: skip
SEEN = [
    "\u2764\ufe0f", "5\ufe0f\u20e3", "#\ufe0f\u20e3 *\ufe0f\u20e3", "\u00a9\ufe0f \u2122\ufe0f \u231a\ufe0f",
    "\U0001f469\u200d\U0001f4bb", "\U0001f469\U0001f3fd\u200d\u2695\ufe0f", "\U0001f3f3\ufe0f\u200d\U0001f308",
    "\u2764\ufe0f\u200d\U0001f525", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "a b\tc\nd",
]  # fmt: skip


def points(text: str) -> list[str]:
    return [f"U+{ord(char):04X}" for part in re.findall(r"\[(.*?)\]", text) for char in part]


def bare(text: str) -> str:
    return text.replace("[", "").replace("]", "")


def marked(text: str, *, value: bool) -> list[str]:
    found = [piece for piece in invisible.pieces(text, value=value) if piece.note]
    assert all(piece.text for piece in found)
    return [f"U+{ord(char):04X}" for piece in found for char in piece.text]


def in_the_terminal(text: str, *, value: bool) -> str:
    return terminal_lines.make_visible(terminal_lines.as_it_runs(text) if value else text, lines=True)


@pytest.mark.parametrize("value", [False, True])
@pytest.mark.parametrize("text", UNSEEN, ids=ascii)
def test_what_is_not_seen_is_marked_in_prose_and_in_a_value(text: str, value: bool) -> None:
    assert marked(bare(text), value=value) == points(text)
    assert re.findall(r"<(U\+\w+)>", in_the_terminal(bare(text), value=value)) == points(text)
    assert invisible.badge_count(bare(text), value=value)[0] == len(points(text))


@pytest.mark.parametrize("text", PROSE, ids=ascii)
def test_spaces_that_are_ordinary_in_prose_are_marked_where_it_may_run(text: str) -> None:
    assert marked(bare(text), value=True) == points(text)
    assert re.findall(r"<(U\+\w+)>", in_the_terminal(bare(text), value=True)) == points(text)
    assert invisible.badge_count(bare(text), value=True)[0] == len(points(text))
    assert marked(bare(text), value=False) == []
    assert "<U+" not in in_the_terminal(bare(text), value=False)
    assert invisible.badge_count(bare(text), value=False)[0] == 0


@pytest.mark.parametrize("text", SEEN, ids=ascii)
def test_pictures_as_unicode_lists_them_are_left_as_they_are(text: str) -> None:
    for value in (False, True):
        assert marked(text, value=value) == []
        assert "<U+" not in in_the_terminal(text, value=value)
        assert invisible.badge_count(text, value=value) == (0, 0)


@pytest.mark.parametrize("space", SPACES, ids=ascii)
def test_every_space_but_the_plain_one_is_marked_wherever_a_value_is_drawn(space: str) -> None:
    text = f"/srv/tmp{space}/srv/keep"
    point = f"U+{ord(space):04X}"
    for draw in (
        tags.value_of, tags.untrusted_brief, tags.untrusted_whole, untrusted.exact, tags.untrusted_code,
        tags.pinned, tags.pinned_amount, lambda value: tags.words(value, runs=True),
        lambda value: state_tree.spell_out([value]), lambda value: state_tree.spell_out([[[[value]]]]),
        lambda value: tags.value_of({"a": [value]}, ""),
        lambda value: tags.untrusted_whole({"a": value}), lambda value: state_tree.render({"to": value}),
        lambda value: tags.untrusted_whole("x" * 9_000 + value + "y" * 9_000),
        lambda value: untrusted.render("x" * 9_000 + value + "y" * 9_000, value=True),
        lambda value: line_diff.render("rm", f"{value}\nx"),
    ):  # fmt: skip
        assert point in str(draw(text)), draw
    assert tags.hides(text)
    assert f"<{point}>" in in_the_terminal(text, value=True)


def test_the_terminal_marks_each_character_that_draws_nothing() -> None:
    for char in filter(unseen_characters.is_hidden, map(chr, [*range(0x3400), *range(0xF900, 0x20000)])):
        assert f"<U+{ord(char):04X}>" in terminal_lines.make_visible(f"a{char}b"), ascii(char)


def ranges(table: tuple[tuple[int, int], ...]) -> set[str]:
    return {chr(point) for first, last in table for point in range(first, last + 1)}


def test_the_pictures_are_those_of_unicode() -> None:
    """The lists are those of emoji-variation-sequences.txt and emoji-data.txt, which wcwidth has too."""
    [narrow], [wide] = table_vs16.VS16_NARROW_TO_WIDE.values(), table_vs15.VS15_WIDE_TO_NARROW.values()
    styled, pictures = ranges(narrow) | ranges(wide), ranges(table_grapheme.EXTENDED_PICTOGRAPHIC)
    for char in {*map(chr, [*range(0x3400), *range(0x1F000, 0x20000)])} - {"\u200d", "\ufe0f"}:
        alone = [*unseen_characters.find_unseen(f"{char}\ufe0f")]
        assert (alone[-1:] != [(1, 2)]) == (char in styled and not char.isascii()), hex(ord(char))
        joined = [*unseen_characters.find_unseen(f"{char}\u200d{char}")]
        assert ((1, 2) not in joined) == (char in pictures), hex(ord(char))


ENDS = [
    ("ACME\u00a0", "U+00A0 no-break space"), ("ACME ", "U+0020 space"), ("  ACME", "U+0020 space, 2 times"),
    ("ACME\t", "U+0009 tab"), ("\u3000ACME", "U+3000 ideographic space"), ("ACME\n", "line break"),
    ("\r\nACME", "line break"), (" ", "U+0020 space"), ("order_12\u00a0", "U+00A0 no-break space"),
]  # fmt: skip
# Each way in which a page draws a value, but for amounts: those are marked as not exact.
DRAWN: list[Callable[[str], object]] = [
    tags.value_of, tags.untrusted_brief, tags.untrusted_whole, untrusted.exact, tags.pinned,
    tags.pinned_amount, lambda text: tags.words(text, runs=True), lambda text: state_tree.spell_out([text]),
    lambda text: state_tree.spell_out({text: 1}), lambda text: state_tree.render({"to": text}),
    lambda text: untrusted.plain(text, value=True),
]  # fmt: skip


@pytest.mark.parametrize(("text", "badge"), ENDS, ids=repr)
def test_blanks_at_the_ends_of_a_value_are_named_wherever_it_is_drawn(text: str, badge: str) -> None:
    for draw in DRAWN:
        drawn = str(draw(text))
        assert badge in drawn or (badge == "line break" and draw is DRAWN[-1]), (draw, drawn)


def test_words_keep_their_plain_ends_without_a_badge_and_others_and_fields_with_one() -> None:
    """A summary that ends with a line break deceives nobody."""
    for draw in (untrusted.render, untrusted.line, untrusted.plain):
        assert "U+" not in draw("Pay ACME.\n")
        assert "U+00A0" in draw("Pay ACME.\u00a0")

    assert [tags.hides(text) for text in ("ACME\u00a0", "ACME ", "\tACME", "ACME\n\n")] == [True] * 4
    assert [tags.hides(text) for text in ("ACME", "a\nb\n", "a b")] == [False] * 3

    assert invisible.badge_count("ACME\u00a0")[0] == 1
    assert invisible.badge_count("ACME \n")[0] == 0


def test_the_call_that_would_run_has_them() -> None:
    arguments: dict[str, Any] = {"amount": "12.00", "to": "ACME\u00a0", "note": "urgent "}
    gate = make_gate(card=make_card(actions=[make_action(pointer="", arguments=arguments, edits=False)]))
    gate.run.plan.external = True
    gate.run.plan.save(update_fields=["external"])
    page = signed_in(ann(gate.team)).get(f"/gates/{gate.pk}/").content.decode()
    [calls] = [part.partition("</ul>")[0] for part in page.split('<ul class="calls"')[1:]]
    assert "U+00A0 no-break space" in calls
    assert "U+0020 space" in calls
