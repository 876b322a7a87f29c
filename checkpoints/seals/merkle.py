"""Merkle trees as in RFC 6962: a root over leaves, and the path that leads from one leaf to it.

An odd node at the end of a level goes up as it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence


def levels(leaves: Sequence[bytes]) -> list[list[bytes]]:
    """Build the tree over one or more leaves, from the leaves up to the root."""
    found = [list(leaves)]
    while len(found[-1]) > 1:
        level = found[-1]
        pairs = [_pair(a, b) for a, b in zip(level[::2], level[1::2], strict=False)]
        found.append(pairs + level[len(level) & ~1 :])
    return found


def root(leaves: Sequence[bytes]) -> bytes:
    """Compute the root over one or more leaves."""
    return levels(leaves)[-1][0]


def path(tree: Sequence[Sequence[bytes]], index: int) -> list[bytes]:
    """Return the siblings on the way from the leaf at `index` to the root of `levels(leaves)`."""
    found = []
    for level in tree[:-1]:
        if index ^ 1 < len(level):
            found.append(level[index ^ 1])
        index >>= 1
    return found


def climb(leaf: bytes, index: int, size: int, siblings: Sequence[bytes]) -> bytes | None:
    """Compute the root to which a leaf, its index among `size` leaves and its path lead; None if they do not fit."""
    if not 0 <= index < size:
        return None
    node, rest = leaf, iter(siblings)
    while size > 1:
        if index ^ 1 < size:
            sibling = next(rest, None)
            if sibling is None:
                return None
            node = _pair(sibling, node) if index & 1 else _pair(node, sibling)
        index, size = index >> 1, (size + 1) >> 1
    return node if next(rest, None) is None else None


def _pair(first: bytes, second: bytes) -> bytes:
    return hashlib.sha256(b"\1" + first + second).digest()
