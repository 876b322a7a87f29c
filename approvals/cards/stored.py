"""Reads cards from the bytes in which they are saved. A card never changes, so a process reads the same bytes once."""

from __future__ import annotations

from operator import itemgetter
from threading import RLock

from cachetools import LRUCache, cached

from checkpoints.values.canonical_json import decode

from .card import Card

READ = 2_000_000  # bytes of cards that a process caches; the decoded values take some ten times as much


def card_of(body: bytes) -> Card:
    """Return the card in a gate's or a proposal's canonical JSON. Many readers share it: nobody may change its values.

    What a reader may see of it is no part of it, and is decided for each request.
    """
    return _read(body)[0]


@cached(LRUCache(READ, itemgetter(1)), lock=RLock())
def _read(body: bytes) -> tuple[Card, int]:
    return Card.from_json(decode(body)), len(body)
