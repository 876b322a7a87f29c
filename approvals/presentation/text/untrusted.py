"""Renders untrusted words as HTML that is safe and hides nothing, by the findings of `invisible`."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from hashlib import blake2s

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.templatetags.static import static
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString

from approvals.cards.unreadable import LONGEST, SHORT
from approvals.english import count_of
from checkpoints.values import json_pointer

from . import lookalikes, size_limit
from .invisible import HEAD, TAIL, TextPiece, blanks, cut, pieces, unnormal, visible, without_ends

KNOWN = 4096  # short texts of which is remembered that nothing in them is marked
STRANGE = 6  # cost of a character in a text in which each has to be examined
LINES = 30  # lines shown of a text whose others are folded
BREAK = re.compile(r"([ \t]*[\r\n][ \t\r\n]*)")  # no other blanks: those are shown as what they are
FOLDED = LONGEST  # a longer middle is not in the page, but linked where there is an address


def html_of(piece: TextPiece, *, whole: str, value: bool = False) -> SafeString:
    """Render one piece as HTML; of a value, if `value`."""
    if piece.kind == "text":
        return escape(piece.text)
    if piece.kind == "host":
        return format_html('<span class="link-off">{}</span>', piece.text)
    if piece.kind == "lookalike":
        return format_html(
            '<span class="link-off">{}</span><span class="codepoint">{}look-alike host, {}</span>',
            piece.text, icon("warn", "s"), piece.note,
        )  # fmt: skip
    if piece.kind == "letters":
        return letters(piece.note)
    if piece.kind == "break":
        return _break(piece.text)
    if piece.kind in ("hidden", "marks", "unnormal"):
        return format_html('<span class="codepoint">{}{}</span>', icon("hidden", "s"), piece.note)
    if piece.kind == "blank":
        what, _, rest = piece.note.partition("|")
        follows = format_html(" <span>{}</span>", rest) if rest else ""
        return format_html('<span class="collapsed">{}<b>{}</b>{}</span>', icon("fold", "s"), what, follows)
    return middle(piece, whole=whole, value=value)


def middle(piece: TextPiece, *, whole: str, value: bool) -> SafeString:
    """Render the folded middle of a long text: its length, and its text or a link to it."""
    said = format_html("{}<b>{} characters are not shown here</b>", icon("fold", "s"), f"{piece.count:,}")
    carried = piece.count <= FOLDED and bool(piece.text) and size_limit.takes(piece.count)
    if not carried:
        link = format_html(' <a href="{}">Show all of it</a>', whole) if whole else ""
        return format_html('<span class="collapsed">{}{}</span>', said, link)
    inside = render(piece.text, clamp=False, value=value, part=True)
    return format_html('<details class="more"><summary class="collapsed">{}</summary>{}</details>', said, inside)


def render(text: object, *, clamp: bool = True, whole: str = "", value: bool = False, part: bool = False) -> SafeString:
    """Render `text` as HTML that is safe and hides nothing. `whole`: the address that shows all of it, if any.

    `value`: it runs as it is, so that each odd space and the blanks at its ends are named; `part`: its ends are none.
    """
    text = str(text)
    drawn = min(len(text), HEAD + TAIL) if clamp else len(text)
    if drawn > SHORT and not size_limit.takes(drawn if text.isascii() else drawn * STRANGE):
        more = middle(TextPiece("more", count=len(text) - SHORT), whole=whole, value=value)
        return format_html("{}{}", render(text[:SHORT], clamp=False, value=value, part=part), more)
    return drawn_of(text, clamp=clamp, whole=whole, value=value, part=part)


def drawn_of(text: str, *, clamp: bool, whole: str = "", value: bool = False, part: bool = False) -> SafeString:
    """Render the pieces of a text; a short one in which nothing is marked, which most are, from memory."""
    if len(text) <= SHORT and (known := unmarked(text, value, part)) is not None:
        return known
    found = pieces(text, clamp=clamp, value=value, part=part)
    return SafeString("".join(html_of(piece, whole=whole, value=value) for piece in found))


@lru_cache(KNOWN)
def unmarked(text: str, value: bool, part: bool) -> SafeString | None:
    """Render a short text in which nothing is marked; None for others, as marks take room on the page that shows them.

    Depends on the text alone, so it is the same for every reader.
    """
    first, middle, last = without_ends(text, value=value and not part)
    found = [*blanks(first), *cut(middle, clamp=False, value=value), *blanks(last), *unnormal(text)]
    if any(piece.kind not in ("text", "host") for piece in found):
        return None
    return SafeString("".join(html_of(piece, whole="") for piece in found))


def folded(text: str, address: str) -> SafeString:
    """Render the first lines of a long value, the others folded away; `address` is where it is shown in full.

    What was unfolded stays so as long as the address is the same.
    """
    lines = text.split("\n")
    if len(lines) <= LINES:
        return render(text, whole=address, value=True, part=True)
    return format_html(
        '{}<details class="value-rest" id="rest-{}"><summary>Show {} more line{}</summary>{}</details>',
        render("\n".join(lines[:LINES]), whole=address, value=True, part=True),
        blake2s(address.encode(), digest_size=8).hexdigest(),
        f"{len(lines) - LINES:,}",
        "" if len(lines) == LINES + 1 else "s",
        render("\n".join(lines[LINES:]), whole=address, value=True, part=True),
    )


def line(text: object, *, limit: int = 300) -> SafeString:
    """Render words on one line, isolated from their surroundings: titles, names."""
    text = str(text)
    flat = text[: limit * 4]
    flat = (re.sub(r"\s*\n\s*", " ", flat) if "\n" in flat else flat).strip(" \t\n\r")
    rest = len(text) - limit if len(flat) > limit else 0
    more = f' <span class="hint">and {rest:,} more characters</span>' if rest else ""
    return SafeString(f"<bdi>{drawn_of(flat[:limit], clamp=False)}{more}</bdi>")


def brief(text: str, *, limit: int = 300) -> SafeString:
    """Render the beginning of a value on one line, with its ends and its line breaks marked.

    Two commands must not read as one.
    """
    first, middle, last = without_ends(text[:limit], value=True)
    parts = BREAK.split(middle)
    drawn = [_break(part) if at % 2 else drawn_of(part, clamp=False, value=True) for at, part in enumerate(parts)]
    ends = [SafeString("".join(html_of(piece, whole="") for piece in blanks(each))) for each in (first, last)]
    drawn = [each for each in (ends[0], *drawn, ends[1]) if each]
    rest = f' <span class="hint">and {len(text) - limit:,} more characters</span>' if len(text) > limit else ""
    return SafeString(f"<bdi>{' '.join(drawn)}{rest}</bdi>")


def _break(between: str) -> SafeString:
    """Render the mark of line breaks. A text cannot hold it: what looks like it there is no badge."""
    count = len(re.findall(r"\r\n|\r|\n", between))
    return format_html(
        '<span class="line-break"><span aria-hidden="true">⏎{}</span><span class="sr">{}</span></span>',
        f" {count}" if count > 1 else "",
        "line break" if count == 1 else f"{count} line breaks",
    )


def exact(text: object, *, limit: int = 300) -> SafeString:
    """Render on one line a `text` in which every character matters: an amount, a program's name, an identifier."""
    text = str(text)
    wrong = lookalikes.in_exact(text[:limit])
    return format_html("{}{}", brief(text, limit=limit), letters(wrong)) if wrong else brief(text, limit=limit)


def letters(wrong: str) -> SafeString:
    """Render the badge of a character that only looks like another."""
    return format_html('<span class="codepoint">{}look-alike letters, {}</span>', icon("warn", "s"), wrong)


def place(pointer: str) -> str:
    """Write a JSON Pointer for people: `/proposal/amount` as "proposal, amount" with an arrowhead between."""
    tokens = json_pointer.split_pointer(pointer) if pointer.startswith("/") else []
    return " \u203a ".join(tokens) or "all of it"


def person(user: AbstractBaseUser | AnonymousUser | str) -> str:
    """Return a person's name, or their username where they have none; a name that this returned stays as it is."""
    if isinstance(user, str):
        return user
    full = user.get_full_name() if hasattr(user, "get_full_name") else ""
    return plain(full or user.get_username(), limit=80)


def plain(text: object, *, limit: int = 200, value: bool = False) -> str:
    """Write `text` for places that take no markup (a page's title, an attribute): hidden characters spelled out.

    `value`: as in `render`.
    """
    text = str(text)
    first, middle, last = without_ends(text[:limit], value=value)
    found = (*blanks(first), *visible(middle, value=value), *blanks(last), *unnormal(text))
    shown = "".join(f"[{piece.note}]" if piece.note else piece.text for piece in found)
    shown = re.sub(r"\s+", " ", shown).strip()
    if len(text) <= limit:
        return shown
    rest = len(text) - limit
    return f"{shown}… and {count_of(rest, 'more character')}"


@cache  # a page draws hundreds, and the sheet's address is the same for as long as the process lives
def icon(name: str, size: str = "") -> SafeString:
    """Render `<svg class="icon">` of the symbol `i-<name>`; size "s" is the small one."""
    sized = format_html(' data-size="{}"', size) if size else ""
    sheet = static("icons.svg")
    return format_html('<svg class="icon"{} aria-hidden="true"><use href="{}#i-{}"/></svg>', sized, sheet, name)
