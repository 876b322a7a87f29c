"""Writes the table of docs/events.md from the kinds that the code declares; `make generated` runs it."""

from __future__ import annotations

from pathlib import Path

from checkpoints.events.kinds import KINDS

PAGE = Path(__file__).with_suffix(".md")
MARK = "<!-- `make generated` writes what follows from checkpoints/events/kinds.py. -->\n"


def page_with_table(page: str) -> str:
    """Return the page with its words up to the mark, and the table of all kinds after it."""
    words = page.partition(MARK)[0]
    rows = [f"| `{kind}` | {of.subject} | {of.when} | {of.data or 'none'} |\n" for kind, of in KINDS.items()]
    return f"{words}{MARK}\n| kind | subject | when | data |\n|---|---|---|---|\n{''.join(rows)}"


if __name__ == "__main__":
    PAGE.write_text(page_with_table(PAGE.read_text()))
