"""Makes texts fit to be saved: their size and shape, and their language."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.utils.translation import override


@contextmanager
def saved_language() -> Iterator[None]:
    """Translate into the installation's language: what is saved may not depend on whose request makes a run go on."""
    with override(settings.LANGUAGE_CODE):
        yield


def one_line(words: str, limit: int) -> str:
    """Return at most `limit` characters on one line, without control characters, which columns or pages refuse."""
    printable = "".join(c if c.isprintable() else " " for c in words[: limit * 4])
    line = " ".join(printable.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def utf8(words: str, limit: int) -> bytes:
    """Return the last `limit` bytes, at most, as UTF-8: the end of a traceback says what went wrong."""
    data = words.encode(errors="replace")
    return data if len(data) <= limit else data[-limit:].decode(errors="ignore").encode()
