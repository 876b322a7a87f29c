"""Makes texts fit to be saved: without characters that a terminal obeys, on one line, of a bounded size."""

from __future__ import annotations

import re

_OBEYED = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
KEY_RULE = "Send a key of 1 to 80 characters."


def escape_controls(text: str) -> str:
    """Return `text` with these characters as JSON escapes them: the text of JSON stays the same JSON."""
    return _OBEYED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def is_key(key: str) -> bool:
    """Tell whether a request may be known by this key: printable, as PostgreSQL's text takes no U+0000."""
    return 0 < len(key) <= 80 and key.isprintable()


def one_line(words: str, limit: int) -> str:
    """Return at most `limit` characters on one line, without control characters, which columns or pages refuse."""
    printable = "".join(c if c.isprintable() else " " for c in words[: limit * 4])
    line = " ".join(printable.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def encode_tail(words: str, limit: int) -> bytes:
    """Return the last `limit` bytes, at most, as UTF-8: the end of a traceback says what went wrong."""
    data = words.encode(errors="replace")
    return data if len(data) <= limit else data[-limit:].decode(errors="ignore").encode()
