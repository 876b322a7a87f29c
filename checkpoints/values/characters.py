"""Characters that a terminal obeys, or that a line reader takes for the end of a line; and keys, which hold none."""

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
