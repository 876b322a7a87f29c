"""Draws a message as Slack's Block Kit (https://docs.slack.dev/reference/block-kit). Pure.

Every text is a plain_text object, in which Slack reads no markup: an agent's words make no link, no mention and no
heading. The three characters that Slack reads in any text are escaped in each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from approvals.notifications.building import MessageFact, NoticeMessage

from .texts import facts, fitting, heading

ESCAPED = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
HEADER, TEXT, FIELD, BUTTON = 150, 3000, 2000, 75  # characters that Slack takes, escaped
FIELDS = 10  # of one section
BLOCKS = 50  # of one message
ITEMS = 25  # of a list
LONGEST = 12_000  # characters of all blocks as JSON; from about 13,200 on Slack refuses them (msg_blocks_too_long)
Block = dict[str, Any]


def body_of(message: NoticeMessage, zone: str) -> Block:
    """Return the body of a new message, and of one that is changed in place; its times are those of the zone."""
    return {
        "text": escaped(message.subject, TEXT),  # of notifications, and where blocks cannot be shown
        "blocks": fitting(message, lambda some: list(_blocks(some, zone))[:BLOCKS], _fit),
        "mrkdwn": False, "parse": "none", "link_names": False, "unfurl_links": False, "unfurl_media": False,
    }  # fmt: skip


def _fit(blocks: Sequence[Block]) -> bool:
    return len(json.dumps(blocks, ensure_ascii=False)) <= LONGEST


def escaped(text: str, most: int) -> str:
    """Escape a text, and cut it to what Slack takes, never inside of an escape."""
    parts: list[str] = []
    left = most - 1
    for char in text:
        part = ESCAPED.get(char, char)
        left -= len(part)
        if left < 0:
            return "".join(parts) + "…"
        parts.append(part)
    return "".join(parts)


def _blocks(message: NoticeMessage, zone: str) -> Iterator[Block]:
    yield {"type": "header", "text": _plain(heading(message), HEADER)}
    if message.ended:
        yield {"type": "section", "text": _plain(message.ended, TEXT)}
    yield from _facts(facts(message, zone))
    for section in () if message.ended else message.sections:
        yield {"type": "section", "text": _plain(section.heading, TEXT)}
        yield from _facts(section.facts)
    for item in message.items[:ITEMS]:
        yield {"type": "section", "text": _plain(item.subject, TEXT), "accessory": _button(item, f"open-{item.gate}")}
    if message.reason:
        yield {"type": "context", "elements": [_plain(message.reason, TEXT)]}
    yield {"type": "actions", "elements": [_button(message, "open")]}


def _facts(found: Sequence[MessageFact]) -> Iterator[Block]:
    for start in range(0, len(found), FIELDS):
        some = found[start : start + FIELDS]
        yield {"type": "section", "fields": [_plain(f"{each.label}\n{each.value}", FIELD) for each in some]}


def _button(message: NoticeMessage, name: str) -> Block:
    """Draw a link. Pressing it opens a page, where a signed-in person may decide."""
    return {"type": "button", "action_id": name, "text": _plain(message.button, BUTTON), "url": message.link}


def _plain(text: str, most: int) -> Block:
    return {"type": "plain_text", "text": escaped(text, most) or " ", "emoji": False}
