"""Reads the file that a tool is to replace, so that people see the difference: as it was when they were asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LARGEST = 100_000  # bytes


@dataclass(frozen=True)
class Replaced:
    """The text that would be replaced, and what is said of it; "" where there is nothing to compare."""

    text: str
    words: str


NONE = Replaced("", "")


def read(input: Mapping[str, Any], folder: str) -> Replaced:
    """Return what is at the path of the input, relative to a folder."""
    path = input.get("file_path")
    if not isinstance(path, str) or not path:
        return NONE
    file = Path(folder) / path
    try:
        if not file.exists():
            return Replaced("", "There was no such file when this was asked: it would be new.")
        if not file.is_file():
            return Replaced("", "There is something at this path that is no plain file.")
        with file.open("rb") as opened:
            found = opened.read(LARGEST + 1)
    except OSError as error:
        return Replaced("", f"There is a file, which could not be read for a comparison: {error.strerror}.")
    if len(found) > LARGEST:
        return Replaced("", f"There is a file of more than {LARGEST:,} bytes, too large for a comparison.")
    text = found.decode(errors="replace")
    if "\0" in text or text.encode() != found:
        return Replaced("", "There is a file that is no text: all of it would be replaced.")
    if not text:
        return Replaced("", "There was an empty file when this was asked.")
    return Replaced(text, "The difference is from the file as it was when this was asked.")
