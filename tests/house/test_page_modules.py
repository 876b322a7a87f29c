"""A module that is not loaded on every page is loaded by each template that has its element."""

from __future__ import annotations

import re

import pytest

from tests.harness.session import ROOT

SCRIPTS = ROOT / "static" / "js"


def loaded(*names: str) -> set[str]:
    """These modules, and all that they import."""
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
