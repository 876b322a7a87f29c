"""Renders the difference of two long texts: removed parts struck out, new parts underlined, the rest counted."""

from __future__ import annotations

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from approvals.forms import texts, words

from . import untrusted

DRAWN = 300  # stretches drawn of one text; further ones are counted


def is_long(*values: object) -> bool:
    """Tell whether these are texts of which one is so long that they are better compared word by word."""
    if not all(isinstance(value, str) for value in values):
        return False
    return any(len(value) > texts.LONG or "\n" in value for value in values if isinstance(value, str))


def render(before: str, after: str) -> SafeString:
    """Render the new text with its removed and added parts marked."""
    found = words.stretches(before, after)
    drawn = format_html_join("", "{}", ((_html(each),) for each in found[:DRAWN]))
    more = len(found) - DRAWN
    rest = format_html('<span class="collapsed"><b>{} more differences are not shown</b></span>', f"{more:,}")
    return format_html("{}{}", drawn, rest) if more > 0 else drawn


def _html(each: words.Stretch) -> SafeString:
    text = untrusted.render(each.text)
    if each.kind == "gone":
        return format_html("<del>{}</del>", text)
    if each.kind == "put":
        return format_html("<ins>{}</ins>", text)
    cut = format_html(' <span class="hint">{} characters as they were</span> ', f"{each.cut:,}")
    return format_html("{}{}", text, cut) if each.cut else text
