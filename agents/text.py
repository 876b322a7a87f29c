"""Makes texts fit to be saved: their size and shape."""

from __future__ import annotations


def one_line(words: str, limit: int) -> str:
    """Return at most `limit` characters on one line, without control characters, which columns or pages refuse."""
    printable = "".join(c if c.isprintable() else " " for c in words[: limit * 4])
    line = " ".join(printable.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def encode_tail(words: str, limit: int) -> bytes:
    """Return the last `limit` bytes, at most, as UTF-8: the end of a traceback says what went wrong."""
    data = words.encode(errors="replace")
    return data if len(data) <= limit else data[-limit:].decode(errors="ignore").encode()
