"""Texts that the channels have in common. Pure."""

from __future__ import annotations

from approvals.notifications.message import Message


def heading(message: Message) -> str:
    """Return the first line: what happened; of a gate that has ended its title, as how it ended follows."""
    return message.title if message.ended and message.title else message.subject


def shortened(text: str, most: int) -> str:
    """Cut a text to so many characters, and show that it was cut."""
    return text if len(text) <= most else text[: most - 1] + "…"
