"""Whether all words of an HTML mail are sure to be in sight: told without a browser, so only of plain pages.

Whoever hides text writes it for a program and not for a reader, and nobody can list the ways of hiding it. So this
lists the little that leaves a page readable however it is combined and wherever it stands: elements, attributes and
declarations of which none moves, covers, clips or shrinks anything, dark letters, light backgrounds. None of them
depends on another, so it does not matter how a browser nests what is left open. A style sheet, a comment, a tag that is
written oddly or anything else that is not listed makes the page one of which nobody can tell.
"""

from __future__ import annotations

import re

from bs4 import BeautifulSoup
from bs4.element import Tag

LONGEST = 200  # characters of a value that is read
MOST_MOVED = 30  # elements that push others away; each may do so by a little
DARK, LIGHT = 420, 600  # of three channels of 255 together: letters are at most this, what is behind them at least

_ELEMENTS = """
html head meta body section article p div span center br hr blockquote ul ol li dl dt dd img o:p
table tbody tr th td a b i u em strong font
"""
_READ = frozenset(_ELEMENTS.split())
_PARENTS = {"td": ("tr",), "th": ("tr",), "tr": ("table", "tbody"), "tbody": ("table",)}
_CHILDREN = {"table": ("tbody", "tr"), "tbody": ("tr",), "tr": ("td", "th")}
_MOVING = ("blockquote", "ul", "ol", "dd", "img")
# A browser takes whatever is written otherwise in ways of its own.
_TAG = re.compile(
    r"<!doctype html>|</[a-z][a-z:]*\s*>"
    r"|<[a-z][a-z0-9:]*(?:\s+[a-z][a-z:-]*(?:=(?:\"[^\"<>]*\"|'[^'<>]*'|[^\s\"'<>=`]+))?)*\s*/?>",
    re.IGNORECASE,
)
_COLOUR = re.compile(r"#([0-9a-f]{3}|[0-9a-f]{6})|rgb\((\d{1,3}), ?(\d{1,3}), ?(\d{1,3})\)")
_NAMED = {
    "black": 0,
    "windowtext": 0,
    "navy": 128,
    "maroon": 128,
    "red": 255,
    "blue": 255,
    "gray": 384,
    "white": 765,
    "transparent": 765,
}
# Each word of a value is one of these, in full. None of them can match in more than one way.
_SPACE = re.compile(
    r"auto|0|[0-3]?\d(?:\.\d{1,4})?(?:px|pt)|0?\.\d{1,4}(?:cm|in|em|ex)|[0-2](?:\.\d{1,4})?(?:cm|in|em|ex)"
)
_WORDS = {
    "font-weight": re.compile(r"normal|bold|[1-9]00"),
    "font-style": re.compile(r"normal|italic"),
    "font-size": re.compile(r"(?:[89]|[1-3]\d|40)(?:\.\d{1,4})?px|(?:[6-9]|[12]\d)(?:\.\d{1,4})?pt|small|medium|large"),
    "line-height": re.compile(r"normal|[12](?:\.\d{1,4})?"),
    "text-align": re.compile(r"left|right|center|justify|start"),
    "text-decoration": re.compile(r"none|underline"),
    "border-left": re.compile(r"[0-3]px|solid|#[0-9a-f]{3}|#[0-9a-f]{6}|rgb\(\d{1,3},\d{1,3},\d{1,3}\)"),
    "overflow-wrap": re.compile(r"break-word"),
    "word-wrap": re.compile(r"break-word"),
    "line-break": re.compile(r"after-white-space"),
    "-webkit-nbsp-mode": re.compile(r"space"),
}
_SAID = "class id lang dir align valign href src alt title target rel name cite charset content"
_FREE = frozenset(_SAID.split())
_ATTRIBUTES = {
    "size": re.compile(r"[1-7]"),
    "width": re.compile(r"\d{1,3}%?"),
    "height": re.compile(r"\d{1,3}"),
    "border": re.compile(r"\d"),
    "cellpadding": re.compile(r"\d{1,2}"),
    "cellspacing": re.compile(r"\d{1,2}"),
    "http-equiv": re.compile(r"content-type"),
}


def all_in_sight(html: str, soup: BeautifulSoup) -> bool:
    """Whether a reader of the page sees all of its words; in `soup`, the page, no attribute may replace another."""
    if "<" in _TAG.sub("", html):
        return False
    elements = soup.find_all(True)
    return sum(_moving(each) for each in elements) <= MOST_MOVED and all(_plain(each) for each in elements)


def _moving(element: Tag) -> bool:
    """Whether it pushes others away."""
    declared = str(element.get("style", "")).lower().split(";")
    spaced = (each for each in declared if "margin" in each or "padding" in each)
    return element.name in _MOVING or any(digit in each for each in spaced for digit in "123456789")


def _plain(element: Tag) -> bool:
    """Whether the element, where it stands, leaves its words and all others in sight."""
    name, parent = element.name, element.parent.name if element.parent else ""
    inside = _CHILDREN.get(name)
    if name not in _READ or parent not in _PARENTS.get(name, (parent,)):
        return False
    if inside and any(
        each.name not in inside if isinstance(each, Tag) else str(each).strip() for each in element.children
    ):
        return False  # a browser puts it before the table
    return all(_attribute(name, key, str(value).strip().lower()) for key, value in element.attrs.items())


def _attribute(element: str, name: str, value: str) -> bool:
    if name == "style":
        pairs = [each.partition(":") for each in value.split(";") if each.strip()]
        return all(_declaration(name.strip(), said.strip()) for name, _, said in pairs)
    if name in ("color", "text", "link", "vlink", "alink", "bgcolor"):
        return _declaration("background-color" if name == "bgcolor" else "color", value)
    if name == "face":
        return _declaration("font-family", value)
    if element == "meta" and name == "name":
        return value in ("generator", "progid", "originator")  # not the colours of a dark page
    listed = _ATTRIBUTES.get(name)
    return name in _FREE or name.startswith(("data-", "xmlns")) or bool(listed and listed.fullmatch(value))


def _declaration(name: str, value: str) -> bool:
    if len(value) > LONGEST:
        return False
    value = value.removesuffix("!important").strip()
    if name in ("color", "background", "background-color"):
        found = _brightness(value)
        return found is not None and (found <= DARK if name == "color" else found >= LIGHT)
    if name == "font-family":  # fonts of pictures draw other things than digits
        return not set(value) & set("(){}\\/*@<>:") and "dings" not in value
    side = re.fullmatch(r"(?:margin|padding)(?:-(?:left|right|top|bottom))?", name)
    listed = _SPACE if side else _WORDS.get(name)
    words = value.replace(", ", ",").split()
    return bool(listed and words) and all(listed.fullmatch(word) for word in words if listed)


def _brightness(colour: str) -> int | None:
    """The sum of its three channels; None where it is written in another way."""
    if not (found := _COLOUR.fullmatch(colour)):
        return _NAMED.get(colour)
    if digits := found[1]:
        digits = "".join(each * 2 for each in digits) if len(digits) == 3 else digits
        return sum(bytes.fromhex(digits))
    return sum(min(int(each), 255) for each in found.groups()[1:])
