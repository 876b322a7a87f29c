"""Whatever a reader does not see in what runs has its code point beside it, on pages and in the terminal alike.

A style selector behind a digit or a full stop had no badge ("rm -rf /srv/cache.\\ufe0f/old"), nor had a joiner between
a digit and a symbol, nor any space but at the ends of a value: "/srv/tmp\\u00a0/srv/keep" read as two paths. What stood
before a host ("https://\\u202euser@www.shop.example") had none at all. The terminal had a rule of its own.
"""

from __future__ import annotations

import inspect
import re
import unicodedata

import pytest
from holdpoint.terminal import lines as terminal_lines
from holdpoint.terminal import unseen_characters as unseen_in_terminal
from wcwidth import table_grapheme, table_vs15, table_vs16

from approvals.presentation.text import invisible, spelled_out, text_diff, unseen_characters, untrusted
from approvals.templatetags import holdpoint as tags

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
    """List the characters of a text that are marked on a page, in order."""
    found = [piece for piece in invisible.pieces(text, value=value) if piece.note]
    assert all(piece.text for piece in found)
    return [f"U+{ord(char):04X}" for piece in found for char in piece.text]


def shown(text: str, *, value: bool) -> str:
    """Return a text as the terminal shows it."""
    return terminal_lines.make_visible(terminal_lines.as_it_runs(text) if value else text, lines=True)


@pytest.mark.parametrize("value", [False, True])
@pytest.mark.parametrize("text", UNSEEN, ids=ascii)
def test_what_is_not_seen_is_marked_in_prose_and_in_a_value(text: str, value: bool) -> None:
    assert marked(bare(text), value=value) == points(text)
    assert re.findall(r"<(U\+\w+)>", shown(bare(text), value=value)) == points(text)
    assert invisible.badge_count(bare(text), value=value)[0] == len(points(text))


@pytest.mark.parametrize("text", PROSE, ids=ascii)
def test_spaces_that_are_ordinary_in_prose_are_marked_where_it_may_run(text: str) -> None:
    assert marked(bare(text), value=True) == points(text)
    assert re.findall(r"<(U\+\w+)>", shown(bare(text), value=True)) == points(text)
    assert invisible.badge_count(bare(text), value=True)[0] == len(points(text))
    assert marked(bare(text), value=False) == []
    assert "<U+" not in shown(bare(text), value=False)
    assert invisible.badge_count(bare(text), value=False)[0] == 0


@pytest.mark.parametrize("text", SEEN, ids=ascii)
def test_pictures_as_unicode_lists_them_are_left_as_they_are(text: str) -> None:
    for value in (False, True):
        assert marked(text, value=value) == []
        assert "<U+" not in shown(text, value=value)
        assert invisible.badge_count(text, value=value) == (0, 0)


@pytest.mark.parametrize("space", SPACES, ids=ascii)
def test_every_space_but_the_plain_one_is_marked_wherever_a_value_is_drawn(space: str) -> None:
    text = f"/srv/tmp{space}/srv/keep"
    point = f"U+{ord(space):04X}"
    for draw in (
        tags.untrusted_value, tags.untrusted_brief, tags.untrusted_whole, tags.untrusted_exact, tags.untrusted_code,
        tags.pinned, tags.pinned_amount, lambda value: tags.words(value, runs=True),
        lambda value: spelled_out.out([value]), lambda value: spelled_out.out([[[[value]]]]),
        lambda value: tags.value_of({"a": [value]}, ""),
        lambda value: tags.untrusted_whole({"a": value}), lambda value: tags.state_tree({"to": value}),
        lambda value: tags.untrusted_whole("x" * 9_000 + value + "y" * 9_000),
        lambda value: untrusted.render("x" * 9_000 + value + "y" * 9_000, value=True),
        lambda value: text_diff.render("rm", f"{value}\nx"),
    ):  # fmt: skip
        assert point in str(draw(text)), draw
    assert tags.hides(text)
    assert f"<{point}>" in shown(text, value=True)


def test_the_terminal_has_the_servers_rule() -> None:
    assert inspect.getsource(unseen_characters) == inspect.getsource(unseen_in_terminal)


def test_each_character_that_draws_nothing_is_marked_by_both() -> None:
    """The terminal showed a soft filler of Mongolian, an object's replacement and a musical null as they were."""
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
