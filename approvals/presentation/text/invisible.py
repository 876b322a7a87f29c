"""Finds what a reader would not see in a text. Pure: text in, pieces out.

Escaping stops markup, not deceit. A mail may push its one dangerous line below five thousand blank
ones, reverse the order of letters, or hide whole sentences in characters that draw nothing. So:

- a character that cannot be seen, or that reorders its neighbours, becomes a badge with its code point, and so does a
  space that is not the plain one (`holdpoint.unseen_characters`);
- a stretch of blanks becomes one line with its length, and the text after it is always shown;
- blanks at the ends of a text, where no letter beyond shows their width, are named: in a value, which runs with them,
  each of them; in words, those that are not plain spaces and line breaks;
- text past a limit keeps its beginning and its end, and the middle is counted and can be opened;
- letters written as a letter and its marks are counted, as such a text looks equal to another one;
- a host name or a word that mixes alphabets, or only looks Latin, is marked.

Unicode Technical Reports 36 and 39 name the attacks.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Literal

from holdpoint.unseen_characters import (
    PILE,
    PLAIN,
    TAGS,
    find_unseen,
    is_hidden,
    is_mark,
    is_odd_space,
    is_ordinary,
    is_overlay,
)

from approvals.english import count_of, noun_for

from . import lookalikes, size_limit

HEAD = 6_000  # characters shown before the middle is folded away
TAIL = 1_500
NOTED = 1_000  # places of one text that are marked individually
MARK = 150  # HTML characters that a mark takes on the page
SCANNED = 200_000  # characters of a text that are searched for letters with marks
BLANK_LINES = 4
BLANKS = 24

GAP = re.compile(rf"(?:[^\S\n]*\n){{{BLANK_LINES + 1},}}|[^\S\n]{{{BLANKS},}}")
WORD = re.compile(r"[^\s<>()\[\]{}\"'|,;]{3,}")
AUTHORITY = re.compile(r"[^/?#]*")
NAMES = {
    "\u200b": "zero-width space",
    "\u200c": "zero-width non-joiner",
    "\u200d": "zero-width joiner",
    "\u202a": "left-to-right embedding",
    "\u202b": "right-to-left embedding",
    "\u202c": "end of direction",
    "\u202d": "left-to-right override",
    "\u202e": "right-to-left override",
    "\ufeff": "byte order mark",
    "\t": "tab",
    "\r": "carriage return",
    "\x00": "null",
    "\x1b": "escape",
}
BESIDE = 30  # characters on either side of a word that tell the alphabet of its neighbours


@dataclass(frozen=True)
class TextPiece:
    """One stretch of a text: as it is, or with a note about it."""

    kind: Literal["text", "host", "lookalike", "letters", "hidden", "marks", "unnormal", "blank", "break", "more"]
    text: str = ""
    note: str = ""
    count: int = 0


def pieces(text: str, *, clamp: bool = True, value: bool = False, part: bool = False) -> Iterator[TextPiece]:
    """Cut `text` into plain pieces and pieces with notes. With `clamp`, the middle of a long text is one piece.

    `value`: it runs as it is, so that each odd space counts, and each blank at its ends; `part`: it is a part of a
    text, whose ends are somewhere else. A 10 MB text costs what its shown part costs:
    stretches are found lazily and the middle is only counted. In a text full of places to mark, the first are marked
    and the others counted.
    """
    first, middle, last = without_ends(text, value=value and not part)
    yield from noted(chain(blanks(first), cut(middle, clamp=clamp, value=value), blanks(last)))
    yield from unnormal(text)


def without_ends(text: str, *, value: bool) -> tuple[str, str, str]:
    """Part a text into the blanks at its beginning that are to be named, the rest, and those at its end.

    A blank text has them all at its beginning. Stretches that are measured as such are left in the rest.
    """
    first = text[: len(text) - len(text.lstrip())]
    last = text[len(text.rstrip()) :] if len(first) < len(text) else ""
    first, last = (each if (value or not each.isascii()) and not GAP.search(each) else "" for each in (first, last))
    return first, text[len(first) : len(text) - len(last)], last


def blanks(stretch: str) -> Iterator[TextPiece]:
    """Name the characters of a blank stretch, runs of the same one together."""
    for char, run in groupby(stretch.replace("\r\n", "\n")):
        count = sum(1 for _ in run)
        note = "" if char == "\n" else hidden_name(char, count)
        yield TextPiece("hidden" if note else "break", text=char * count, note=note, count=count)


def hidden_name(char: str, count: int = 1) -> str:
    """Name a hidden character, or a run of it: `U+202E right-to-left override`, `U+00A0 no-break space, 3 times`."""
    name = NAMES.get(char) or unicodedata.name(char, "").lower()
    if not name:
        kinds = {"Cc": "control character", "Co": "private character"}
        name = kinds.get(unicodedata.category(char), "no character")
    return f"U+{ord(char):04X} {name}" if count == 1 else f"U+{ord(char):04X} {name}, {count:,} times"


def noted(found: Iterator[TextPiece]) -> Iterator[TextPiece]:
    """Yield the pieces; beyond `NOTED` marks only their readable text, and at the end their number."""
    marked = places = 0
    for piece in found:
        if piece.kind in ("text", "host", "more"):
            yield piece
        elif marked < NOTED and size_limit.takes(MARK):
            marked += 1
            yield piece
        else:
            places += 1
            if piece.kind in ("lookalike", "blank"):
                yield TextPiece("text", text=piece.text or " ")
    if places:
        said = f"{count_of(places, 'more place')} that cannot be seen or only {noun_for(places, 'looks', 'look')} alike"
        yield TextPiece("hidden", note=f"{said}, not marked above")


def cut(text: str, *, clamp: bool, value: bool) -> Iterator[TextPiece]:
    """Yield the pieces in the order of the text."""
    text = text.replace("\r\n", "\n")
    budget = HEAD if clamp else sys.maxsize
    at = 0
    while at < len(text):
        gap = next_gap(text, at, at + budget + TAIL + 1)
        stop = gap.start() if gap else len(text)
        if stop - at > budget and len(text) - at - budget > TAIL:
            yield from readable(text[at : at + budget], value=value)
            tail = len(text) - TAIL
            middle = text[at + budget : tail]
            yield TextPiece("more", text=middle, count=len(middle))
            yield from cut(text[tail:], clamp=False, value=value)
            return
        yield from readable(text[at:stop], value=value)
        budget = max(budget - (stop - at) - 80, 0)
        if gap:
            rest = text[gap.end() :] if len(text) - gap.end() < TAIL else None
            yield measured(gap.group(), rest=rest, first=not gap.start())
            at = gap.end()
        else:
            at = stop


def next_gap(text: str, at: int, stop: int) -> re.Match[str] | None:
    """Find the next blank stretch that begins before `stop`; the hidden part of a 10 MB text is not searched."""
    gap = GAP.search(text, at, stop) if stop < len(text) else GAP.search(text, at)
    return GAP.match(text, gap.start()) if gap and gap.end() == stop else gap


def measured(blank: str, *, rest: str | None, first: bool) -> TextPiece:
    """Describe a blank stretch: its length, and the number of lines after it (`rest` None: too many to count)."""
    lines = blank.count("\n")
    # The first line break of the stretch ends the line before it, where there is one.
    count = lines - (not first) if lines else len(blank)
    what = f"{count_of(count, 'blank line' if lines else 'space')} collapsed"
    if rest is None:
        return TextPiece("blank", note=what, count=len(blank))
    following = sum(1 for line in rest.splitlines() if line.strip())
    then = f"|then {following} more {noun_for(following, 'line follows', 'lines follow')}" if following else ""
    return TextPiece("blank", note=what + then, count=len(blank))


def readable(text: str, *, value: bool) -> Iterator[TextPiece]:
    """Cut a short text at hosts, look-alikes and invisible characters."""
    at = 0
    for match in WORD.finditer(text):
        word = match.group()
        if word.isascii() and "." not in word[:-1]:
            continue  # most words: no host, and no look-alike letter
        found = host_in(word)
        read = None if found or word.isascii() else host_in(lookalikes.flat(word))
        if read and read[2].rpartition(".")[2].isascii():  # it reads as a host, by a look-alike of a dot or slash
            found = (*read[:2], word)
        beside = "" if word.isascii() else text[max(match.start() - BESIDE, 0) : match.end() + BESIDE]
        if not found:
            if wrong := lookalikes.in_word(word, beside):
                yield from visible(text[at : match.end()], value=value)
                yield TextPiece("letters", note=wrong)
                at = match.end()
            continue
        start, stop, host = found
        wrong = lookalikes.in_host(host) or lookalikes.in_word(word, beside)
        if not (wrong or "://" in word[:start] or word[start:].startswith("www.")):
            continue
        begin = start if any(find_unseen(word[:start], value=value)) else 0  # of what is drawn as an address
        yield from visible(text[at : match.start() + begin], value=value)
        yield TextPiece("lookalike" if wrong else "host", text=word[begin:stop], note=wrong)
        at = match.start() + stop
    yield from visible(text[at:], value=value)


def host_in(word: str) -> tuple[int, int, str] | None:
    """Return (start, end, host) of the host name in a word such as `https://a.example/x` or `me@a.example`.

    Searches by hand and not by one pattern, whose time would grow with the square of a hostile word's length. Letters
    of any alphabet make a host, but not two sentences without a space between them (`schön.Wir`), nor a file's name.
    """
    if "." not in word:
        return None
    scheme = word.find("://", 0, 12)
    start = scheme + 3 if scheme > 0 else 0
    authority = AUTHORITY.match(word, start, start + 400)
    name = authority.group() if authority else ""
    start += name.rfind("@") + 1
    host = name[name.rfind("@") + 1 :].partition(":")[0].rstrip(".!")
    labels = host.split(".")
    if len(labels) < 2 or not all(labels) or len(labels[-1]) < 2 or any(map(is_hidden, host)):
        return None
    if not (labels[-1].isalpha() or labels[-1].startswith("xn--")):
        return None
    if start == 0 and (lookalikes.ENDINGS.fullmatch(labels[-1]) or (not host.isascii() and labels[-1].istitle())):
        return None
    return start, start + len(host), host


def visible(text: str, *, value: bool) -> Iterator[TextPiece]:
    """Cut a text at what is not seen in it."""
    at = 0
    for start, end in find_unseen(text, value=value):
        if at < start:
            yield TextPiece("text", text=text[at:start])
        at, part, count = end, text[start:end], end - start
        if TAGS.match(part):
            said = "".join(chr(ord(tag) - 0xE0000) for tag in part if 0x20 <= ord(tag) - 0xE0000 < 0x7F)
            note = f"{count} {noun_for(count, 'tag character')}: “{said}”"
            yield TextPiece("hidden", text=part, note=note, count=count)
        elif is_mark(part[0]) and not is_hidden(part[0]):
            note = hidden_name(part) if count == 1 else count_of(count, "combining mark")
            yield TextPiece("marks", text=part, note=note, count=count)
        else:
            yield TextPiece("hidden", text=part, note=hidden_name(part[0], count), count=count)
    if at < len(text):
        yield TextPiece("text", text=text[at:])


def unnormal(text: str) -> Iterator[TextPiece]:
    """Yield a note with the number of letters written with marks although one character exists (UAX 15, form C)."""
    text = text[:SCANNED]
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        return
    places = at = 0
    while at < len(text):
        start, at = at, at + 1
        while at < len(text) and unicodedata.combining(text[at]):
            at += 1
        places += at - start > 1 and unicodedata.normalize("NFC", text[start:at]) != text[start:at]
    if places:
        yield TextPiece("unnormal", note=f"not in normal form: {count_of(places, 'place')}", count=places)


def badge_count(text: str, *, value: bool = False) -> tuple[int, int]:
    """Return (invisible characters, blank lines in long stretches) of a text; both 0 for honest text.

    Counts kinds of characters and not pieces, since a page counts all texts of a state, and each may be hostile.
    """
    text = text[:SCANNED].replace("\r\n", "\n")
    blank = sum(gap[0].count("\n") - bool(gap.start()) for gap in GAP.finditer(text) if "\n" in gap[0])
    if PLAIN.fullmatch(text):
        return 0, blank
    counts = Counter(text)
    odd = {char for char in counts if is_hidden(char) or is_odd_space(char)}
    hidden = sum(counts[char] for char in odd)
    first, _, last = without_ends(text, value=False)
    hidden += sum(char not in odd for char in first + last)
    if odd:
        found = re.finditer(f"[{''.join(odd)}]", text)
        hidden -= sum(is_ordinary(text, each.start(), value=value) for each in found)
    marks = "".join(char for char in counts if is_mark(char) and char not in odd)
    if marks:
        piles = (pile[0] for pile in re.finditer(f"[{marks}]+", text))
        hidden += sum(len(pile) for pile in piles if len(pile) > PILE or any(map(is_overlay, pile)))
    return hidden, blank
