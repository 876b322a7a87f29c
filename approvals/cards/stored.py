"""Reads cards from the bytes in which they are saved. A card never changes, so a process reads the same bytes once."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from threading import RLock

from cachetools import LRUCache, cached

from checkpoints.values.canonical_json import decode_canonical

from .card import Card

MARKS = (b'"writeOnly":true', b'"password"')  # as canonical JSON has them, see approvals.schema.walk.is_secret
READ = 2_000_000  # bytes of cards that a process caches; the decoded values take some ten times as much


def card_of(body: bytes, *, external: Callable[[], bool]) -> Card:
    """Return the card in a gate's or a proposal's canonical JSON. Many readers share it: nobody may change its values.

    `external` tells whether its plan is an external program's, by the plan's row. It is asked only where something in
    the card may be marked as secret, so that most cards are read without that row.
    What a reader may see of it is no part of it, and is decided for each request.
    """
    return _read(body, any(mark in body for mark in MARKS) and external())[0]


@cached(LRUCache(READ, itemgetter(1)), lock=RLock())
def _read(body: bytes, external: bool) -> tuple[Card, int]:
    return Card.from_json(decode_canonical(body), external=external), len(body)
