"""Checks that all words of an HTML mail are certainly visible. It needs no browser, and so accepts only plain pages.

An attacker hides text that a program reads and a person does not see, and the ways of hiding cannot be listed. So this
is an allowlist of elements, attributes and declarations that leave a page readable in any combination and at any place:
none covers, clips or shrinks anything; letters are dark, backgrounds light. None of them depends on another, so it does
not matter how a browser nests elements that are not closed. Spaces and elements without words push words away only a
little in sum, however a browser adds it up. A style sheet, a comment, a tag that is written oddly or anything else that
is not listed means that the page cannot be judged.
"""

from __future__ import annotations

import re

from bs4 import BeautifulSoup
from bs4.element import Tag

from .blanks import spaced

LONGEST = 200  # characters of a value that is read
MOST_PUSHED = 800  # pixels that words may be pushed, both ways together: twenty lines each
LETTER, LINE = 24, 48  # pixels: the largest letters, and their highest line
# Relative luminance: letters have at most this, what is behind them at least. The contrast is 3 to 1 at the least then,
# as WCAG 2.2 (1.4.3) asks of large letters. Signatures in #888 and pages in #eee are usual.
DARK, LIGHT = 0.25, 0.85

_ELEMENTS = """
html head meta body section article p div span center br hr blockquote ul ol li dl dt dd img o:p
table tbody tr th td a b i u em strong font
"""
_READ = frozenset(_ELEMENTS.split())
_PARENTS = {"td": ("tr",), "th": ("tr",), "tr": ("table", "tbody"), "tbody": ("table",)}
_CHILDREN = {"table": ("tbody", "tr"), "tbody": ("tr",), "tr": ("td", "th")}
# Pixels that they take beside their words: to the left and right, or above and below, whichever is more.
_TAKEN = dict.fromkeys(["blockquote", "ul", "ol", "dd"], 80) | dict.fromkeys(["table", "td", "th"], 40)
_EMPTY_LINES = ("hr", "img", "li", "table", "tr")  # these take a line without a word in them
_INLINE = ("span", "a", "b", "i", "u", "em", "strong", "font", "img", "br", "o:p")
_PIXELS = {"px": 1, "pt": 4 / 3, "cm": 38, "in": 96, "em": LETTER, "ex": 14}
# A browser takes whatever is written otherwise in ways of its own.
_TAG = re.compile(
    r"<!doctype html>|</[a-z][a-z:]*\s*>"
    r"|<[a-z][a-z0-9:]*(?:\s+[a-z][a-z:-]*(?:=(?:\"[^\"<>]*\"|'[^'<>]*'|[^\s\"'<>=`]+))?)*\s*/?>",
    re.IGNORECASE,
)
# Here a browser nests what a program takes for closed, or breaks the line.
_OTHERWISE = re.compile(r"<(?!(?:br|hr|img|meta|o:p)\b)[a-z][^<>]*/>|</br", re.IGNORECASE)
_COLOUR = re.compile(r"#([0-9a-f]{3}|[0-9a-f]{6})|rgb\((\d{1,3}), ?(\d{1,3}), ?(\d{1,3})\)")
_NAMED = {
    "black": "#000",
    "windowtext": "#000",
    "navy": "#000080",
    "maroon": "#800000",
    "red": "#f00",
    "blue": "#00f",
    "gray": "#808080",
    "white": "#fff",
    "transparent": "#fff",
}
_LENGTH = re.compile(r"([0-9.]+)(px|pt|cm|in|em|ex)")
# Each word of a value is one of these, in full. None of them can match in more than one way.
_SPACE = re.compile(
    r"auto|0|[0-3]?\d(?:\.\d{1,4})?(?:px|pt)|0?\.\d{1,4}(?:cm|in|em|ex)|[0-2](?:\.\d{1,4})?(?:cm|in|em|ex)"
)
_WORDS = {
    "font-weight": re.compile(r"normal|bold|[1-9]00"),
    "font-style": re.compile(r"normal|italic"),
    "font-size": re.compile(
        r"(?:[89]|1\d|2[0-3])(?:\.\d{1,4})?px|24px|(?:[6-9]|1[0-7])(?:\.\d{1,4})?pt|18pt|small|medium|large"
    ),
    "line-height": re.compile(r"normal|1(?:\.\d{1,4})?|2"),
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
    "size": re.compile(r"[1-5]"),
    "width": re.compile(r"[0-9]{1,3}|(?:[0-9]{1,2}|100)%"),
    "border": re.compile(r"[0-9]"),
    "cellpadding": re.compile(r"[0-9]|10"),
    "cellspacing": re.compile(r"[0-9]|10"),
    "http-equiv": re.compile(r"content-type"),
}
_PICTURE = {"width": re.compile(r"[0-9]{1,3}"), "height": re.compile(r"[0-9]{1,2}|100")}  # else it is as large as it is


def all_in_sight(html: str, soup: BeautifulSoup) -> bool:
    """Tell whether a reader of the page sees all of its words.

    `soup` is the page, parsed so that no attribute replaces another.
    """
    if "<" in _TAG.sub("", html) or _OTHERWISE.search(html):
        return False
    elements = soup.find_all(True)
    return all(_plain(each) for each in elements) and _pushed(soup, elements) <= MOST_PUSHED


def _pushed(soup: BeautifulSoup, elements: list[Tag]) -> float:
    """Return how far any word may be pushed, in pixels, at most.

    It is pushed by what it stands in, by the other cells of its rows, and by all that is empty. Elements beside each
    other that hold words push each other away by those words, which are seen.
    """
    worded = _worded(soup)
    reach: dict[int, float] = {}
    empty = 0.0
    for element in reversed([soup, *elements]):
        taken, of_itself = _taken(element), _TAKEN.get(element.name, 0)
        if id(element) not in worded and (element.name in _EMPTY_LINES or taken > of_itself):
            empty += max(taken, LINE)
            taken = 0
        inner = [reach[id(each)] for each in element.children if isinstance(each, Tag)]
        reach[id(element)] = taken + max(inner, default=0) * (len(inner) if element.name == "tr" else 1)
    return reach[id(soup)] + empty


def _worded(soup: BeautifulSoup) -> set[int]:
    """Return the ids of the elements that hold words, in themselves or further in."""
    found: set[int] = set()
    for words in soup.find_all(string=True):
        for element in words.parents if spaced(words).strip() else ():
            if id(element) in found:
                break
            found.add(id(element))
    return found


def _taken(element: Tag) -> float:
    """Return the pixels that a plain element takes beside its words, at most: in its width, or in its height."""
    taken = float(_TAKEN.get(element.name, 0))
    for side in ("width", "height"):
        said = str(element.get(side, "")).strip()
        taken += int(said) if said.isdigit() else 0
    for declaration in str(element.get("style", "")).lower().split(";"):
        name, _, value = declaration.partition(":")
        if name.strip().startswith(("margin", "padding", "border")):
            lengths = [float(number) * _PIXELS[unit] for number, unit in _LENGTH.findall(value)]
            taken += max(lengths, default=0) * (1 if "-" in name else 2)
    return taken


def _plain(element: Tag) -> bool:
    """Tell whether the element, where it stands, leaves its words and all others in sight."""
    name, parent = element.name, element.parent.name if element.parent else ""
    inside = _CHILDREN.get(name)
    if name not in _READ or parent not in _PARENTS.get(name, (parent,)):
        return False
    if inside and any(
        each.name not in inside if isinstance(each, Tag) else str(each).strip() for each in element.children
    ):
        return False  # a browser puts it before the table
    if name == "img" and not all(form.fullmatch(str(element.get(key, ""))) for key, form in _PICTURE.items()):
        return False
    return all(_attribute(name, key, str(value).strip().lower()) for key, value in element.attrs.items())


def _attribute(element: str, name: str, value: str) -> bool:
    if name == "style":
        pairs = [each.partition(":") for each in value.split(";") if each.strip()]
        if element in _INLINE and any("margin" in each or "padding" in each for each, _, _ in pairs):
            return False  # they would add up in one line
        return all(_declaration(name.strip(), said.strip()) for name, _, said in pairs)
    if name in ("color", "text", "link", "vlink", "alink", "bgcolor"):
        return _declaration("background-color" if name == "bgcolor" else "color", value)
    if name == "face":
        return _declaration("font-family", value)
    if element == "meta" and name == "name":
        return value in ("generator", "progid", "originator")  # not the colours of a dark page
    listed = (_PICTURE if element == "img" else {}).get(name) or _ATTRIBUTES.get(name)
    return name in _FREE or name.startswith(("data-", "xmlns")) or bool(listed and listed.fullmatch(value))


def _declaration(name: str, value: str) -> bool:
    if len(value) > LONGEST:
        return False
    value = value.removesuffix("!important").strip()
    if name in ("color", "background", "background-color"):
        found = _luminance(value)
        return found is not None and (found <= DARK if name == "color" else found >= LIGHT)
    if name == "font-family":  # fonts of pictures draw other things than digits
        return not set(value) & set("(){}\\/*@<>:") and "dings" not in value
    side = re.fullmatch(r"(?:margin|padding)(?:-(?:left|right|top|bottom))?", name)
    listed = _SPACE if side else _WORDS.get(name)
    words = value.replace(", ", ",").split()
    return bool(listed and words) and all(listed.fullmatch(word) for word in words if listed)


def _luminance(colour: str) -> float | None:
    """Return a colour's relative luminance, from 0 to 1, as WCAG 2.2 defines it; None if it is written otherwise."""
    if not (found := _COLOUR.fullmatch(_NAMED.get(colour, colour))):
        return None
    if digits := found[1]:
        channels = list(bytes.fromhex("".join(each * 2 for each in digits) if len(digits) == 3 else digits))
    else:
        channels = [min(int(each), 255) for each in found.groups()[1:]]
    red, green, blue = (_linear(each / 255) for each in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
