"""Find lines of templates that are too long, and words on pages that nobody could translate.

Words are what a person reads: text between tags, the attributes in `SPOKEN`, and the label of a submit button.
They belong into {% translate %} or {% blocktranslate %}; as an argument of a filter or a tag, into _("…").
Code, keys, units, names of things and single letters are the same in every language.
"""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2] / "templates"
LONGEST = 160
SPOKEN = {"title", "aria-label", "aria-description", "aria-roledescription", "aria-valuetext", "placeholder", "alt"}
BUTTONS = {"submit", "button", "reset"}
SAME_EVERYWHERE = {"Holdpoint", "JSON", "CSV", "API", "UTC", "URL", "HTTP", "ms", "min", "KB", "MB", "GB"}

COMMENT = r"\{#[^\n]*?#\}|\{% *comment\b.*?%\}.*?\{% *endcomment *%\}|<!--.*?-->|<!doctype[^>]*>"
TRANSLATED = r"\{% *blocktrans(?:late)?\b.*?%\}.*?\{% *endblocktrans(?:late)? *%\}"
NOT_READ = re.compile(f"{COMMENT}|{TRANSLATED}", re.DOTALL | re.IGNORECASE)
TOKEN = re.compile(r"\{%.*?%\}|\{\{.*?\}\}")
ELEMENT = re.compile(r"<(/?)([a-zA-Z][\w-]*)((?:\"[^\"]*\"|'[^']*'|[^'\">])*)>")
ATTRIBUTE = re.compile(r"([\w-]+)\s*=\s*(\"[^\"]*\"|'[^']*')")
CODE = re.compile(r"(<(script|style|code|kbd)\b[^>]*>)(.*?)(?=</\2\s*>)", re.DOTALL)
BLOCK = re.compile(r"\{% *block +(\w+) *%\}(.*?)\{% *endblock\b[^%]*%\}", re.DOTALL)
FILLED = re.compile(r"\{% *(?:block +(?P<block>\w+)|include +\"(?P<template>[^\"]+)\")")
ENTITY = re.compile(r"&#?\w+;")
# A letter with another one; what has a colon, a dot or a digit inside is an identifier: gate:42, manage.py, R-7.
WORD = re.compile(r"(?<![\w:./@-])[^\W\d_]{2,}(?:['\u2019-][^\W\d_]+)*(?![\w/@]|[.:]\w)")
# What a filter puts in the place of a value, unless it is marked: default:_("none").
FALLBACK = re.compile(r"\|(?:default|default_if_none|yesno):\"([^\"]*)\"")
SENTENCE = re.compile(r"(?<!_\()\"([A-Z]\w+ [^\"]*[a-z][^\"]*)\"")
MARKING_TAG = re.compile(r"\{% *(?:block)?trans")


class Fault(NamedTuple):
    """One thing to mend, at a line counted from 1."""

    line: int
    what: str


def faults(source: str, name: str = "", in_attributes: frozenset[str] = frozenset()) -> list[Fault]:
    """List what is to be mended in the template of this name; see `found_in_attributes` for the third argument."""
    words = _words(f"<x {source}>" if name in in_attributes else source, in_attributes)
    found = {Fault(source.count("\n", 0, at) + 1, what) for at, what in words}
    for number, line in enumerate(source.split("\n"), start=1):
        if len(line) > LONGEST:
            found.add(Fault(number, f"wrap this line of {len(line)} characters; {LONGEST} are the most"))
    return sorted(found)


def found_in_attributes(sources: Iterable[str]) -> frozenset[str]:
    """Name the blocks and the included templates that stand inside an element's tag: what fills them is no text."""
    names = set()
    for source in sources:
        spans = [element.span() for element in ELEMENT.finditer(TOKEN.sub(_blank, source))]
        for filled in FILLED.finditer(source):
            if any(start < filled.start() < end for start, end in spans):
                names.add(filled["block"] or filled["template"])
    return frozenset(names)


def _words(source: str, in_attributes: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Yield the place of each piece of text that a person reads and nobody could translate."""
    source = NOT_READ.sub(_blank, source)
    source = BLOCK.sub(lambda block: _blank(block) if block[1] in in_attributes else block[0], source)
    masked = CODE.sub(lambda code: code[1] + _blanked(code[3]), TOKEN.sub(_blank, source))
    for start, end in _read(masked):
        words = WORD.finditer(ENTITY.sub(_blank, masked[start:end]))
        if first := next((word for word in words if word[0] not in SAME_EVERYWHERE), None):
            yield start + first.start(), f"mark for translation: “{_shortened(masked[start:end])}”"
        for token in TOKEN.finditer(source, start, end):
            for fallback in FALLBACK.finditer(token[0]):
                if WORD.search(fallback[1]):
                    yield token.start(), f'mark for translation: _("{fallback[1]}")'
    for token in TOKEN.finditer(source):
        if "|pluralize" in token[0]:
            yield token.start(), "write both forms in {% blocktranslate count … %}, not with pluralize"
        if not MARKING_TAG.match(token[0]):
            for sentence in SENTENCE.finditer(token[0]):
                yield token.start(), f'mark for translation: _("{sentence[1]}")'


def _read(masked: str) -> Iterator[tuple[int, int]]:
    """Yield where text stands that a person reads, in a template whose tokens are blanks."""
    after = 0
    for element in ELEMENT.finditer(masked):
        yield after, element.start()
        after = element.end()
        attributes = {found[1].lower(): found for found in ATTRIBUTE.finditer(masked, *element.span(3))}
        kind = attributes["type"][2].strip("\"'") if "type" in attributes else ""
        for name, found in attributes.items():
            if name in SPOKEN or (name == "value" and element[2].lower() == "input" and kind in BUTTONS):
                yield found.span(2)
    yield after, len(masked)


def _blank(found: re.Match[str]) -> str:
    return _blanked(found[0])


def _blanked(text: str) -> str:
    """Return as many blanks, on as many lines: every place in the text stays where it is."""
    return re.sub(r"[^\n]", " ", text)


def _shortened(text: str) -> str:
    words = " ".join(html.unescape(text).strip("\"'").split())
    return words if len(words) <= 40 else words[:39] + "…"


def check(paths: Iterable[Path], root: Path = ROOT) -> list[str]:
    """List the faults of these files and folders as `file:line: what to do`."""
    within = found_in_attributes(path.read_text() for path in root.rglob("*.html"))
    files = sorted(file for path in paths for file in (path.rglob("*.html") if path.is_dir() else [path]))
    lines = []
    for file in files:
        name = file.resolve().relative_to(root).as_posix() if file.resolve().is_relative_to(root) else ""
        lines += [f"{file}:{fault.line}: {fault.what}" for fault in faults(file.read_text(), name, within)]
    return lines


def main(paths: list[str]) -> int:
    """Print the faults of these files and folders, of all templates where none is named; return the exit status."""
    found = check([Path(path) for path in paths] or [ROOT])
    sys.stdout.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
