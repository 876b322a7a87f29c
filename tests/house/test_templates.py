"""Templates can be read: no line is too long, and English stands in them as English."""

from __future__ import annotations

import re

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
