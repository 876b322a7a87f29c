"""Templates can be read, load what they need, and lose nothing but blanks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.template import Context, Engine, Origin

from config.web.template_loader import Loader
from tests.harness.session import ROOT

LONGEST = 160
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
MARK = re.compile(r"\{% *(?:block)?trans|\bi18n\b|\b_\(\"|\|pluralize")


def test_no_line_is_too_long() -> None:
    assert len(TEMPLATES) > 100
    lines = [
        f"{path}:{number}"
        for path in TEMPLATES
        for number, line in enumerate(path.read_text().split("\n"), 1)
        if len(line) > LONGEST
    ]
    assert lines == []


def test_no_word_is_marked_for_translation() -> None:
    """A mark is looked up on every page, and there is one language; plurals are written by the filter `counted`."""
    assert [str(path) for path in TEMPLATES if MARK.search(path.read_text())] == []
    python = (path for app in ("agents", "approvals", "checkpoints", "config") for path in (ROOT / app).rglob("*.py"))
    assert [str(path) for path in python if "django.utils.translation" in path.read_text()] == []


SCRIPTS = ROOT / "static" / "js"


def loaded(*names: str) -> set[str]:
    found: set[str] = set()
    ahead = list(names)
    while ahead:
        if (name := ahead.pop()) not in found:
            found.add(name)
            ahead += re.findall(r'"\./([a-z-]+)\.js"', (SCRIPTS / f"{name}.js").read_text())
    return found


EVERYWHERE = loaded("main")
ELEMENTS = {
    element: module.stem
    for module in SCRIPTS.glob("*.js")
    for element in re.findall(r'customElements\.define\("([a-z-]+)"', module.read_text())
    if module.stem not in EVERYWHERE
}


@pytest.mark.parametrize("element", sorted(ELEMENTS))
def test_each_template_with_the_element_loads_its_module(element: str) -> None:
    """The element would do nothing, and nothing would say so."""
    pages = [page.read_text() for page in (ROOT / "templates").rglob("*.html") if f"<{element}" in page.read_text()]
    assert pages
    assert all(ELEMENTS[element] in loaded(*re.findall(r"'js/([a-z-]+)\.js'", page)) for page in pages)


ENGINE = Engine()


def left_by_loader(source: str, folder: Path, name: str = "page.html") -> str:
    path = folder / name
    path.write_text(source)
    return Loader(ENGINE).get_contents(Origin(str(path), name, None))


@pytest.mark.parametrize(
    ("source", "read"),
    [
        ("<p>\n    One\n    two.\n  </p>", "<p>\nOne two.\n</p>"),
        ("<p>One {{ a }}\n  {{ b }} two.</p>", "<p>One {{ a }} {{ b }} two.</p>"),
        ("<p>One\n  <b>two</b>\n  three.</p>", "<p>One\n<b>two</b>\nthree.</p>"),
        ("{% if a %}\n  One\n{% else %}\n  two\n{% endif %}", "{% if a %}\nOne\n{% else %}\ntwo\n{% endif %}"),
        ('<a class="a"\n   href="b">c</a>', '<a class="a" href="b">c</a>'),
    ],
)
def test_sentences_stand_on_one_line_and_indentation_goes(source: str, read: str, tmp_path: Path) -> None:
    assert left_by_loader(source, tmp_path) == read
    assert left_by_loader(source, tmp_path, "mail.txt") == source, "the text of a mail stays as it is"
    words = {"a": "x", "b": "y"}
    drawn, as_written = (ENGINE.from_string(text).render(Context(words)) for text in (read, source))
    assert drawn.split() == as_written.split()
