"""What the documents for authors tell people to type: their blocks of code and their commands."""

from __future__ import annotations

import re
import shlex

from tests.harness.session import ROOT


def blocks(document: str, language: str) -> list[str]:
    """The document's blocks in a language, in order."""
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", (ROOT / document).read_text())


def block(document: str, *words: str, language: str = "python") -> str:
    """The one block that holds all these words."""
    [found] = [each for each in blocks(document, language) if all(word in each for word in words)]
    return found


def commands(document: str) -> list[list[str]]:
    """The arguments of each `manage.py …` that can be typed as it stands; what holds a … is a pattern of one."""
    text = (ROOT / document).read_text()
    found = re.findall(r"`\.venv/bin/python manage\.py ([^`]+)`", text)
    for each in blocks(document, "sh"):
        found += re.findall(r"(?m)^\.venv/bin/python manage\.py (.+)$", each)
    return [shlex.split(each) for each in found if "…" not in each]
