"""What the style of an HTML mail hides: told apart, so that a reviewer sees it as hidden and it decides nothing.

Whoever hides text writes it for a program and not for a reader, and there are more ways to hide text than anybody can
list. So this lists what leaves text readable, and all else counts as hidden: unknown elements, declarations that move,
clip, cover or shrink, colours that cannot be told from what is behind them, and what takes a browser to know
(`var(--x)`, a style sheet from elsewhere). What is hidden wrongly is shown to the reviewer all the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bs4 import BeautifulSoup
from bs4.element import Tag
from soupsieve import SelectorSyntaxError

from .refunds_colours import BLACK, PAPER, SEE_THROUGH, Colours, colours_of, told_apart

MAX_RULES = 200  # of the style sheets that are applied
LEAST_SIZE = 6.0  # px of a letter that is read
USUAL_SIZE = 16.0

_ELEMENTS = """
[document] html head title meta base link style script body main header footer section article nav aside address
p div span center br hr wbr nobr pre blockquote h1 h2 h3 h4 h5 h6 ul ol li dl dt dd figure figcaption img o:p
table caption colgroup col thead tbody tfoot tr th td
a b i u em strong small big font tt code kbd samp var cite q abbr acronym sub sup mark time dfn label ins bdi
"""
READ = frozenset(_ELEMENTS.split())
_SIZED = ("font-size", "font")
_BACKGROUNDS = ("background", "background-color", "background-image")
_SMALLER = ("small", "sub", "sup")
# Properties that leave text readable whatever their value, and those that do with some values.
_FREE = re.compile(
    r"font-(?:family|style|weight|variant[\w-]*|stretch|kerning|display|feature-settings|language-override)"
    r"|text-(?:align[\w-]*|transform|rendering|shadow|justify|underline[\w-]*|wrap[\w-]*)|padding[\w-]*|border[\w-]*"
    r"|outline[\w-]*|list-style[\w-]*|white-space[\w-]*|word-(?:break|wrap)|overflow-wrap|line-break|hyphens|direction"
    r"|min-(?:width|height)|table-layout|caption-side|empty-cells|cursor|orphans|widows|page[\w-]*|break-[\w-]+|size"
    r"|panose-1|unicode-range|quotes|tab-size|box-(?:sizing|shadow)|float|clear|flex[\w-]*|align-[\w-]+|justify-[\w-]+"
    r"|(?:row-|column-)?gap|color-scheme|supported-color-schemes|user-select|mso-(?!hide)[\w-]+|--[\w-]+"
    r"|-(?:webkit|moz|ms)-(?:box-s\w+|font-smoothing|nbsp-mode|line-break|hyphens|user-select|interpolation-mode)"
)
_NUMBER = r"[+]?\d*\.?\d+"
_SOME = tuple(
    (re.compile(name), re.compile(value))
    for name, value in (
        (r"display", r"block|inline(?:-\w+)?|table(?:-[\w-]+)?|list-item|flex|grid"),
        (r"visibility", r"visible"),
        (r"position", r"static|relative"),
        (r"left|right|top|bottom|inset", r"auto|0(?:px)?"),
        (r"opacity", r"1(?:\.0*)?|0?\.[5-9]\d*"),
        (r"zoom", r"1|100%|normal"),
        (r"(?:max-)?(?:width|height)", r"auto|none|inherit|(?:min|max|fit)-content|(?=.*[1-9])[^-(]*"),
        (r"overflow(?:-[xy])?", r"visible|auto|scroll|hidden"),  # hidden: with no size to cut at
        (r"margin[\w-]*", rf"(?:(?:auto|{_NUMBER}\w*%?|-(?:\d|1\d)(?:\.\d+)?(?:px|pt)?)\s*)+"),
        (r"text-indent", rf"-?(?:\d|[1-4]\d)(?:\.\d+)?(?:px|pt|em)?|{_NUMBER}(?:px|pt)"),
        (r"(?:letter|word)-spacing", r"normal|-?0*(?:\.\d+)?(?:px|pt|em)?|\d(?:\.\d+)?(?:px|pt)"),
        (r"line-height", r"normal|(?:[1-9]\d*|0?\.[89])\.?\d*|(?:[89]\d|\d{3})(?:\.\d+)?%"),
        (r"line-height", r"(?:[6-9]|[1-9]\d+)\.?\d*(?:px|pt)"),
        (r"vertical-align", r"[a-z-]+|-?\d(?:\.\d+)?(?:px|pt)"),
        (r"(?:-webkit-)?text-decoration[\w-]*", r"(?!.*line-through).*"),
        (r"-(?:webkit|ms|moz)-text-size-adjust", r"100%|none|auto"),
        (r"unicode-bidi", r"normal|embed|isolate"),
        (r"background-(?:repeat|position[\w-]*|size|attachment|origin)", r".*"),
    )
)  # fmt: skip
_SIZE = re.compile(rf"({_NUMBER})(px|pt|em|rem|%)")
_SIZES = {"xx-small": 9, "x-small": 10, "small": 13, "medium": 16, "large": 18, "x-large": 24, "xx-large": 32}
_PER = {"px": 1.0, "pt": 4 / 3, "rem": USUAL_SIZE}
_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
Declared = list[tuple[str, str]]  # properties and values, in small letters


@dataclass(frozen=True)
class Drawn:
    """How an element's own text is drawn; a set holds each colour that it may have, None where nobody can tell."""

    letters: Colours | None = BLACK
    behind: Colours | None = PAPER
    size: float = USUAL_SIZE

    @property
    def readable(self) -> bool:
        return self.size >= LEAST_SIZE and told_apart(self.letters, self.behind)


def taken_out(soup: BeautifulSoup) -> str:
    """Take out of a page what its style hides; its words, a line for each element."""
    styles = _styles(soup)
    drawn: dict[int, Drawn] = {id(soup): Drawn()}
    inside: set[int] = set()
    hidden: list[Tag] = []
    for element in soup.find_all(True):
        around = id(element.parent)
        if around in inside:
            inside.add(id(element))
            continue
        declared = None if styles is None else styles.get(id(element), [])
        made = _drawn(element, declared or [], drawn[around])
        drawn[id(element)] = made
        if declared is None or not _shown(element, declared) or not (made.readable or _wordless(element)):
            inside.add(id(element))
            hidden.append(element)
    said = [" ".join(element.get_text(" ").split()) for element in hidden if element.name not in ("style", "script")]
    for element in hidden:
        element.extract()
    return "\n".join(filter(None, said))


def _shown(element: Tag, declared: Declared) -> bool:
    """Whether an element and its declarations leave its words where a reader sees them; colour and size aside."""
    if element.name not in READ or element.has_attr("hidden") or element.has_attr("popover"):
        return False
    cut = any(name.startswith("overflow") and "hidden" in value for name, value in declared)
    sized = any(re.fullmatch(r"(?:max-)?(?:width|height)", name) for name, _ in declared)
    return not (cut and sized) and all(_harmless(name, value) for name, value in declared)


def _harmless(name: str, value: str) -> bool:
    if (
        name in ("color", "font-size", "font", "background", "background-color", "background-image")
        or value == "inherit"
    ):
        return True
    return bool(_FREE.fullmatch(name)) or any(n.fullmatch(name) and v.fullmatch(value) for n, v in _SOME)


def _wordless(element: Tag) -> bool:
    """Whether an element has no words of its own; what is in it is looked at by itself."""
    return not any(isinstance(each, str) and each.strip() for each in element.children)


def _drawn(element: Tag, declared: Declared, around: Drawn) -> Drawn:
    """How the element's text is drawn where all that is declared may apply."""
    attributes = {name: str(element.get(name, "")) for name in ("color", "text", "bgcolor", "background")}
    letters = [value for name, value in declared if name == "color"]
    letters += [attributes["color"]] if element.name == "font" and attributes["color"] else []
    letters += [attributes["text"]] if element.name == "body" and attributes["text"] else []
    behind = [value for name, value in declared if name in _BACKGROUNDS and value not in SEE_THROUGH]
    behind += list(filter(None, (attributes["bgcolor"], attributes["background"] and "image")))
    sizes = [value for name, value in declared if name in _SIZED]
    size = around.size * (0.83 if element.name in _SMALLER else 1)
    return Drawn(
        letters=colours_of(letters, around.letters),
        behind=colours_of(behind, around.behind),
        size=min((_size(value, around.size) for value in sizes), default=size),
    )


def _size(value: str, around: float) -> float:
    """Px of a letter; 0 where nobody can tell."""
    value = value.removesuffix("!important").strip()
    if value in ("inherit", "larger", "smaller"):
        return around * (0.83 if value == "smaller" else 1)
    for word in value.split():
        if word in _SIZES:
            return float(_SIZES[word])
        if found := _SIZE.fullmatch(word.partition("/")[0]):
            number = float(found[1]) / (100 if found[2] == "%" else 1)
            return number * _PER.get(found[2], around)
    return 0.0


def _styles(soup: BeautifulSoup) -> dict[int, Declared] | None:
    """By element, all declarations of its own and of the page's rules that are about it; None where nobody can tell."""
    found = {id(each): _declared(_plain(str(each["style"]))) for each in soup.find_all(style=True)}
    sheet = _plain(re.sub(r"<!--|-->", "", "\n".join(each.get_text() for each in soup("style"))))
    rules = _RULE.findall(sheet)
    if len(rules) > MAX_RULES or "@import" in sheet or soup.select("link[rel~=stylesheet]"):
        return None
    for selector, said in rules:
        declared = _declared(said)
        about = _selected(soup, selector)
        if about is None and not all(_harmless(*each) for each in declared):
            return None
        for each in about or []:
            found[id(each)] = found.get(id(each), []) + declared
    return found


def _selected(soup: BeautifulSoup, selector: str) -> list[Tag] | None:
    """The elements that a rule is about; None where the selector cannot be read."""
    try:
        return list(soup.select(selector.strip().rpartition(";")[2]))
    except (SelectorSyntaxError, ValueError, NotImplementedError, RecursionError):
        return None


def _declared(style: str) -> Declared:
    """The declarations of a style. One that a string holds counts too: it can only hide more."""
    pairs = [each.partition(":") for each in style.lower().split(";")]
    return [(name.strip(), re.sub(r"\s*!\s*important\s*$", "", value).strip()) for name, mark, value in pairs if mark]


def _plain(style: str) -> str:
    """A style without comments and escapes, which would hide what hides.

    What looks like a comment may stand in a string: then its marks alone are taken out, and what is in it counts.
    """
    comments = r"/\*|\*/" if re.search("[\"']", style) else r"/\*.*?(?:\*/|$)"
    style = re.sub(comments, "", style, flags=re.DOTALL)
    return re.sub(r"\\([0-9a-fA-F]{1,6})\s?|\\(.)", _unescaped, style)


def _unescaped(found: re.Match[str]) -> str:
    if not found[1]:
        return found[2]
    number = int(found[1], 16)
    return chr(number) if 0 < number < 0x11_0000 and not 0xD800 <= number < 0xE000 else "\ufffd"
