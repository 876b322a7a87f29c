"""Words that are not ours, made safe to read: text in, escaped HTML out.

Escaping alone stops markup, not deceit. A mail may push its one dangerous line below five thousand blank
ones, reverse the order of letters, or hide whole sentences in characters that draw nothing. So:

- a character that cannot be seen, or that reorders its neighbours, becomes a badge with its code point;
- a stretch of emptiness becomes a measured line, and whatever follows it is always shown;
- text past a limit keeps its beginning and its end, and the middle is counted and can be opened;
- a host name that mixes alphabets is marked, because one of its letters only looks like the one you know.

`pieces` is the pure half (what is there), `render` the HTML half. Unicode Technical Reports 36 and 39 name
the attacks; the choice of characters below follows UAX 9 (bidi) and UTS 51 (joiners inside emoji are kept).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

HEAD = 6_000  # characters shown before the middle is folded away
TAIL = 1_500
FOLDED = 100_000  # a middle longer than this is linked, not carried along in the page
BLANK_LINES = 4
BLANKS = 24

GAP = re.compile(r"(?:[^\S\n]*\n){%d,}|[^\S\n]{%d,}" % (BLANK_LINES + 1, BLANKS))
HOST = re.compile(r"(?:https?://|www\.)?[^\W_](?:[\w-]|\.(?=\w))*\.[^\W\d_]{2,}(?!\w)")
TAGS = re.compile("[\U000e0000-\U000e007f]+")
DRAW_NOTHING = frozenset("\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u2800\u3164\uffa0")
JOINER, EMOJI_STYLE = "\u200d", "\ufe0f"
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
    "\r": "carriage return",
    "\x00": "null",
    "\x1b": "escape",
}


@dataclass(frozen=True)
class Piece:
    """One stretch of a text: as it is, or with what must be said about it."""

    kind: Literal["text", "host", "lookalike", "hidden", "marks", "blank", "more"]
    text: str = ""
    note: str = ""
    count: int = 0


def hidden_name(char: str) -> str:
    """`U+202E right-to-left override`."""
    name = NAMES.get(char) or unicodedata.name(char, "").lower()
    if not name:
        name = {"Cc": "control character", "Co": "private character"}.get(unicodedata.category(char), "no character")
    return f"U+{ord(char):04X} {name}"


def is_hidden(char: str) -> bool:
    """Whether `char` draws nothing, or changes how its neighbours are drawn."""
    if char in "\n\t" or " " <= char <= "~":
        return False
    category = unicodedata.category(char)
    if category in ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp") or char in DRAW_NOTHING:
        return True
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


def scripts(word: str) -> set[str]:
    """The alphabets that `word` is written in, by the first word of each letter's name."""
    return {unicodedata.name(char, "unknown").split()[0].lower() for char in word if char.isalpha()}


def lookalike(host: str) -> str:
    """What is wrong with a host name's letters; empty where nothing is."""
    labels = re.sub(r"^https?://", "", host).split(".")
    if any(label.startswith("xn--") for label in labels):
        return "an encoded name (punycode)"
    for label in labels:
        used = scripts(label)
        if "latin" in used and used - {"latin"}:
            odd = next(char for char in label if char.isalpha() and scripts(char) != {"latin"})
            return f"mixes alphabets: U+{ord(odd):04X} is {unicodedata.name(odd, 'unknown').lower()}"
    strange = scripts("".join(labels[:-1])) - {"latin"}
    if strange & {"cyrillic", "greek", "armenian", "cherokee"} and labels[-1].isascii():
        return f"written in {min(strange)} letters"
    return ""


def pieces(text: str, *, clamp: bool = True) -> Iterator[Piece]:
    """Cut `text` into what is shown and what is said about it. With `clamp`, the middle of a long text is one piece.

    A 10 MB text costs what its shown part costs: stretches are found lazily and the middle is only counted.
    """
    text = text.replace("\r\n", "\n")
    budget = HEAD if clamp else len(text)
    at = 0
    while at < len(text):
        gap = GAP.search(text, at)
        stop = gap.start() if gap else len(text)
        if stop - at > budget and len(text) - at - budget > TAIL:
            yield from readable(text[at : at + budget])
            tail = len(text) - TAIL
            middle = text[at + budget : tail]
            yield Piece("more", text=middle, count=len(middle))
            yield from pieces(text[tail:], clamp=False)
            return
        yield from readable(text[at:stop])
        budget = max(budget - (stop - at) - 80, 0)
        if gap:
            yield measured(gap.group(), rest=text[gap.end() :] if len(text) - gap.end() < TAIL else None)
            at = gap.end()
        else:
            at = stop


def measured(blank: str, *, rest: str | None) -> Piece:
    """A stretch of emptiness, by its count, with how much follows it (`rest` None: too much to be worth saying)."""
    lines = blank.count("\n")
    # The first line break of the stretch ends the line before it.
    what = f"{lines - 1:,} blank lines collapsed" if lines else f"{len(blank):,} spaces collapsed"
    if rest is None:
        return Piece("blank", note=what, count=len(blank))
    following = sum(1 for line in rest.splitlines() if line.strip())
    word = "line follows" if following == 1 else "lines follow"
    return Piece("blank", note=f"{what}|then {following} more {word}" if following else what, count=len(blank))


def readable(text: str) -> Iterator[Piece]:
    """Cut a short text at hosts and at what cannot be seen."""
    at = 0
    for match in HOST.finditer(text):
        host = match.group()
        wrong = lookalike(host)
        if not (wrong or host.startswith(("http://", "https://", "www."))):
            continue
        yield from visible(text[at : match.start()])
        yield Piece("lookalike" if wrong else "host", text=host, note=wrong)
        at = match.end()
    yield from visible(text[at:])


def visible(text: str) -> Iterator[Piece]:
    """Cut a text at what cannot be seen, runs of one kind together."""
    start = at = 0
    while at < len(text):
        char = text[at]
        end = at + 1
        piece: Piece | None = None
        if tags := TAGS.match(text, at):
            end = tags.end()
            said = "".join(chr(ord(tag) - 0xE0000) for tag in tags.group() if 0x20 <= ord(tag) - 0xE0000 < 0x7F)
            piece = Piece("hidden", text=tags.group(), note=f"{end - at} tag characters: “{said}”", count=end - at)
        elif is_hidden(char) and not in_emoji(text, at):
            while end < len(text) and text[end] == char:
                end += 1
            times = f" ×{end - at:,}" if end - at > 1 else ""
            piece = Piece("hidden", text=text[at:end], note=hidden_name(char) + times, count=end - at)
        elif unicodedata.combining(char):
            while end < len(text) and unicodedata.combining(text[end]):
                end += 1
            if end - at > 3:  # a pile of marks paints over the lines around it
                piece = Piece("marks", text=text[at:end], note=f"{end - at:,} combining marks", count=end - at)
        if piece:
            if start < at:
                yield Piece("text", text=text[start:at])
            yield piece
            start = end
        at = end
    if start < len(text):
        yield Piece("text", text=text[start:])


def in_emoji(text: str, at: int) -> bool:
    """Whether a joiner or a style selector sits where emoji use it."""
    if text[at] not in (JOINER, EMOJI_STYLE) or at == 0:
        return False
    before = unicodedata.category(text[at - 1]) in ("So", "Sk", "Po", "Nd") or text[at - 1] == EMOJI_STYLE
    if text[at] == EMOJI_STYLE:
        return before
    return before and at + 1 < len(text) and unicodedata.category(text[at + 1]) == "So"


def icon(name: str) -> SafeString:
    from approvals.templatetags.holdpoint import icon as tag  # the tag library imports this module

    return tag(name, size="s")


def html_of(piece: Piece, *, whole: str) -> SafeString:
    """One piece as HTML."""
    if piece.kind == "text":
        return escape(piece.text)
    if piece.kind == "host":
        return format_html('<span class="link-off">{}</span>', piece.text)
    if piece.kind == "lookalike":
        return format_html(
            '<span class="link-off">{}</span><span class="codepoint">{}look-alike host, {}</span>',
            piece.text, icon("warn"), piece.note,
        )  # fmt: skip
    if piece.kind in ("hidden", "marks"):
        return format_html('<span class="codepoint">{}{}</span>', icon("hidden"), piece.note)
    if piece.kind == "blank":
        what, _, rest = piece.note.partition("|")
        follows = format_html(" <span>{}</span>", rest) if rest else ""
        return format_html('<span class="collapsed">{}<b>{}</b>{}</span>', icon("fold"), what, follows)
    return middle(piece, whole=whole)


def middle(piece: Piece, *, whole: str) -> SafeString:
    """The folded middle of a long text: counted, and one step away."""
    said = format_html("{}<b>{} characters are not shown here</b>", icon("fold"), f"{piece.count:,}")
    if whole and piece.count > FOLDED:
        return format_html('<span class="collapsed">{} <a href="{}">Show all of it</a></span>', said, whole)
    inside = render(piece.text, clamp=False)
    return format_html('<details class="more"><summary class="collapsed">{}</summary>{}</details>', said, inside)


def render(text: str, *, clamp: bool = True, whole: str = "") -> SafeString:
    """`text` as HTML that is safe and honest. `whole` is the address that shows all of it, where there is one."""
    found = pieces(text, clamp=clamp)
    return format_html_join("", "{}", ((html_of(piece, whole=whole),) for piece in found))


def line(text: str, *, limit: int = 300) -> SafeString:
    """`text` on one line, isolated from its surroundings: titles, names, keys."""
    flat = " ".join(text[: limit * 4].split(" "))
    flat = re.sub(r"\s*\n\s*", " ", flat).strip()
    rest = len(text) - limit if len(flat) > limit else 0
    shown = format_html_join("", "{}", ((html_of(piece, whole=""),) for piece in pieces(flat[:limit], clamp=False)))
    more = format_html(' <span class="hint">and {} more characters</span>', f"{rest:,}") if rest else ""
    return format_html("<bdi>{}{}</bdi>", shown, more)


def plain(text: str, *, limit: int = 200) -> str:
    """`text` for places that take no markup (a page's title, an attribute): what is hidden is written out."""
    shown = "".join(f"[{piece.note}]" if piece.note else piece.text for piece in visible(text[:limit]))
    return re.sub(r"\s+", " ", shown).strip() + ("…" if len(text) > limit else "")


def badge_count(text: str) -> tuple[int, int]:
    """(characters that cannot be seen, blank lines in measured stretches) of a text; both 0 for honest text."""
    unseen = blank = 0
    for piece in pieces(text[:200_000], clamp=False):
        unseen += piece.count if piece.kind in ("hidden", "marks") else 0
        blank += int(piece.note.split(" ")[0].replace(",", "")) if piece.kind == "blank" and "lines" in piece.note else 0
    return unseen, blank


NOTHING = mark_safe("")
