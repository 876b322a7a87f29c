"""Measures a stranger's text as the pages do. Pure."""

from __future__ import annotations

from agents.text import one_line
from approvals.presentation.text.invisible import badge_count

__all__ = ["count_invisible", "one_line"]


def count_invisible(text: str) -> int:
    """Count the characters that a reader cannot see."""
    return badge_count(text)[0]
