"""A long value in a row of a difference: its first lines, the others folded away."""

from __future__ import annotations

from hashlib import blake2s

from django.utils.html import format_html
from django.utils.safestring import SafeString

from . import untrusted

LINES = 30


def render(text: str, address: str) -> SafeString:
    """Render `text`, shown in full at `address`; what was unfolded stays so as long as that is the same."""
    lines = text.split("\n")
    if len(lines) <= LINES:
        return untrusted.render(text, whole=address)
    return format_html(
        '{}<details class="value-rest" id="rest-{}"><summary>Show {} more line{}</summary>{}</details>',
        untrusted.render("\n".join(lines[:LINES]), whole=address),
        blake2s(address.encode(), digest_size=8).hexdigest(),
        f"{len(lines) - LINES:,}",
        "" if len(lines) == LINES + 1 else "s",
        untrusted.render("\n".join(lines[LINES:]), whole=address),
    )
