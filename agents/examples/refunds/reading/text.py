"""Measures a stranger's text, puts it on one line, and extracts the words of an HTML page."""

from __future__ import annotations

import re
import unicodedata

from bs4 import BeautifulSoup
from bs4.element import CData, NavigableString

from . import blanks as refunds_blanks
from . import hidden as refunds_hidden

_EMOJI_PARTS = ("So", "Sk")
_LINES = ("address", "blockquote", "div", "h1", "h2", "h3", "h4", "li", "p", "pre", "table", "tr", "ul", "ol")
_PARAGRAPHS = ("blockquote", "h1", "h2", "h3", "h4", "p", "pre", "table", "ul", "ol")
_SPACE = " \t\r\n\f"
_BREAKS = re.compile(r"(?<![ \t])[ \t]*[\v\n](?:[ \t]*[\v\n])*[ \t]*")


def invisible(text: str) -> int:
    """Count the characters that cannot be seen: controls, format characters, tags, private use, blank letters.

    Joiners in emoji do not count.
    """
    hidden, before = 0, ""
    for char in text:
        category = unicodedata.category(char)
        if (
            category in ("Cf", "Co")
            or char in refunds_blanks.BLANK_LETTERS
            or (category == "Cc" and char not in "\n\r\t")
        ):
            hidden += not (char == "\u200d" and (before == "\ufe0f" or unicodedata.category(before) in _EMOJI_PARTS))
        before = char
    return hidden


def one_line(text: str, limit: int = 100) -> str:
    """`text` fit for a title: one line, nothing invisible, cut at `limit` characters."""
    seen = "".join(" " if unicodedata.category(char).startswith("C") else char for char in text)
    line = " ".join(seen.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def words_of(html: str) -> tuple[str, bool]:
    """(the words of a page, whether a reader is sure to see them all). Blocks have their own lines, blank ones stay.

    Raises what bs4 raises on markup that html.parser rejects.
    """
    # With an element before it, nothing takes the text for a file's name or for XML, and warns.
    soup = BeautifulSoup("<html>" + html, "html.parser", on_duplicate_attribute=_twice)
    in_sight = refunds_hidden.all_in_sight(html, soup)
    for element in soup(["script", "style"]):
        element.decompose()
    for cdata in soup.find_all(string=lambda node: isinstance(node, CData)):
        cdata.replace_with(str(cdata))
    for node in soup.find_all(string=True):
        if type(node) is NavigableString and not node.find_parent("pre"):
            node.replace_with(re.sub(f"[{_SPACE}\v]+", " ", node))
    for element in soup("br"):
        element.replace_with("\n")
    for element in soup(["td", "th"]):
        element.append("\t")  # a space would join the digits of two cells to one number
    for element in soup(_LINES):
        element.insert_before("\v")
        element.append("\v\n" if element.name in _PARAGRAPHS else "\v")
    words = _BREAKS.sub(_break, soup.get_text()).strip("\n ")
    return words, in_sight and not refunds_blanks.far_apart(words)


def _twice(attributes: dict[str, str], name: str, value: str) -> None:
    """Tell of an attribute that is given twice: a browser takes the first, others the last."""
    attributes["twice"] = name


def _break(found: re.Match[str]) -> str:
    """Line breaks that were asked for, and one more where a block ends or begins."""
    run = found.group()
    return "\n" * (run.count("\n") + ("\v" in run))
