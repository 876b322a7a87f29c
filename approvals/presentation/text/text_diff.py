"""Renders the difference of two long texts: removed parts struck out, new parts underlined, the rest folded."""

from __future__ import annotations

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from approvals.forms import words

from . import untrusted
from .icons import icon

DRAWN = 300  # stretches drawn of one text; further ones are counted


def render(before: str, after: str) -> SafeString:
    """Render the new text with its removed and added parts marked; what is folded of it opens in place, since it runs.

    Past `DRAWN` stretches the rest of the new text stands folded as it is.
    """
    found = words.stretches(before, after)
    drawn = format_html_join("", "{}", ((_html(each),) for each in found[:DRAWN]))
    more = len(found) - DRAWN
    if more <= 0:
        return drawn
    rest = "".join(each.text + each.cut + each.tail for each in found[DRAWN:] if each.kind != "gone")
    return format_html("{}{}", drawn, _folded(f"{more:,} more differences", rest))


def _html(each: words.Stretch) -> SafeString:
    text = untrusted.render(each.text, value=True, part=True)
    if each.kind == "gone":
        return format_html("<del>{}</del>", text)
    if each.kind == "put":
        return format_html("<ins>{}</ins>", text)
    if not each.cut:
        return text
    label = f"{len(each.cut):,} characters as they were"
    return format_html("{}{}{}", text, _folded(label, each.cut), untrusted.render(each.tail, value=True, part=True))


def _folded(label: str, text: str) -> SafeString:
    return format_html(
        '<details class="more"><summary class="collapsed">{}<b>{}</b></summary>{}</details>',
        icon("fold", "s"), label, untrusted.render(text, value=True, part=True),
    )  # fmt: skip
