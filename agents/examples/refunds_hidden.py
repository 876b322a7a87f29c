"""What the style of an HTML mail hides: told apart, so that a reviewer sees it as hidden and it decides nothing.

Whoever hides text writes it for a program and not for a reader. Where a value cannot be told without a browser
(`var(--x)`, `calc(…)`), the text counts as hidden: it is shown to the reviewer all the same.
"""

from __future__ import annotations

import re

from bs4 import BeautifulSoup
from bs4.element import Tag
from soupsieve import SelectorSyntaxError

MAX_RULES = 200  # of the style sheets that are applied
NEAR = 60  # of three channels of 255 together: colours that nobody tells apart

_ZERO = r"0*(?:\.0*)?0(?:px|pt|em|rem|%|vh|vw)?\s*(?:!|;|$)"
_UNTOLD = r"[^;]*(?:var|calc|env|min|max|clamp)\("
_HIDES = re.compile(
    r"(?:^|;)\s*(?:"
    rf"display\s*:\s*(?:none|{_UNTOLD})"
    rf"|visibility\s*:\s*(?:hidden|collapse|{_UNTOLD})"
    rf"|(?:opacity|font-size|zoom)\s*:\s*(?:{_ZERO}|{_UNTOLD}|0*\.[0-2]|[0-3](?:\.\d+)?(?:px|pt)|[0-2]?\d%)"
    rf"|(?:max-)?(?:height|width)\s*:\s*{_ZERO}"
    r"|(?:text-indent|left|right|top|bottom|margin(?:-\w+)?)\s*:\s*-\d{3,}"
    r"|clip\s*:\s*rect\(|clip-path\s*:\s*(?:inset|circle|polygon)\("
    r"|transform\s*:[^;]*(?:scale\w*\(\s*0|translate\w*\(\s*-\d{3,})"
    r"|mso-hide\s*:\s*all|content-visibility\s*:\s*hidden"
    r"|color\s*:\s*transparent"
    r")",
    re.IGNORECASE,
)
_COLOUR = re.compile(r"(?:^|;)\s*color\s*:\s*([^;!]+)", re.IGNORECASE)
_BACKGROUND = re.compile(r"(?:^|;)\s*background(?:-color)?\s*:\s*([^;!]+)", re.IGNORECASE)
_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
_NAMED = {"white": (255, 255, 255), "snow": (255, 250, 250), "ivory": (255, 255, 240), "black": (0, 0, 0)}
_PAPER = (255, 255, 255)
Colour = tuple[int, int, int]


def taken_out(soup: BeautifulSoup) -> str:
    """Take out of a page what its style hides; its words, a line for each element."""
    styles = _styles(soup)
    behind: dict[int, Colour] = {id(soup): _PAPER}
    inside: set[int] = set()
    hidden: list[Tag] = []
    for element in soup.find_all(True):
        around = id(element.parent)
        if around in inside:
            inside.add(id(element))
            continue
        style = styles.get(id(element), "")
        behind[id(element)] = _background(element, style) or behind.get(around, _PAPER)
        if element.has_attr("hidden") or _HIDES.search(style) or _unseen(element, style, behind[id(element)]):
            inside.add(id(element))
            hidden.append(element)
    said = [" ".join(element.get_text(" ").split()) for element in hidden if element.name not in ("style", "script")]
    for element in hidden:
        element.extract()
    return "\n".join(filter(None, said))


def _styles(soup: BeautifulSoup) -> dict[int, str]:
    """By element, all declarations of its own and of the page's rules that are about it."""
    found = {id(each): _plain(str(each["style"])) for each in soup.find_all(style=True)}
    sheets = _plain("\n".join(each.get_text() for each in soup("style")))
    for selector, said in _RULE.findall(sheets)[:MAX_RULES]:
        if not (_HIDES.search(said) or _COLOUR.search(said) or _BACKGROUND.search(said)):
            continue
        for each in _selected(soup, selector):
            found[id(each)] = f"{found.get(id(each), '')};{said}"
    return found


def _selected(soup: BeautifulSoup, selector: str) -> list[Tag]:
    """The elements that a rule is about; none of a selector that is no CSS, which no mail program applies either."""
    try:
        return list(soup.select(selector.strip().rpartition(";")[2]))
    except (SelectorSyntaxError, ValueError, NotImplementedError, RecursionError):
        return []


def _plain(style: str) -> str:
    """A style without comments and escapes, which would hide what hides."""
    style = re.sub(r"/\*.*?(?:\*/|$)", "", style, flags=re.DOTALL)
    return re.sub(r"\\([0-9a-fA-F]{1,6})\s?|\\(.)", _unescaped, style)


def _unescaped(found: re.Match[str]) -> str:
    if not found[1]:
        return found[2]
    number = int(found[1], 16)
    return chr(number) if 0 < number < 0x11_0000 and not 0xD800 <= number < 0xE000 else "\ufffd"


def _background(element: Tag, style: str) -> Colour | None:
    said = [each[1] for each in _BACKGROUND.finditer(style)] or [str(element.get("bgcolor", ""))]
    return next((colour for word in reversed(said) if (colour := _colour(word))), None)


def _unseen(element: Tag, style: str, behind: Colour) -> bool:
    """Whether its words have the colour of what is behind them."""
    said = [each[1] for each in _COLOUR.finditer(style)]
    said += [str(element["color"])] if element.name == "font" and element.has_attr("color") else []
    colour = next((each for word in said if (each := _colour(word))), None)
    return colour is not None and sum(abs(one - other) for one, other in zip(colour, behind, strict=True)) <= NEAR


def _colour(word: str) -> Colour | None:
    """A colour as three channels, in the ways that mails write them; None for any other."""
    word = word.strip().lower()
    first = word.split()[0] if word and not word.startswith("rgb") else word
    if first in _NAMED:
        return _NAMED[first]
    if found := re.fullmatch(r"#([0-9a-f]{3}|[0-9a-f]{6})", first):
        digits = "".join(each * 2 for each in found[1]) if len(found[1]) == 3 else found[1]
        return (int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:], 16))
    if found := re.match(r"rgba?\(\s*(\d{1,3})[\s,]+(\d{1,3})[\s,]+(\d{1,3})", word):
        return (min(int(found[1]), 255), min(int(found[2]), 255), min(int(found[3]), 255))
    return None
