"""Draws a mail as strict mail clients do: no script runs, and nothing is loaded from anywhere."""

from __future__ import annotations

from collections.abc import Callable
from email.message import EmailMessage

from playwright.sync_api import Browser, Page

WIDTHS = (390, 720)
SCHEMES = ("light", "dark")


def drawn(browser: Browser, mail: EmailMessage, look: Callable[[Page, int, str], None]) -> list[str]:
    """Show the HTML part of a mail at each width in each scheme to `look`; return what it tried to load."""
    part = mail.get_body(("html",))
    html = str(part.get_content()) if part else ""
    asked: list[str] = []
    for scheme in SCHEMES:
        for width in WIDTHS:
            context = browser.new_context(
                viewport={"width": width, "height": 900}, java_script_enabled=False,
                color_scheme=scheme,  # type: ignore[arg-type]
            )  # fmt: skip
            page = context.new_page()
            page.on("request", lambda request: asked.append(request.url))
            page.route("**/*", lambda route: route.abort())
            page.set_content(html, wait_until="domcontentloaded")
            look(page, width, scheme)
            context.close()
    return asked
