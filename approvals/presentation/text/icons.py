"""The icons of static/icons.svg."""

from __future__ import annotations

from functools import cache

from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString


@cache  # a page draws hundreds, and the sheet's address is the same for as long as the process lives
def icon(name: str, size: str = "") -> SafeString:
    """Render `<svg class="icon">` of the symbol `i-<name>`; size "s" is the small one."""
    sized = format_html(' data-size="{}"', size) if size else ""
    sheet = static("icons.svg")
    return format_html('<svg class="icon"{} aria-hidden="true"><use href="{}#i-{}"/></svg>', sized, sheet, name)
